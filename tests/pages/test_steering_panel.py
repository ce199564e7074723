"""Every control of the steering panel writes its one command; what became of it is told."""

from __future__ import annotations

import ast
import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import streamlit as st
from streamlit.delta_generator import DeltaGenerator
from streamlit.testing.v1 import AppTest

from engine import supervisor
from engine.search.methods import catalogue
from pages.parts import client, index, run_state
from pages.parts.status import address
from pages.parts.steering import command_list, kernel_choice, steering_panel
from storage.index import queries
from storage.index.queries.steering import CallAnswered, DepthBegun, Effect, KernelMade, ProfileAsked, RuleCarried
from storage.results.vocabulary import Verdict
from storage.run import events as ev
from storage.run import liveness
from storage.run.blobs import Blobs
from storage.run.folder import RunFolder
from storage.run.journal import Journal
from storage.run.method_words import AS_STORED
from storage.run.settings import RunState, StepKind
from storage.run.steering import commands
from storage.run.steering.verbs import Command, CommandKind
from tests import samples
from tests.pages.conftest import Open, everything, words

PAGES = Path(__file__).resolve().parent.parent.parent / "pages"


def test_going_back_is_offered_to_another_kernel_than_the_one_the_run_goes_on_from(
    home: Path, open_page: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    Steered(home, open_page)
    run = queries.run(index.current(), "r1")
    assert run is not None
    kernels = kernel_choice.targets(run)
    base, best = kernel_choice.current_base(run), run.best_candidate_id
    assert base is not None
    first = kernel_choice.first(run, kernels)
    assert first not in ("", base.candidate_id)
    other = next(k for k in kernels if k.candidate_id != best)
    monkeypatch.setattr(kernel_choice, "current_base", lambda run: other)
    assert kernel_choice.first(run, kernels) == best
    assert kernel_choice.first(replace(run, state=RunState.FINISHED), kernels) == best
    assert kernel_choice.first(run, [other]) == ""


def test_a_list_of_kernels_says_which_failed(home: Path, open_page: Open) -> None:
    Steered(home, open_page)
    run = queries.run(index.current(), "r1")
    labels = [kernel_choice.label(a, AS_STORED) for a in queries.attempts(index.current(), "r1")]
    assert run
    assert sum(" · failed · " in label for label in labels) == run.failed > 0


def test_a_run_with_two_underscores_in_its_name_is_drawn_and_steered(home: Path, open_page: Open) -> None:
    folder = samples.write_run(home / "runs", "my__task", depths=2, ending="running")
    lock = liveness.hold(folder)
    app = open_page("run", run="my__task")
    assert not app.exception
    del lock
    assert client.key("places:add____to_copy") == "places:add_._.to_copy"


class Steered:
    """A run that an engine works on, and its page."""

    def __init__(self, home: Path, open_page: Open) -> None:
        self.folder: RunFolder = samples.write_run(home / "runs", "r1", depths=4, ending="running")
        self._open = open_page
        self._read = len(commands.read_from(self.folder.commands_file)[0])
        self.lock = liveness.hold(self.folder)
        self.look()

    def look(self) -> AppTest:
        """The page over everything that has happened."""
        self.app = self._open("run", run="r1")
        assert not self.app.exception
        return self.app

    def press(self, name: str) -> AppTest:
        """Press the button of that label, or of that key."""
        next(one for one in self.app.button if name in (one.label, one.key)).click()
        self.app.run()
        assert not self.app.exception
        return self.app

    def sent(self) -> list[Command]:
        found = commands.read_from(self.folder.commands_file)[0][self._read :]
        self._read += len(found)
        return found

    def asks(self, kind: CommandKind, argument: str = "") -> Command:
        (command,) = self.sent()
        assert (command.kind, command.argument) == (kind, argument)
        return command

    def tell(self, *events: ev.Event) -> AppTest:
        journal = Journal(self.folder.journal_file)
        for event in events:
            journal.append(event)
        journal.close()
        return self.look()

    def obey(self, command: Command) -> AppTest:
        return self.tell(ev.CommandAcknowledged(command, 30), ev.CommandEffective(command.command_id, 30, ""))


@pytest.fixture
def steered(home: Path, open_page: Open) -> Steered:
    return Steered(home, open_page)


def test_pause_and_resume(steered: Steered) -> None:
    steered.press("Pause")
    pause = steered.asks(CommandKind.PAUSE)
    assert "Pausing" in [one.label for one in steered.app.button], "seen before the engine has read it"
    steered.obey(pause)
    steered.tell(ev.StateChanged(RunState.PAUSED, "paused by a person"))
    steered.press("Resume")
    steered.asks(CommandKind.RESUME)


def test_a_stopped_run_is_stopping_until_its_end_is_read_and_never_interrupted(steered: Steered) -> None:
    stop = commands.send(steered.folder.commands_file, CommandKind.STOP)
    app = steered.obey(stop)
    assert '"value":"stopping"' in everything(app).replace("\\", "").replace(" ", "")
    assert "Stopping: the step in progress is cancelled" in everything(app)
    before = queries.run(index.current(), "r1")
    assert before is not None
    journal = Journal(steered.folder.journal_file)
    journal.append(ev.RunEnded(RunState.STOPPED, "stopped by a person", "c001"))
    journal.close()
    os.close(steered.lock)  # as the engine lets go, before anybody has read its last word
    assert run_state.of(before) is RunState.RUNNING
    assert run_state.lost(["r1"]) == []
    app = steered.look()
    run = queries.run(index.current(), "r1")
    assert run is not None
    assert (run_state.of(run), run_state.of(before)) == (RunState.STOPPED, RunState.RUNNING)
    assert '"value":"stopped"' in everything(app).replace("\\", "").replace(" ", "")


def test_a_run_whose_engine_has_gone_without_a_word_is_interrupted(steered: Steered) -> None:
    with steered.folder.journal_file.open("ab") as file:
        file.write(b'{"seq": 99')  # torn, and nobody is there to end the line
    os.close(steered.lock)
    assert "The run was interrupted" in words(steered.look())
    assert run_state.lost(["r1"]) == ["r1"]


def test_a_run_that_ends_leaves_its_controls_in_their_place(steered: Steered) -> None:
    """What moved would be there twice until all is drawn, the buttons that pause and stop among it."""
    before = place_of(steered.app._tree, "steering")
    steered.tell(ev.RunEnded(RunState.FINISHED, "done", "c001"))
    assert "No engine is running" in words(steered.app)
    assert place_of(steered.app._tree, "steering") == before


def place_of(node: Any, key: str) -> tuple[int, ...]:
    """The way to a container on the page, as the browser is told it; empty where there is none."""
    for at, child in (getattr(node, "children", None) or {}).items():
        if getattr(child.proto, "id", "").endswith(f"-{key}"):
            return (at,)
        if way := place_of(child, key):
            return (at, *way)
    return ()


def test_the_page_is_emptied_for_another_run_also_where_one_was_left_half_drawn(
    steered: Steered, monkeypatch: pytest.MonkeyPatch
) -> None:
    samples.write_run(steered.folder.path.parent, "r2", seed=1, depths=4)
    steered.look()
    emptied: list[str] = []
    empty = address._emptied

    def go(run_id: str) -> None:
        steered.app.query_params["run"] = run_id
        steered.app.run()

    def note() -> DeltaGenerator:
        emptied.append(str(st.query_params["run"]))
        return empty()

    monkeypatch.setattr(address, "_emptied", note)
    go("r1")
    with monkeypatch.context() as broken_off:
        broken_off.setattr(steering_panel, "draw", lambda *_: st.stop())
        go("r2")
    go("r1")
    go("r1")
    assert emptied == ["r2", "r1"]


def test_a_click_on_the_page_that_is_left_counts_and_is_told_with_the_name_of_its_run(steered: Steered) -> None:
    samples.write_run(steered.folder.path.parent, "r2", seed=1, depths=4)
    steered.look()
    steered.app.query_params["run"] = "r2"
    steered.press("Pause")
    steered.asks(CommandKind.PAUSE)
    assert "Run r1: Pausing" in everything(steered.app)


def test_a_reply_that_is_rejected_is_told_once(steered: Steered) -> None:
    prompt = Blobs(steered.folder.blobs).put('[{"role": "user", "text": "Write a kernel"}]')
    app = steered.tell(
        ev.QuestionAsked(90, 0, StepKind.OPTIMISE, 1, "c001", prompt, "source"),
        ev.StateChanged(RunState.WAITING, "a reply"),
    )
    next(box for box in app.text_area if box.label == "Reply").set_value("I cannot.")
    app = steered.press("Send reply")
    (answer,) = steered.sent()
    assert app.session_state["word_back"].text == "Reply sent"
    journal = Journal(steered.folder.journal_file)
    journal.append(ev.CommandAcknowledged(answer, 90))
    journal.append(ev.CommandRefused(answer.command_id, 90, "no kernel in it"))
    journal.close()
    index.ingest().catch_up()
    app.run()
    assert "Reply rejected" in everything(app)
    assert app.session_state["word_back"].text == ""
    next(box for box in app.text_area if box.label == "Reply").set_value("I still cannot.")
    assert steered.press("Send reply").session_state["word_back"].text == "Reply sent"


def test_a_go_back_that_waits_for_the_next_step_is_told(steered: Steered) -> None:
    assert "go back to" not in words(steered.app)
    command = commands.send(steered.folder.commands_file, CommandKind.ROLL_BACK, "c001")
    assert "Waiting for the next step: go back to kernel 1" in words(steered.obey(command))
    app = steered.tell(ev.StepStarted(31, StepKind.OPTIMISE, 3, "c001"))
    assert "Waiting for the next step" not in words(app)


def test_a_waiting_run_says_what_it_waits_for(steered: Steered) -> None:
    steered.tell(ev.StateChanged(RunState.WAITING, "the model endpoint failed: connection refused"))
    assert "connection refused" in words(steered.app)
    assert "Resume" in [one.label for one in steered.app.button]


def test_what_recorded_replies_cannot_follow_says_so_before_it_is_sent(steered: Steered) -> None:
    assert "replies of this run are recorded" not in words(steered.press("Hint"))
    settings = replace(steered.folder.read_settings(), recording="square_matmul.jsonl", run_id="r2")
    shutil.copytree(steered.folder.path, steered.folder.path.parent / "r2")
    steered.folder = RunFolder(steered.folder.path.parent / "r2")
    steered.folder.settings_file.unlink()
    steered.folder.write_settings(settings)
    liveness.hold(steered.folder)
    steered.app = steered._open("run", run="r2")
    said = words(steered.app)
    assert "a rule stands in the prompt, but no model reads it" in said
    assert "a profile shown to the model changes nothing" in said
    assert "a hint stands in the prompt, but no model reads it" in words(steered.press("Hint"))
    steered.press("hint_no")
    assert "For another kernel it takes the next recorded reply" in words(steered.press("Base kernel"))


def test_a_run_that_was_stopped_is_resumed_beside_its_result(home: Path, open_page: Open) -> None:
    samples.write_run(home / "runs", "r1", depths=4, ending="stopped")
    app = open_page("run", run="r1")
    labels = [button.label for button in app.button]
    assert labels.count("Resume run") == 1
    assert labels.index("Resume run") > labels.index("Freeze page")
    assert "Continue" not in labels  # one way on, not two


def ends(steered: Steered, *events: ev.Event) -> None:
    """The run finishes while nobody draws its page."""
    journal = Journal(steered.folder.journal_file)
    for event in (*events, ev.RunEnded(RunState.FINISHED, "all depths are done", "c001")):
        journal.append(event)
    journal.close()
    os.close(steered.lock)
    index.ingest().catch_up()


@pytest.mark.parametrize(("name", "yes"), [("Go back or fork", "try_yes"), ("Base kernel", "base_yes")])
def test_nothing_is_sent_to_a_run_that_ended_before_the_click_that_confirms(
    steered: Steered, name: str, yes: str
) -> None:
    steered.press(name)
    ends(steered)
    app = steered.press(yes)
    assert steered.sent() == []
    said = everything(app)
    is_kept = yes == "try_yes"
    assert ("The run has ended while this was open. Nothing was sent" in said) is is_kept
    assert ("Nothing was sent: the run has ended." in said) is not is_kept
    if is_kept:
        assert app.button(key=yes).label.startswith("Start a new run from kernel")


def test_a_run_that_has_finished_goes_on_from_a_kernel_of_its_own(
    steered: Steered, monkeypatch: pytest.MonkeyPatch
) -> None:
    resumed: list[str] = []
    monkeypatch.setattr(supervisor, "resume", lambda folder: resumed.append(folder.run_id))
    depth = max(d.depth for d in queries.depths(index.current(), "r1"))
    ends(steered, ev.BudgetChanged(replace(steered.folder.read_settings().budget, depths=depth)))
    steered.look()
    app = steered.press("Go back or fork")
    first = next(option for option in app.selectbox(key="try_from").options if option.startswith("kernel 1 "))
    app.selectbox(key="try_from").select(first).run()
    app.button_group(key="try_where").set_value("in this run").run()
    assert "The run is resumed: its next depth starts from kernel 1" in words(app)
    steered.press("try_yes")
    assert [(c.kind, c.argument) for c in steered.sent()] == [
        (CommandKind.SET_BUDGET, f"depths={depth + 1}"), (CommandKind.ROLL_BACK, "c001"),
    ]  # fmt: skip
    assert resumed == ["r1"]


def test_a_command_that_the_end_of_a_run_overtook_is_told_with_the_way_on(
    steered: Steered, monkeypatch: pytest.MonkeyPatch
) -> None:
    resumed: list[str] = []
    monkeypatch.setattr(supervisor, "resume", lambda folder: resumed.append(folder.run_id))
    ends(steered)
    commands.send(steered.folder.commands_file, CommandKind.HINT, "mind the tail")
    app = steered.look()
    assert "**Not read by an engine yet:** hint watch the bank conflicts, hint mind the tail. They take" in words(app)
    assert "only if you go back, raise a limit or hand in a kernel here" in words(app)
    assert "Resume run" not in [one.label for one in app.button], "it would end again at once"
    commands.send(steered.folder.commands_file, CommandKind.ROLL_BACK, "c001")
    app = steered.look()
    assert "roll back kernel 1. They take effect when the run is resumed." in words(app)
    steered.press("Resume run")
    assert resumed == ["r1"]


def test_stop_asks_once_more(steered: Steered) -> None:
    steered.press("Stop")
    steered.press("Keep running")
    assert steered.sent() == []
    steered.press("Stop")
    steered.press("Stop the run")
    steered.asks(CommandKind.STOP)
    assert "stop_yes" not in [one.key for one in steered.app.button]


def test_the_base_is_set_once_pinned_and_unpinned(steered: Steered) -> None:
    app = steered.press("Base kernel")
    first = next(option for option in app.selectbox(key="base_from").options if option.startswith("kernel 1 "))
    app.selectbox(key="base_from").select(first).run()
    steered.press("base_yes")
    steered.obey(steered.asks(CommandKind.SET_BASE, "c001"))
    assert "next depth starts from kernel 1" in words(steered.app)
    app = steered.press("Base kernel")
    app.button_group(key="base_how").set_value("every depth until unpinned").run()
    assert "to its end" in words(app)
    steered.press("base_yes")
    (pin,) = steered.sent()
    assert pin.kind is CommandKind.PIN
    steered.obey(pin)
    assert "every depth starts from" in words(steered.app)
    steered.press("Unpin")
    steered.obey(steered.asks(CommandKind.UNPIN))
    assert "every depth starts from" not in words(steered.app)


def test_rules_are_set_listed_and_lifted(steered: Steered) -> None:
    steered.app.text_input(key="rule_text").set_value("<b>atomics</b>")
    steered.press("Add rule")
    steered.obey(steered.asks(CommandKind.BAN, "<b>atomics</b>"))
    assert "**must not use** \\<b\\>atomics" in words(steered.app)
    (ban,) = [c for c in commands.read_from(steered.folder.commands_file)[0] if c.kind is CommandKind.BAN]
    steered.press("Remove")
    steered.obey(steered.asks(CommandKind.LIFT, ban.command_id))
    assert "must not use" not in words(steered.app)


def test_another_model_is_asked_from_now_on_or_for_one_step(steered: Steered) -> None:
    app = steered.press("Model")
    app.text_input(key="model_options_line").set_value("reasoning_effort=high").run()
    steered.press("model_yes")
    steered.asks(CommandKind.SET_MODEL, "recorded-replies reasoning_effort=high")
    app = steered.press("Model")
    app.button_group(key="model_how").set_value(app.button_group(key="model_how").options[1]).run()
    steered.press("model_yes")
    (command,) = steered.sent()
    assert command.kind is CommandKind.RETRY
    assert "step=" in command.argument


def test_the_class_is_changed_after_a_look_at_what_follows(steered: Steered) -> None:
    assert "From the next step on" in words(steered.press("Class"))
    steered.press("class_yes")
    (command,) = steered.sent()
    assert command.kind is CommandKind.SET_CLASS


def test_an_empty_text_is_told_and_not_sent(steered: Steered) -> None:
    word = steered.press("Add rule").session_state["word_back"]
    assert (word.text, word.is_error) == ("Rule not added: it is empty.", True)
    steered.press("Hint")
    assert "Hint not sent: it is empty." in words(steered.press("Send the hint"))
    assert "Send the hint" in [one.label for one in steered.app.button]  # its dialog stays open
    assert steered.sent() == []


def test_a_run_that_was_paused_when_it_was_stopped_goes_on_when_it_is_resumed(
    steered: Steered, monkeypatch: pytest.MonkeyPatch
) -> None:
    resumed: list[str] = []
    monkeypatch.setattr(supervisor, "resume", lambda folder: resumed.append(folder.run_id))
    for kind, kinds in ((CommandKind.PAUSE, [CommandKind.RESUME]), (CommandKind.STOP, [])):
        steered.obey(commands.send(steered.folder.commands_file, kind))
        steered.tell(ev.RunEnded(RunState.STOPPED, "stopped by a person", "c001"))
        os.close(steered.lock)
        steered.look()
        steered.sent()
        steered.press("Resume run")
        assert [command.kind for command in steered.sent()] == kinds
        steered.lock = liveness.hold(steered.folder)
    assert resumed == ["r1", "r1"]


def test_no_widget_with_a_value_sends_a_command() -> None:
    for file in PAGES.rglob("*.py"):
        if "on_change" not in (text := file.read_text()):
            continue
        tree = ast.parse(text)
        given = [word for node in ast.walk(tree) if isinstance(node, ast.Call) for word in node.keywords]
        changed = {word.value.id for word in given if word.arg == "on_change" and isinstance(word.value, ast.Name)}
        functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name in changed]
        assert not [one.name for one in functions if "steer." in ast.unparse(one)], file


