"""One region: what it takes, where its places are, what is computed on what, how exact it is, its task and its runs."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from pages.parts import access, wording
from pages.parts.network import network_dialogs, network_kernels, place_words, regions_table
from pages.parts.network.network_kernels import KernelRow
from pages.parts.network.region_states import SIGNS, TONES, Done, state_of, told
from pages.parts.widgets import code, figures, table
from pages.parts.widgets.figures import Figure
from storage import untrusted
from storage.index.queries import RunRow
from storage.networks import in_network
from storage.networks.files import NetworkFolder
from storage.networks.ranking import Ranked
from storage.networks.records import Network, Region, TensorFacts
from storage.untrusted import UntrustedError

MOST_PLACES, MOST_LINKS, INPUT = 400, 8, "input"
OVER_LARGEST = "the largest on the recorded inputs, over the largest value there"
TENSORS = [
    table.Column("name", "Tensor", "nowrap"),
    table.Column("shape", "Shape"),
    table.Column("dtype", "Type"),
    table.Column("range", "Values", help="the lowest and the highest finite value that was met"),
    table.Column("constant", "Between calls"),
]
NOT_RUN = (
    "A run needs the recorded tensors, which are not part of an example: fork a kernel of one of its runs, or copy "
    "this text to a file of your own and run that."
)
RUNS = [table.Column("run", "Run"), table.Column("state", "State"), table.Column("model", "Model")]


def draw(
    folder: NetworkFolder, network: Network, row: Ranked, runs: Sequence[RunRow], so_far: Done,
    kernel: KernelRow | None = None,
) -> str | None:  # fmt: skip
    """Everything of it; the id of the run opened just now, if any. `kernel` is what of it was put back."""
    region, state = row.region, state_of(row, so_far)
    note = told(row, state)
    st.markdown(
        f":{TONES[state]}-badge[{SIGNS.get(state, '')}{state}] {wording.plain(wording.as_written_here(note))} · "
        f"{region.form} region, {wording.plain(region.kind)}"
    )
    figures.draw("Figures of the region", _figures(row), key="region_figures", is_strip=True)
    if kernel is not None:
        _kernel(kernel)
    opened = _runs(folder, network, region, runs)
    left, right = st.columns(2, gap="medium")
    with left:
        _places(network, region)
    with right:
        _operators(region)
    _tensors(network, region)
    _task(folder, network, region)
    return opened


def _kernel(kernel: KernelRow) -> None:
    """What came of its kernel in the network."""
    st.markdown("## Its kernel in the network")
    columns = [column for column in network_kernels.COLUMNS if column.key not in ("region", "left_out")]
    table.draw(
        "Its kernel in the network", columns, [table.Row(kernel.region, network_kernels.cells(kernel))],
        key="region_kernel", is_cards=True, is_compact=True,
    )  # fmt: skip


def _figures(row: Ranked) -> list[Figure]:
    region = row.region
    by = f"at most, by {row.alternative}" if row.is_at_most else f"by {row.alternative}"
    return [
        Figure("Share", wording.quantity(row.share, "", is_share=True), "of the network in eager PyTorch"),
        Figure("Calls", wording.quantity(row.calls, "")),
        Figure("In place", wording.latency(row.in_place_ms), by),
        Figure("Limit", wording.latency(row.limit_ms)),
        Figure("Saving", wording.latency(row.saving_ms)),
        Figure("Ceiling", wording.speedup(row.ceiling), "of the whole network, at most", in_network.OPTIMISTIC),
        Figure(
            "Work",
            _amount(region.flop, "FLOP"),
            "a call" if region.flop else "",
            "products alone, by PyTorch's formulas",
        ),
        Figure("Least traffic", _amount(region.min_bytes, "B"), "a call", "inputs, parameters and outputs once"),
        Figure("The network's error", _error(region.own_error), "against float64", OVER_LARGEST),
        Figure("The task's error", _error(region.text_error), "against the network", OVER_LARGEST),
        Figure("Cost", row.cost or wording.NONE, "" if row.cost else regions_table.NO_TRIES),
    ]


def _amount(value: int, unit: str) -> str:
    return wording.quantity(float(value), unit) if value else wording.NONE


def _error(value: float | None) -> str:
    return wording.NONE if value is None else wording.significant(value, 2)


def _places(network: Network, region: Region) -> None:
    st.markdown("## Places")
    held = [other.name for other in network.regions if other.inside == region.name]
    for said, names in (("Inside", [region.inside] if region.inside else []), ("Holds", held)):
        _links(said, network.name, names)
    if region.parts:
        st.caption(wording.plain(f"Its operators are called by {place_words.in_few(region.parts, most=6)}."))
    places = list(dict.fromkeys(region.places))
    text = "\n".join(map(place_words.name, places[:MOST_PLACES]))
    if len(places) > MOST_PLACES:
        text += f"\nand {len(places) - MOST_PLACES:,} more"
    code.draw_plain("Places of the region", text, key=f"places:{region.name}")


def _links(said: str, network: str, names: Sequence[str]) -> None:
    if not names:
        return
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(said, width="content")
        for name in names[:MOST_LINKS]:
            st.page_link(
                "networks.py", label=wording.plain(name), query_params={"network": network, "region": name},
                width="content",
            )  # fmt: skip
        if len(names) > MOST_LINKS:
            st.markdown(f"and {wording.counted(len(names) - MOST_LINKS, 'other')}", width="content")


def _operators(region: Region) -> None:
    st.markdown("## Operators")
    rows = [
        table.Row(name, {"name": table.text(name, "strong"), "count": wording.count(count)})
        for name, count in sorted(region.operators.items(), key=lambda item: (-item[1], item[0]))
    ]
    if rows:
        columns = [table.Column("name", "Operator"), table.Column("count", "In one call", "right")]
        table.draw("Operators of one call", columns, rows, key="region_operators", is_compact=True)
    else:
        st.caption("No operator was seen.")
    for said, names in (("It reads what came from", region.before), ("What it gives is read by", region.after)):
        if names:
            st.caption(f"{said} {wording.plain(', '.join(names))}.")


def _tensors(network: Network, region: Region) -> None:
    st.markdown("## Tensors")
    sorts = ((INPUT, region.inputs), ("output", region.outputs), ("parameter", region.parameters))
    rows = [
        table.Row(f"{sort}:{number}", _tensor(sort, tensor))
        for sort, tensors in sorts
        for number, tensor in enumerate(tensors)
    ]
    if rows:
        table.draw(
            "Inputs, outputs and parameters", TENSORS, rows, key="region_tensors", is_cards=True, is_compact=True
        )
    else:
        st.caption("None was recorded.")
    if region.recorded_bytes:
        here = ", where it was captured; not here" if network.is_example else ""
        st.caption(f"Recorded of it{here}: {wording.quantity(float(region.recorded_bytes), 'B')}.")


def _tensor(sort: str, tensor: TensorFacts) -> dict[str, table.Cell]:
    values = wording.NONE
    if tensor.low is not None and tensor.high is not None:
        values = f"{wording.significant(tensor.low)} to {wording.significant(tensor.high)}"
    shape = f"({', '.join(map(str, tensor.shape))})"
    return {
        "name": table.text(tensor.name or wording.NONE, "strong", sort),
        "shape": table.text(shape, title=f"strides ({', '.join(map(str, tensor.stride))})" if tensor.stride else ""),
        "dtype": tensor.dtype,
        "range": values,
        "constant": "the same" if tensor.is_constant else "differs" if sort == INPUT else wording.NONE,
    }


def _runs(folder: NetworkFolder, network: Network, region: Region, runs: Sequence[RunRow]) -> str | None:
    """Runs that were started for it, the latest first, and the way to one more."""
    opened = None
    with st.container():
        if runs:
            drawn = [
                table.Row(
                    run.run_id,
                    {
                        "run": table.link(run.title, run.run_id),
                        "state": regions_table.run_cell(run),
                        "model": table.text(wording.cut(run.model, 40)),
                    },
                    regions_table.run_address(run.run_id),
                )
                for run in reversed(runs)
            ]
            opened = table.draw("Runs of this region", RUNS, drawn, key="region_runs", is_cards=True, is_compact=True)
    if region.task and access.may_steer() and not network.is_example:
        st.button(
            "Start a run", icon=":material/play_arrow:", key=f"start_region:{folder.name}:{region.name}",
            on_click=network_dialogs.ask_start, args=(folder.name, [region.name]),
        )  # fmt: skip
    return opened.removeprefix(regions_table.RUN) if opened else None


def _task(folder: NetworkFolder, network: Network, region: Region) -> None:
    """The task's text and the command that starts a run on it."""
    st.markdown("## Task")
    if not region.task:
        st.info(wording.sentence(f"There is none: {region.reason or 'no reason was told'}"), icon=":material/block:")
        return
    path = folder.path / region.task
    toolchain = "cpu" if network.device == "cpu" else "cuda"
    if network.is_example:
        st.caption(NOT_RUN)
    else:
        st.caption("The command that starts a run on it:")
        st.code(f"python -m engine run {path} --toolchain {toolchain}", language=None, wrap_lines=True)
    try:
        text = untrusted.read_text(path)
    except FileNotFoundError:
        st.warning(f"Its file `{path}` has gone: capture the network again.", icon=":material/broken_image:")
    except UntrustedError as error:
        st.warning(wording.sentence(f"{error}"), icon=":material/broken_image:")
    else:
        code.draw("Text of the task", code.lines(text), key=f"task:{region.name}")
