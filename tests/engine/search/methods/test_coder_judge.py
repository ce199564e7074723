import json
from pathlib import Path

import pytest

from engine.search.actions import Ask, Conclude, Finish, NewCandidate
from engine.search.loop import take_step
from engine.search.methods.coder_judge.strategy import BOTTLENECK, FAULT, CoderJudge
from engine.search.patching.edits import EditError
from engine.search.patching.reply import LONGEST, read_fields
from engine.search.steps.candidates import conclude, create_candidate
from engine.search.steps.history import history
from storage.results.evaluation_results import CompileResult
from storage.results.profile_results import DISTURBED, ProfileResult
from storage.results.vocabulary import Verdict
from storage.run import events as ev
from storage.run.settings import Budget, DepthOutcome, Origin, RunState, StepKind, Switch
from storage.run.steering.verbs import Command, CommandKind
from tests.engine.contexts import SOURCE, add_candidate, context_with_tools
from tests.engine.story import Step, Story, brief

POINT = {"bottleneck": "two passes over the row", "change": "fuse them", "plan": "rescale the sum"}


def move(story: Story) -> object:
    return brief(CoderJudge().next(story.record))


def asked(story: Story) -> Ask:
    action = CoderJudge().next(story.record)
    assert isinstance(action, Ask), action
    return action


def judged(story: Story, name: str, problem: str = "") -> Story:
    """The judge's step about a kernel, from its beginning to its end."""
    story.step += 1
    index = story.record.step_index
    story.tell(ev.StepStarted(story.step, "judge", index, name))
    story.tell(ev.ReviewWritten(story.step, 0, "judge", index, name, "blob", "a point", problem))
    return story.tell(ev.StepFinished(story.step, "judge", 1.0, "unreadable" if problem else "written"))


def rewritten(story: Story, name: str, parent: str, origin: Origin = Origin.OPTIMISATION) -> Story:
    return judged(story, parent).candidate(name, origin, parent)


def failed(story: Story, name: str) -> Story:
    """Its kernel does not compile, and the round ends."""
    return story.does_not_compile(name).settles(name, DepthOutcome.GIVEN_UP)


def steered(story: Story, kind: CommandKind, argument: str = "") -> Story:
    name = f"k{len(story.record.commands)}"
    story.tell(ev.CommandAcknowledged(Command(name, kind, argument, "someone", 0.0), 0))
    return story.tell(ev.CommandEffective(name, 0, ""))


def test_a_round_is_a_verdict_a_rewrite_and_its_evaluation_with_a_profile() -> None:
    story = Story()
    assert move(story) == Step("synthesise", 0)
    story.candidate("c001").compiles("c001").checks("c001").runs_at("c001", 0.5)
    assert move(story) == Step(StepKind.PROFILE, 0, "c001")
    assert move(story.is_profiled("c001")) == Conclude(0, DepthOutcome.ACCEPTED, "c001", None, "correct and timed")
    assert move(story.settles("c001")) == Step("judge", 1, "c001")
    assert asked(story).fields == BOTTLENECK
    assert asked(story).shows_profile
    assert move(judged(story, "c001")) == Step("rewrite", 1, "c001")
    assert move(story.candidate("c002", Origin.OPTIMISATION, "c001")) == Step(StepKind.COMPILE, 1, "c002")


def test_a_round_starts_from_the_best_kernel_not_from_the_last() -> None:
    story = Story().accepts("c001", 1.0).accepts("c002", 0.5, "c001")
    assert move(story.is_profiled("c001")) == Step("judge", 2, "c001")
    story.accepts("c003", 1.0001, "c001")
    assert move(story.is_profiled("c003")) == Step("judge", 3, "c003")


def test_a_failure_is_a_round_and_the_next_one_mends_it() -> None:
    story = failed(rewritten(Story().accepts("c001", 1.0), "c002", "c001"), "c002")
    assert move(story) == Step("judge", 2, "c002")
    assert asked(story).fields == FAULT
    assert not asked(story).shows_profile
    makes = asked(judged(story, "c002")).makes
    assert makes is not None
    assert makes.origin is Origin.REPAIR


