"""Another model for one step or for all: asked, kept over a kill, refused with the remedy."""

from __future__ import annotations

from pathlib import Path

from engine.bench import Bench
from engine.errors import ModelError
from engine.llm import Completion, LanguageModel, Message, OnText, Purpose, Terms
from engine.loop import take_step
from engine.moves import Step
from storage import events as ev
from storage.choices import ModelChoice
from storage.records import (
    Budget,
    CommandKind,
    CompileResult,
    DepthOutcome,
    StepKind,
    Verdict,
)
from tests.engine.benches import add_candidate
from tests.engine.benches import bench_with_tools as bench_at
from tests.engine.swish_story import FIRST, SECOND, edits
from tests.engine.test_desk import refusals
from tests.engine.test_steering_course import next_step, pass_current, start_depth, steer, three_depths

OPTIMISED = "Optimisation: another way\n" + edits(FIRST, SECOND)


class Other:
    """A second model that answers with one text and costs something nobody knows."""

    name = "other"

    def __init__(self, reply: str) -> None:
        self.reply = reply
        self.asked: list[str] = []

    def terms(self, purpose: Purpose) -> Terms | None:
        return Terms(self.name, window=100_000, reply_room=1000)

    def complete(self, messages: list[Message], purpose: Purpose, on_text: OnText) -> Completion:
        self.asked.append(messages[-1].text)
        return Completion(self.reply, self.name, "stop", 0.1, 10, 10)


def with_other(bench: Bench, reply: str) -> Other:
    other = Other(reply)

    def open_model(choice: ModelChoice) -> LanguageModel:
        if choice.model != "other":
            raise ModelError(f"{choice.model} has no key")
        return other

    bench.other_model = open_model
    return other


def test_the_last_step_is_done_again_by_another_model_and_only_that_step(tmp_path: Path) -> None:
    replies = [("synthesise", None, f"```python\n{FIRST}```")]
    bench = bench_at(tmp_path, replies)
    take_step(bench, Step(StepKind.SYNTHESISE, 0))
    other = with_other(bench, f"```python\n{SECOND}```")
    assert steer(bench, CommandKind.RETRY, "other") == "other gets the call of step 2"
    bench = bench_at(tmp_path, replies)
    other = with_other(bench, f"```python\n{SECOND}```")
    move = next_step(bench)
    assert move == Step(StepKind.SYNTHESISE, 0)
    take_step(bench, move)
    assert bench.blobs.get(bench.history.attempts["c002"].created.source_blob) == SECOND
    assert (len(other.asked), bench.history.redo, bench.history.current_id) == (1, None, "c002")
    assert bench.history.model_choice is None


def test_an_earlier_step_done_again_leaves_the_depth_and_starts_from_that_steps_kernel(tmp_path: Path) -> None:
    bench = three_depths(tmp_path)
    start_depth(bench, "c001")
    pass_current(bench)
    start_depth(bench, "c004")
    with_other(bench, OPTIMISED)
    assert "step 9 did not call a model" in steer(bench, CommandKind.RETRY, "other step=9")
    steer(bench, CommandKind.RETRY, "other step=4")
    left = bench.history.depths[-1]
    assert (left.outcome, left.candidate_id, left.reason) == (DepthOutcome.GIVEN_UP, "c005", "left to redo step 4")
    take_step(bench, next_step(bench))
    made = bench.history.attempts["c006"].created
    assert (made.parent_id, made.depth) == ("c001", 5)
    assert next(reversed(bench.history.calls.values())).model == "other"


def test_a_diagnosis_done_again_replaces_the_first_and_leads_to_a_repair(tmp_path: Path) -> None:
    bench = bench_at(tmp_path, [("diagnose", FIRST, "It is the layout.")])
    add_candidate(bench, FIRST)
    bench.emit(ev.Compiled(1, "c001", CompileResult(False, 1.0, "no", verdict=Verdict.COMPILE_ERROR), None))
    take_step(bench, next_step(bench))
    with_other(bench, "It is the semicolon.")
    steer(bench, CommandKind.RETRY, "other")
    take_step(bench, next_step(bench))
    told = bench.history.attempts["c001"].diagnosis_blob
    assert bench.blobs.get(str(told)) == "It is the semicolon."
    assert next_step(bench).kind is StepKind.REPAIR


def test_a_model_that_was_set_answers_every_next_call_until_another_is(tmp_path: Path) -> None:
    bench = bench_at(tmp_path, [("synthesise", None, "nothing")] * 3)
    other = with_other(bench, "nothing")
    assert steer(bench, CommandKind.SET_MODEL, "other reasoning_effort=high") == "other gets the calls from step 1 on"
    bench = bench_at(tmp_path, [("synthesise", None, "nothing")] * 3)
    other = with_other(bench, "nothing")
    take_step(bench, Step(StepKind.SYNTHESISE, 0))
    take_step(bench, Step(StepKind.SYNTHESISE, 0))
    steer(bench, CommandKind.SET_MODEL, "recorded")
    take_step(bench, Step(StepKind.SYNTHESISE, 0))
    assert [c.model for c in bench.history.calls.values()] == ["other", "other", "recorded"]
    assert len(other.asked) == 2


def test_a_model_that_cannot_be_asked_or_paid_is_refused_with_the_remedy(tmp_path: Path) -> None:
    bench = three_depths(tmp_path, budget=Budget(cost_usd=5.0))
    with_other(bench, "")
    assert steer(bench, CommandKind.SET_MODEL, "nowhere") == "nowhere has no key"
    assert "prices.toml" in steer(bench, CommandKind.SET_MODEL, "other")
    assert "no model has been called yet" in steer(bench, CommandKind.RETRY, "other")
    assert len(refusals(bench)) == 3


def test_a_run_of_a_person_goes_on_with_a_model_once_one_is_set(tmp_path: Path) -> None:
    bench = bench_at(tmp_path, [], model="manual")
    with_other(bench, "nothing")
    steer(bench, CommandKind.SET_MODEL, "other")
    take_step(bench, Step(StepKind.SYNTHESISE, 0))
    assert [c.model for c in bench.history.calls.values()] == ["other"]
    steer(bench, CommandKind.SET_MODEL, "manual")
    assert bench.history.is_by_hand
