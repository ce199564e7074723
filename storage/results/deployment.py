"""What matters where a kernel is deployed: whether its call can be captured in a CUDA graph, whether it keeps to the
current stream, what memory it takes. Properties that are told; no verdict depends on them. Knows no file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from storage.results import in_words
from storage.results.timeline import Timeline

TITLE = "Deployment"
ABOUT = "Properties of a call that its caller relies on; no verdict depends on them"
UNCAPTURED = "graphs are captured on a GPU, and this toolchain has none"


class Trait(StrEnum):
    """How a kernel stands to a property."""

    HELD = "yes"
    LACKING = "no"
    NOT_TRIED = "not tried"


@dataclass(frozen=True, slots=True)
class CallMemory:
    """What a call takes beyond its outputs from PyTorch's allocator, and what stays."""

    taken_bytes: int
    allocations: int
    peak_bytes: int
    """The most that it holds at a time."""
    kept_bytes: int | None
    """What it still holds after the first calls, their outputs given back; None where nobody can tell."""
    grown_bytes: int = 0
    """What each further call adds to that."""


@dataclass(frozen=True, slots=True)
class Deployment:
    """What was seen of one kernel in a process of its own, after all verdicts."""

    capture: Trait
    """Whether a call that was captured gives, replayed with other inputs, the answer that it gives by itself."""
    why: str = ""
    """Why it was not captured, or not tried: the end of a sentence."""
    stream: Trait = Trait.NOT_TRIED
    """Whether its work waits for the current stream where that is another than the default one."""
    memory: CallMemory | None = None
    unseen: str = ""
    """Why its memory is not known: the end of a sentence."""
    timeline: Timeline | None = None


@dataclass(frozen=True, slots=True)
class Told:
    """One property for people: its name, how it stands, and a sentence."""

    name: str
    trait: Trait | None
    standing: str
    sentence: str


def told(deployment: Deployment) -> Iterator[Told]:
    """The properties one after the other. The stream is left out where nobody could try it."""
    yield _capture(deployment)
    if deployment.stream is not Trait.NOT_TRIED:
        yield Told("Current stream", deployment.stream, *_STREAM[deployment.stream])
    yield _memory(deployment)


def line(deployment: Deployment) -> str:
    """All of it in one line."""
    return "; ".join(f"{row.name}: {row.standing}" for row in told(deployment))


_STREAM = {
    Trait.HELD: ("followed", "It waits for what the current stream holds, whichever that is."),
    Trait.LACKING: (
        "not followed",
        "Its work does not wait for the current stream: it is launched on another one, as the legacy default stream. "
        "Launch on at::cuda::getCurrentCUDAStream().",
    ),
}


def _capture(deployment: Deployment) -> Told:
    name, why = "CUDA graph", deployment.why
    match deployment.capture:
        case Trait.HELD:
            sentence = "A call was captured and replayed with other inputs: the answer is that of a call by itself."
            return Told(name, Trait.HELD, "capturable", sentence)
        case Trait.LACKING:
            return Told(name, Trait.LACKING, "not capturable", _sentence(why))
        case _:
            return Told(name, Trait.NOT_TRIED, "not tried", _sentence(why))


def _memory(deployment: Deployment) -> Told:
    name, memory = "Memory of a call", deployment.memory
    if memory is None:
        return Told(name, Trait.NOT_TRIED, "not known", _sentence(deployment.unseen))
    taken = "Beyond its outputs a call takes none from PyTorch's allocator"
    if memory.allocations:
        several = f"{memory.allocations} allocation{'' if memory.allocations == 1 else 's'}"
        taken = f"Beyond its outputs a call takes {_size(memory.taken_bytes)} in {several} from PyTorch's allocator"
        taken += f", at most {_size(memory.peak_bytes)} at a time"
    kept = f"It keeps {_size(memory.kept_bytes)} from call to call" if memory.kept_bytes else "It keeps none"
    kept = "What it keeps is not known here" if memory.kept_bytes is None else kept
    grown = f", and each call adds {_size(memory.grown_bytes)}" if memory.grown_bytes else ""
    standing = f"{_size(memory.taken_bytes)} beyond its outputs" if memory.allocations else "its outputs alone"
    standing += ", and it grows" if memory.grown_bytes else ""
    return Told(name, None, standing, f"{taken}. {kept}{grown}.")


def _size(count: int) -> str:
    return in_words.quantity(float(count), "B")


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:].rstrip('.')}." if text else ""
