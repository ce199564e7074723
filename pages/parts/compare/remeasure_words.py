"""A re-measurement in words: how far it is, and what it found beside what the runs had said. Pure."""

from __future__ import annotations

from pages.parts import wording
from storage.remeasurements import KernelName, Ratio, Remeasurement, RemeasureState

TONE: dict[RemeasureState, wording.Tone] = {
    RemeasureState.STARTING: "blue",
    RemeasureState.BUILDING: "blue",
    RemeasureState.WAITING: "orange",
    RemeasureState.MEASURING: "blue",
    RemeasureState.DONE: "green",
    RemeasureState.FAILED: "red",
    RemeasureState.LOST: "violet",
}
ICON = {
    RemeasureState.STARTING: ":material/progress_activity:",
    RemeasureState.BUILDING: ":material/build:",
    RemeasureState.WAITING: ":material/schedule:",
    RemeasureState.MEASURING: ":material/timer:",
    RemeasureState.DONE: ":material/check:",
    RemeasureState.FAILED: ":material/close:",
    RemeasureState.LOST: ":material/warning:",
}


def sentence(found: Remeasurement) -> str:
    """What is known, in one sentence or two."""
    request, progress = found.request, found.progress
    ratio = progress.ratio
    match progress.state:
        case RemeasureState.DONE if ratio:
            return verdict(request.first, request.second, ratio)
        case RemeasureState.FAILED:
            return f"Measurement failed: {wording.cut(progress.message, 400)}"
        case RemeasureState.LOST:
            return "The measurement was interrupted. " + _so_far(found)
        case RemeasureState.WAITING:
            return f"Waiting for another timing to finish ({progress.message}). {_so_far(found)}"
        case _:
            return f"{progress.message[:1].upper()}{progress.message[1:]}. {_so_far(found)}"


def verdict(first: KernelName, second: KernelName, ratio: Ratio) -> str:
    """Which is faster and by how much, beside what the runs had said."""
    said = wording.speedup(first.speedup / second.speedup)
    name, other = f"kernel {first.number}", f"kernel {second.number}"
    band = f"{wording.speedup(ratio.value)} ({wording.interval(ratio.low, ratio.high)})"
    if not ratio.is_sound:
        rounds = "1 round" if ratio.rounds == 1 else f"{ratio.rounds} rounds"
        value = wording.speedup(ratio.value)
        doubt = f"{name.capitalize()} is {value} as fast as {other} in {rounds}, too few to rule out noise"
        return f"{doubt}; in their runs it was {said}."
    if not ratio.is_difference:
        return f"No significant difference: {name} is {band} as fast as {other}; in their runs it was {said}."
    return f"{name.capitalize()} is {band} as fast as {other}; in their runs it was {said}."


def _so_far(found: Remeasurement) -> str:
    done, ratio = len(found.progress.rounds), found.progress.ratio
    if ratio is None:
        return f"0 of {found.request.rounds} rounds completed."
    return f"{done} of {found.request.rounds} rounds completed, {wording.speedup(ratio.value)} so far."
