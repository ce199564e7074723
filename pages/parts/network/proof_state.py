"""What kernels bring in the network as a whole, and what is at work on it: a search, a measurement, or nothing yet,
with what can be done next."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import partial

import streamlit as st

from engine.networks import starting
from pages.parts import access, network_folders, run_state, wording
from pages.parts.network import network_dialogs
from pages.parts.steering import dialogs
from pages.parts.steering.dialogs import Dialog
from pages.parts.widgets import code, figures
from pages.parts.widgets.figures import Figure
from storage.index.queries import RunRow
from storage.networks import in_network, proofs
from storage.networks.files import NetworkFolder
from storage.networks.proofs import Proof, Total
from storage.networks.ranking import Ranked
from storage.networks.records import ChosenKernel, Network, NetworkState
from storage.networks.standing import Standing
from storage.suites.records import CellState
from storage.suites.standing import Suite

MOST_NAMED = 6
NOTHING_YET = (
    "**No kernel was put back into this network yet.** A search writes kernels for the regions that are worth one. "
    "Then each is put back into the network and measured there, and only those stay that make the network itself "
    "faster."
)
NOT_MEASURED = (
    "Putting them back measures each of them inside the network: whether it is called there, whether results stay the "
    "same, and whether the network is faster."
)
GOES_ON = "What was measured is kept. “Go on” measures what is left."
BEGINS_ANEW = "Kernels were found since, so “Go on” measures all of them anew."
STOP_ABOUT = "What was measured is kept, and “Go on” measures what is left."
GOES_ON_BY_COMMAND = "What was measured is kept. The command below measures what is left."
PREPARING = "Limits that are missing are measured first; below is what it has written."
SEARCH_GOES_ON = "A search that is started again goes on with it."
SHIP_ABOUT = (
    "an installable Python package with the kernels that were kept: apply(network) puts them into the network, and "
    "PyTorch's own code runs where they do not fit; CARD.md inside has these figures"
)

SHIPPED_USE = "Install it with pip; then apply(network), or compile(network) where a kernel lies across modules."


class Stage(StrEnum):
    """How far kernels for a network are."""

    NOTHING = "nothing yet"
    SEARCHING = "searching"
    READY = "kernels to put back"
    PROVING = "measuring"
    BROKEN_OFF = "broken off"
    OVER = "measured"


def stage_of(stands: Standing, *, is_searching: bool, has_kernels: bool) -> Stage:
    """What is at work now comes first."""
    if stands.is_proving:
        return Stage.PROVING
    if is_searching:
        return Stage.SEARCHING
    if stands.proof is not None:
        return Stage.OVER if stands.proof.is_over else Stage.BROKEN_OFF
    return Stage.READY if has_kernels else Stage.NOTHING


def is_searching(stands: Standing) -> bool:
    """Whether the suite that searches kernels is at work, or what prepares it."""
    return _has_runner(stands) or (stands.network is not None and starting.is_at_work(stands.network.name))


def _has_runner(stands: Standing) -> bool:
    suite = network_folders.suite_folder(stands)
    return suite is not None and suite.has_runner


def searched(stands: Standing, runs: Mapping[str, Sequence[RunRow]]) -> list[str]:
    """Regions that a run is at work on."""
    suite = network_folders.suite_of(stands) if _has_runner(stands) else None
    of_suite = [cell.cell.task for cell in suite.planned if cell.state is CellState.RUNNING] if suite else []
    return [*of_suite, *(region for region, rows in runs.items() if any(map(_is_at_work, rows)))]


def without_run(suite: Suite | None, runs: Mapping[str, Sequence[RunRow]]) -> list[str]:
    """Regions that a suite searches and that have no run here."""
    return [cell.cell.task for cell in suite.planned if cell.cell.task not in runs] if suite else []


def _is_at_work(run: RunRow) -> bool:
    return not run.state.is_finished and run_state.has_engine(run.run_id)


def with_kernels(runs: Mapping[str, Sequence[RunRow]]) -> dict[str, ChosenKernel]:
    """Regions that have a correct kernel, with the fastest one."""
    found = {}
    for region, rows in runs.items():
        correct = [run for run in rows if run.best_candidate_id]
        if correct:
            best = max(correct, key=lambda run: run.best_speedup or 0.0)
            found[region] = ChosenKernel(
                region, best.run_id, best.best_candidate_id or "", best.best_speedup, best.best_low, best.best_high
            )
    return found


def unmeasured(proof: Proof | None, regions: Iterable[str]) -> list[str]:
    """Of regions with a kernel those that the last measurement knew nothing of."""
    known = {*proof.kernels, *proof.tried, *proof.started.without} if proof else set[str]()
    return [region for region in regions if region not in known]


def why_not_now(stands: Standing) -> str:
    """Why nothing else can be started on this network now; empty where it can."""
    if stands.state is NetworkState.CAPTURING:
        return "The network is being captured anew: wait until that has ended."
    if stands.is_proving:
        return "Kernels are being measured in this network: wait until that has ended."
    return "Kernels are being searched: wait until that has ended." if is_searching(stands) else ""


def draw(
    folder: NetworkFolder, network: Network, rows: Sequence[Ranked], stands: Standing,
    runs: Mapping[str, Sequence[RunRow]],
) -> None:  # fmt: skip
    """What is at work or to be done, then the result that there is."""
    found = list(with_kernels(runs))
    stage = stage_of(stands, is_searching=is_searching(stands), has_kernels=bool(found))
    with st.container(border=True, key="proof_state"):
        st.markdown("## In the network")
        if network.is_example and stands.proof is None:
            st.info("No kernel was put back into this network where it was captured.", icon=":material/memory:")
        elif stage is not Stage.OVER:
            _state(folder, stage, stands, found)
        if stands.proof is not None:
            result(network, stands.proof)
        if network.is_example and (left_behind := without_run(network_folders.suite_of(stands), runs)):
            st.caption(
                f"Not part of this example: the search of {_named(left_behind)}, whose "
                f"{'run was' if len(left_behind) == 1 else 'runs were'} not over or not there when it was made."
            )
        if stage is Stage.OVER and not network.is_example and (fresh := unmeasured(stands.proof, found)):
            st.info(
                f"{_named(fresh)} {'has' if len(fresh) == 1 else 'have'} a kernel that was not measured in the network "
                "yet.", icon=":material/new_releases:",
            )  # fmt: skip
        _buttons(folder, stage, stands, rows, found)
    if stage is not Stage.OVER and (log := starting.kernels_log(folder)):
        with st.expander("What the process has written", icon=":material/article:"):
            code.draw_plain("What the process has written", log, key="kernels_log", is_wrapped=True)


def _state(folder: NetworkFolder, stage: Stage, stands: Standing, found: Sequence[str]) -> None:
    suite = network_folders.suite_of(stands)
    if stage in (Stage.NOTHING, Stage.READY) and suite is not None and suite.state(False) == "stopped":
        st.warning(
            f"**The search has stopped.** {_progress(suite, is_at_work=False)} {SEARCH_GOES_ON}",
            icon=":material/link_off:",
        )
    match stage:
        case Stage.NOTHING:
            st.info(NOTHING_YET, icon=":material/memory:")
            _command("From a terminal, both are done by:", f"python -m engine network optimise {folder.name}")
        case Stage.READY:
            st.info(
                f"**{_named(found)} {'has' if len(found) == 1 else 'have'} a correct kernel, and none was put back "
                f"yet.** {NOT_MEASURED}", icon=":material/memory:",
            )  # fmt: skip
            _command("From a terminal:", f"python -m engine network apply {folder.name}")
        case Stage.SEARCHING:
            _searching(stands)
        case Stage.PROVING:
            _proving(stands.proof)
        case Stage.BROKEN_OFF:
            assert stands.proof is not None
            _broken_off(folder, stands.proof, has_more=bool(unmeasured(stands.proof, found)))
        case Stage.OVER:
            pass


def _command(said: str, command: str) -> None:
    st.caption(said)
    st.code(command, language=None, wrap_lines=True)


def _searching(stands: Standing) -> None:
    suite = network_folders.suite_of(stands)
    if not _has_runner(stands):
        st.info(f"**Work on kernels is being prepared.** {PREPARING}", icon=":material/hourglass_top:")
        return
    st.info(
        f"**Kernels are being searched.** {_progress(suite, is_at_work=True) if suite else ''}",
        icon=":material/hourglass_top:",
    )
    st.page_link(
        "benchmark.py", label="The search in detail", icon=":material/table_chart:",
        query_params={"suite": stands.suite}, width="content",
    )  # fmt: skip


def _progress(suite: Suite, *, is_at_work: bool) -> str:
    """How far the search is."""
    counts = suite.counts
    ended = counts[CellState.FINISHED] + counts[CellState.FAILED]
    now = [cell.cell.task for cell in suite.planned if cell.state is CellState.RUNNING] if is_at_work else []
    told = f"{ended} of {wording.counted(len(suite.planned), 'region')} done"
    return f"{told}, now {_named(now)}." if now else f"{told}."


def _named(regions: Sequence[str]) -> str:
    """Names of regions; of many how many others there are."""
    named = [wording.plain(name) for name in regions[:MOST_NAMED]]
    more = len(regions) - len(named)
    if more > 0:
        return f"{', '.join(named)} and {wording.counted(more, 'other region')}"
    return " and ".join(filter(None, [", ".join(named[:-1]), *named[-1:]]))


def _proving(proof: Proof | None) -> None:
    if proof is None or proof.is_over:
        st.info("**Kernels are being put back.** It has just begun.", icon=":material/hourglass_top:")
        return
    words = wording.sentence(proof.words or "it has just begun").rstrip(".")
    st.info(f"**Kernels are being put back.** {words}.", icon=":material/hourglass_top:")
    tried, whole = _counts(proof)
    if whole:
        st.progress(min(1.0, tried / whole), f"{tried} of {wording.counted(whole, 'kernel')} tried")


def _counts(proof: Proof) -> tuple[int, int]:
    return sum(name in proof.tried for name in proof.kernels), len(proof.kernels)


def _broken_off(folder: NetworkFolder, proof: Proof, *, has_more: bool) -> None:
    why = wording.sentence(proof.reason).rstrip(".") or _died(proof)
    tried, whole = _counts(proof)
    goes_on = GOES_ON_BY_COMMAND if not access.may_steer() else BEGINS_ANEW if has_more else GOES_ON
    st.warning(
        f"**The measurement was broken off.** {why}. {tried} of {wording.counted(whole, 'kernel')} had been tried. "
        f"{goes_on}", icon=":material/link_off:",
    )  # fmt: skip
    if not access.may_steer():
        st.code(f"python -m engine network apply {folder.name}", language=None, wrap_lines=True)


def _died(proof: Proof) -> str:
    return f"Its process ended while it was {wording.plain(proof.words or 'starting')}"


def result(network: Network, proof: Proof) -> None:
    """The figure that counts, and the one that gains in isolation promised; nothing before they are measured."""
    headline = in_network.headline(network, proof)
    if not headline:
        return
    assert proof.stack is not None
    total = proofs.total(proof.stack.best, proofs.weights_of(network))
    if total is not None:
        figures.draw("What kernels bring in the network", list(_figures(network, proof, total)), key="proof_figures")
    st.markdown(" ".join(filter(None, [f"**{_written(headline)}**", _written(in_network.by_workload(network, proof))])))
    if replaced := in_network.replaced(network, proof.stack.kept):
        st.markdown(_written(replaced))
    if prediction := in_network.prediction(network, proof):
        st.markdown(_written(prediction))
    facts = ["in brackets the 95 % interval"] if total is not None else []
    if worst := max(proof.stack.parity, key=lambda part: part.error / part.allowed, default=None):
        facts.append(
            f"results: {wording.NEAREST} {wording.significant(worst.error, 2)} of "
            f"{wording.significant(worst.allowed, 2)} allowed, against {worst.exact}"
        )
    if proof.stack.greedy:
        facts.append(proof.stack.greedy)
    if facts:
        st.caption(wording.plain(wording.capital("; ".join(facts)) + "."))


def _figures(network: Network, proof: Proof, total: Total) -> Iterator[Figure]:
    assert proof.stack is not None
    best, counted = proof.stack.best[0], in_network.counted(network) or "A call"
    about = (
        f"{in_network.WEIGHTED if counted != 'A call' else 'One call'}, timed in turns without and with the kernels; "
        "the figure above is that of the capture."
    )
    note = f"{total.low:.3f} to {total.high:.3f}, over the best alternative"
    yield Figure("The network with kernels", f"{total.speedup:.3f}×", note, "with its 95 % interval")
    yield Figure(
        f"{counted}, without kernels", wording.latency(total.before_ms), f"by {best.before}, timed in turns", about
    )
    yield Figure(f"{counted}, with kernels", wording.latency(total.after_ms), f"by {best.after}, timed in turns", about)
    yield Figure("Kernels kept", f"{len(proof.stack.kept)} of {len(proof.kernels)}", "that were put back")


def _written(sentence: str) -> str:
    return wording.plain(wording.factors(sentence))


def _buttons(
    folder: NetworkFolder, stage: Stage, stands: Standing, rows: Sequence[Ranked], found: Sequence[str]
) -> None:
    asked: Callable[[], object] | None = None
    with st.container(horizontal=True, vertical_alignment="center"):
        proof = stands.proof
        if proof is not None and stage is Stage.OVER and proofs.shipped(proof):
            st.button(
                "Ship", icon=":material/package_2:", key="ship_network", help=SHIP_ABOUT, type="primary",
                on_click=dialogs.ask, args=(Dialog.SHIP, "", "", folder.name),
            )  # fmt: skip
            kept = wording.counted(len(proof.stack.kept) if proof.stack else 0, "kernel")
            st.caption(wording.plain(f"{folder.name}-package.zip: {kept}. {SHIPPED_USE}"), width="content")
        if access.may_steer() and not (stands.network and stands.network.is_example):
            asked = _starts(folder, stage, stands, rows, found)
    if asked is not None:
        network_dialogs.begin(asked, "Stopping" if stage is Stage.PROVING else "Starting")


def _starts(
    folder: NetworkFolder, stage: Stage, stands: Standing, rows: Sequence[Ranked], found: Sequence[str]
) -> Callable[[], object] | None:
    """Buttons that start something; what the one that was pressed just now starts."""
    asked: Callable[[], object] | None = None
    why_not, proof = why_not_now(stands), stands.proof
    if stage is Stage.BROKEN_OFF and proof is not None:
        used = {name: kernel.run_id for name, kernel in proof.kernels.items()}
        started = proof.started
        if st.button("Go on", icon=":material/play_arrow:", key="proof_go_on", type="primary"):
            asked = partial(
                starting.put_kernels_back, folder.name, without=started.without, used=used, ways=started.ways
            )
    elif stage is Stage.PROVING and proof is not None:
        is_stopping = proof.words == proofs.STOPPING
        if st.button(
            "Stopping" if is_stopping else "Stop measuring", icon=":material/stop:", key="stop_measuring",
            disabled=is_stopping, help=STOP_ABOUT,
        ):  # fmt: skip
            asked = partial(starting.stop_measuring, folder.name)
    elif stage is Stage.READY or (stage is Stage.OVER and unmeasured(proof, found)):
        without = proof.started.without if proof else ()
        if st.button("Put kernels back", icon=":material/input:", key="put_back", type="primary"):
            asked = partial(starting.put_kernels_back, folder.name, without=without)
    worth = sum(row.is_worth_it for row in rows)
    st.button(
        "Search kernels", icon=":material/manage_search:", key="search_kernels",
        type="primary" if stage is Stage.NOTHING else "secondary", on_click=network_dialogs.ask_search,
        args=(folder.name,), disabled=bool(why_not) or not worth,
        help=why_not or ("" if worth else "No region of this network is worth a kernel.") or None,
    )  # fmt: skip
    return asked
