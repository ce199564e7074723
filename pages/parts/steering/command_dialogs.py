"""The dialogs in which a person says what an engine is to do: model, base kernel, class, hint, stop; and the one that
saves a recording. Each shows what will follow before it is confirmed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from engine import supervisor
from engine.errors import EngineError
from pages.parts import index, method, run_state, wording
from pages.parts.status import step_sentences
from pages.parts.steering import dialogs, kernel_choice, steer
from pages.parts.steering.dialogs import Dialog
from storage.index import queries
from storage.index.queries import AttemptRow, RunRow, StepRow
from storage.results.vocabulary import KernelClass
from storage.run import folder
from storage.run.method_words import MethodWords
from storage.run.settings import RunState
from storage.run.steering.command_arguments import MANUAL, Retry, is_call
from storage.run.steering.steering_state import SteeringState
from storage.run.steering.verbs import CommandKind

NEXT_CALLS, ONE_STEP = "all further calls", "redo one step"
STEPS = 60
OFF_RECORDING = (
    " This run replays recorded replies, each written for a certain kernel. For another kernel it takes the next "
    "recorded reply, which may not fit; where none is left it waits for a reply from you."
)


@st.dialog("Model", width="large", icon=":material/smart_toy:", on_dismiss=dialogs.close)
def choose_model(run: RunRow, steering: SteeringState) -> None:
    """Choose the model, see what follows, confirm."""
    dialogs.name_run(run.title, run.run_id)
    now = steering.model.model if steering.model else queries.first_model(index.current(), run.run_id)
    st.caption(f"Current model: {wording.plain(now)}")
    ways = _honoured(run, {CommandKind.SET_MODEL: NEXT_CALLS, CommandKind.RETRY: ONE_STEP})
    how = st.segmented_control("Use another model for", ways, default=ways[0], key="model_how", required=True)
    models = [name for name in supervisor.available_models() if how == NEXT_CALLS or name != MANUAL]
    model = model_box(st.container(), "Model", "model_name", models, now)
    options = st.text_input(
        "Options", key="model_options_line", placeholder="e.g. reasoning_effort=high temperature=0.2"
    )
    step = _step_to_redo(run) if how == ONE_STEP else None
    text = " ".join(f"{model} {options}".split()) + (f" step={step.step}" if step else "")
    if problem := _problem(text):
        st.error(wording.sentence(problem), icon=":material/error:")
        dialogs.take_confirmed()
        return
    if how == ONE_STEP and step is None:
        st.info("No model has been called yet, so there is no step to redo.", icon=":material/hourglass_top:")
        dialogs.take_confirmed()
        return
    st.info(_model_preview(model, step, method.words(run.run_id).distinct), icon=":material/visibility:")
    label = f"Redo step {step.step}" if step else "Change the model"
    command = CommandKind.RETRY if step else CommandKind.SET_MODEL
    if dialogs.buttons("model", label, ":material/smart_toy:"):
        steer.send(run.run_id, command, text)
        dialogs.leave()


def _model_preview(model: str, step: StepRow | None, index_word: str) -> str:
    """What will happen, and what is lost."""
    name = wording.plain(model)
    if step is None:
        return f"{name} gets all further calls, until you change it again. A reply being written is still used."
    return (
        f"{name} redoes step {step.step} ({step.kind}, {index_word} {step.depth}), this once. A reply being written is "
        f"cancelled; if the step belongs to an earlier {index_word}, the current {index_word} is abandoned. "
        "All kernels and replies stay in the run."
    )


def _step_to_redo(run: RunRow) -> StepRow | None:
    steps = dialogs.hold("steps", lambda: queries.steps(index.current(), run.run_id, limit=4 * STEPS))
    calls = [s for s in steps if is_call(s.kind)][:STEPS]
    if not calls:
        return None
    words = method.words(run.run_id)
    return st.selectbox(
        "Step to redo, newest first", calls, key="model_step",
        format_func=lambda s: f"step {s.step} · {words.distinct} {s.depth} · {step_sentences.sentence(s, words)[:70]}",
    )  # fmt: skip


def _problem(text: str) -> str:
    try:
        Retry.parse(text)
    except ValueError as error:
        return str(error)
    return ""


@st.dialog("Base kernel", width="large", icon=":material/keep:", on_dismiss=dialogs.close)
def choose_base(run: RunRow, candidate_id: str = "") -> None:
    """Choose it, see what follows, confirm."""
    dialogs.name_run(run.title, run.run_id)
    kernels, step = dialogs.hold("targets", lambda: kernel_choice.targets(run)), method.words(run.run_id).distinct
    if not kernels:
        why = f"No kernel to start from yet: no {step} with a correct kernel has finished."
        st.info(wording.plain(why), icon=":material/hourglass_top:")
        return
    chosen = kernel_choice.draw(run, "Kernel to start from", kernels, "base_from", candidate_id)
    once, always = f"next {step} only", f"every {step} until unpinned"
    ways = _honoured(run, {CommandKind.SET_BASE: once, CommandKind.PIN: always})
    how = st.segmented_control("Applies to", ways, default=ways[0], key="base_how", required=True)
    note = OFF_RECORDING if steer.is_recorded(run) else ""
    st.info(_base_preview(chosen, how == always, method.words(run.run_id)) + note, icon=":material/visibility:")
    verb, command = ("Pin", CommandKind.PIN) if how == always else ("Start next from", CommandKind.SET_BASE)
    if dialogs.buttons("base", f"{verb} kernel {chosen.number}", ":material/keep:"):
        steer.send(run.run_id, command, chosen.candidate_id)
        dialogs.leave()


def _honoured(run: RunRow, ways: Mapping[CommandKind, str]) -> list[str]:
    """The ways whose verb the run's search method honours; a dialog is offered while there is one."""
    return [way for command, way in ways.items() if steer.refusal(run, command) is None] or list(ways.values())


