"""Verbs that change where a run goes: base, pin, rules, kernels by hand; killed and resumed between."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine.errors import StopRequested
from engine.search.actions import Conclude
from engine.search.context import RunContext
from engine.search.human.inbox import Inbox
from engine.search.loop import attempt_step
from engine.search.methods.cutegen.strategy import CuteGen
from storage.results.evaluation_results import CheckResult, CompileResult, TimingResult
from storage.results.vocabulary import Verdict
from storage.run import events as ev
from storage.run.blobs import text_hash
from storage.run.settings import DepthOutcome, Origin, RunState, StepKind
from storage.run.steering.command_arguments import Submission
from storage.run.steering.verbs import CommandKind
from tests.engine.contexts import SOURCE, add_candidate
from tests.engine.contexts import context_with_tools as context_at
from tests.engine.search.methods.random_restarts import RandomRestarts
from tests.engine.story import Step, brief, resolved, state_of, take
from tests.engine.swish_story import FIRST, SECOND, THIRD
from tests.engine.test_human_replies import refusals
from tests.engine.test_steering import Meanwhile, ask, events_of

KERNELS = (FIRST, SECOND, THIRD)


def three_depths(home: Path, **changes: object) -> RunContext:
    """A run at its fourth depth: c001 to c003 were accepted, each faster than the last."""
    context = context_at(home, [("optimise", THIRD, "no edits")], base_policy="latest", **changes)
    for number, source in enumerate(KERNELS):
        parent = f"c{number:03d}" if number else None
        context.emit(ev.StepStarted(number + 1, StepKind.TIME, number, parent))
        add_candidate(context, source, parent, speedup=1.0 + number)
        context.emit(ev.StepFinished(number + 1, StepKind.TIME, 1.0, "passed"))
    return context


def steer(context: RunContext, kind: CommandKind, argument: str = "") -> str:
    """Ask and take: what the engine says about it."""
    command = ask(context, kind, argument)
    Inbox(context).gate()
    told = [
        e for e in (*events_of(context, ev.CommandEffective), *events_of(context, ev.CommandRefused))
        if isinstance(e, (ev.CommandEffective, ev.CommandRefused)) and e.command_id == command.command_id
    ]  # fmt: skip
    return (told[0].note if isinstance(told[0], ev.CommandEffective) else told[0].reason) if told else ""


def next_step(context: RunContext) -> Step:
    move = brief(CuteGen().next(context.record))
    assert isinstance(move, Step)
    return move


def pass_current(context: RunContext, speedup: float = 2.0) -> None:
    """Judge the kernel in hand as a real step would have, and end its depth."""
    name, step = str(state_of(context.record).current_id), context.record.steps_finished
    context.emit(ev.Compiled(step, name, CompileResult(True, 1.0), None))
    context.emit(ev.Checked(step, name, CheckResult(Verdict.PASSED, 1.0)))
    context.emit(ev.Timed(step, name, TimingResult((1.0,) * 9, (speedup,) * 9)))
    context.emit(ev.ProfileFailed(step, name, "not here"))
    move = brief(CuteGen().next(context.record))
    assert isinstance(move, Conclude)
    base = context.record.candidates[name].created.base_id
    context.emit(ev.DepthFinished(step, context.record.step_index, DepthOutcome.ACCEPTED, name, base, False, False, ""))


def start_depth(context: RunContext, base: str) -> None:
    """The optimisation of a kernel, begun and written."""
    step = context.record.steps_finished + 1
    context.emit(ev.StepStarted(step, StepKind.OPTIMISE, context.record.step_index, base))
    add_candidate(context, f"# {step}", base)
    context.emit(ev.StepFinished(step, StepKind.OPTIMISE, 1.0, "created"))


def test_a_base_that_was_set_holds_for_one_depth_even_after_a_kill(tmp_path: Path) -> None:
    context = three_depths(tmp_path)
    assert steer(context, CommandKind.SET_BASE, "c001") == "depth 3 starts from kernel 1"
    context = context_at(tmp_path)  # the engine was killed between the asking and the effect
    assert next_step(context) == Step(StepKind.OPTIMISE, 3, "c001")
    start_depth(context, "c001")
    assert context.record.steering.next_base is None
    pass_current(context)
    assert next_step(context).candidate_id == "c004"


def test_a_base_set_in_the_middle_of_a_depth_leaves_that_depth_alone(tmp_path: Path) -> None:
    context = three_depths(tmp_path)
    start_depth(context, "c003")
    assert steer(context, CommandKind.SET_BASE, "c002") == "depth 4 starts from kernel 2"
    context.emit(ev.StepStarted(5, StepKind.OPTIMISE, 3, "c003"))
    context.emit(ev.StepFinished(5, StepKind.OPTIMISE, 1.0, "patch_failed"))
    assert next_step(context) == Step(StepKind.OPTIMISE, 3, "c003")
    start_depth(context, "c003")
    pass_current(context)
    assert next_step(context) == Step(StepKind.OPTIMISE, 4, "c002")


def test_a_pinned_kernel_is_the_base_of_every_depth_until_it_is_unpinned(tmp_path: Path) -> None:
    context = three_depths(tmp_path)
    assert "no kernel is pinned" in steer(context, CommandKind.UNPIN)
    steer(context, CommandKind.PIN, "c001")
    for _ in range(2):
        assert next_step(context_at(tmp_path)).candidate_id == "c001"
        start_depth(context, "c001")
        pass_current(context)
    assert "already pinned" in steer(context, CommandKind.PIN, "c001")
    steer(context, CommandKind.UNPIN)
    assert next_step(context).candidate_id == "c005"


def test_a_roll_back_lifts_a_pin(tmp_path: Path) -> None:
    context = three_depths(tmp_path)
    steer(context, CommandKind.PIN, "c003")
    steer(context, CommandKind.ROLL_BACK, "c001")
    assert next_step(context).candidate_id == "c001"


@pytest.mark.parametrize("verb", [CommandKind.SET_BASE, CommandKind.PIN])
def test_a_base_must_be_a_kernel_of_a_finished_depth_that_passed(tmp_path: Path, verb: CommandKind) -> None:
    context = three_depths(tmp_path)
    start_depth(context, "c003")
    assert "no kernel c999" in steer(context, verb, "c999")
    assert "not correct and timed" in steer(context, verb, "c004")
    assert context.record.steering.pinned is context.record.steering.next_base is None


def test_a_verb_that_the_search_method_never_honours_is_refused_with_its_reason(tmp_path: Path) -> None:
    context = three_depths(tmp_path)
    context.strategy = RandomRestarts()
    assert steer(context, CommandKind.PIN, "c001") == "every kernel is new here"
    assert context.record.steering.pinned is None


def test_rules_stand_in_every_prompt_until_they_are_lifted(tmp_path: Path) -> None:
    context = context_at(tmp_path, [("synthesise", None, "none"), ("synthesise", None, "none")])
    assert steer(context, CommandKind.BAN, "shared  memory") == "in every prompt from step 1"
    steer(context, CommandKind.REQUIRE, "128-bit loads")
    assert "exists already" in steer(context, CommandKind.REQUIRE, "128-bit loads")
    context = context_at(tmp_path, [("synthesise", None, "none"), ("synthesise", None, "none")])
    take(context, Step(StepKind.SYNTHESISE, 0))
    assert steer(context, CommandKind.LIFT, "shared memory") == "removed from step 2 on: must not use: shared memory"
    take(context, Step(StepKind.SYNTHESISE, 0))
    prompts = [json.loads(context.blobs.get(c.prompt_blob))[1]["text"] for c in context.record.calls.values()]
    assert ["- must not use: shared memory" in text for text in prompts] == [True, False]
    assert ["- must use: 128-bit loads" in text for text in prompts] == [True, True]
    assert "no such rule" in steer(context, CommandKind.LIFT, "shared memory")


def hand_in(context: RunContext, source: str, parent: str | None = "c003", note: str = "") -> str:
    return steer(context, CommandKind.SUBMIT, str(Submission(parent, context.blobs.put(source), note)))


def test_a_kernel_by_hand_is_the_next_attempt_of_its_parent(tmp_path: Path) -> None:
    context = three_depths(tmp_path)
    assert hand_in(context, SOURCE, "c002", "unrolled by me") == ""
    context = context_at(tmp_path)
    Inbox(context).gate()
    move = next_step(context)
    assert move == Step(StepKind.SUBMIT, 3, "c002")
    take(context, move)
    made = context.record.candidates["c004"].created
    assert (made.origin, made.parent_id, made.base_id, made.summary) == (
        Origin.MANUAL,
        "c002",
        "c002",
        "unrolled by me",
    )
    assert next_step(context) == Step(StepKind.COMPILE, 3, "c004")
    assert not context.record.pending(CommandKind.SUBMIT)


@pytest.mark.parametrize("lines_lost", [1, 2])
def test_a_kernel_by_hand_is_taken_once_whatever_kills_the_engine(tmp_path: Path, lines_lost: int) -> None:
    context = three_depths(tmp_path)
    hand_in(context, SOURCE)
    hand_in(context, SOURCE + "# two\n")
    take(context, next_step(context))
    lines = context.folder.journal_file.read_text().splitlines(keepends=True)
    context.journal.close()
    context.folder.journal_file.write_text("".join(lines[:-lines_lost]))
    context = context_at(tmp_path)
    assert context.record.in_flight is not None
    take(context, Step(StepKind.SUBMIT, 3, "c003"))
    assert [a.created.origin for a in context.record.candidates.values()][3:] == [Origin.MANUAL]
    assert len(context.record.pending(CommandKind.SUBMIT)) == 1


def test_a_kernel_in_hand_is_judged_before_one_that_was_handed_in(tmp_path: Path) -> None:
    context = three_depths(tmp_path)
    start_depth(context, "c003")
    hand_in(context, SOURCE)
    assert next_step(context) == Step(StepKind.COMPILE, 3, "c004")
    context.emit(ev.Compiled(1, "c004", CompileResult(False, 1.0, "no", verdict=Verdict.COMPILE_ERROR), None))
    assert next_step(context).kind == StepKind.SUBMIT


def test_a_kernel_by_hand_takes_the_place_of_a_call_that_nobody_answered(tmp_path: Path) -> None:
    context = three_depths(tmp_path, model="manual")
    inbox = Inbox(context, Meanwhile(lambda: ask(context, CommandKind.SUBMIT, f"c003 {context.blobs.put(SOURCE)}")))
    assert attempt_step(context, resolved(context, next_step(context)), inbox) is None
    assert context.record.in_flight is None
    assert context.record.state is RunState.RUNNING
    assert next_step(context).kind == StepKind.SUBMIT


@pytest.mark.parametrize(
    ("source", "parent", "words"),
    [("x = 1", "c003", "class ModelNew"), (SOURCE, "c999", "no kernel c999"), (THIRD, "c003", "nothing was changed")],
)
def test_a_kernel_by_hand_that_is_none_is_refused_with_a_reason(
    tmp_path: Path, source: str, parent: str, words: str
) -> None:
    context = three_depths(tmp_path)
    assert words in hand_in(context, source, parent)
    assert "cannot be read" in steer(context, CommandKind.SUBMIT, f"c003 {text_hash('nowhere')}")


def test_a_reply_coming_in_is_broken_off_for_a_step_to_be_done_again(tmp_path: Path) -> None:
    context = three_depths(tmp_path)
    inbox = Inbox(context)
    ask(context, CommandKind.RETRY, "other")
    with pytest.raises(StopRequested):
        inbox.interrupt()


def test_a_stop_meant_for_an_engine_that_is_gone_does_not_stop_the_next_one(tmp_path: Path) -> None:
    context = three_depths(tmp_path)
    old = ask(context, CommandKind.STOP)
    inbox = Inbox(context)
    inbox.refuse_old_stops(old.asked_at + 1.0)
    inbox.gate()
    assert not context.record.steering.is_stopped
    assert "earlier engine" in refusals(context)[0]
    ask(context, CommandKind.STOP)
    inbox.refuse_old_stops(old.asked_at)
    inbox.gate()
    assert context.record.steering.is_stopped
