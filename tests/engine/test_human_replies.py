"""A person in the place of the model, and a person's yes before a step: over a real journal and real blobs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from engine.errors import AnswerNeeded
from engine.search.context import RunContext
from engine.search.human.approval import Approval, await_approval, skip_step
from engine.search.human.inbox import Inbox
from engine.search.loop import attempt_step
from storage.run import events as ev
from storage.run.settings import DepthOutcome, RunState, StepKind
from storage.run.steering import commands
from storage.run.steering.command_arguments import Answer, Ask, AskFirst, Fallback, as_file_reply
from storage.run.steering.verbs import Command, CommandKind
from tests.engine.contexts import SOURCE, add_candidate
from tests.engine.contexts import context_with_tools as context_at
from tests.engine.story import Step, resolved, state_of, take
from tests.engine.swish_story import FIRST, SECOND, edits
from tests.engine.test_steering import Meanwhile, ask, events_of

WRITE = Step(StepKind.SYNTHESISE, 0)
FILE = as_file_reply(SOURCE)


def answer(context: RunContext, text: str, step: int = 1, call: int = 0) -> Command:
    return ask(context, CommandKind.ANSWER, str(Answer(step, call, context.blobs.put(text))))


def refusals(context: RunContext) -> list[str]:
    return [e.reason for e in events_of(context, ev.CommandRefused) if isinstance(e, ev.CommandRefused)]


def states(context: RunContext) -> list[RunState]:
    return [e.state for e in events_of(context, ev.StateChanged) if isinstance(e, ev.StateChanged)]


def test_a_call_without_an_answer_waits_and_is_asked_once(tmp_path: Path) -> None:
    for _ in range(2):
        context = context_at(tmp_path, model="manual")
        with pytest.raises(AnswerNeeded):
            take(context, WRITE)
    (question,) = events_of(context, ev.QuestionAsked)
    assert isinstance(question, ev.QuestionAsked)
    assert "class Model" in context.blobs.get(question.prompt_blob)


def test_an_answer_takes_the_way_of_any_reply_and_is_used_once(tmp_path: Path) -> None:
    context = context_at(tmp_path, model="manual")
    inbox = Inbox(context, Meanwhile(lambda: answer(context, "Approach: by hand\n" + FILE)))
    attempt_step(context, resolved(context, WRITE), inbox)
    assert states(context) == [RunState.WAITING, RunState.RUNNING]
    take(context, WRITE)
    made = context.record.candidates["c001"]
    assert (context.source(made), made.created.summary) == (SOURCE, "by hand")
    (call,) = context.record.calls.values()
    assert (call.model, call.cost_usd, call.input_tokens) == ("manual", 0.0, 0)
    assert context.record.human.waiting_answers == {}
    assert context.record.human.question is None


@pytest.mark.parametrize(("text", "words"), [("  \n", "empty"), ("I would rather not.", "No kernel was found")])
def test_an_answer_that_cannot_be_used_is_refused_with_the_report_and_the_run_waits_on(
    tmp_path: Path, text: str, words: str
) -> None:
    context = context_at(tmp_path, model="manual")
    acts = Meanwhile(lambda: answer(context, text), lambda: answer(context, FILE))
    attempt_step(context, resolved(context, WRITE), Inbox(context, acts))
    assert acts.acts == []
    (reason,) = refusals(context)
    assert words in reason
    assert reason.endswith(
        "takes the whole file with class ModelNew, in one Python code block or by itself as plain text."
    )
    assert Answer.parse(next(iter(context.record.commands.values())).command.argument).blob in {
        path.name for path in context.blobs.folder.iterdir()
    }
    take(context, WRITE)
    assert len(context.record.calls) == len(context.record.candidates) == 1


def test_an_answer_with_a_kernel_that_is_too_long_is_refused_with_its_length(tmp_path: Path) -> None:
    context = context_at(tmp_path, model="manual")
    sent = iter([as_file_reply(SOURCE + "#" * 200_000 + "\n"), FILE])
    acts = Meanwhile(*(lambda: answer(context, next(sent)) for _ in range(2)))
    attempt_step(context, resolved(context, WRITE), Inbox(context, acts))
    (reason,) = refusals(context)
    assert "at most 200,000 are taken" in reason


def test_a_patch_that_does_not_fit_its_kernel_is_refused_before_it_costs_a_rung(tmp_path: Path) -> None:
    context = context_at(tmp_path, model="manual")
    add_candidate(context, FIRST, speedup=0.5)
    context.emit(ev.StepFinished(1, StepKind.SYNTHESISE, 1.0, "created"))
    optimise = Step(StepKind.OPTIMISE, 1, "c001")
    wrong, right = edits("no such line\n", "x\n"), edits(FIRST, SECOND)
    sent = iter(["Let me think.", wrong, right])
    acts = Meanwhile(*(lambda: answer(context, next(sent), 2) for _ in range(3)))
    attempt_step(context, resolved(context, optimise), Inbox(context, acts))
    take(context, optimise)
    nothing, misfit = refusals(context)
    assert nothing.endswith("takes line edits as JSON, SEARCH/REPLACE blocks, or the whole file.")
    assert "old_code stands nowhere" in misfit
    assert context.source(context.record.candidates["c002"]) == SECOND
    (tried,) = events_of(context, ev.PatchTried)
    assert isinstance(tried, ev.PatchTried)
    assert (tried.is_applied, tried.rung, tried.form) == (True, "edits", "edits (json block)")


def test_an_answer_sent_while_no_engine_works_is_taken_by_the_next_one(tmp_path: Path) -> None:
    with pytest.raises(AnswerNeeded):
        take(context_at(tmp_path, model="manual"), WRITE)
    answer(context_at(tmp_path, model="manual"), FILE)
    context = context_at(tmp_path, model="manual")
    Inbox(context).gate()
    take(context, WRITE)
    assert list(context.record.candidates) == ["c001"]


def test_an_engine_killed_after_it_used_an_answer_does_not_use_it_again(tmp_path: Path) -> None:
    context = context_at(tmp_path, model="manual")
    with pytest.raises(AnswerNeeded):
        take(context, WRITE)
    answer(context, FILE)
    Inbox(context).gate()
    take(context, WRITE)
    lines = context.folder.journal_file.read_text().splitlines(keepends=True)
    used = next(n for n, line in enumerate(lines) if '"kind":"ModelCalled"' in line)
    context.folder.journal_file.write_text("".join(lines[: used + 1]))
    again = context_at(tmp_path, model="manual")
    Inbox(again).gate()
    take(again, WRITE)
    assert refusals(again) == []
    assert len(events_of(again, ev.CommandEffective)) == len(again.record.calls) == 1


def test_an_answer_to_another_question_is_refused(tmp_path: Path) -> None:
    context = context_at(tmp_path, model="manual")
    answer(context, FILE, step=7)
    Inbox(context).gate()
    assert "answered already" in refusals(context)[0]


def test_one_call_of_an_automatic_run_is_answered_by_hand_and_the_next_by_the_model(tmp_path: Path) -> None:
    context = context_at(tmp_path, [("synthesise", None, "not read"), ("synthesise", None, FILE)])
    ask(context, CommandKind.TAKE_OVER, "next")
    inbox = Inbox(context, Meanwhile(lambda: answer(context, FILE.replace("pass", "mine = 1"))))
    inbox.gate()
    attempt_step(context, resolved(context, WRITE), inbox)
    take(context, WRITE)
    take(context, WRITE)
    assert [call.model for call in context.record.calls.values()] == ["manual", "recorded"]


def test_who_took_over_can_give_the_call_back_to_the_model(tmp_path: Path) -> None:
    context = context_at(tmp_path, [("synthesise", None, FILE)])
    ask(context, CommandKind.TAKE_OVER, "next")
    inbox = Inbox(context, Meanwhile(lambda: ask(context, CommandKind.TAKE_OVER, "off")))
    inbox.gate()
    attempt_step(context, resolved(context, WRITE), inbox)
    take(context, WRITE)
    assert [call.model for call in context.record.calls.values()] == ["recorded"]


def waiting_context(folder: Path, rule: AskFirst) -> RunContext:
    return context_at(folder, ask_first=rule)


def approval_after(
    context: RunContext, *acts: Callable[[], object], move: Step = WRITE, clock: float = 0.0
) -> Approval:
    times = iter([0.0, *[clock] * 100])
    return await_approval(context, Inbox(context, Meanwhile(*acts)), resolved(context, move), lambda: next(times))


@pytest.mark.parametrize(
    ("kind", "expected"), [(CommandKind.APPROVE, Approval.GIVEN), (CommandKind.SKIP, Approval.REFUSED)]
)
def test_a_step_waits_for_a_yes_or_a_no(tmp_path: Path, kind: CommandKind, expected: Approval) -> None:
    context = waiting_context(tmp_path, AskFirst(Ask.ALL))
    assert approval_after(context, lambda: ask(context, kind, "1")) is expected
    assert states(context) == [RunState.WAITING, RunState.RUNNING]


@pytest.mark.parametrize(("fallback", "expected"), [(Fallback.YES, Approval.GIVEN), (Fallback.NO, Approval.REFUSED)])
def test_silence_means_what_the_rule_says_after_its_time(
    tmp_path: Path, fallback: Fallback, expected: Approval
) -> None:
    context = waiting_context(tmp_path, AskFirst(Ask.ALL, fallback, 60))
    assert approval_after(context, clock=60.0) is expected
    (settled,) = events_of(context, ev.ApprovalSettled)
    assert isinstance(settled, ev.ApprovalSettled)
    assert "60 seconds" in settled.reason


def test_only_the_steps_that_the_rule_covers_wait(tmp_path: Path) -> None:
    context = waiting_context(tmp_path, AskFirst(Ask.CALLS))
    assert approval_after(context, move=Step(StepKind.COMPILE, 0, add_candidate(context))) is Approval.GIVEN
    assert approval_after(waiting_context(tmp_path / "off", AskFirst())) is Approval.GIVEN


def test_another_command_makes_the_loop_look_again(tmp_path: Path) -> None:
    context = waiting_context(tmp_path, AskFirst(Ask.ALL))
    assert approval_after(context, lambda: ask(context, CommandKind.ASK_FIRST, "off")) is Approval.UNCLEAR
    assert approval_after(context) is Approval.GIVEN


def test_a_yes_to_another_step_is_refused(tmp_path: Path) -> None:
    context = waiting_context(tmp_path, AskFirst(Ask.ALL))
    approval_after(context, lambda: ask(context, CommandKind.APPROVE, "9"), lambda: ask(context, CommandKind.APPROVE))
    assert refusals(context) == ["step 9 is not waiting for approval"]


def test_a_skipped_step_gives_its_depth_up_and_a_skipped_profile_only_itself(tmp_path: Path) -> None:
    context = context_at(tmp_path)
    first = add_candidate(context, speedup=0.5)
    skip_step(context, resolved(context, Step(StepKind.PROFILE, 1, first)))
    assert context.record.candidates[first].is_profile_tried
    assert context.record.step_index == 1
    skip_step(context, resolved(context, Step(StepKind.OPTIMISE, 1, first)))
    assert [d.outcome for d in context.record.concluded] == [DepthOutcome.ACCEPTED, DepthOutcome.GIVEN_UP]
    assert state_of(context.record).line == [first]


@pytest.mark.parametrize("text", ["", "sometimes", "all maybe", "all yes soon", "off no -1"])
def test_a_rule_that_makes_no_sense_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(commands.CommandError, match="ask_first takes"):
        ask(context_at(tmp_path), CommandKind.ASK_FIRST, text)


@pytest.mark.parametrize("text", ["off", "calls", "all yes 60", "all no 2.5"])
def test_a_rule_reads_as_it_is_written(text: str) -> None:
    assert str(AskFirst.parse(text)) == text