def _base_preview(chosen: AttemptRow, is_pin: bool, words: MethodWords) -> str:
    """What will happen, and what is lost."""
    what = f"every later {words.distinct} starts" if is_pin else f"the next {words.distinct} starts"
    then = "until you unpin it" if is_pin else f"later {words.steps} follow the run's own rule"
    return (
        f"The current {words.distinct} continues to its end; {what} from kernel {chosen.number}, {then}. "
        "All kernels stay in the run."
    )


def base_in_force(run: RunRow, steering: SteeringState) -> None:
    """What a person has set about base kernels, and the way to lift it; nothing without."""
    step = wording.plain(method.words(run.run_id).distinct)
    if back := queries.waiting_roll_back(index.current(), run.run_id):
        st.caption(f":material/undo: Waiting for the next step: go back to {kernel_choice.number(run, back)}")
    if steering.next_base:
        name = kernel_choice.number(run, steering.next_base)
        st.caption(f":material/schedule: The next {step} starts from {name}")
    if steering.pinned:
        name = kernel_choice.number(run, steering.pinned)
        with st.container(horizontal=True, vertical_alignment="center"):
            st.caption(f":material/keep: Pinned: every {step} starts from {name}", width="stretch")
            steer.verb_button(run, CommandKind.UNPIN)


@st.dialog("Kernel class", icon=":material/category:", on_dismiss=dialogs.close)
def choose_class(run: RunRow) -> None:
    """Choose it, see what follows, confirm."""
    dialogs.name_run(run.title, run.run_id)
    st.markdown(f"Now: **{wording.CLASS_NAME[run.kernel_class]}**")
    others = [kernel_class for kernel_class in KernelClass if kernel_class is not run.kernel_class]
    chosen = st.selectbox("Change to", others, format_func=wording.CLASS_NAME.__getitem__, key="class_to")
    st.info(
        f"From the next step on, prompts use the guide for {wording.CLASS_NAME[chosen]}, and profiles on auto follow "
        "this class. Existing kernels and results stay as they are.",
        icon=":material/visibility:",
    )
    if steer.is_recorded(run):
        st.caption(steer.RECORDED.format("the guide of another class"))
    if dialogs.buttons("class", "Change the class", ":material/category:"):
        steer.send(run.run_id, CommandKind.SET_CLASS, chosen)
        dialogs.leave()


