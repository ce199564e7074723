"""How much of the machine a profiled kernel uses, as bars: shares of its rates, occupancy and what limits it. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pages.parts import wording
from pages.parts.kernel.launches_table import limiter
from pages.parts.widgets.bars import Bar
from storage import counters
from storage.queries import MetricRow

Values = Mapping[str, float]
SHARES = (
    ("memory throughput share", "memory throughput"),
    ("arithmetic throughput share", "arithmetic throughput"),
    ("memory throughput at least, share", "memory throughput, at least"),
    ("arithmetic throughput at least, share", "arithmetic throughput, at least"),
)
BLOCKS = {
    "registers": "by registers",
    "shared_mem": "by shared memory",
    "warps": "by warps",
    "blocks": "by block slots",
    "barriers": "by barriers",
}


def whole(rows: Sequence[MetricRow]) -> dict[str, float]:
    """Figures of the whole call by name."""
    return {row.metric: row.value for row in rows if row.launch < 0 and not row.kernel}


def longest(rows: Sequence[MetricRow]) -> dict[str, float]:
    """Figures of the launch that takes the most time; the first one where no time is told."""
    launches: dict[tuple[int, str], dict[str, float]] = {}
    for row in rows:
        if row.launch >= 0:
            launches.setdefault((row.launch, row.kernel), {})[row.metric] = row.value
    return max(launches.values(), key=lambda values: values.get(counters.TIME, 0.0), default={})


def rates(here: Values, before: Values) -> list[Bar]:
    """Shares of what the machine can do at best: memory, arithmetic, processors."""
    found = [
        Bar(label, here[name], wording.quantity(here[name], "1", is_share=True), before.get(name))
        for name, label in SHARES
        if name in here
    ]
    used, there, earlier = _busy(here), here.get("processors available", here.get("threads available")), _busy(before)
    if used is not None and there:
        text = f"{wording.significant(used, 2)} of {wording.count(int(there))}"
        found.append(Bar("processors busy", used / there, text, earlier / there if earlier is not None else None))
    return found


def _busy(values: Values) -> float | None:
    """Processor time over the calls' time; older profiles call it by another name."""
    return values.get("processors busy", values.get("threads used"))


def occupancy(here: Values, before: Values) -> list[Bar]:
    """Theoretical and achieved occupancy of one launch."""
    names = ((counters.THEORETICAL, "theoretical"), (counters.ACHIEVED, "achieved"))
    return [
        Bar(label, here[name] / 100, wording.quantity(here[name], "%"), _part(before.get(name)))
        for name, label in names
        if name in here
    ]


def blocks(here: Values, before: Values) -> list[Bar]:
    """Blocks that fit on a multiprocessor by each resource; the smallest limits. Empty where not told."""
    found = {what: here[f"{counters.OCCUPANCY_LIMIT}{what}"] for what in BLOCKS if _limit(what) in here}
    if not found:
        return []
    most, limits = max(found.values()) or 1.0, limiter(here).replace(" memory", "_mem").split(" and ")
    return [
        Bar(
            BLOCKS[what], count / most, f"{wording.count(int(count))} {'← limits' if what in limits else ''}".strip(),
            before[_limit(what)] / most if _limit(what) in before else None, is_limit=what in limits,
        )
        for what, count in found.items()
    ]  # fmt: skip


def _limit(what: str) -> str:
    return f"{counters.OCCUPANCY_LIMIT}{what}"


def _part(percent: float | None) -> float | None:
    return None if percent is None else percent / 100
