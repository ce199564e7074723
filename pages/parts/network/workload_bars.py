"""Each workload before and after: as the network is, under torch.compile, with kernels put back; the ceiling as a mark
across. Knows no file."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from pages.parts import wording
from pages.parts.widgets import bars
from pages.parts.widgets.bars import Bar
from storage.networks import ranking
from storage.networks.records import COMPILED, EAGER, Network, RegionLimited, WorkloadFacts

AFTER = "with kernels"
AFTERWARDS = f"“{AFTER}” stays empty until kernels are put back into the network."
NO_MARK = f"No ceiling is marked: no limit of a region worth a kernel is measured yet. {AFTERWARDS}"
ABOUT = (
    "The mark is the ceiling: what a call would take if every region worth a kernel reached "
    f"{wording.percent(ranking.REACHED_SHARE)} of its limit. {AFTERWARDS}"
)


def draw(network: Network, limits: Mapping[str, RegionLimited]) -> None:
    """A group of bars a workload, two beside each other, and below what the mark is."""
    are_marked = False
    for first in range(0, len(network.workloads), 2):
        for column, workload in zip(st.columns(2, gap="medium"), network.workloads[first : first + 2], strict=False):
            with column:
                title = f"{workload.name}, weight {wording.quantity(workload.weight, '')}"
                drawn = of_workload(network, limits, workload)
                bars.draw(title, drawn, "", key=f"workload:{workload.name}")
                are_marked |= drawn[0].before is not None
    if network.workloads:
        st.caption(ABOUT if are_marked else NO_MARK)


def of_workload(network: Network, limits: Mapping[str, RegionLimited], workload: WorkloadFacts) -> list[Bar]:
    """Before, and the place of what comes after; lengths are over the longest of the workload's own."""
    eager_ms = ranking.median(workload.eager_ms)
    compiled_ms = ranking.median(workload.compiled_ms) or None
    longest = max(eager_ms, compiled_ms or 0.0) or 1.0
    least_ms = _least_ms(ranking.of_workload(network, workload.name), limits)
    mark = None if least_ms is None else least_ms / longest
    told = "" if least_ms is None else f"ceiling: {wording.latency(least_ms)}"
    compiled = (
        Bar(COMPILED, 0.0, "failed", mark, workload.compiled_note)
        if compiled_ms is None
        else Bar(
            f"{COMPILED}, {wording.speedup(eager_ms / compiled_ms)}",
            compiled_ms / longest,
            wording.latency(compiled_ms),
            mark,
            workload.compiled_note,
        )
    )
    return [
        Bar(EAGER, eager_ms / longest, wording.latency(eager_ms), mark),
        compiled,
        Bar(AFTER, 0.0, "none yet", mark, told),
    ]


def _least_ms(network: Network, limits: Mapping[str, RegionLimited]) -> float | None:
    rows = ranking.ranked(network, limits)
    ceiling = ranking.ceiling_of(network, [row for row in rows if row.is_worth_it])
    return ranking.whole_of(network).best_ms / ceiling if ceiling else None
