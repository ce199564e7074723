"""Another model for one step or for all: asked, kept over a kill, refused with the remedy."""

from __future__ import annotations

from pathlib import Path

from engine.errors import ModelError
from engine.search.context import RunContext
from engine.search.llm import Completion, LanguageModel, Message, OnText, Purpose, Terms
from storage.results.evaluation_results import CompileResult
from storage.results.vocabulary import Verdict
from storage.run import events as ev
from storage.run.settings import Budget, DepthOutcome, StepKind
from storage.run.steering.command_arguments import ModelChoice
from storage.run.steering.verbs import CommandKind
from tests.engine.contexts import add_candidate
from tests.engine.contexts import context_with_tools as context_at
from tests.engine.story import Step, state_of, take
from tests.engine.swish_story import FIRST, SECOND, edits
from tests.engine.test_human_replies import refusals
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


def with_other(context: RunContext, reply: str) -> Other:
    other = Other(reply)

    def open_model(choice: ModelChoice) -> LanguageModel:
        if choice.model != "other":
            raise ModelError(f"{choice.model} has no key")
        return other

    context.other_model = open_model
    return other


def test_the_last_step_is_done_again_by_another_model_and_only_that_step(tmp_path: Path) -> None:
    replies = [("synthesise", None, f"```python\n{FIRST}```")]
    context = context_at(tmp_path, replies)
    take(context, Step(StepKind.SYNTHESISE, 0))
    other = with_other(context, f"```python\n{SECOND}```")
    assert steer(context, CommandKind.RETRY, "other") == "other gets the call of step 2"
    context = context_at(tmp_path, replies)
    other = with_other(context, f"```python\n{SECOND}```")
    move = next_step(context)
    assert move == Step(StepKind.SYNTHESISE, 0)
    take(context, move)
    assert context.blobs.get(context.record.candidates["c002"].created.source_blob) == SECOND
    assert (len(other.asked), context.record.redo, state_of(context.record).current_id) == (1, None, "c002")
    assert context.record.model_choice is None


def test_an_earlier_step_done_again_leaves_the_depth_and_starts_from_that_steps_kernel(tmp_path: Path) -> None:
    context = three_depths(tmp_path)
    start_depth(context, "c001")
    pass_current(context)
    start_depth(context, "c004")
    with_other(context, OPTIMISED)
    assert "step 9 did not call a model" in steer(context, CommandKind.RETRY, "other step=9")
    steer(context, CommandKind.RETRY, "other step=4")
    left = context.record.concluded[-1]
    assert (left.outcome, left.candidate_id, left.reason) == (DepthOutcome.GIVEN_UP, "c005", "left to redo step 4")
    take(context, next_step(context))
    made = context.record.candidates["c006"].created
    assert (made.parent_id, made.depth) == ("c001", 5)
    assert next(reversed(context.record.calls.values())).model == "other"


def test_a_diagnosis_done_again_replaces_the_first_and_leads_to_a_repair(tmp_path: Path) -> None:
    context = context_at(tmp_path, [("diagnose", FIRST, "It is the layout.")])
    add_candidate(context, FIRST)
    context.emit(ev.Compiled(1, "c001", CompileResult(False, 1.0, "no", verdict=Verdict.COMPILE_ERROR), None))
    take(context, next_step(context))
    with_other(context, "It is the semicolon.")
    steer(context, CommandKind.RETRY, "other")
    take(context, next_step(context))
    told = context.record.candidates["c001"].diagnosis_blob
    assert context.blobs.get(str(told)) == "It is the semicolon."
    assert next_step(context).kind == StepKind.REPAIR


def test_a_model_that_was_set_answers_every_next_call_until_another_is(tmp_path: Path) -> None:
    context = context_at(tmp_path, [("synthesise", None, "nothing")] * 3)
    other = with_other(context, "nothing")
    assert steer(context, CommandKind.SET_MODEL, "other reasoning_effort=high") == "other gets the calls from step 1 on"
    context = context_at(tmp_path, [("synthesise", None, "nothing")] * 3)
    other = with_other(context, "nothing")
    take(context, Step(StepKind.SYNTHESISE, 0))
    take(context, Step(StepKind.SYNTHESISE, 0))
    steer(context, CommandKind.SET_MODEL, "recorded")
    take(context, Step(StepKind.SYNTHESISE, 0))
    assert [c.model for c in context.record.calls.values()] == ["other", "other", "recorded"]
    assert len(other.asked) == 2


def test_a_model_that_cannot_be_asked_or_paid_is_refused_with_the_remedy(tmp_path: Path) -> None:
    context = three_depths(tmp_path, budget=Budget(cost_usd=5.0))
    with_other(context, "")
    assert steer(context, CommandKind.SET_MODEL, "nowhere") == "nowhere has no key"
    assert "prices.toml" in steer(context, CommandKind.SET_MODEL, "other")
    assert "no model has been called yet" in steer(context, CommandKind.RETRY, "other")
    assert len(refusals(context)) == 3


def test_a_run_of_a_person_goes_on_with_a_model_once_one_is_set(tmp_path: Path) -> None:
    context = context_at(tmp_path, [], model="manual")
    with_other(context, "nothing")
    steer(context, CommandKind.SET_MODEL, "other")
    take(context, Step(StepKind.SYNTHESISE, 0))
    assert [c.model for c in context.record.calls.values()] == ["other"]
    steer(context, CommandKind.SET_MODEL, "manual")
    assert context.record.is_by_hand
