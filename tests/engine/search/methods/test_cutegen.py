import pytest

from engine.search.actions import Ask, Conclude, Finish
from engine.search.methods.cutegen.strategy import CuteGen
from storage.results.vocabulary import KernelClass, Verdict
from storage.run import events as ev
from storage.run.settings import SETTINGS_VERSION, Budget, DepthOutcome, Origin, RunState, StepKind, Switch
from storage.run.steering.verbs import CommandKind
from tests.engine.story import Step, Story, brief, state_of


def move(story: Story) -> object:
    return brief(CuteGen().next(story.record))


def kind(story: Story) -> str:
    step = move(story)
    assert isinstance(step, Step), step
    return step.kind


def test_a_run_begins_with_a_synthesis() -> None:
    assert move(Story()) == Step(StepKind.SYNTHESISE, 0)


def test_a_new_kernel_is_compiled_checked_timed_profiled_and_accepted() -> None:
    story = Story().candidate("c001")
    assert kind(story) == StepKind.COMPILE
    assert kind(story.compiles("c001")) == StepKind.CHECK
    assert kind(story.checks("c001")) == StepKind.TIME
    assert kind(story.runs_at("c001", 0.1)) == StepKind.PROFILE
    assert move(story.is_profiled("c001")) == Conclude(0, DepthOutcome.ACCEPTED, "c001", None, "correct and timed")


def test_a_failure_is_diagnosed_before_it_is_repaired() -> None:
    story = Story().candidate("c001").does_not_compile("c001")
    assert move(story) == Step(StepKind.DIAGNOSE, 0, "c001")
    assert move(story.is_diagnosed("c001")) == Step(StepKind.REPAIR, 0, "c001")


@pytest.mark.parametrize("verdict", [v for v in Verdict if v not in (Verdict.PASSED, Verdict.COMPILE_ERROR)])
def test_every_failed_check_leads_to_a_diagnosis(verdict: Verdict) -> None:
    story = Story().candidate("c001").compiles("c001").checks("c001", verdict)
    assert kind(story) == StepKind.DIAGNOSE


def test_the_last_patch_of_a_repair_sequence_is_judged() -> None:
    story = Story(max_repairs=1).candidate("c001").does_not_compile("c001").is_diagnosed("c001")
    story.candidate("c002", Origin.REPAIR, "c001")
    assert move(story) == Step(StepKind.COMPILE, 0, "c002")
    assert kind(story.compiles("c002")) == StepKind.CHECK


def test_repairs_used_up_lead_to_a_fresh_generation_and_then_to_failure() -> None:
    story = Story(max_repairs=0, max_regenerations=1).candidate("c001").does_not_compile("c001")
    assert kind(story) == StepKind.SYNTHESISE
    ending = move(story.candidate("c002").does_not_compile("c002"))
    assert isinstance(ending, Finish)
    assert ending.state is RunState.FAILED


def test_the_end_of_a_run_without_a_correct_kernel_says_whether_kernels_failed_or_replies_held_none() -> None:
    def ends(story: Story) -> str:
        ending = move(story)
        assert isinstance(ending, Finish)
        assert ending.state is RunState.FAILED
        return ending.reason

    def useless(story: Story, kind: StepKind = StepKind.SYNTHESISE, about: str | None = None) -> Story:
        step = story.step + 1
        call = ev.ModelCalled(step, 0, kind, 0, about, "m", "p", "r", None, None, 0, 0, None, 1.0, "stop")
        return story.tell(call).fails_to_patch(kind, about)

    assert ends(useless(Story(max_regenerations=0))) == "the model gave no kernel in 1 call"
    assert ends(useless(useless(Story(max_regenerations=1)))) == "the model gave no kernel in 2 calls"
    mixed = useless(Story(max_regenerations=1, max_repairs=1)).candidate("c001").does_not_compile("c001")
    mixed = useless(mixed.is_diagnosed("c001"), StepKind.REPAIR, "c001")
    assert ends(mixed) == "no correct kernel: 1 kernel failed; 2 replies could not be used"
    failures = Story(max_regenerations=0, max_repairs=1).candidate("c001").does_not_compile("c001").is_diagnosed("c001")
    failures.candidate("c002", Origin.REPAIR, "c001").does_not_compile("c002")
    assert ends(failures) == "no correct kernel: 2 kernels failed, 1 repair among them"


