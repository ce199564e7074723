import signal
import subprocess
from pathlib import Path

import pytest

from engine.errors import StopRequested
from engine.evaluator.machine import lease, turns
from engine.search import accounts
from engine.search.context import RunContext
from engine.search.human.inbox import Inbox
from storage.run import events as ev
from storage.run.settings import Budget, DepthOutcome, RunState, StepKind, Switch
from storage.run.steering import commands
from storage.run.steering.verbs import Command, CommandKind
from tests.engine.contexts import add_candidate, open_context
from tests.engine.story import state_of


def ask(context: RunContext, kind: CommandKind, argument: str = "") -> Command:
    return commands.send(context.folder.commands_file, kind, argument, asked_by="tester")


def events_of(context: RunContext, kind: type) -> list[object]:
    return [entry.event for entry in context.journal.entries if isinstance(entry.event, kind)]


class Meanwhile:
    """Stands in for the wait between two looks at the command file: each look is one act of the person."""

    def __init__(self, *acts: object) -> None:
        self.acts = list(acts)

    def __call__(self, seconds: float) -> None:
        assert self.acts, "nobody is left to steer and the engine still waits"
        act = self.acts.pop(0)
        assert callable(act)
        act()


def test_pause_holds_the_gate_until_resume_and_both_are_journaled(tmp_path: Path) -> None:
    context = open_context(tmp_path)
    ask(context, CommandKind.PAUSE)
    states: list[RunState] = []
    meanwhile = Meanwhile(lambda: states.append(context.record.state), lambda: ask(context, CommandKind.RESUME))
    Inbox(context, meanwhile).gate()
    assert states == [RunState.PAUSED]
    assert context.record.state is RunState.RUNNING
    assert len(events_of(context, ev.CommandAcknowledged)) == len(events_of(context, ev.CommandEffective)) == 2


def test_stop_outranks_pause(tmp_path: Path) -> None:
    context = open_context(tmp_path)
    ask(context, CommandKind.PAUSE)
    Inbox(context, Meanwhile(lambda: ask(context, CommandKind.STOP))).gate()
    assert context.record.steering.is_stopped


def test_a_command_is_carried_out_once_even_by_an_engine_that_starts_anew(tmp_path: Path) -> None:
    context = open_context(tmp_path)
    ask(context, CommandKind.EXPOSE, "on")
    Inbox(context).gate()
    again = open_context(tmp_path)
    Inbox(again).gate()
    assert len(events_of(again, ev.CommandEffective)) == 1
    assert again.record.steering.expose is Switch.ON


def test_a_command_acknowledged_before_a_crash_is_carried_out_after_it(tmp_path: Path) -> None:
    context = open_context(tmp_path)
    context.emit(ev.CommandAcknowledged(ask(context, CommandKind.COLLECT, "off"), 1))
    again = open_context(tmp_path)
    Inbox(again).gate()
    assert again.record.steering.collect is Switch.OFF


def test_roll_back_leaves_the_depth_in_flight_and_keeps_its_attempt(tmp_path: Path) -> None:
    context = open_context(tmp_path)
    first = add_candidate(context, "one", speedup=0.5)
    second = add_candidate(context, "two", first, speedup=0.8)
    unfinished = add_candidate(context, "three", second)
    ask(context, CommandKind.ROLL_BACK, first)
    Inbox(context).gate()
    left = context.record.concluded[-1]
    assert (left.outcome, left.candidate_id) == (DepthOutcome.GIVEN_UP, unfinished)
    assert state_of(context.record).line == [first]
    assert unfinished in context.record.candidates


def test_roll_back_between_depths_gives_up_nothing(tmp_path: Path) -> None:
    context = open_context(tmp_path)
    first = add_candidate(context, "one", speedup=0.5)
    add_candidate(context, "two", first, speedup=0.8)
    ask(context, CommandKind.ROLL_BACK, first)
    Inbox(context).gate()
    assert len(context.record.concluded) == 2


@pytest.mark.parametrize(("target", "words"), [("c999", "no kernel"), ("c001", "not correct")])
def test_roll_back_to_a_kernel_that_never_passed_is_refused_with_a_reason(
    tmp_path: Path, target: str, words: str
) -> None:
    context = open_context(tmp_path)
    add_candidate(context)
    ask(context, CommandKind.ROLL_BACK, target)
    Inbox(context).gate()
    (refused,) = events_of(context, ev.CommandRefused)
    assert isinstance(refused, ev.CommandRefused)
    assert words in refused.reason
    assert state_of(context.record).line == []


def test_a_foreign_line_with_a_bad_argument_is_refused_not_fatal(tmp_path: Path) -> None:
    context = open_context(tmp_path)
    line = '{"command_id":"x","kind":"expose","argument":"maybe","asked_by":"","asked_at":0}\nnot json\n'
    context.folder.commands_file.write_text(line)
    Inbox(context).gate()
    assert len(events_of(context, ev.CommandRefused)) == 1


