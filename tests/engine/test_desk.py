"""A person in the place of the model, and a person's yes before a step: over a real journal and real blobs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from engine.bench import Bench
from engine.errors import AnswerNeeded
from engine.leave import Leave, ask_leave, skip_step
from engine.loop import attempt_step, take_step
from engine.moves import Step
from engine.steering import Inbox
from storage import commands
from storage import events as ev
from storage.attendance import Answer, Ask, AskFirst, Fallback, as_file_reply
from storage.records import Command, CommandKind, DepthOutcome, RunState, StepKind
from tests.engine.benches import SOURCE, add_candidate
from tests.engine.benches import bench_with_tools as bench_at
from tests.engine.swish_story import FIRST, SECOND, edits
from tests.engine.test_steering import Meanwhile, ask, events_of

WRITE = Step(StepKind.SYNTHESISE, 0)
FILE = as_file_reply(SOURCE)


def answer(bench: Bench, text: str, step: int = 1, call: int = 0) -> Command:
    return ask(bench, CommandKind.ANSWER, str(Answer(step, call, bench.blobs.put(text))))


def refusals(bench: Bench) -> list[str]:
    return [e.reason for e in events_of(bench, ev.CommandRefused) if isinstance(e, ev.CommandRefused)]


def states(bench: Bench) -> list[RunState]:
    return [e.state for e in events_of(bench, ev.StateChanged) if isinstance(e, ev.StateChanged)]


def test_a_call_without_an_answer_waits_and_is_asked_once(tmp_path: Path) -> None:
    for _ in range(2):
        bench = bench_at(tmp_path, model="manual")
        with pytest.raises(AnswerNeeded):
            take_step(bench, WRITE)
    (question,) = events_of(bench, ev.QuestionAsked)
    assert isinstance(question, ev.QuestionAsked)
    assert "class Model" in bench.blobs.get(question.prompt_blob)


def test_an_answer_takes_the_way_of_any_reply_and_is_used_once(tmp_path: Path) -> None:
    bench = bench_at(tmp_path, model="manual")
    inbox = Inbox(bench, Meanwhile(lambda: answer(bench, "Approach: by hand\n" + FILE)))
    attempt_step(bench, WRITE, inbox)
    assert states(bench) == [RunState.WAITING, RunState.RUNNING]
    take_step(bench, WRITE)
    made = bench.history.attempts["c001"]
    assert (bench.source(made), made.created.summary) == (SOURCE, "by hand")
    (call,) = bench.history.calls.values()
    assert (call.model, call.cost_usd, call.input_tokens) == ("manual", 0.0, 0)
    assert bench.history.attendance.waiting_answers == {}
    assert bench.history.attendance.question is None


@pytest.mark.parametrize(("text", "words"), [("  \n", "empty"), ("I would rather not.", "class ModelNew")])
def test_an_answer_that_cannot_be_used_is_refused_with_the_report_and_the_run_waits_on(
    tmp_path: Path, text: str, words: str
) -> None:
    bench = bench_at(tmp_path, model="manual")
    acts = Meanwhile(lambda: answer(bench, text), lambda: answer(bench, FILE))
    attempt_step(bench, WRITE, Inbox(bench, acts))
    assert acts.acts == []
    (reason,) = refusals(bench)
    assert words in reason
    assert Answer.parse(next(iter(bench.history.commands.values())).command.argument).blob in {
        path.name for path in bench.blobs.folder.iterdir()
    }
    take_step(bench, WRITE)
    assert len(bench.history.calls) == len(bench.history.attempts) == 1


def test_a_patch_that_does_not_fit_its_kernel_is_refused_before_it_costs_a_rung(tmp_path: Path) -> None:
    bench = bench_at(tmp_path, model="manual")
    add_candidate(bench, FIRST, speedup=0.5)
    bench.emit(ev.StepFinished(1, StepKind.SYNTHESISE, 1.0, "created"))
    optimise = Step(StepKind.OPTIMISE, 1, "c001")
    wrong, right = edits("no such line\n", "x\n"), edits(FIRST, SECOND)
    acts = Meanwhile(lambda: answer(bench, wrong, 2), lambda: answer(bench, right, 2))
    attempt_step(bench, optimise, Inbox(bench, acts))
    take_step(bench, optimise)
    assert "old_code stands nowhere" in refusals(bench)[0]
    assert bench.source(bench.history.attempts["c002"]) == SECOND
    (tried,) = events_of(bench, ev.PatchTried)
    assert isinstance(tried, ev.PatchTried)
    assert (tried.is_applied, tried.rung, tried.form) == (True, "edits", "edits (json block)")


def test_an_answer_sent_while_no_engine_works_is_taken_by_the_next_one(tmp_path: Path) -> None:
    with pytest.raises(AnswerNeeded):
        take_step(bench_at(tmp_path, model="manual"), WRITE)
    answer(bench_at(tmp_path, model="manual"), FILE)
    bench = bench_at(tmp_path, model="manual")
    Inbox(bench).gate()
    take_step(bench, WRITE)
    assert list(bench.history.attempts) == ["c001"]


def test_an_engine_killed_after_it_used_an_answer_does_not_use_it_again(tmp_path: Path) -> None:
    bench = bench_at(tmp_path, model="manual")
    with pytest.raises(AnswerNeeded):
        take_step(bench, WRITE)
    answer(bench, FILE)
    Inbox(bench).gate()
    take_step(bench, WRITE)
    lines = bench.folder.journal_file.read_text().splitlines(keepends=True)
    used = next(n for n, line in enumerate(lines) if '"kind":"ModelCalled"' in line)
    bench.folder.journal_file.write_text("".join(lines[: used + 1]))
    again = bench_at(tmp_path, model="manual")
    Inbox(again).gate()
    take_step(again, WRITE)
    assert refusals(again) == []
    assert len(events_of(again, ev.CommandEffective)) == len(again.history.calls) == 1


def test_an_answer_to_another_question_is_refused(tmp_path: Path) -> None:
    bench = bench_at(tmp_path, model="manual")
    answer(bench, FILE, step=7)
    Inbox(bench).gate()
    assert "answered already" in refusals(bench)[0]


def test_one_call_of_an_automatic_run_is_answered_by_hand_and_the_next_by_the_model(tmp_path: Path) -> None:
    bench = bench_at(tmp_path, [("synthesise", None, "not read"), ("synthesise", None, FILE)])
    ask(bench, CommandKind.TAKE_OVER, "next")
    inbox = Inbox(bench, Meanwhile(lambda: answer(bench, FILE.replace("pass", "mine = 1"))))
    inbox.gate()
    attempt_step(bench, WRITE, inbox)
    take_step(bench, WRITE)
    take_step(bench, WRITE)
    assert [call.model for call in bench.history.calls.values()] == ["manual", "recorded"]


def test_who_took_over_can_give_the_call_back_to_the_model(tmp_path: Path) -> None:
    bench = bench_at(tmp_path, [("synthesise", None, FILE)])
    ask(bench, CommandKind.TAKE_OVER, "next")
    inbox = Inbox(bench, Meanwhile(lambda: ask(bench, CommandKind.TAKE_OVER, "off")))
    inbox.gate()
    attempt_step(bench, WRITE, inbox)
    take_step(bench, WRITE)
    assert [call.model for call in bench.history.calls.values()] == ["recorded"]


def waiting_bench(folder: Path, rule: AskFirst) -> Bench:
    return bench_at(folder, ask_first=rule)


def leave_after(bench: Bench, *acts: Callable[[], object], move: Step = WRITE, clock: float = 0.0) -> Leave:
    times = iter([0.0, *[clock] * 100])
    return ask_leave(bench, Inbox(bench, Meanwhile(*acts)), move, lambda: next(times))


@pytest.mark.parametrize(("kind", "expected"), [(CommandKind.APPROVE, Leave.GIVEN), (CommandKind.SKIP, Leave.REFUSED)])
def test_a_step_waits_for_a_yes_or_a_no(tmp_path: Path, kind: CommandKind, expected: Leave) -> None:
    bench = waiting_bench(tmp_path, AskFirst(Ask.ALL))
    assert leave_after(bench, lambda: ask(bench, kind, "1")) is expected
    assert states(bench) == [RunState.WAITING, RunState.RUNNING]


@pytest.mark.parametrize(("fallback", "expected"), [(Fallback.YES, Leave.GIVEN), (Fallback.NO, Leave.REFUSED)])
def test_silence_means_what_the_rule_says_after_its_time(tmp_path: Path, fallback: Fallback, expected: Leave) -> None:
    bench = waiting_bench(tmp_path, AskFirst(Ask.ALL, fallback, 60))
    assert leave_after(bench, clock=60.0) is expected
    (settled,) = events_of(bench, ev.LeaveSettled)
    assert isinstance(settled, ev.LeaveSettled)
    assert "60 seconds" in settled.reason


def test_only_the_steps_that_the_rule_covers_wait(tmp_path: Path) -> None:
    bench = waiting_bench(tmp_path, AskFirst(Ask.CALLS))
    assert leave_after(bench, move=Step(StepKind.COMPILE, 0, "c001")) is Leave.GIVEN
    assert leave_after(waiting_bench(tmp_path / "off", AskFirst())) is Leave.GIVEN


def test_another_command_makes_the_loop_look_again(tmp_path: Path) -> None:
    bench = waiting_bench(tmp_path, AskFirst(Ask.ALL))
    assert leave_after(bench, lambda: ask(bench, CommandKind.ASK_FIRST, "off")) is Leave.UNCLEAR
    assert leave_after(bench) is Leave.GIVEN


def test_a_yes_to_another_step_is_refused(tmp_path: Path) -> None:
    bench = waiting_bench(tmp_path, AskFirst(Ask.ALL))
    leave_after(bench, lambda: ask(bench, CommandKind.APPROVE, "9"), lambda: ask(bench, CommandKind.APPROVE))
    assert refusals(bench) == ["step 9 is not waiting for approval"]


def test_a_skipped_step_gives_its_depth_up_and_a_skipped_profile_only_itself(tmp_path: Path) -> None:
    bench = bench_at(tmp_path)
    first = add_candidate(bench, speedup=0.5)
    skip_step(bench, Step(StepKind.PROFILE, 1, first))
    assert bench.history.attempts[first].is_profile_tried
    assert bench.history.depth == 1
    skip_step(bench, Step(StepKind.OPTIMISE, 1, first))
    assert [d.outcome for d in bench.history.depths] == [DepthOutcome.ACCEPTED, DepthOutcome.GIVEN_UP]
    assert bench.history.line == [first]


@pytest.mark.parametrize("text", ["", "sometimes", "all maybe", "all yes soon", "off no -1"])
def test_a_rule_that_makes_no_sense_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(commands.CommandError, match="ask_first takes"):
        ask(bench_at(tmp_path), CommandKind.ASK_FIRST, text)


@pytest.mark.parametrize("text", ["off", "calls", "all yes 60", "all no 2.5"])
def test_a_rule_reads_as_it_is_written(text: str) -> None:
    assert str(AskFirst.parse(text)) == text
