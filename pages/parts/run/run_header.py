"""Name and state of a run, the way back when nobody works on it, the keys of the page, and the menu of what can be done
with a run as a whole: report, replay, comparison, recording, link."""

from __future__ import annotations

from collections import Counter
from functools import partial

import streamlit as st

from engine import supervisor
from engine.errors import EngineError
from engine.evaluator import languages
from engine.search.methods import catalogue
from pages.parts import access, index, method, run_state, wording
from pages.parts.report.report_run import file_name, run_report
from pages.parts.status import (
    alerts,
    damaged,
    measured_on,
    no_kernel,
    outcome,
    pinned_snapshot,
    provenance,
    settings_list,
    step_sentences,
)
from pages.parts.steering import dialogs, reply_form, steer
from pages.parts.steering.dialogs import Dialog
from storage.index import queries
from storage.index.queries import RunRow
from storage.results.vocabulary import Verdict
from storage.run.settings import RunState
from storage.run.steering import commands
from storage.run.steering.commands import CommandError

PACES: dict[str, float | None] = {"in two minutes": None, "60×": 60.0, "10×": 10.0, "1×": 1.0}
NONE_CORRECT = "no correct kernel: "  # the reason then goes on with what became of them
READ_ONLY = "this server is read-only and starts nothing"
KEYS = (
    ("F", "freeze the page while the run goes on, or go live again"),
    ("P", "pause the run, or resume it"),
    ("H", "write a hint"),
    ("J", "next kernel, while one is open"),
    ("K", "previous kernel"),
    ("Esc", "close the kernel"),
    ("← →", "move along the lineage while it has focus; Enter opens"),
)


def draw(run: RunRow, state: RunState) -> None:
    """Title, state, what is run on what; alerts, freeze and keys; a resume button where work was left."""
    with st.container(
        horizontal=True, vertical_alignment="center", horizontal_alignment="distribute", gap="small", key="run_head"
    ):
        with st.container(horizontal=True, vertical_alignment="center", gap="small", key="run_name"):
            _name(run)
        with st.container(horizontal=True, vertical_alignment="center", gap="xsmall", width="content", key="run_tools"):
            alerts.draw(run, state, partial(_may_act, run, state), steer.act)
            pinned_snapshot.button(run.run_id)
            _key_help()
            _menu(run, state)
    # Trap: without a container that is always there, a banner that comes or goes makes the browser forget the zoom.
    with st.container():
        damaged.banner(run.run_id)
        with st.container(horizontal=True, vertical_alignment="center", gap="small", key="run_alert"):
            _alert(run, state)
            is_elsewhere = state is RunState.STOPPED and run_state.shown_state(run) is not RunState.WAITING
            problem = "" if is_elsewhere else offer_resume(run, state)
        if problem:
            st.error(wording.sentence(problem), icon=":material/error:")


def draw_notes(run: RunRow, state: RunState) -> None:
    """Below the curve: where the run comes from, what is uncertain about its limit, and which rules its kernels are
    judged by."""
    provenance.replay_banner(run, state)
    provenance.example_note(run)
    provenance.shared_note(run, state)
    if doubt := outcome.limit_doubt(index.current(), run.run_id):
        st.caption(f":material/hourglass_top: {wording.plain(doubt)}")
    if older := settings_list.older_rules(run.run_id):
        st.caption(f":material/history: {wording.plain(older)}")


EXAMPLE = (
    "made on another machine and shipped with Tilewright; it counts in no total of your runs. Fork a kernel of it to "
    "go on"
)


def _name(run: RunRow) -> None:
    """What the run is, and what it works on with what."""
    st.page_link("overview.py", label="Runs", icon=":material/arrow_back:", width="content")
    st.title(run.title, anchor=False, width="content")
    provenance.replay_badge(run)
    if run.is_demo:
        st.badge("demo", color="gray", help="model replies are recorded; kernels are really built, checked and timed")
    if run.is_example and not run.replay_of:
        st.badge("example", icon=":material/school:", color="gray", help=EXAMPLE)
    provenance.draw_fork(run)
    _divergence(run)
    strategy = queries.strategy(index.current(), run.run_id)
    method = [] if catalogue.is_default(strategy) else [wording.plain(catalogue.short(strategy))]
    parts = [
        *map(wording.plain, measured_on.words(run)),
        wording.CLASS_NAME[run.kernel_class], languages.label(run.language), run.toolchain, *method,
        wording.plain(wording.model(run.model, run.is_example)),
    ]  # fmt: skip
    with st.container(key="measured_on"):
        st.caption(" · ".join(parts))