def test_a_run_that_waits_goes_on_when_steered_and_drops_the_step_a_roll_back_leaves(tmp_path: Path) -> None:
    context = open_context(tmp_path)
    first = add_candidate(context, "one", speedup=0.5)
    add_candidate(context, "two", first, speedup=0.8)
    context.emit(ev.StepStarted(1, StepKind.OPTIMISE, 2, "c002"))
    Inbox(context, Meanwhile(lambda: ask(context, CommandKind.ROLL_BACK, first))).wait("no reply is left")
    assert context.record.in_flight is None
    assert context.record.concluded[-1].reason == "left to go back to kernel 1"
    assert context.record.state is RunState.RUNNING


def test_a_stop_breaks_off_a_reply_that_is_coming_in(tmp_path: Path) -> None:
    context = open_context(tmp_path)
    inbox = Inbox(context)
    inbox.interrupt()
    ask(context, CommandKind.STOP)
    with pytest.raises(StopRequested):
        inbox.interrupt()


def test_a_stop_ends_the_judging_in_flight_and_the_child_that_does_it(tmp_path: Path) -> None:
    context = open_context(tmp_path)
    context.interruptible = Inbox(context).interruptible
    started: list[subprocess.Popen[bytes]] = []

    def judge() -> None:
        with subprocess.Popen(["sleep", "600"]) as child:
            started.append(child)
            ask(context, CommandKind.STOP)
            try:
                child.wait()
            except StopRequested:
                child.kill()
                raise

    with pytest.raises(StopRequested):
        context.judge(judge)
    assert started[0].returncode == -signal.SIGKILL
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    assert context.judge(lambda: 7) == 7, "what was asked for once breaks off one step"


def test_a_pause_lets_the_judging_in_flight_end(tmp_path: Path) -> None:
    context = open_context(tmp_path)
    with Inbox(context).interruptible():
        ask(context, CommandKind.PAUSE)
        signal.raise_signal(signal.SIGALRM)


def test_a_pause_gives_the_place_in_line_for_a_device_back(tmp_path: Path) -> None:
    context, lock = open_context(tmp_path), tmp_path / "a.lock"
    inbox = Inbox(context, Meanwhile(lambda: ask(context, CommandKind.RESUME)))
    context.interruptible = inbox.interruptible

    def judge() -> int:
        with turns.hold(lock, told=lambda place: ask(context, CommandKind.PAUSE)):
            return 7

    with lease.hold(lock), pytest.raises(StopRequested, match="pause"):
        context.judge(judge)
    assert not turns.is_waiting()
    assert list((tmp_path / turns.QUEUE).iterdir()) == []
    inbox.gate()
    assert context.record.state is RunState.RUNNING
    assert context.judge(judge) == 7


def test_what_a_run_asks_goes_first_from_a_command_until_a_step_index_is_concluded(tmp_path: Path) -> None:
    context = open_context(tmp_path, weight=2.0)
    assert accounts.of_run(context.record).is_now is False
    ask(context, CommandKind.PAUSE)
    Inbox(context, Meanwhile(lambda: ask(context, CommandKind.RESUME))).gate()
    share = accounts.of_run(context.record)
    assert (share.is_now, share.weight, share.done) == (True, 2.0, 0.0)
    add_candidate(context, speedup=2.0)
    assert accounts.of_run(context.record).is_now is False


def test_how_much_of_a_runs_search_is_done_counts_what_a_person_adds_to_it(tmp_path: Path) -> None:
    context = open_context(tmp_path, budget=Budget(depths=3))
    add_candidate(context, speedup=2.0)
    assert accounts.of_run(context.record).done == 0.25
    context.emit(ev.BudgetChanged(Budget(depths=9)))
    assert accounts.of_run(context.record).done == 0.1


def test_a_resumed_run_goes_first_but_not_the_cell_of_a_suite(tmp_path: Path) -> None:
    for suite, is_now in (("", True), ("mine", False)):
        context = open_context(tmp_path / (suite or "none"), suite=suite)
        context.emit(ev.EngineStarted(1, is_resumed=True))
        share = accounts.of_run(context.record)
        assert share.is_now is is_now
        assert ("mine" in share.account) is bool(suite)


def test_a_hint_stays_pending_until_a_prompt_has_carried_it(tmp_path: Path) -> None:
    context = open_context(tmp_path)
    hint = ask(context, CommandKind.HINT, "try larger tiles")
    Inbox(context).gate()
    assert context.record.pending_hints == [hint]
    assert events_of(context, ev.CommandEffective) == []
