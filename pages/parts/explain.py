"""Why a kernel is faster or slower than what it was made from, in words and figures. Pure: knows rows of the index."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from pages.parts import wording
from storage import counters, relative
from storage.queries import AttemptRow, CorrectnessErrorRow, CostRow, MetricChangeRow
from storage.relative import Relative

SAME = 1.005  # a figure that changed by less than this factor has not changed


@dataclass(frozen=True, slots=True)
class Change:
    """One figure of the profile before and after. `percent` is signed, None where the old one was zero."""

    metric: str
    before: str
    after: str
    percent: float | None
    meaning: str


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


def changes(found: Sequence[MetricChangeRow], most: int = 6) -> list[Change]:
    """Figures of the profile that changed, the largest change first."""
    told = [row for row in found if row.previous is not None and not _is_same(row.value, row.previous)]
    one_each = {(row.metric, row.kernel): row for row in sorted(told, key=lambda row: row.launch, reverse=True)}
    return [_change(row) for row in sorted(one_each.values(), key=_weight, reverse=True)[:most]]


def _is_same(value: float, previous: float) -> bool:
    return value == previous or (value * previous > 0 and 1 / SAME < value / previous < SAME)


def _weight(row: MetricChangeRow) -> float:
    """How large a change is, whichever way it goes; from or to nothing is larger than any factor."""
    previous = row.previous or 0.0
    return abs(math.log(row.value / previous)) if row.value * previous > 0 else math.inf


def _change(row: MetricChangeRow) -> Change:
    is_share = row.metric.endswith("share")
    before = wording.quantity(row.previous or 0.0, row.unit, is_share)
    percent = 100 * (row.ratio - 1) if row.ratio is not None else None
    after = wording.quantity(row.value, row.unit, is_share)
    return Change(counters.label(row.metric), before, after, percent, counters.meaning(row.metric))


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