def _may_act(run: RunRow, state: RunState, act: alerts.Act) -> bool:
    may_take = access.may_steer() and commands.is_offered(act.command, state, is_replay=bool(run.replay_of))
    return may_take and steer.refusal(run, act.command) is None


def _where(run: RunRow) -> str:
    step, words = queries.current_step(index.current(), run.run_id), method.words(run.run_id)
    if step is None:
        return " before its first step" if run.depth is None else ""
    return f" at {words.step} {step.depth}, while {was_doing(step_sentences.sentence(step, words))}"


def was_doing(text: str) -> str:
    """What a step does, told of one that was broken off."""
    words = text[:1].lower() + text[1:]
    return words.replace("the model is ", "the model was ", 1).replace("a person is ", "a person was ", 1)


def failure(run: RunRow) -> str:
    """Why a run has failed: no kernel was correct, and of what they died, or its engine's own reason."""
    if not run.attempts and no_kernel.gave_none(run, RunState.FAILED):
        return no_kernel.failure(run)
    groups = queries.error_groups(index.current(), run.run_id, run.failed) if not run.passed and run.failed else []
    if not groups or getattr(queries.states(index.current(), run.run_id)[-1].event, "error_blob", None):
        return f"**The run failed:** {wording.plain(run.state_reason)}"
    counts = Counter[Verdict]()
    for group in groups:
        counts[group.verdict] += group.count
    why = ", ".join(
        f"{wording.VERDICT_NAME[verdict]} ({wording.counted(n, 'kernel')})" for verdict, n in counts.most_common()
    )
    ended = run.state_reason.removeprefix(NONE_CORRECT)
    last = f" The last one: “{wording.cut(run.last_error, 200)}”." if run.last_error else ""
    return f"**No kernel was correct:** {wording.plain(f'{why}.{last} The run ended: {ended}.')}"


def _alert(run: RunRow, state: RunState) -> None:
    """What a person has to know or do before anything else."""
    if reply_form.is_due(run, state):
        return  # the form below says so, and has the button
    if state is RunState.WAITING:
        st.warning(f"**Waiting for you.** {wording.plain(run.waiting_reason)}", icon=":material/schedule:")
    elif state is RunState.FAILED:
        st.error(failure(run), icon=":material/error:")
    elif state is RunState.STOPPED and run_state.shown_state(run) is RunState.WAITING:
        st.info(f"**Stopped while it waited for you.** {wording.plain(run.waiting_reason)}", icon=":material/schedule:")
    damages = damaged.of(run.run_id)
    if state is RunState.LOST and not damages.is_cut:
        rest = " Completed steps are saved; resume to continue." if damages.can_resume else ""
        st.warning(
            f"**The run was interrupted: its engine ended{wording.plain(_where(run))}.**{rest}",
            icon=":material/warning:",
        )


def _divergence(run: RunRow) -> None:
    """That a replay has left its recording, and what was done about it. Of an example whose replies were handed in its
    note tells who wrote them."""
    if wording.is_handed_in(run.model, run.is_example):
        return
    divergences = queries.divergences(index.current(), run.run_id)
    if divergences:
        count = (
            f" {len(divergences)} times so far, last at step {divergences[-1].step}." if len(divergences) > 1 else ""
        )
        help_text = f"This run has left its recording. {wording.plain(divergences[-1].reason)}{count}"
        st.badge("left its recording", icon=":material/alt_route:", color="blue", help=help_text)


