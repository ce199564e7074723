"""Each workload before and after: as the network is, in each way to call it, and with kernels put back; the ceiling as
a mark across. Knows no file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import streamlit as st

from pages.parts import wording
from pages.parts.network import network_kernels
from pages.parts.widgets import bars, table
from pages.parts.widgets.bars import Bar
from storage.networks import in_network, ranking
from storage.networks.proofs import Proof
from storage.networks.records import (
    COMPILED,
    CUDA_GRAPH,
    EAGER,
    Network,
    OriginalTimed,
    RegionLimited,
    Speed,
    StackMeasured,
    WorkloadFacts,
)  # fmt: skip

AFTER = "with kernels"
AFTERWARDS = f"“{AFTER}” stays empty until kernels are measured in the network."
NONE_KEPT = f"“{AFTER}” stays empty: no kernel was kept."
PAIRED = f"“{AFTER}” is the fastest way to call the network with the kernels that were kept."
NO_MARK = "No ceiling is marked: no limit of a region worth a kernel is measured yet."
ABOUT = (
    "The mark is the ceiling: what a call would take if every region worth a kernel reached "
    f"{wording.percent(ranking.REACHED_SHARE)} of its limit. "
    f"{in_network.OPTIMISTIC}"
)
WAYS = [
    table.Column("workload", "Workload"),
    table.Column("way", "Called as"),
    table.Column("before", "Without kernels", "right"),
    table.Column("after", "With kernels", "right", "what it takes without them, divided by how much faster it is"),
    table.Column("speedup", "Faster", "right", "measured in turns; with its 95 % interval"),
    table.Column("memory", "Memory peak", "right", f"{in_network.PEAK}; without and with the kernels"),
]


def draw(network: Network, limits: Mapping[str, RegionLimited], proof: Proof | None = None) -> None:
    """A group of bars a workload, two beside each other, below what the mark is, and every way that was measured."""
    stack = proof.stack if proof else None
    are_marked = False
    for first in range(0, len(network.workloads), 2):
        for column, workload in zip(st.columns(2, gap="medium"), network.workloads[first : first + 2], strict=False):
            with column:
                title = f"{workload.name}, weight {wording.quantity(workload.weight, '')}"
                drawn = of_workload(network, limits, workload, stack, proof.originals if proof else ())
                bars.draw(title, drawn, "", key=f"workload:{workload.name}")
                are_marked |= drawn[0].before is not None
    if network.workloads:
        st.caption(
            f"{ABOUT if are_marked else NO_MARK} {AFTERWARDS if stack is None else PAIRED if stack.best else NONE_KEPT}"
        )
    for line in in_network.not_measured(proof) if proof else []:
        st.caption(wording.plain(line))
    names = [workload.name for workload in network.workloads]
    if stack and (speeds := [speed for speed in stack.speeds if speed.workload in names]):
        with st.expander("Every way to call it, without and with the kernels", icon=":material/table_rows:"):
            rows = [table.Row(f"{number}", _way(speed)) for number, speed in enumerate(speeds)]
            columns = WAYS if any(speed.after_bytes for speed in speeds) else WAYS[:-1]
            table.draw("Ways to call the network", columns, rows, key="ways", is_cards=True, is_compact=True)


def _way(speed: Speed) -> dict[str, table.Cell]:
    peaks = [wording.quantity(float(peak), "B") for peak in (speed.before_bytes, speed.after_bytes) if peak]
    return {
        "workload": speed.workload,
        "way": speed.before,
        "before": wording.latency(speed.before_ms),
        "after": wording.latency(speed.paired_ms),
        "speedup": table.text(
            network_kernels.factor(speed.speedup), wording.gain_tone(speed.low, speed.high),
            network_kernels.interval(speed.low, speed.high),
        ),
        "memory": " to ".join(peaks) or None,
    }  # fmt: skip


def of_workload(
    network: Network, limits: Mapping[str, RegionLimited], workload: WorkloadFacts, stack: StackMeasured | None = None,
    originals: Sequence[OriginalTimed] = (),
) -> list[Bar]:  # fmt: skip
    """Before by each way, and after by the fastest; lengths are over the longest of the workload's own. Where kernels
    were measured, both are of the same measurement."""
    before = _before(workload, stack, originals)
    best = next((speed for speed in stack.best if speed.workload == workload.name), None) if stack else None
    longest = max([*(ms for ms in before.values() if ms), best.paired_ms if best else 0.0]) or 1.0
    least_ms = _least_ms(ranking.of_workload(network, workload.name), limits)
    mark = None if least_ms is None else min(1.0, least_ms / longest)
    told = "" if least_ms is None else f"ceiling: {wording.latency(least_ms)}"
    eager_ms = before[EAGER]
    shown = [_original(way, ms, eager_ms, longest, mark, workload) for way, ms in before.items()]
    if best is None:
        return [*shown, Bar(AFTER, 0.0, "none kept" if stack else "none yet", mark, told)]
    gain = (
        f"{network_kernels.factor(best.speedup)} ({network_kernels.interval(best.low, best.high)}) over {best.before} "
        "without them"
    )
    label = f"{AFTER}, {best.after}"
    note = "; ".join(filter(None, [gain, told]))
    return [*shown, Bar(label, best.paired_ms / longest, wording.latency(best.paired_ms), mark, note)]


def _before(
    workload: WorkloadFacts, stack: StackMeasured | None, originals: Sequence[OriginalTimed]
) -> dict[str, float | None]:
    """Milliseconds by way: as measured beside the kernels, else before them, else as captured. None where it failed."""
    captured = {EAGER: ranking.median(workload.eager_ms), COMPILED: ranking.median(workload.compiled_ms) or None}
    if workload.replayed_ms:
        captured[CUDA_GRAPH] = ranking.median(workload.replayed_ms)
    captured |= {way: ranking.median(walls) for way, walls in workload.other_ms.items()}
    if stack is None:
        return captured
    captured |= {one.way: one.ms for one in originals if one.ms is not None and one.workload == workload.name}
    of_it = [speed for speed in (*stack.speeds, *stack.best) if speed.workload == workload.name]
    return captured | {speed.before: speed.before_ms for speed in of_it}


def _original(
    way: str, ms: float | None, eager_ms: float | None, longest: float, mark: float | None, workload: WorkloadFacts
) -> Bar:
    note = workload.compiled_note if way == COMPILED else ""
    if ms is None:
        return Bar(way, 0.0, "failed", mark, note)
    label = way if way == EAGER or not eager_ms else f"{way}, {wording.speedup(eager_ms / ms)}"
    return Bar(label, ms / longest, wording.latency(ms), mark, note)


def _least_ms(network: Network, limits: Mapping[str, RegionLimited]) -> float | None:
    rows = ranking.ranked(network, limits)
    ceiling = ranking.ceiling_of(network, [row for row in rows if row.is_worth_it])
    return ranking.whole_of(network).best_ms / ceiling if ceiling else None