def test_the_judge_is_told_of_rounds_by_the_line_of_the_kernel_and_of_its_mending(tmp_path: Path) -> None:
    context = context_with_tools(tmp_path)
    context.strategy = CoderJudge()
    base = add_candidate(context, speedup=1.0)
    for number, parent in enumerate((base, "c002"), 1):
        makes = NewCandidate(Origin.REPAIR if number > 1 else Origin.OPTIMISATION, base, 0, "", "")
        context.step = 10 + number
        create_candidate(context, SOURCE + f"# {number}\n", parent, makes, f"change {number}")
        result = CompileResult(False, 1.0, f"error: number {number}", verdict=Verdict.COMPILE_ERROR)
        context.emit(ev.Compiled(context.step, f"c00{number + 1}", result, None))
        conclude(context, Conclude(number, DepthOutcome.GIVEN_UP, f"c00{number + 1}", base, "it failed"))
        said = context.blobs.put(json.dumps({"problem": f"point {number}"}))
        context.emit(ev.ReviewWritten(20 + number, 0, "judge", number + 1, f"c00{number + 1}", said, ""))
    judge = context.strategy.again(context.record, "judge", "c003")
    assert isinstance(judge, Ask)
    text = judge.prompt(context, judge)[1].text
    assert "- round 0, kernel 1 (the base, the best so far): 1x: c001\n" in text
    assert "round 1" not in text
    told = ["makes to kernel 1, which is correct: change 1", "does not compile [error: number 1]", "Problem: point 1"]
    assert all(one in text for one in [*told, "Edits of repair 1 (change 2)"])
    assert "point 2" not in text
    after = str(history(context.record, base, "round"))
    assert (
        "- round 1, kernel 3 from kernel 1: does not compile: change 1; repair tried: change 2 [error: number 2]"
        in after
    )


def test_a_kernel_that_cannot_be_mended_is_left_for_the_best_one() -> None:
    story = Story(strategy_options={"max_mends": 1}).accepts("c001", 1.0)
    failed(rewritten(story.is_profiled("c001"), "c002", "c001"), "c002")
    failed(rewritten(story, "c003", "c002", Origin.REPAIR), "c003")
    assert move(story) == Step("judge", 3, "c001")


def test_without_a_correct_kernel_mending_goes_on_until_the_rounds_are_used_up() -> None:
    story = failed(Story(strategy_options={"max_mends": 0}, budget=Budget(depths=2)).candidate("c001"), "c001")
    assert move(story) == Step("judge", 1, "c001")
    failed(rewritten(story, "c002", "c001", Origin.REPAIR), "c002")
    failed(rewritten(story, "c003", "c002", Origin.REPAIR), "c003")
    assert move(story) == Finish(RunState.FAILED, "no correct kernel: 3 kernels failed, 2 repairs among them")


def test_ten_rounds_by_default_and_a_target_ends_them_sooner() -> None:
    story = Story(budget=Budget()).accepts("c001", 1.0)
    for number in range(2, 12):
        assert move(story.is_profiled("c001")) == Step("judge", number - 1, "c001")
        rewritten(story, f"c{number:03d}", "c001").passes(f"c{number:03d}", 0.9).settles(f"c{number:03d}")
    assert move(story) == Finish(RunState.FINISHED, "all 10 rounds are done")
    early = Story(budget=Budget(target_speedup=2.0)).accepts("c001", 3.0)
    assert move(early) == Finish(RunState.FINISHED, "target reached: 3x (target 2x)")


def test_a_reply_of_the_judge_that_cannot_be_read_spends_the_round_and_says_so() -> None:
    story = judged(Story().accepts("c001", 1.0).is_profiled("c001"), "c001", "No JSON object was found in the reply.")
    reason = "the judge's reply could not be read: No JSON object was found in the reply."
    assert move(story) == Conclude(1, DepthOutcome.GIVEN_UP, None, "c001", reason)
    assert move(story.settles(None, DepthOutcome.GIVEN_UP)) == Step("judge", 2, "c001")


def test_a_rewrite_without_a_kernel_spends_the_round() -> None:
    story = judged(Story().accepts("c001", 1.0).is_profiled("c001"), "c001")
    story.tell(ev.StepStarted(story.step + 1, "rewrite", 1, "c001"))
    story.tell(ev.StepFinished(story.step + 1, "rewrite", 1.0, "patch_failed"))
    assert move(story) == Conclude(1, DepthOutcome.GIVEN_UP, None, "c001", "the reply holds no kernel")


