"""Every region of a network, the most worth at the top: what it takes, what a kernel for it could do, why it is not
worth one, and its latest run. Rows can be ticked, to start runs for several at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import streamlit as st

from pages.parts import access, index, run_state, wording
from pages.parts.network import place_words
from pages.parts.network.region_states import ICONS, IN_NETWORK, TONES, Done, RegionState, state_of, told, why
from pages.parts.widgets import table
from storage.index import queries
from storage.index.queries import RunRow
from storage.networks import in_network
from storage.networks.ranking import REACHED_SHARE, Ranked
from storage.networks.records import EAGER, Network

PAGE_SIZE = 50
MOST_STARTED = 8
START, RUN = "start:", "run:"
NO_TRIES = "no kernel of its class was tried here before"
ALL, WORTH, STARTED = "all", "worth it", "with a run"
LIMITED = f"if it alone reached {REACHED_SHARE:.0%} of its limit".replace("%", " %")
COLUMNS = [
    table.Column("region", "Region", help="equal places of the network, one task"),
    table.Column("state", "State", "words", "whether it is worth a kernel, or what came of its kernel in the network"),
    table.Column("share", "Share of eager", help="of the time that the network takes in eager PyTorch"),
    table.Column("calls", "Calls", "right", "of one call of every workload, by its weight"),
    table.Column("ms", "In place", "right", "what its places take together in the network, by the best alternative"),
    table.Column("limit", "Limit", "right", "what the hardware would allow for all its calls"),
    table.Column("saving", "Saving", "right", f"of the network's time {LIMITED}"),
    table.Column(
        "ceiling",
        "Ceiling",
        "right",
        f"how many times as fast the whole network would be {LIMITED} and all else stayed as it is. "
        f"{in_network.OPTIMISTIC}",
    ),
    table.Column("cost", "Cost", "", "what a gain over the kernel before has cost, for kernels of its class"),
    table.Column("run", "Latest run"),
]


def draw(network: Network, rows: Sequence[Ranked], runs: Mapping[str, Sequence[RunRow]], so_far: Done) -> str | None:
    """The table, a page at a time; the region opened just now, or what a button asks for."""
    shown_rows = _chosen(rows, runs)
    pages = -(-len(shown_rows) // PAGE_SIZE)
    slot = st.container()
    number = min(int(st.pagination(pages, key="regions_page", bind="query-params")), pages) if pages > 1 else 1
    first = (number - 1) * PAGE_SIZE
    shown = shown_rows[first : first + PAGE_SIZE]
    may_start = access.may_steer() and not network.is_example
    for_ticked = [table.bulk("Start runs for the ticked", START, 1, MOST_STARTED)] if may_start else []
    with slot:
        if not shown:
            st.info(_none(rows), icon=":material/filter_alt_off:")
            return None
        opened = table.draw(
            "Regions", COLUMNS, [_row(network.name, row, runs, so_far) for row in shown], key="regions", is_cards=True,
            is_compact=True, for_ticked=for_ticked, say="Tick regions to start runs for them." if for_ticked else "",
        )  # fmt: skip
    if pages > 1:
        st.caption(f"Showing {first + 1:,}–{first + len(shown):,} of {wording.counted(len(shown_rows), 'region')}.")
    return opened


def _chosen(rows: Sequence[Ranked], runs: Mapping[str, Sequence[RunRow]]) -> Sequence[Ranked]:
    shown = st.segmented_control(
        "Regions", [ALL, WORTH, STARTED], default=ALL, required=True, key="regions_shown", bind="query-params",
        label_visibility="collapsed",
    )  # fmt: skip
    if shown == WORTH:
        return [row for row in rows if row.is_worth_it]
    return [row for row in rows if row.region.name in runs] if shown == STARTED else rows


def _none(rows: Sequence[Ranked]) -> str:
    if rows:
        return "No region of that kind here."
    return "No region was found: no module of this network is called on tensors that a task could be made of."


def _row(network: str, row: Ranked, runs: Mapping[str, Sequence[RunRow]], so_far: Done) -> table.Row:
    address = f"networks?network={wording.in_address(network)}&region={wording.in_address(row.region.name)}"
    return table.Row(row.region.name, cells(row, runs, so_far), address, row.region.name)


def _state(row: Ranked, so_far: Done) -> table.Cell:
    state = state_of(row, so_far)
    note = "" if state in (*IN_NETWORK, RegionState.SEARCHING) else wording.cut(wording.as_written_here(why(row)), 110)
    return table.pill(state, TONES[state], ICONS.get(state, ""), told(row, state), note)


def cells(row: Ranked, runs: Mapping[str, Sequence[RunRow]], so_far: Done) -> dict[str, table.Cell]:
    """The cells of one region."""
    region = row.region
    note = wording.cut(f"{region.kind}: {place_words.in_few(region.places, most=1)}", 64)
    return {
        "region": table.link(wording.cut(region.name, 40), note, title=", ".join(region.places)),
        "state": _state(row, so_far),
        "share": table.bar(wording.quantity(row.share, "", is_share=True), row.share),
        "calls": wording.quantity(row.calls, ""),
        "ms": table.text(
            wording.latency(row.in_place_ms), "", "" if row.alternative == EAGER else row.alternative,
            "its kernels also do work of other places, so this is the most that it may take" if row.is_at_most else "",
            [table.pill("at most", "gray")] if row.is_at_most else (),
        ),
        "limit": wording.latency(row.limit_ms),
        "saving": wording.latency(row.saving_ms),
        "ceiling": wording.speedup(row.ceiling),
        "cost": table.text(row.cost or wording.NONE, "muted", title="" if row.cost else NO_TRIES),
        "run": run_cell(runs[region.name][-1] if region.name in runs else None),
    }  # fmt: skip


def run_cell(run: RunRow | None) -> table.Cell:
    """A region's latest run with its state and speed-up; opens it."""
    if run is None:
        return None
    state = run_state.shown_state(run)
    cell = table.badge(state, wording.STATE_TONE[state], state, f"{RUN}{run.run_id}", run_address(run.run_id))
    best = f"{wording.best(run)} over eager" if run.best_speedup else "no kernel yet"
    assert isinstance(cell, dict)
    return cell | {"note": best, "title": run.run_id}


def run_address(run_id: str) -> str:
    """The deep link of a run."""
    return f"run?run={wording.in_address(run_id)}"


def runs_of(runs: Mapping[str, Sequence[str]]) -> dict[str, list[RunRow]]:
    """The runs of each region that has one still, in the order in which they were started."""
    run_ids = [run_id for started in runs.values() for run_id in started]
    by_id = {row.run_id: row for row in queries.of_ids(index.current(), run_ids)}
    rows = {region: [by_id[run_id] for run_id in started if run_id in by_id] for region, started in runs.items()}
    return {region: there for region, there in rows.items() if there}
