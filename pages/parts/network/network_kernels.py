"""Every kernel that was put back into the network, or is to be: what it brings alone and there, whether it is called
and right, what became of it, and a switch whether it is in when they are measured again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import streamlit as st

from engine.networks import starting
from pages.parts import access, wording
from pages.parts.network import network_dialogs, proof_state
from pages.parts.network.region_states import ICONS, OF_VERDICT, TONES
from pages.parts.widgets import table
from storage.index.queries import RunRow
from storage.networks import in_network
from storage.networks.in_network import RegionRow
from storage.networks.proofs import Proof, Total
from storage.networks.records import ELSEWHERE, ChosenKernel, LeftOut, Network, Parity, Verdict
from storage.networks.standing import Standing

PAGE_SIZE = 25
SWITCH = "switch:"
COLUMNS = [
    table.Column("region", "Kernel of"),
    table.Column("verdict", "Verdict", "words"),
    table.Column("alone", "Alone", "right", "over eager PyTorch, measured by its run; with its 95 % interval"),
    table.Column(
        "in_place", "In the network", "right",
        "the whole network with this kernel over the network without it, measured in turns beside the kernels that "
        "were kept before it; with its 95 % interval",
    ),
    table.Column(
        "left_out", "Leave-one-out", "right",
        "the network with all kernels that were kept, over the network with all of them but this one",
    ),
    table.Column(
        "engaged", "Called", "right",
        "how often the kernel was seen in a call of the network, of the calls of its region; “more” are calls "
        f"{ELSEWHERE}, which it computes too",
    ),
    table.Column(
        "parity", "Error", "right",
        "the largest of the network's outputs against more exact arithmetic, and what is allowed",
    ),
]  # fmt: skip
SWITCHES = table.Column("switch", "In", help="whether it is in when the kernels are measured again")
NOT_YET = "not put back yet"
WHY_LEFT_OUT = "a person has switched it off"
ABOUT_SWITCHES = "Switch kernels on or off, then measure the network with those that are on."


@dataclass(frozen=True, slots=True)
class KernelRow:
    """One kernel; `row` is None where it was not measured, and `waits` says why."""

    region: str
    row: RegionRow | None = None
    kernel: ChosenKernel | None = None
    waits: str = ""
    is_now: bool = False


def rows_of(network: Network, stands: Standing, found: Mapping[str, ChosenKernel]) -> list[KernelRow]:
    """What was tried in its order, what is being tried or is to be, what a person has switched off, and what has a
    kernel since."""
    proof = stands.proof
    if proof is None:
        return [KernelRow(region, None, kernel, NOT_YET) for region, kernel in found.items()]
    tried = [KernelRow(row.region, row, row.kernel) for row in in_network.rows(network, proof)]
    tried.sort(key=lambda kernel: kernel.kernel is None)  # what others stand for was not measured
    left = [kernel for name, kernel in proof.kernels.items() if name not in proof.tried]
    waits = [_waiting(kernel, proof, is_proving=stands.is_proving) for kernel in left]
    without = [region for region in proof.started.without if region not in proof.tried]
    off = [KernelRow(region, None, found.get(region), WHY_LEFT_OUT) for region in without]
    fresh = [KernelRow(region, None, found[region], NOT_YET) for region in proof_state.unmeasured(proof, found)]
    return [*tried, *waits, *off, *fresh]


def _waiting(kernel: ChosenKernel, proof: Proof, *, is_proving: bool) -> KernelRow:
    if is_proving and kernel.region == proof.region:
        return KernelRow(kernel.region, None, kernel, "it is being measured", is_now=True)
    return KernelRow(kernel.region, None, kernel, "its turn comes" if is_proving else "its turn had not come")


def draw(network: Network, stands: Standing, runs: Mapping[str, Sequence[RunRow]]) -> str | None:
    """The table with its switches; the region that was opened just now, if any. Nothing where there is no kernel."""
    rows = rows_of(network, stands, proof_state.with_kernels(runs))
    if not rows:
        return None
    st.markdown("## Kernels in the network")
    off = _switched_off(network.name, stands.proof)
    pages = -(-len(rows) // PAGE_SIZE)
    slot = st.container()
    number = min(int(st.pagination(pages, key="kernels_page")), pages) if pages > 1 else 1
    may_switch = access.may_steer() and stands.proof is not None and not network.is_example
    left_out = {one.region: one for one in stands.proof.stack.left_out} if stands.proof and stands.proof.stack else {}
    with slot:
        opened = table.draw(
            "Kernels in the network", [*COLUMNS, *([SWITCHES] if may_switch else [])],
            [_row(network.name, row, left_out.get(row.region), off if may_switch else None)
             for row in rows[(number - 1) * PAGE_SIZE : number * PAGE_SIZE]],
            key="kernels_in_network", is_cards=True, is_compact=True,
        )  # fmt: skip
    if opened is not None and opened.startswith(SWITCH):
        _flip(off, opened.removeprefix(SWITCH))
        st.rerun()
    if may_switch:
        _measure_again(network.name, stands, [row.region for row in rows], off)
    return opened


def _switched_off(name: str, proof: Proof | None) -> set[str]:
    """What is off in this session; a new proof begins with what it was started without."""
    key, kept = f"switched_off:{name}", proof.number if proof else 0
    held: tuple[int, set[str]] | None = st.session_state.get(key)
    if held is None or held[0] != kept:
        held = st.session_state[key] = kept, set(proof.started.without if proof else ())
    return held[1]


def _flip(off: set[str], region: str) -> None:
    off.symmetric_difference_update({region})


def _measure_again(name: str, stands: Standing, regions: Sequence[str], off: set[str]) -> None:
    why_not = proof_state.why_not_now(stands)
    if not why_not and not set(regions) - off:
        why_not = "Every kernel is switched off: switch one on."
    with st.container(horizontal=True, vertical_alignment="center"):
        is_asked = st.button(
            "Measure again with these", icon=":material/restart_alt:", key="measure_again", disabled=bool(why_not),
            help=why_not or None,
        )  # fmt: skip
        named = [wording.plain(region) for region in regions if region in off]
        st.caption(f"Switched off: {', '.join(named)}." if named else ABOUT_SWITCHES, width="content")
    if is_asked:
        network_dialogs.begin(partial(starting.put_kernels_back, name, without=sorted(off)))


def _row(network: str, kernel: KernelRow, left_out: LeftOut | None, off: set[str] | None) -> table.Row:
    region = kernel.region
    address = f"networks?network={wording.in_address(network)}&region={wording.in_address(region)}"
    shown: dict[str, table.Cell] = {
        "region": table.link(wording.cut(region, 40)),
        "left_out": effect_cell(left_out),
    }
    if off is not None:
        shown["switch"] = table.switch(region not in off, f"{SWITCH}{region}", f"{region} is in the network")
    return table.Row(region, shown | cells(kernel), address, region)


def cells(kernel: KernelRow) -> dict[str, table.Cell]:
    """What is known of it alone and in the network."""
    shown = {"verdict": verdict_cell(kernel), "alone": alone_cell(kernel.kernel)}
    if kernel.row is None:
        return shown
    return shown | {
        "in_place": effect_cell(kernel.row.in_place),
        "engaged": called_cell(kernel.row),
        "parity": error_cell(kernel.row.worst),
    }


def verdict_cell(kernel: KernelRow) -> table.Cell:
    """The verdict with its reason, or what it waits for."""
    if kernel.row is None:
        return table.pill("being tried" if kernel.is_now else "not measured", "blue" if kernel.is_now else "gray",
                          "running" if kernel.is_now else "absent", note=kernel.waits)  # fmt: skip
    trial = kernel.row.trial
    state = OF_VERDICT.get(trial.verdict)
    tone = TONES[state] if state else "gray"
    why = wording.factors(wording.as_written_here(trial.why))
    # The figures of the effect stand in a column of their own.
    note = why.partition(": ")[2] if trial.speeds else why
    return table.pill(trial.verdict, tone, ICONS[state] if state else "absent", why, wording.cut(note, 130))


def alone_cell(kernel: ChosenKernel | None) -> table.Cell:
    """What it brings by itself."""
    if kernel is None or kernel.speedup is None:
        return None
    interval = wording.interval(kernel.low, kernel.high) if kernel.low and kernel.high else ""
    return table.text(wording.speedup(kernel.speedup), "", interval)


def effect_cell(effect: Total | LeftOut | None) -> table.Cell:
    """What it brings in the network: small, so with three decimals."""
    if effect is None:
        return None
    tone = "green" if effect.low > 1 else "orange" if effect.high < 1 else ""
    return table.text(factor(effect.speedup), tone, interval(effect.low, effect.high))


def factor(speedup: float) -> str:
    """`1.012×`: effects in a network are small."""
    return f"{speedup:.3f}×"


def interval(low: float, high: float) -> str:
    """`1.010 to 1.014`."""
    return f"{low:.3f} to {high:.3f}"


def called_cell(row: RegionRow) -> table.Cell:
    """How many calls reached the kernel, of all workloads."""
    if not row.trial.engaged:
        return table.text("no", "red") if row.trial.verdict is Verdict.NOT_ENGAGED else None
    reached, due, more = (
        sum(getattr(one, name) for one in row.trial.engaged) for name in ("reached", "expected", "more")
    )
    launches = [one.kernels for one in row.trial.engaged if one.kernels is not None]
    launched = wording.counted(sum(launches), "launch") if sum(launches) == 1 else f"{sum(launches):,} launches"
    note = ", ".join([*([f"and {more:,} more"] if more else []), *([launched] if launches else [])])
    told = "; ".join(one.words for one in row.trial.engaged)
    return table.text(f"{reached:,} of {due:,}", "" if row.is_engaged else "red", note, told)


def error_cell(worst: Parity | None) -> table.Cell:
    """The output that is furthest off, against what is allowed."""
    if worst is None:
        return None
    title = f"{worst.workload}, {worst.output}: against {worst.exact}; the network itself {worst.own_error:.2g}"
    return table.text(f"{worst.error:.2g}", "" if worst.holds else "red", f"of {worst.allowed:.2g} allowed", title)
