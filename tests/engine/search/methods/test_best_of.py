from pathlib import Path

from engine.search.actions import Ask, Conclude, Finish
from engine.search.methods.best_of.strategy import BestOf
from storage.run import events as ev
from storage.run.settings import Budget, DepthOutcome, Origin, RunState, StepKind
from tests.engine.contexts import context_with_tools
from tests.engine.story import Step, Story, brief


def move(story: Story) -> object:
    return brief(BestOf().next(story.record))


def unusable(story: Story) -> Story:
    """A reply that holds no kernel."""
    story.step += 1
    story.tell(ev.StepStarted(story.step, "synthesise", story.record.step_index, None))
    return story.tell(ev.StepFinished(story.step, "synthesise", 1.0, "patch_failed"))


def test_so_many_kernels_are_written_from_nothing_whatever_becomes_of_each() -> None:
    story = Story(strategy_options={"samples": 3})
    assert move(story) == Step("synthesise", 0)
    story.candidate("c001").does_not_compile("c001")
    assert move(story) == Conclude(0, DepthOutcome.GIVEN_UP, "c001", None, "the kernel does not compile")
    assert move(story.settles("c001", DepthOutcome.GIVEN_UP)) == Step("synthesise", 1)
    assert move(unusable(story)) == Conclude(1, DepthOutcome.GIVEN_UP, None, None, "the reply holds no kernel")
    story.tell(ev.DepthFinished(story.step, 1, DepthOutcome.GIVEN_UP, None, None, False, False, ""))
    assert move(story.candidate("c002")) == Step(StepKind.COMPILE, 2, "c002")
    story.passes("c002", 0.5)
    assert move(story) == Conclude(2, DepthOutcome.ACCEPTED, "c002", None, "correct and timed")
    assert move(story.settles("c002")) == Finish(RunState.FINISHED, "3 samples are done; sample 1 made no kernel")


def test_one_sample_is_one_shot_and_the_limit_of_the_run_holds_too() -> None:
    story = Story(strategy_options={"samples": 1}).candidate("c001").does_not_compile("c001")
    assert move(story.settles("c001", DepthOutcome.GIVEN_UP)) == Finish(
        RunState.FAILED, "the sample is done; no correct kernel: 1 kernel failed"
    )
    both = Story(budget=Budget(depths=1)).accepts("c001", 1.0).accepts("c002", 1.0)
    assert move(both) == Finish(RunState.FINISHED, "all 2 samples are done")


def test_a_sample_is_repaired_as_often_as_the_option_says() -> None:
    story = Story(strategy_options={"max_repairs": 1}).candidate("c001").does_not_compile("c001")
    assert move(story) == Step("repair", 0, "c001")
    story.candidate("c002", Origin.REPAIR, "c001").does_not_compile("c002")
    assert move(story) == Conclude(0, DepthOutcome.GIVEN_UP, "c002", None, "the kernel does not compile")


def test_no_sample_is_told_of_another(tmp_path: Path) -> None:
    def asked() -> str:
        ask = BestOf().next(context.record)
        assert isinstance(ask, Ask)
        return "\n".join(message.text for message in ask.prompt(context, ask))

    context = context_with_tools(tmp_path)
    first = asked()
    for event in Story().candidate("c001").does_not_compile("c001").settles("c001").record.events:
        context.record.apply(event)
    assert asked() == first