def test_a_depth_without_a_usable_reply_names_no_repairs_when_it_is_given_up() -> None:
    story = Story(max_regenerations=0).accepts("c001", 0.5).fails_to_patch(StepKind.OPTIMISE, "c001")
    given_up = move(story)
    assert isinstance(given_up, Conclude)
    assert given_up.reason == "no correct kernel in 1 attempt"


def test_a_patch_that_never_applies_uses_up_a_repair() -> None:
    story = Story(max_repairs=2).candidate("c001").does_not_compile("c001").is_diagnosed("c001")
    story.fails_to_patch(StepKind.REPAIR, "c001")
    assert kind(story) == StepKind.REPAIR
    story.fails_to_patch(StepKind.REPAIR, "c001")
    assert kind(story) == StepKind.SYNTHESISE


def test_a_depth_given_up_keeps_the_base_and_names_the_last_attempt() -> None:
    story = Story(max_repairs=0, max_regenerations=0).accepts("c001", 0.5)
    story.candidate("c002", Origin.OPTIMISATION, "c001").does_not_compile("c002")
    given_up = move(story)
    assert isinstance(given_up, Conclude)
    assert (given_up.outcome, given_up.candidate_id, given_up.base_id) == (DepthOutcome.GIVEN_UP, "c002", "c001")
    assert move(story.settles("c002", DepthOutcome.GIVEN_UP)) == Step(StepKind.OPTIMISE, 2, "c001")


def test_an_optimisation_whose_patch_never_applies_is_tried_anew_from_the_same_base() -> None:
    story = Story(max_regenerations=1).accepts("c001", 0.5).fails_to_patch(StepKind.OPTIMISE, "c001")
    assert move(story) == Step(StepKind.OPTIMISE, 1, "c001")
    assert isinstance(move(story.fails_to_patch(StepKind.OPTIMISE, "c001")), Conclude)


def test_latest_continues_from_a_slower_kernel() -> None:
    story = Story(base_policy="latest").accepts("c001", 0.5).accepts("c002", 0.4, "c001").accepts("c003", 0.3, "c002")
    assert move(story) == Step(StepKind.OPTIMISE, 3, "c003")


def test_best_returns_to_the_fastest_at_once() -> None:
    story = Story(base_policy="best").accepts("c001", 0.5).accepts("c002", 0.4, "c001")
    assert move(story) == Step(StepKind.OPTIMISE, 2, "c001")


def test_patience_returns_to_the_best_after_two_depths_without_gain_and_then_allows_a_detour() -> None:
    story = Story().accepts("c001", 0.5).accepts("c002", 0.4, "c001")
    assert move(story) == Step(StepKind.OPTIMISE, 2, "c002")
    story.accepts("c003", 0.45, "c002")
    assert move(story) == Step(StepKind.OPTIMISE, 3, "c001")
    story.accepts("c004", 0.42, "c001")
    assert move(story) == Step(StepKind.OPTIMISE, 4, "c004")


def test_a_gain_within_the_noise_is_no_gain_for_the_next_base_though_the_fastest_is_the_best() -> None:
    story = Story(base_policy="best").accepts("c001", 0.5).accepts("c002", 0.5004, "c001")
    assert story.record.best_id == "c002"
    assert (state_of(story.record).line_best_id, state_of(story.record).fruitless) == ("c001", 1)
    assert move(story) == Step(StepKind.OPTIMISE, 2, "c001")


