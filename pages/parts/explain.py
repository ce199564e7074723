"""Why a kernel is faster or slower than what it was made from, in words and figures. Pure: knows rows of the index."""

from __future__ import annotations

from pages.parts import wording
from storage import relative
from storage.queries import AttemptRow, CorrectnessErrorRow, CostRow
from storage.relative import Relative


def against(kernel: AttemptRow, other: AttemptRow | None) -> Relative | None:
    """The kernel's speed over another's; None unless both are timed."""
    if other is None or None in (kernel.speedup, kernel.noise, other.speedup, other.noise):
        return None
    return relative.over(kernel.speedup or 0, kernel.noise or 0, other.speedup or 0, other.noise or 0)


def verdict_on(change: Relative, other: AttemptRow) -> str:
    """The change against another kernel as a sentence that says whether it is beyond the noise."""
    if change.low > 1:
        return f"{wording.speedup(change.speedup, change.noise)} the speed of kernel {other.number}: faster"
    if change.high < 1:
        return f"{wording.speedup(change.speedup, change.noise)} the speed of kernel {other.number}: slower"
    return f"No clear difference to kernel {other.number}"


def where_wrong(error: CorrectnessErrorRow) -> str:
    """Where a result goes wrong first, and by how much; empty where nothing could be compared."""
    if not error.total_count:
        return ""
    place = f"[{', '.join(map(str, error.first_index))}]"
    values = f"expected {_value(error.expected)}, got {_value(error.actual)}"
    return f"First wrong index {place}: {values}. {error.wrong_count or 0:,} of {error.total_count:,} values are wrong."


def _value(value: float | None) -> str:
    return wording.NONE if value is None else f"{value:.6g}"


def cost(found: CostRow) -> str:
    """What the kernel has cost, on one line."""
    calls = wording.counted(found.calls, "model call")
    spent = f"{wording.tokens(found.tokens)} tokens · {wording.cost(found.cost_usd)}"
    return (
        f"{calls} · {spent} · {wording.seconds(found.writing_s)} to write · {wording.seconds(found.judging_s)} to judge"
    )
