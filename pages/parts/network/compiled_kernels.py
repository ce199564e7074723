"""What runs in a call under torch.compile: a row a kernel, a fused one with all places that its operators come from."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from pages.parts import wording
from pages.parts.network import place_words
from pages.parts.widgets import table
from storage.networks.records import COMPILED, CompiledKernel, Network

MOST = 60
COLUMNS = [
    table.Column("kernel", "Kernel"),
    table.Column("share", "Of all kernels", help="of the time of all kernels of the calls under torch.compile"),
    table.Column("ms", "Time", "right", "of all its calls together, one call of every workload by its weight"),
    table.Column("calls", "Calls", "right"),
    table.Column("places", "Places", "words", "modules that its operators come from; a fused kernel has several"),
]


def draw(network: Network) -> None:
    """The longest first; where nothing was compiled, why."""
    rows = summed(network)
    if not rows:
        why = "; ".join(f"{one.name}: {one.compiled_note}" for one in network.workloads if one.compiled_note)
        said = f"No kernel of torch.compile was seen. {why}" if why else "No kernel of torch.compile was seen."
        st.info(wording.plain(said), icon=":material/hourglass_empty:")
        return
    whole = sum(kernel.ms for kernel in rows) or 1.0
    drawn = [table.Row(f"{number}", _cells(kernel, whole)) for number, kernel in enumerate(rows[:MOST])]
    table.draw(f"Kernels under {COMPILED}", COLUMNS, drawn, key="compiled_kernels", is_cards=True, is_compact=True)
    if len(rows) > MOST:
        left = sum(kernel.ms for kernel in rows[MOST:])
        st.caption(
            f"Showing {MOST} of {len(rows):,} kernels; the others take {wording.percent(left / whole)} together."
        )


def summed(network: Network) -> list[CompiledKernel]:
    """Kernels of all workloads by their weights: one row for one name with the same places. The longest first."""
    weights = {workload.name: workload.weight for workload in network.workloads}
    sums: dict[tuple[str, Sequence[str]], tuple[float, float]] = {}
    for kernel in network.kernels:
        weight, (calls, ms) = weights.get(kernel.workload, 0.0), sums.get((kernel.name, kernel.places), (0.0, 0.0))
        sums[kernel.name, kernel.places] = calls + weight * kernel.calls, ms + weight * kernel.ms
    rows = [CompiledKernel("", name, round(calls), ms, tuple(places)) for (name, places), (calls, ms) in sums.items()]
    return sorted(rows, key=lambda kernel: -kernel.ms)


def _cells(kernel: CompiledKernel, whole: float) -> dict[str, table.Cell]:
    places = place_words.in_few(kernel.places, most=12) or "nothing tells where it comes from"
    return {
        "kernel": table.text(wording.cut(kernel.name, 70), "strong", title=kernel.name),
        "share": table.bar(wording.quantity(kernel.ms / whole, "", is_share=True), kernel.ms / whole),
        "ms": wording.latency(kernel.ms),
        "calls": wording.count(kernel.calls),
        "places": table.text(places, "" if kernel.places else "muted", title=", ".join(kernel.places)),
    }