def test_the_best_is_the_fastest_correct_kernel_even_of_a_depth_that_was_left() -> None:
    story = Story().accepts("c001", 1.2).candidate("c002", Origin.OPTIMISATION, "c001").passes("c002", 1.6)
    assert story.record.best_id == "c002"
    story.settles("c002", DepthOutcome.GIVEN_UP).steers(CommandKind.ROLL_BACK, "c001")
    assert story.record.best_id == "c002"
    assert move(story) == Step(StepKind.OPTIMISE, 2, "c001")
    story.accepts("c003", 1.6, "c001")
    assert story.record.best_id == "c002"
    story.checks("c002", Verdict.INCORRECT)
    assert story.record.best_id == "c003"


def test_a_roll_back_starts_the_next_depth_from_that_kernel_and_forgets_the_abandoned_best() -> None:
    story = Story(base_policy="best").accepts("c001", 0.5).accepts("c002", 0.8, "c001").accepts("c003", 0.9, "c002")
    story.steers(CommandKind.ROLL_BACK, "c001")
    assert move(story) == Step(StepKind.OPTIMISE, 3, "c001")
    story.accepts("c004", 0.6, "c001")
    assert move(story) == Step(StepKind.OPTIMISE, 4, "c004")
    assert story.record.best_id == "c003"


def after(depths: int, **changes: object) -> Story:
    """So many depths, each faster than the one before."""
    story = Story(**changes)
    for n in range(depths):
        story.accepts(f"c{n:03d}", 0.1 + n / 10, f"c{n - 1:03d}" if n else None)
    return story


def test_a_matmul_sees_no_profile_before_depth_seven_and_its_base_is_profiled_for_it() -> None:
    assert kind(after(6)) == StepKind.OPTIMISE
    story = after(7, collect=Switch.OFF)
    assert kind(story) == StepKind.OPTIMISE
    story.steers(CommandKind.COLLECT, "auto")
    assert move(story) == Step(StepKind.PROFILE, 7, "c006")
    assert kind(story.is_profiled("c006")) == StepKind.OPTIMISE


@pytest.mark.parametrize(
    ("kernel_class", "first"),
    [(KernelClass.CONVOLUTION, 7), (KernelClass.REDUCTION, 6), (KernelClass.LOSS, 4), (KernelClass.ACTIVATION, 3)],
)
def test_exposure_begins_where_cutegens_code_has_it_and_in_a_run_of_before_one_depth_earlier(
    kernel_class: KernelClass, first: int
) -> None:
    for version, depth in ((SETTINGS_VERSION, first), (1, first - 1)):
        assert kind(after(depth - 1, kernel_class=kernel_class, version=version)) == StepKind.OPTIMISE
        assert kind(after(depth, kernel_class=kernel_class, version=version)) == StepKind.PROFILE


@pytest.mark.parametrize("schedule", ["adaptive", "adaptive=2"])
def test_an_adaptive_schedule_shows_profiles_while_the_last_depths_brought_nothing_beyond_the_noise(
    schedule: str,
) -> None:
    story = Story(profile_schedule=schedule, base_policy="latest").accepts("c001", 0.5)
    assert move(story) == Step(StepKind.OPTIMISE, 1, "c001")
    story.accepts("c002", 0.5004, "c001")  # a gain within the noise
    assert move(story) == Step(StepKind.OPTIMISE, 2, "c002")
    story.candidate("c003", Origin.OPTIMISATION, "c002").does_not_compile("c003").settles("c003", DepthOutcome.GIVEN_UP)
    assert move(story) == Step(StepKind.PROFILE, 3, "c002")
    shown = CuteGen().next(story.is_profiled("c002").record)
    assert isinstance(shown, Ask)
    assert shown.shows_profile
    story.accepts("c004", 0.9, "c002")  # a gain: the next depth works on the structure again
    assert move(story) == Step(StepKind.OPTIMISE, 4, "c004")


