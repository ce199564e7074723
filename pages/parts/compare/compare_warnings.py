"""What stands in the way of comparing some runs, as sentences. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pages.parts.compare.compare_rows import Compared


def warnings(runs: Sequence[Compared]) -> list[str]:
    """One sentence per difference that makes speed-ups hard to compare; empty when nothing does."""
    found = []
    if spoilt := [run for run in runs if run.damage]:
        found.append("**Damaged runs.** What is missing is left out here. " + _who(spoilt, lambda run: run.damage))
    if len({run.run.task_name for run in runs}) > 1:
        found.append(
            "**Different tasks.** Each speed-up is over the baseline of its own task, so curves of different tasks do "
            "not compare. " + _who(runs, lambda run: run.run.title)
        )
    for task in dict.fromkeys(run.run.task_name for run in runs):
        same = [run for run in runs if run.run.task_name == task]
        if len({run.conditions.sizes for run in same}) > 1:
            found.append("**Different sizes of the same task.** " + _who(same, lambda run: _sizes(run)))
    devices = [run for run in runs if run.conditions.device]
    if len({run.conditions.device for run in devices}) > 1:
        found.append(
            "**Different devices.** Speed-ups on different devices do not compare directly. "
            + _who(devices, lambda run: run.conditions.device)
        )
    if len({run.conditions.precision for run in runs}) > 1:
        found.append(
            "**Different precision classes.** Lower precision alone can make a kernel faster. "
            + _who(runs, lambda run: run.conditions.precision or "unknown")
        )
    return found


def _sizes(run: Compared) -> str:
    return run.conditions.sizes.strip("{}").replace('"', "") or "unknown"


def _who(runs: Sequence[Compared], tell: Callable[[Compared], str]) -> str:
    """Which letters have what: "A, C: softmax; B: swish"."""
    groups: dict[str, list[str]] = {}
    for run in runs:
        groups.setdefault(tell(run), []).append(run.letter)
    return "; ".join(f"{', '.join(letters)}: {what}" for what, letters in groups.items())
