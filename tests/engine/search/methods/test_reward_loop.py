from dataclasses import replace
from pathlib import Path

import pytest

from engine.knowledge.rewards import reward
from engine.search.actions import Ask, Conclude, Finish
from engine.search.methods.reward_loop.strategy import RewardLoop
from storage.results.vocabulary import Verdict
from storage.run import events as ev
from storage.run.settings import Budget, Origin, RunState, StepKind
from storage.run.steering.verbs import CommandKind
from tests.engine.contexts import SOURCE, context_with_tools
from tests.engine.story import Step, Story, brief


def move(story: Story) -> object:
    return brief(RewardLoop().next(story.record))


def ended(story: Story) -> Story:
    """The attempt ends as the method says."""
    action = RewardLoop().next(story.record)
    assert isinstance(action, Conclude)
    return story.tell(
        ev.DepthFinished(
            story.step, action.index, action.outcome, action.candidate_id, action.base_id, False, False, action.reason,
            action.reward,
        )
    )  # fmt: skip


def test_every_attempt_has_a_graded_reward_and_the_last_kernel_is_refined_whatever_became_of_it() -> None:
    story = ended(Story().candidate("c001").does_not_compile("c001"))
    assert story.record.concluded[-1].reward == -10
    assert move(story) == Step("refine", 1, "c001")
    ended(story.candidate("c002", Origin.REPAIR, "c001").compiles("c002").checks("c002", Verdict.INCORRECT))
    assert story.record.concluded[-1].reason == "the kernel gives wrong results; reward -5"
    assert move(story) == Step("refine", 2, "c002")
    story.candidate("c003", Origin.REPAIR, "c002").passes("c003", 2.0)
    assert move(story) == Step(StepKind.PROFILE, 2, "c003")
    ended(story.is_profiled("c003"))
    assert story.record.concluded[-1].reward == pytest.approx(20.0)
    assert move(story) == Step("refine", 3, "c003")


def test_a_slow_correct_kernel_is_worth_more_than_a_wrong_one_whatever_the_unit_of_time() -> None:
    story = Story().candidate("c001").passes("c001", 0.01).candidate("c002").compiles("c002")
    assert reward(story.record.candidates["c001"]) == pytest.approx(0.1)
    assert reward(story.record.candidates["c002"]) is None, "nothing has decided it"
    assert reward(None) == -10


def test_attempts_end_with_their_number_or_the_target_and_without_feedback_each_is_written_anew() -> None:
    shot = ended(Story(strategy_options={"attempts": 1}).candidate("c001").does_not_compile("c001"))
    assert move(shot) == Finish(RunState.FAILED, "the attempt is done; no correct kernel: 1 kernel failed")
    early = Story(budget=Budget(target_speedup=2.0)).accepts("c001", 3.0)
    assert move(early) == Finish(RunState.FINISHED, "target reached: 3x (target 2x)")
    anew = Story(strategy_options={"refines": False}).accepts("c001", 3.0)
    assert move(anew) == Step("synthesise", 1)


def test_the_kernel_of_a_person_is_refined_next() -> None:
    story = Story().accepts("c001", 1.0).is_profiled("c001").accepts("c002", 2.0, "c001").is_profiled("c002")
    assert move(story.steers(CommandKind.SET_BASE, "c001")) == Step("refine", 2, "c001")


def test_the_model_is_told_the_reward_and_the_last_attempts_with_their_kernels(tmp_path: Path) -> None:
    context = context_with_tools(tmp_path)
    context.strategy = RewardLoop()
    story = Story()
    for number, change in enumerate(("first idea", "second idea", "third idea"), 1):
        name, parent = f"c00{number}", f"c00{number - 1}" if number > 1 else None
        story.candidate(name, Origin.REPAIR if parent else Origin.SYNTHESIS, parent, change)
        ended(story.does_not_compile(name))
    for event in story.record.events:
        if isinstance(event, ev.CandidateCreated):
            blob = context.blobs.put(f"{SOURCE}# kernel {event.candidate_id}\n")
            event = replace(event, source_blob=blob)
        context.record.apply(event)
    ask = context.strategy.next(context.record)
    assert isinstance(ask, Ask)
    text = ask.prompt(context, ask)[1].text
    assert "Reward of the last kernel: -10" in text
    assert "- attempt 1, reward -10, kernel 2: second idea [error: no]" in text
    assert text.count("# kernel c002") == text.count("# kernel c003") == 1