def test_a_verb_that_the_search_method_refuses_is_out_of_reach_and_says_why(
    home: Path, open_page: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = samples.write_run(home / "runs", "r1", depths=4, ending="running")
    method = "tests.engine.search.methods.random_restarts:RandomRestarts"
    monkeypatch.setenv(catalogue.VARIABLE, method)
    assert catalogue.description(method).is_usable
    settings = replace(folder.read_settings(), strategy=method, strategy_options={})
    folder.settings_file.unlink()
    folder.write_settings(settings)
    liveness.hold(folder)
    buttons = {one.label: one for one in open_page("run", run="r1").button}
    assert buttons["Base kernel"].disabled
    assert "every kernel is new here" in buttons["Base kernel"].help
    assert not buttons["Model"].disabled


@pytest.mark.parametrize(
    ("effect", "text"),
    [
        (DepthBegun(7, 2, 101), "depth 7 started from kernel 2 at step 101"),
        (KernelMade(3, None, None), "it is kernel 3: not judged yet"),
        (KernelMade(3, Verdict.INCORRECT, None), "it is kernel 3: gives wrong results"),
        (KernelMade(3, Verdict.PASSED, 1.25), "it is kernel 3: correct, 1.25× over eager"),
        (CallAnswered(101, "other"), "step 101 was answered by other"),
        (RuleCarried(2, 101), "in the prompts of 2 steps, first of step 101"),
        (RuleCarried(1, 101), "in the prompts of 1 step, first of step 101"),
        (ProfileAsked(101, is_shown=False), "the prompt of step 101 showed no profile"),
    ],
)
def test_what_a_command_led_to_is_one_sentence(effect: Effect, text: str) -> None:
    assert command_list.effect_words(effect, AS_STORED) == text
