"""Networks: the list; what one of them takes where, which of its regions are worth a kernel, and what kernels bring in
it. `?network=` names it, `?region=` one region of it."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from engine.networks import small, starting
from pages.parts import access, change_token, index, network_folders, wording
from pages.parts.network import (
    compiled_kernels,
    example_networks,
    icicle,
    network_dialogs,
    network_header,
    network_kernels,
    networks_list,
    place_words,
    proof_state,
    region_panel,
    region_states,
    regions_table,
    whole_curve,
    workload_bars,
)
from pages.parts.network.icicle import Tree
from pages.parts.network.region_states import SIGNS, TONES, RegionState, state_of
from pages.parts.network_folders import WATCHED
from pages.parts.status import address, now
from pages.parts.steering import dialogs, steer
from storage.networks import files, in_network, ranking
from storage.networks.files import NetworkError, NetworkFolder
from storage.networks.ranking import Experience, Ranked
from storage.networks.records import Network
from storage.networks.standing import Standing

ALL = "all workloads"
PLACES, KERNELS = "as it is, by place", "under torch.compile, by kernel"
PLACE, CLICKED = "network_place", "network_place_clicked"


@st.fragment
def live(name: str, region: str) -> None:
    """The page; drawn again when a network has news."""
    dialogs.sweep()
    watched = [f"{WATCHED}{name}"]
    now.watch(watched, is_overview=False, token=change_token.of(watched, is_overview=False))
    if name:
        draw_network(name, region)
    else:
        if opened := networks_list.draw():
            st.switch_page("networks.py", query_params={"network": opened})
        example_networks.draw()
    steer.give_word_back()


def draw_network(name: str, region: str) -> None:
    """One network, or one region of it."""
    try:
        folder = files.folder_of(name)
        log = starting.capture_log(folder)
        if not log:
            files.find(name)
        stands = network_folders.read(folder)
    except NetworkError as error:
        is_shipped = name in [one.network.name for one in example_networks.waiting()]
        said = f"The network {name} comes with Tilewright and is not open here yet." if is_shipped else str(error)
        st.warning(wording.sentence(said), icon=":material/search_off:")
        if is_shipped:
            example_networks.draw()
        return
    network_header.state(name, stands, log)
    if (network := stands.network) is None:
        return
    rows = ranking.ranked(network, stands.limits, experience(index.known().mark))
    if region:
        draw_region(folder, network, rows, stands, region)
    else:
        draw_whole(folder, network, rows, stands)


@functools.lru_cache(maxsize=1)
def experience(_mark: str) -> dict[str, Experience]:
    """What tries have come to by kernel class, as the knowledge base of that mark says."""
    return ranking.experience(index.known().attempts)


def draw_region(folder: NetworkFolder, network: Network, rows: Sequence[Ranked], stands: Standing, name: str) -> None:
    """One region; the run opened just now is gone to."""
    row = next((row for row in rows if row.region.name == name), None)
    if row is None:
        st.warning(wording.sentence(f"network {network.name} has no region {name}"), icon=":material/search_off:")
        return
    runs = regions_table.runs_of(network_folders.runs_by_region(stands))
    so_far = region_states.done(stands.proof, proof_state.searched(stands, runs))
    kernels = network_kernels.rows_of(network, stands, proof_state.with_kernels(runs)) if stands.proof else []
    kernel = next((one for one in kernels if one.region == name), None)
    run_id = region_panel.draw(folder, network, row, runs.get(name, []), so_far, kernel)
    if run_id:
        st.switch_page("run.py", query_params={"run": run_id})


def draw_whole(folder: NetworkFolder, network: Network, rows: Sequence[Ranked], stands: Standing) -> None:
    """The whole network, or what one workload makes of it."""
    runs = regions_table.runs_of(network_folders.runs_by_region(stands))
    network_header.draw(network, rows, sum(map(len, runs.values())))
    proof_state.draw(folder, network, rows, stands, runs)
    network_header.gaps(network)
    network_header.notes(network)
    tools = st.container(horizontal=True, vertical_alignment="bottom")
    with tools:
        chosen = choose_workload(network)
        view = st.segmented_control(
            "Where the time goes", [PLACES, KERNELS], default=PLACES, required=True, key="network_view",
            bind="query-params",
        )  # fmt: skip
    if chosen != ALL:
        network = ranking.of_workload(network, chosen)
        rows = ranking.ranked(network, stands.limits, experience(index.known().mark))
    so_far = region_states.done(stands.proof, proof_state.searched(stands, runs))
    states = {row.region.name: state_of(row, so_far, runs) for row in rows}
    if view == KERNELS:
        compiled_kernels.draw(network)
    else:
        draw_places(tools, network, rows, states)
    st.markdown("## Before and after")
    workload_bars.draw(network, stands.limits, stands.proof)
    opened = network_kernels.draw(network, stands, runs)
    if stands.proof is not None:
        whole_curve.draw(network, stands.proof, runs)
    st.markdown("## Regions")
    opened = regions_table.draw(network, rows, runs, so_far) or opened
    if opened:
        follow(network.name, opened)


def choose_workload(network: Network) -> str:
    """The workload that the page is about, or all by their weights."""
    names = [workload.name for workload in network.workloads]
    if len(names) < 2:
        return ALL
    chosen = st.selectbox(
        "Workload", [ALL, *names], key="network_workload", width=240, bind="query-params",
        help="all workloads: one call of each, times its weight",
    )  # fmt: skip
    return str(chosen or ALL)


def draw_places(
    tools: DeltaGenerator, network: Network, rows: Sequence[Ranked], states: dict[str, RegionState]
) -> None:
    """The module tree, and beside it in words what it shows of one place: chosen by a click or in the box."""
    tree = icicle.tree_of(network)
    if not tree.total_ms.get("", 0.0):
        st.info("No module was timed.", icon=":material/hourglass_empty:")
        return
    paths = ["", *(path for path in tree.kinds if path and tree.total_ms[path])]
    if (clicked := st.session_state.pop(CLICKED, None)) in paths:
        st.session_state[PLACE] = clicked
    if st.session_state.get(PLACE) not in paths:
        st.session_state[PLACE] = ""
    place = tools.selectbox("Show inside", paths, key=PLACE, format_func=place_words.name, width=340)
    by_place = icicle.states_by_place([row.region for row in rows], states)
    clicked = icicle.draw(tree, by_place, place)
    shown = [state for state in RegionState if state in states.values()]
    legend = " ".join(f":{TONES[state]}-badge[{SIGNS.get(state, '')}{state}]" for state in shown)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(f"{legend} :gray-badge[no region]", width="content")
        st.caption("A click on a module shows what is inside it; one on the top row goes back out.", width="content")
    draw_place(tree, rows, place, states)
    if clicked is not None:
        st.session_state[CLICKED] = clicked
        st.rerun(scope="fragment")


def draw_place(tree: Tree, rows: Sequence[Ranked], place: str, states: dict[str, RegionState]) -> None:
    """One place in words, with links to its regions."""
    ms = tree.total_ms[place]
    share = wording.quantity(ms / tree.whole_ms, "", is_share=True)
    took, own = wording.latency(ms), wording.latency(tree.own_ms.get(place, 0.0))
    sentence = f"**{wording.plain(place_words.name(place))}** ({wording.plain(tree.kinds[place])}): "
    sentence += f"{took}, {share} of the network, {own} of its own" if place else _of_whole(tree, took, share)
    st.markdown(sentence)
    regions = [row.region.name for row in rows if place in (*row.region.places, *row.region.parts)]
    for region in regions:
        st.page_link(
            "networks.py", label=f"Region {wording.plain(region)}: {states[region]}",
            icon=":material/category:", query_params={"network": tree.network.name, "region": region},
            width="content",
        )  # fmt: skip


def _of_whole(tree: Tree, took: str, share: str) -> str:
    work = "kernels" if any(workload.device_ms is not None for workload in tree.network.workloads) else "operators"
    calls = wording.plain(in_network.counted(tree.network)) or "a call"
    return (
        f"{work} inside its modules take {took}, {share} of the {wording.latency(tree.whole_ms)} that {calls} takes in "
        f"eager PyTorch; everything else takes {wording.latency(tree.rest_ms)}: {icicle.REST_IS}"
    )


def follow(name: str, opened: str) -> None:
    """Go where a click in the table of regions leads."""
    if opened.startswith(regions_table.START):
        network_dialogs.ask_start(name, opened.removeprefix(regions_table.START).split(","))
        st.rerun()
    if opened.startswith(regions_table.RUN):
        st.switch_page("run.py", query_params={"run": opened.removeprefix(regions_table.RUN)})
    st.switch_page("networks.py", query_params={"network": name, "region": opened})


def head(name: str, region: str) -> None:
    """The title with the way back and what can be done."""
    with st.container(horizontal=True, vertical_alignment="center", key="title_row"):
        st.title(wording.plain(region or name) or "Networks", anchor=False, width="content")
        if region:
            st.page_link(
                "networks.py", label=f"Network {wording.plain(name)}", icon=":material/arrow_back:",
                query_params={"network": name}, width="content",
            )  # fmt: skip
        elif name:
            st.page_link("networks.py", label="All networks", icon=":material/arrow_back:", width="content")
        if access.may_steer() and not region:
            st.space("stretch")
            if not name:
                try_small_network()
                st.button("New network", icon=":material/add:", key="new_network", on_click=network_dialogs.ask_capture)
            elif any(folder.name == name for folder in files.all_networks()):
                st.button(
                    "Delete", icon=":material/delete:", key=f"delete:{name}", on_click=network_dialogs.ask_delete,
                    args=(name,),
                )  # fmt: skip


def try_small_network() -> None:
    """A button that captures the network that comes with Tilewright and replays its search."""
    if not starting.has_small_network():
        return
    if st.button(
        "Try the small network", icon=":material/school:", key="try_network",
        help="captures the network that comes with Tilewright, replays a recorded search for its kernels, and measures "
        "them in it; needs no model and takes some minutes",
    ) and network_dialogs.begin(starting.try_small_network):  # fmt: skip
        st.switch_page("networks.py", query_params={"network": small.NAME})


asked, asked_region = st.query_params.get("network", ""), st.query_params.get("region", "")
address.confirm("networks", f"{asked} {asked_region}")
head(asked, asked_region)
live(asked, asked_region)
network_dialogs.draw()