def test_the_judge_is_shown_no_profile_that_was_disturbed_or_switched_off() -> None:
    story = Story().accepts("c001", 1.0)
    story.tell(ev.Profiled(1, "c001", ProfileResult("h", (), "memory", "s", evidence={DISTURBED: "busy"}), None))
    assert not asked(story).shows_profile
    story = steered(Story().accepts("c001", 1.0).is_profiled("c001"), CommandKind.EXPOSE, Switch.OFF)
    assert not asked(story).shows_profile


def test_a_person_chooses_where_a_round_starts_and_drops_a_failure_by_it() -> None:
    story = Story().accepts("c001", 1.0).accepts("c002", 2.0, "c001").is_profiled("c001").is_profiled("c002")
    failed(rewritten(story, "c003", "c002"), "c003")
    steered(story, CommandKind.SET_BASE, "c001")
    assert move(story) == Step("judge", 3, "c001")
    rewritten(story, "c004", "c001").passes("c004", 1.1).settles("c004")
    assert move(story) == Step("judge", 4, "c002")
    assert move(steered(story, CommandKind.PIN, "c001")) == Step("judge", 4, "c001")
    assert move(steered(story, CommandKind.ROLL_BACK, "c002")) == Step("judge", 4, "c002")


def test_the_judge_is_asked_once_more_with_the_report_and_what_it_says_is_kept(tmp_path: Path) -> None:
    block = f"```json\n{json.dumps(POINT)}\n```"
    context = context_with_tools(tmp_path, [("judge", SOURCE, "It is slow."), ("judge", SOURCE, block)])
    context.strategy = CoderJudge()
    name = add_candidate(context, speedup=1.0)
    take_step(context, context.strategy.again(context.record, "judge", name))
    first, second = context.record.reviews.values()
    assert (first.problem, context.blobs.get(first.text_blob)) == (
        "No JSON object was found in the reply.", "It is slow.",
    )  # fmt: skip
    assert (second.problem, second.summary) == ("", "two passes over the row")
    prompts = [context.blobs.get(called.prompt_blob) for called in context.record.calls.values()]
    assert "No JSON object was found" in prompts[1]
    rewrite = context.strategy.next(context.record)
    assert isinstance(rewrite, Ask)
    messages = rewrite.prompt(context, rewrite)
    assert "Bottleneck: two passes over the row\nChange: fuse them\nPlan: rescale the sum" in messages[-1].text


def test_the_judge_sees_the_reference_the_kernel_and_the_profile_of_that_kernel(tmp_path: Path) -> None:
    context = context_with_tools(tmp_path, [])
    context.strategy = CoderJudge()
    name = add_candidate(context, speedup=1.0)
    context.emit(ev.Profiled(1, name, ProfileResult("h", (), "memory", "Bound by memory: 91 % of peak."), None))
    judge = context.strategy.again(context.record, "judge", name)
    assert isinstance(judge, Ask)
    system, prompt = judge.prompt(context, judge)
    assert "You review" in system.text
    for part in (context.task.source.strip(), "class ModelNew", "Bound by memory: 91 % of peak.", "round 0"):
        assert part in prompt.text


@pytest.mark.parametrize(
    ("reply", "report"),
    [
        ("nothing", "No JSON object"),
        ("[{}, {}]", "a list of 2"),
        ('{"bottleneck": "a", "change": "b"}', 'lacks "plan"'),
        (json.dumps(POINT | {"second": "point"}), '"second", which was not asked for'),
        (json.dumps(POINT | {"plan": ["a", "b"]}), '"plan" must be a text'),
        (json.dumps(POINT | {"plan": " "}), '"plan" must be a text'),
        (json.dumps(POINT | {"plan": "x" * (LONGEST + 1)}), "1,201 characters"),
        ("{" * 20_000, "No JSON object"),
    ],
)
def test_a_reply_that_is_no_such_object_is_reported(reply: str, report: str) -> None:
    with pytest.raises(EditError) as raised:
        read_fields(reply, BOTTLENECK)
    assert report in str(raised.value)


@pytest.mark.parametrize(
    "reply",
    [
        json.dumps(POINT),
        f"<think>{{}}</think>\nHere:\n```json\n{json.dumps(POINT, indent=2)}\n```\nThat is all.",
        f"First I thought {{x}} of [1, 2].\n{json.dumps(POINT)}",
    ],
)
def test_the_last_object_of_a_reply_is_read(reply: str) -> None:
    assert read_fields(reply, BOTTLENECK) == POINT
