"""The end of a run, beside the curve: what it has come to, and everything that is done with a result."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from engine import supervisor
from engine.errors import EngineError
from pages.parts import access, index, run_state, texts, wording
from pages.parts.run import kernel_panel, run_header
from pages.parts.status import alternatives, damaged, outcome
from pages.parts.steering import dialogs
from storage.index import queries
from storage.index.queries import RunRow
from storage.run import folder
from storage.run.settings import RunState


def is_due(run: RunRow, state: RunState) -> bool:
    """Whether the run has ended; one that is lost has not."""
    return state.is_finished and state is not RunState.FAILED and run_state.shown_state(run) is not RunState.WAITING


def draw(run: RunRow, state: RunState) -> None:
    """The sentence and the acts."""
    with st.container(border=True, key="result"):
        st.markdown("## Result")
        st.markdown(wording.plain(sentence(run)))
        if run.best_candidate_id and (advice := kernel_panel.draw_looks(run, run.best_candidate_id)):
            st.caption(wording.plain(advice))
        if run.best_candidate_id and (test := outcome.decided(index.current(), run.run_id, run.best_candidate_id)):
            st.caption(wording.plain(test))
        if lost := outcome.loses(index.current(), run):
            st.warning(wording.plain(lost), icon=":material/warning:")
        other = outcome.elsewhere(index.current(), run)
        if other and (said := alternatives.elsewhere(other, run.best_measured)):
            st.caption(wording.plain(said))
            st.page_link("run.py", label="Open that run", query_params={"run": other.run_id})
        if doubt := outcome.doubt_best(index.current(), run):
            st.caption(f":material/hourglass_top: {wording.plain(doubt.sentence)}")
        with st.container(horizontal=True, vertical_alignment="center", gap="small", key="result_acts"):
            problem = run_header.offer_resume(run, state)
            _acts(run, state)
        if problem:
            st.error(wording.sentence(problem), icon=":material/error:")


def sentence(run: RunRow) -> str:
    """What came of the run; that it has ended stands in the line of figures."""
    if run.best_speedup is None:
        came = f"{wording.counted(run.passed, 'correct kernel')}, none with a timing that counts"
        came = came if run.passed else "no correct kernel"
    elif beyond := outcome.not_faster(run.best_low, run.best_high):
        measured = wording.measured(run.best_speedup, run.best_noise, run.best_low, run.best_high)
        came = f"the best kernel is {beyond}: {measured}"
    else:
        measured = wording.measured(run.best_speedup, run.best_noise, run.best_low, run.best_high)
        came = f"kernel {_number(run)} is {measured} as fast as eager PyTorch{_and_over(run)}"
    said = f"{wording.capital(came)}."
    if not run.best_speedup or not run.best_candidate_id:
        return said
    db = index.current()
    avoidable = outcome.avoidable(db, run.run_id, run.best_candidate_id)
    ties = outcome.tied(run, index.attempts(run.run_id))
    return " ".join(filter(None, [said, ties, avoidable, outcome.timed_in_turns(db, run)]))


def _and_over(run: RunRow) -> str:
    """How fast the best kernel is beside the best alternative; empty where that is not known."""
    fastest = queries.baseline(index.current(), run.run_id)
    ratio = fastest.under(run.best_measured) if fastest else None
    if fastest is None or ratio is None:
        return ""
    if alternatives.is_eager_best(fastest):
        return ", the fastest alternative"
    return f" and {wording.ratio(ratio)} as fast as {alternatives.named(fastest)}"


def _number(run: RunRow) -> str:
    best = queries.candidate(index.current(), run.run_id, run.best_candidate_id or "")
    return f"{best.number}" if best else ""


def _acts(run: RunRow, state: RunState) -> None:
    original = run.replay_of or run.run_id
    is_faster = not outcome.not_faster(run.best_low, run.best_high)
    if run.best_candidate_id:
        st.download_button(
            "Download best kernel", _exported(run), file_name=f"{run.task_name}-best.py", mime="text/x-python",
            icon=":material/download:", key="download_best", on_click="ignore",
            type="primary" if is_faster and state is not RunState.STOPPED else "secondary",
            help="one Python file with a class ModelNew; PyTorch loads it without Tilewright",
        )  # fmt: skip
        st.button(
            "Package", icon=":material/package_2:", key="package", on_click=dialogs.ask,
            args=(dialogs.Dialog.PACKAGE, original, run.best_candidate_id),
            help="an installable Python package: the kernel as an operator of PyTorch, with guards, gradients and "
            "PyTorch's own code where it does not fit; its card is shown first",
        )  # fmt: skip
    may_steer = not run.replay_of and access.may_steer()
    if state is RunState.FINISHED and may_steer and not run.is_example and damaged.of(run.run_id).can_resume:
        st.button(
            "Continue", icon=":material/play_arrow:", key=f"continue:{run.run_id}", on_click=dialogs.ask,
            args=(dialogs.Dialog.LIMITS, run.run_id), type="secondary" if is_faster else "primary",
            help="raise its limits and go on from where it ended",
        )  # fmt: skip
    run_header.draw_report(run, "Report", "result_report")
    if may_steer and st.button(
        "Replay", icon=":material/replay:", type="tertiary", key=f"replay:{run.run_id}",
        help="plays the run back in two minutes",
    ):  # fmt: skip
        run_header.start_replay(run, None)
    if st.button(
        "Compare", icon=":material/stacked_line_chart:", type="tertiary", key=f"compare:{run.run_id}",
        help="with other runs",
    ):  # fmt: skip
        st.switch_page("compare.py", query_params={"runs": original})
    if may_steer and st.button(
        "New run like this", icon=":material/content_copy:", type="tertiary", key=f"like:{run.run_id}",
        help="opens New run with the task, sizes, model, method and limits of this one",
    ):  # fmt: skip
        st.switch_page("new_run.py", query_params={"like": original})


def _exported(run: RunRow) -> Callable[[], str]:
    """The file that `export` writes; the kernel's own text where that cannot be made. Made when it is asked for.

    Trap: it is made in a thread of its own, where nothing of the page may be used.
    """
    best = queries.candidate(index.current(), run.run_id, run.best_candidate_id or "")
    blob = best.source_blob if best else None

    def make() -> str:
        try:
            return supervisor.exported(folder.find_run(run.replay_of or run.run_id), run.best_candidate_id)
        except (EngineError, OSError):
            return texts.source(run.run_id, blob)

    return make