def test_an_adaptive_schedule_never_begins_before_the_depth_that_was_set() -> None:
    story = Story(profile_schedule="adaptive=1", expose_from_depth=3).accepts("c001", 0.5).accepts("c002", 0.4, "c001")
    assert kind(story) == StepKind.OPTIMISE
    assert move(story.accepts("c003", 0.4, "c002")) == Step(StepKind.PROFILE, 3, "c001")
    assert kind(Story(profile_schedule="adaptive=1", expose_from_depth=11).accepts("c001", 0.5)) == StepKind.OPTIMISE


def test_with_an_adaptive_schedule_the_kernels_after_which_a_profile_may_be_due_are_profiled_at_once() -> None:
    story = Story(profile_schedule="adaptive=2").accepts("c001", 0.5)
    story.candidate("c002", Origin.OPTIMISATION, "c001").passes("c002", 0.4)
    assert isinstance(move(story), Conclude)
    story.settles("c002").candidate("c003", Origin.OPTIMISATION, "c001").passes("c003", 0.4)
    assert move(story) == Step(StepKind.PROFILE, 2, "c003")


def test_exposure_can_be_forced_on_before_its_depth() -> None:
    story = Story().accepts("c001", 0.5)
    assert kind(story) == StepKind.OPTIMISE
    story.steers(CommandKind.EXPOSE, "on")
    assert move(story) == Step(StepKind.PROFILE, 1, "c001")


def test_the_run_ends_when_all_depths_are_done() -> None:
    story = Story(budget=Budget(depths=1)).accepts("c001", 0.5).accepts("c002", 0.8, "c001")
    assert move(story) == Finish(RunState.FINISHED, "its one depth is done")


@pytest.mark.parametrize(
    ("gave", "told"),
    [((True, True), "all 2 depths are done"), ((True, False), "2 depths are done; depth 2 made no kernel"),
     ((False, False), "2 depths are done; 2 of them made no kernel"),
     ((False,), "its one depth is done; it made no kernel")],
)  # fmt: skip
def test_a_run_that_has_done_all_its_depths_says_which_made_no_kernel(gave: tuple[bool, ...], told: str) -> None:
    story = Story(budget=Budget(depths=len(gave))).accepts("c001", 0.5)
    for number, is_made in enumerate(gave, 2):
        story.accepts(f"c00{number}", 0.4, "c001") if is_made else story.settles(None, DepthOutcome.GIVEN_UP)
    ending = move(story)
    assert ending == Finish(RunState.FINISHED, told)
    older = "its one depth is done" if len(gave) == 1 else f"all {len(gave)} depths are done"
    trajectories = "all 2 trajectories are done"
    for written, read in ((told, told), (older, told), (trajectories, trajectories)):
        story.tell(ev.RunEnded(RunState.FINISHED, written, "c001"))
        assert story.record.ended is not None
        assert story.record.ended.reason == read


def test_the_run_ends_at_its_target_only_when_the_whole_interval_is_above() -> None:
    story = Story(budget=Budget(depths=9, target_speedup=0.8)).accepts("c001", 0.8)
    assert kind(story) == StepKind.OPTIMISE
    story.accepts("c002", 0.9, "c001")
    ending = move(story)
    assert isinstance(ending, Finish)
    assert "target" in ending.reason


def test_a_spent_budget_starts_no_further_depth() -> None:
    story = Story(budget=Budget(depths=9, model_calls=3)).calls(3).accepts("c001", 0.5)
    ending = move(story)
    assert isinstance(ending, Finish)
    assert "3 of 3 model calls" in ending.reason


def test_an_unknown_cost_is_not_free() -> None:
    story = Story(budget=Budget(depths=9, cost_usd=1.0)).calls(1, cost=None).accepts("c001", 0.5)
    assert isinstance(move(story), Finish)


def test_stagnation_ends_the_run_when_asked_for() -> None:
    story = Story(budget=Budget(depths=9, stagnation_depths=2)).accepts("c001", 0.5)
    story.accepts("c002", 0.4, "c001").accepts("c003", 0.45, "c002")
    ending = move(story)
    assert isinstance(ending, Finish)
    assert "no improvement" in ending.reason
