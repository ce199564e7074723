"""What a person does about suites: start a shipped one, in a dialog that says what it takes; stop and continue one."""

from __future__ import annotations

import shlex
from collections.abc import Callable

import streamlit as st

from engine import supervisor
from engine.errors import EngineError
from engine.suites import definition, starting
from pages.parts import access, wording
from pages.parts.benchmark import suite_draft, suite_forecast
from pages.parts.new_run import forecast
from pages.parts.steering import dialogs, steer
from pages.parts.steering.dialogs import Dialog
from storage.suites import files
from storage.suites.files import SuiteError, SuiteFolder
from storage.suites.records import Defined
from storage.suites.standing import Suite

MORE_HELP = "Words of `python -m engine run` for every run of the suite, such as --model manual or --max-calls 20."
BEGUN_BEFORE = (
    "A suite **{}** was started here before. Finished runs stay as they are; this goes on with the others and adds "
    "what is new."
)


def ask_start(name: str) -> None:
    """Open the form that starts a shipped suite."""
    dialogs.ask(Dialog.START_SUITE, subject=name)


def ask_stop(name: str) -> None:
    """Ask whether a suite is to be stopped."""
    dialogs.ask(Dialog.STOP_SUITE, subject=name)


def draw_dialog() -> None:
    """Draw what is open; for the page itself, after its live part."""
    asked = dialogs.opened()
    if asked is None or not access.may_steer():
        return
    if asked.dialog is Dialog.START_SUITE:
        _start(asked.subject)
    elif asked.dialog is Dialog.STOP_SUITE:
        _confirm_stop(asked.subject)


@st.dialog("Stop this suite?", icon=":material/stop:", on_dismiss=dialogs.close)
def _confirm_stop(suite: str) -> None:
    """It ends runs at work, so it asks once more."""
    st.markdown(f"**{wording.plain(suite)}**")
    st.markdown("Runs at work end after their step, and no other begins. Nothing is lost: *Continue* goes on.")
    if dialogs.buttons("stop_suite", "Stop the suite", ":material/stop:", cancel="Keep running"):
        _stop(suite)
        dialogs.leave()


@st.dialog("Start a suite", width="large", icon=":material/play_arrow:", on_dismiss=dialogs.close)
def _start(suite: str) -> None:
    about, parameters = definition.outline(suite)
    st.markdown(f"**{wording.plain(suite)}** {wording.plain(about)}")
    words = [
        st.text_input(parameter.upper(), key=f"suite_word:{suite}:{parameter}").strip() for parameter in parameters
    ]
    more = st.text_input("Further settings", key=f"suite_more:{suite}", placeholder="none", help=MORE_HELP).strip()
    why_not, defined = "", None
    if all(words):
        try:
            defined = definition.read(definition.find(suite), words)
        except EngineError as error:
            why_not = wording.opened(str(error))
    else:
        why_not = f"Enter {' and '.join(parameter.upper() for parameter in parameters)}."
    if defined:
        why_not = unavailable(f"{defined.settings} {more}") or suite_forecast.why_no_model(defined, more)
        draw_takes(defined, more)
        if files.folder_of(defined.name).journal_file.exists():
            st.info(BEGUN_BEFORE.format(wording.plain(defined.name)), icon=":material/history:")
    if why_not:
        st.warning(wording.sentence(why_not), icon=":material/warning:")
    st.caption("The same from a terminal:")
    named = [word or parameter.upper() for word, parameter in zip(words, parameters, strict=True)]
    st.code(command(starting.command_of(suite, named, settings=more)), language=None, wrap_lines=True)
    if not dialogs.buttons("start_suite", "Start", ":material/play_arrow:", may=not why_not) or why_not:
        return
    if folder := begin(lambda: starting.start_shipped(suite, words, settings=more)):
        dialogs.forget()
        st.switch_page("benchmark.py", query_params={"suite": folder.name})


def draw_takes(defined: Defined, more: str = "") -> None:
    """How many runs a suite is, and the time, calls and money that they will take together."""
    st.markdown(takes(defined))
    if expected := suite_forecast.of_suite(defined, more):
        forecast.draw(expected)


def takes(defined: Defined) -> str:
    """How many runs a suite is, in words."""
    tasks, arms, repeats = len(defined.tasks), len(defined.arms), defined.repeats
    parts = wording.counted(tasks, "task"), wording.counted(arms, "arm"), wording.counted(repeats, "repeat")
    total = wording.counted(tasks * arms * repeats, "run")
    return (
        f"{' × '.join(parts)} = **{total}**, one after the other on each device. They go on when this page is closed."
    )


def unavailable(settings: str) -> str:
    """Why no run with these settings can begin on this machine, in words; empty where nothing is known against it."""
    try:
        values, _ = suite_draft.taken(shlex.split(settings), (suite_draft.TOOLCHAIN, suite_draft.MODEL))
    except ValueError as error:
        return f"Further settings: {error}."
    toolchain = values.get(suite_draft.TOOLCHAIN, "cpu")
    if (reason := supervisor.available_toolchains().get(toolchain, "")) and not _is_by_person(values):
        return f"The toolchain {toolchain} is not available here: {reason}"
    return ""


def _is_by_person(values: dict[str, str]) -> bool:
    """Such runs begin anywhere, and wait for a reply before anything is built."""
    return values.get(suite_draft.MODEL) == "manual"


def command(words: list[str]) -> str:
    """A command of `suite` to paste into a terminal."""
    return shlex.join(["python", "-m", "engine", "suite", *words])


def begin(start: Callable[[], SuiteFolder]) -> SuiteFolder | None:
    """Start something; where it did not start, the reason, and None."""
    try:
        with st.spinner("Starting: every run of the suite is looked at first"):
            return start()
    except (EngineError, SuiteError, OSError) as error:
        st.error(wording.sentence(str(error)), icon=":material/error:")
        return None


def draw(folder: SuiteFolder, suite: Suite) -> None:
    """Stop while a runner works on it, Continue where work is left; and a new one that begins as it is."""
    if suite.defined.is_example or not access.may_steer():
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        _steer(folder, suite)
        if not any(arm.is_adopted for arm in suite.defined.arms):
            st.page_link(
                "benchmark.py", label="Edit a copy", icon=":material/content_copy:", width="content",
                query_params={"new": folder.name},
            )  # fmt: skip


def _steer(folder: SuiteFolder, suite: Suite) -> None:
    name = folder.name
    if folder.has_runner:
        st.button(
            "Stopping" if suite.is_stop_asked else "Stop", icon=":material/stop:", key=f"stop_suite:{name}",
            disabled=suite.is_stop_asked, on_click=ask_stop, args=(name,),
            help="Runs at work end after their step, and no other begins. Nothing is lost: *Continue* goes on.",
        )  # fmt: skip
    elif suite.startable and suite.state(has_runner=False) != "finished" and st.button(
        "Continue", icon=":material/play_arrow:", type="primary", key=f"resume_suite:{name}",
        help="Goes on with what is not finished: runs that were begun first. Finished runs stay as they are.",
    ) and begin(lambda: starting.resume(name)):  # fmt: skip
        steer.say(f"Suite {name} goes on.")
        st.rerun()


def _stop(name: str) -> None:
    try:
        asked = starting.stop(name)
    except (EngineError, SuiteError, OSError) as error:
        steer.say(str(error), is_error=True)
        return
    steer.say(f"Suite {name} is stopping: runs at work end after their step." if asked is None else "It has no runner.")