def offer_resume(run: RunRow, state: RunState) -> str:
    """A button where an engine left before its work was done; what went wrong with it, if anything."""
    if not access.may_steer() or (run.is_example and not run.replay_of) or pinned_snapshot.is_sought(run.run_id):
        return ""
    if state not in (RunState.LOST, RunState.STOPPED, RunState.FAILED) or not damaged.of(run.run_id).can_resume:
        return ""
    if no_kernel.gave_none(run, state):
        return ""
    if state is RunState.STOPPED and reply_form.is_due(run, state) and not reply_form.has_reply(run.run_id):
        return ""  # without a reply there is nothing to go on with
    if not st.button("Resume run", icon=":material/play_arrow:", type="primary", key=f"resume:{run.run_id}"):
        return ""
    try:
        with st.spinner("Starting the engine"):
            steer.start_engine(run.run_id)
    except (EngineError, CommandError, FileNotFoundError) as error:
        return str(error)
    steer.say("Run resumed.")
    return ""


def _menu(run: RunRow, state: RunState) -> None:
    """The menu; what is in it is made only while it is open."""
    menu = st.popover(
        "Share", icon=":material/ios_share:", key=f"run_menu-{run.run_id}", on_change="rerun", width="content"
    )
    if not menu.open:
        return
    with menu:
        draw_report(run, "Download report", "report")
        original = run.replay_of or run.run_id
        st.page_link(
            "compare.py", label="Compare with other runs", icon=":material/stacked_line_chart:",
            query_params={"runs": original},
        )  # fmt: skip
        if not run.replay_of:
            _replay(run, state)
            _recording(run)
        st.caption("Link to this page")
        st.code(_address(run), language=None, wrap_lines=True)


def draw_report(run: RunRow, label: str, key: str) -> None:
    """Trap: the file is made in a thread of its own, where nothing of the page may be used."""
    db = index.current()
    st.download_button(
        label, lambda: run_report(db, run.run_id), file_name=file_name(run), mime="text/html",
        icon=":material/description:", key=key, on_click="ignore", type="tertiary",
        help="one HTML file with curve, kernels, diffs and checks; opens without a server or network",
    )  # fmt: skip


def _replay(run: RunRow, state: RunState) -> None:
    why = "" if state.is_over else "the run has not ended yet"
    why = why if access.may_steer() else READ_ONLY
    pace = st.segmented_control("Replay", list(PACES), default="in two minutes", required=True, key="replay_pace")
    st.caption(":material/info: Plays the run back from its journal. Playback only; no cost.")
    if st.button(
        "Start replay", icon=":material/replay:", key=f"start_replay:{run.run_id}", disabled=bool(why), help=why or None
    ):
        start_replay(run, PACES[str(pace)])


def start_replay(run: RunRow, speed: float | None) -> None:
    """Play a run back, and go to where it is shown."""
    try:
        with st.spinner("Starting the replay"):
            folder = supervisor.start_replay(run.run_id, speed)
    except (EngineError, OSError) as error:
        st.error(wording.sentence(str(error)), icon=":material/error:")
        return
    st.switch_page("run.py", query_params={"run": folder.run_id})


def _recording(run: RunRow) -> None:
    """The replies as a file; what it reads may be long, so a read-only server does not offer it."""
    why = "" if run.model_calls else "no model reply yet"
    why = why if access.may_steer() else READ_ONLY
    st.button(
        "Save as recording", icon=":material/save:", key=f"save_recording:{run.run_id}", type="tertiary",
        disabled=bool(why), help=why or "the model replies of this run; a run from them needs no API key",
        on_click=_ask_for_recording, args=(run.run_id,),
    )  # fmt: skip


def _ask_for_recording(run_id: str) -> None:
    """The menu closes, or it would lie over the dialog."""
    st.session_state[f"run_menu-{run_id}"] = False
    dialogs.ask(Dialog.RECORDING, run_id)


def _address(run: RunRow) -> str:
    page = str(st.context.url or "").partition("?")[0]
    return f"{page}?run={wording.in_address(run.run_id)}"


def _key_help() -> None:
    """The list; no key does anything while a person types."""
    with st.popover("Keys", key="keys", type="tertiary", help="keyboard shortcuts"):
        st.markdown("\n".join(f"- `{key}` {what}" for key, what in KEYS))
        st.caption("Off while you type.")