@st.dialog("Hint for the next prompt", icon=":material/lightbulb:", on_dismiss=dialogs.close)
def write_hint(run: RunRow) -> None:
    """Ask for it, say whom it reaches, confirm."""
    dialogs.name_run(run.title, run.run_id)
    if steer.is_recorded(run):
        st.info(steer.RECORDED.format("a hint"), icon=":material/info:")
    text = dialogs.text_area("Hint", "hint_text", 110)
    st.caption("Used once, in the next prompt; not in the reply being written now.")
    if dialogs.buttons("hint", "Send the hint", ":material/lightbulb:"):
        if not text.strip():
            st.error("Hint not sent: it is empty.", icon=":material/error:")
            return
        steer.send(run.run_id, CommandKind.HINT, text.strip())
        dialogs.leave()


@st.dialog("Stop this run?", icon=":material/stop:", on_dismiss=dialogs.close)
def confirm_stop(run: RunRow) -> None:
    """Stopping ends the engine, so it asks once more."""
    dialogs.name_run(run.title, run.run_id)
    st.markdown(
        "The step in progress is cancelled and the engine ends. Completed steps are saved, and the run can be resumed."
    )
    if dialogs.buttons("stop", "Stop the run", ":material/stop:", cancel="Keep running"):
        steer.send(run.run_id, CommandKind.STOP)
        dialogs.leave()


def draw_stop(run: RunRow, state: RunState) -> None:
    """How far a stop that was asked for has come; nothing at all otherwise."""
    stop = None if state.is_over else run_state.pending_stop(run.run_id)
    if stop is None:
        return
    reached = "the engine is ending" if stop.acknowledged_at else "the engine has not confirmed it yet"
    st.caption(
        f":material/hourglass_top: Stopping: requested at {wording.clock(stop.asked_at)} by "
        f"{wording.plain(stop.asked_by)}; {reached}."
    )
    if run_state.is_overdue(stop) and st.button(
        "Force stop", icon=":material/dangerous:", key=f"end:{run.run_id}", width="stretch",
        on_click=dialogs.ask, args=(Dialog.END, run.run_id),
    ):  # fmt: skip
        st.rerun()


@st.dialog("Force stop?", icon=":material/dangerous:", on_dismiss=dialogs.close)
def force_stop(run: RunRow) -> None:
    """Signals instead of words: first SIGTERM, then SIGKILL, to the engine and all it started."""
    dialogs.name_run(run.title, run.run_id)
    st.markdown(
        "The engine has not stopped by itself. It gets SIGTERM, and SIGKILL after 5 seconds. Completed steps are "
        "saved; the step in progress is repeated when the run is resumed."
    )
    if not dialogs.buttons("end", "Force stop", ":material/dangerous:", cancel="Keep waiting"):
        return
    with st.status("Stopping the engine") as status:
        is_ended = supervisor.stop(folder.find_run(run.run_id), tell=st.write)
        word = "Engine stopped" if is_ended else "The engine had already ended"
        status.update(label=word, state="complete")
    steer.say(word)
    dialogs.leave()


@st.dialog("Save this run as a recording", icon=":material/save:", on_dismiss=dialogs.close)
def save_recording(run: RunRow) -> None:
    """A download of the replies, which replay without a key."""
    dialogs.name_run(run.title, run.run_id)
    try:
        text = supervisor.recording_of(folder.find_run(run.run_id))
    except (EngineError, FileNotFoundError) as error:
        st.info(wording.sentence(str(error)), icon=":material/info:")
        return
    st.markdown(
        f"{text.count(chr(10)) - 1:,} model replies of this run. A run from this file needs no API key; its kernels "
        "are built, checked and timed again. Keys and endpoint addresses are not included."
    )
    name = f"{run.task_name}.jsonl"
    st.code(f"python -m engine run {run.task_name} --recording {name}", language="bash", wrap_lines=True)
    st.download_button(
        "Download", text, file_name=name, mime="application/jsonl", icon=":material/download:", on_click="ignore",
        key="download_recording",
    )  # fmt: skip


def model_box(slot: DeltaGenerator, label: str, key: str, models: Sequence[str], now: str) -> str:
    """The name chosen or typed."""
    names = list(dict.fromkeys([now, *models]))
    chosen = slot.selectbox(
        label, names, key=key, accept_new_options=True, help="choose a model, or type a model name of your endpoint"
    )
    return str(chosen or now).strip()
