"""The course of KernelBlaster through runs with known outcomes."""

from __future__ import annotations

import json
import random
from collections.abc import Generator, Mapping, Sequence
from dataclasses import replace
from typing import cast

import pytest

from engine.evaluator.checks import findings
from engine.knowledge.states import SURE
from engine.search.actions import (
    Action,
    Ask,
    Conclude,
    Consult,
    Evaluate,
    Finish,
    Refuse,
    Step,
    TakeSubmission,
    Teach,
    Wait,
    label,
)
from engine.search.methods.kernelblaster.strategy import KernelBlaster
from engine.search.methods.options import Value
from engine.search.patching.edits import EditError
from storage.knowledge.records import Advised, Bottleneck, Category, State
from storage.results.check_records import CheckRecord
from storage.results.evaluation_results import CheckResult, CompileResult, TimingResult
from storage.results.profile_results import ProfileResult
from storage.results.vocabulary import Verdict
from storage.run import events as ev
from storage.run.record import Record
from storage.run.settings import Budget, DepthOutcome, Origin, RunState, StepKind
from storage.run.steering.verbs import Command, CommandKind
from tests.engine.search.methods.test_contract import Play
from tests.engine.search.methods.test_kernelblaster import EDIT, FOUND, NEW, PLAN, flagged


class Course(Play):
    """A run whose outcomes are given: the speed-ups of its kernels in order, None for one that does not compile."""

    def __init__(self, *speedups: float | None, **given: object) -> None:
        super().__init__("kernelblaster", 0)
        self.found: Sequence[Advised] = given.pop("found", FOUND)  # type: ignore[assignment]
        self.others: tuple[str, ...] = given.pop("others", ())  # type: ignore[assignment]
        self.sure: float = given.pop("sure", 0.9)  # type: ignore[assignment]
        self.replies: Mapping[str, object] = given.pop("replies", {})  # type: ignore[assignment]
        self.proofs: tuple[CheckRecord, ...] = given.pop("proofs", ())  # type: ignore[assignment]
        budget: Budget = given.pop("budget", Budget(depths=50))  # type: ignore[assignment]
        options = {"verifies": False} | cast("dict[str, Value]", given)
        self.settings = replace(self.settings, budget=budget, strategy_options=options)
        self.record = Record.of(self.settings, [])
        self.strategy = KernelBlaster()
        self._speedups, self._speedup_of = iter(speedups), dict[str, float | None]()
        self.done: list[Action] = []

    def course(self) -> list[Action]:
        """Every action up to the end of the run."""
        while not isinstance(action := self.strategy.next(self.record), Finish):
            self.take(action)
            assert len(self.done) < 400
        return [*self.done, action]

    def until(self, word: str) -> Action:
        """The next action that is called so, which is not carried out."""
        while word not in (named := name_of(action := self.strategy.next(self.record))):
            assert named != "finish", word
            self.take(action)
        return action

    def take(self, action: Action) -> None:
        """Carry it out."""
        self.done.append(action)
        for event in self.carry_out(action):
            self.record.apply(event)

    def steer(self, kind: CommandKind, argument: str = "") -> None:
        """A person's command takes effect."""
        name = f"k{len(self.record.commands)}"
        self.record.apply(ev.CommandAcknowledged(Command(name, kind, argument, "someone", 0.0), 0))
        self.record.apply(ev.CommandEffective(name, 0, ""))

    def _work(self, action: Step, number: int) -> Generator[ev.Event, None, str]:
        if isinstance(action, Ask) and action.makes is None:
            reply = self.replies.get(action.label, REPLIES[action.label])
            problem, fields, payload, flags = "", {"x": "y"}, "", tuple[str, ...]()
            if reply is None:
                problem = "no object"
            elif action.reads is not None:
                read = action.reads(json.dumps(reply))
                fields, payload, flags = dict(read.fields), json.dumps(dict(read.payload)), read.flags
            blob = self.keep(json.dumps(fields))
            yield ev.ReviewWritten(
                number, 0, action.label, action.index, action.about or "", blob, "", problem, "", None, payload, flags
            )  # fmt: skip
            return "unreadable" if problem else "written"
        if isinstance(action, Ask):
            if action.label in self.replies and self.replies[action.label] is None:
                return "patch_failed"
            self.chance = Certain()
            return (yield from super()._work(action, number))
        return (yield from super()._work(action, number))

    def _result(self, action: Evaluate, number: int) -> ev.Event:
        name = action.about
        if name not in self._speedup_of:
            self._speedup_of[name] = next(self._speedups)
        speedup = self._speedup_of[name]
        match action.stage:
            case StepKind.COMPILE if speedup is None:
                return ev.Compiled(number, name, CompileResult(False, 1.0, "no", verdict=Verdict.COMPILE_ERROR), None)
            case StepKind.COMPILE:
                return ev.Compiled(number, name, CompileResult(True, 1.0), None)
            case StepKind.CHECK:
                return ev.Checked(number, name, CheckResult(Verdict.PASSED, 1.0, proofs=self.proofs))
            case StepKind.TIME:
                assert speedup is not None
                return ev.Timed(number, name, TimingResult((1.0,) * 9, (speedup,) * 9))
            case _:
                return ev.Profiled(number, name, ProfileResult("h", (), "memory", "summary"), None)

    def _looked_up(self, action: Consult | Teach | Refuse, number: int) -> ev.Event:
        if not isinstance(action, Consult):
            return super()._looked_up(action, number)
        is_open = self.sure < SURE and not action.state
        known = (State("bound", Bottleneck.MEMORY, "memory busy"),) if is_open else ()
        return ev.Consulted(
            number, action.index, action.about, action.state or "bound", Bottleneck.MEMORY,
            1.0 if action.state else self.sure,
            tuple(self.found), "mark", states=known, others=self.others,
        )  # fmt: skip


class Certain(random.Random):
    """Chance that always lets a reply hold a kernel."""

    def random(self) -> float:
        return 0.9


PLAN_WITH_NEW = {"reading": "waits", "relevance": {"tiling": 0.0, "unrolling": 0.0, "prefetch": 0.0}, "new": [NEW]}
REPLIES: Mapping[str, object] = {
    "classify": {"state": "bound", "confidence": 0.8, "why": "memory busy"},
    "plan": {"reading": "waits", "relevance": {"tiling": 1.0, "unrolling": 0.0, "prefetch": 0.0}, "new": []},
    "judge": {"work_dropped": False, "library_called": False, "constant_folded": False, "evidence": "all there"},
    "analyse": {},
    "revise": {"edits": []},
}


def name_of(action: Action) -> str:
    """An action in a word."""
    if isinstance(action, Conclude | Finish | Wait):
        return type(action).__name__.lower()
    return label(action)


def words(actions: Sequence[Action]) -> list[str]:
    return [name_of(action) for action in actions]


def optimised(actions: Sequence[Action]) -> list[Ask]:
    return [action for action in actions if isinstance(action, Ask) and action.label == "optimise"]


JUDGED = ["compile", "check", "time", "profile", "conclude"]


def test_a_run_is_a_first_kernel_then_trajectories_of_steps_each_from_the_first_and_a_look_back() -> None:
    run = Course(1.0, 1.5, 2.0, 1.2, 0.9, trajectories=2, steps=2)
    done = run.course()
    begun = {one.depth for one in run.record.events if isinstance(one, ev.StepStarted)}
    assert begun == {one.depth for one in run.record.concluded}, "no step index is left open"
    step = ["consult", "plan", "optimise", *JUDGED]
    assert words(done) == ["synthesise", *JUDGED, *step * 4, "analyse", "revise", "finish"]
    assert done[-1] == Finish(RunState.FINISHED, "all 2 trajectories are done")
    made = [(ask.makes.base_id, ask.makes.trajectory) for ask in optimised(done) if ask.makes]
    assert made == [("c001", 1), ("c002", 1), ("c001", 2), ("c004", 2)]


def test_what_is_drawn_is_recorded_with_its_prediction_and_the_step_ends_with_its_reward() -> None:
    run = Course(1.0, 2.0, trajectories=1, steps=1)
    run.course()
    made = run.record.candidates["c002"].created
    assert (made.technique, made.predicted_gain, made.trajectory) == ("tiling", 2.0, 1)
    ended = next(one for one in run.done[::-1] if isinstance(one, Conclude))
    assert ended.reward == pytest.approx(0.7)
    assert "predicted 2x, measured 2x" in ended.reason
    assert "reward +0.70" in ended.reason


def test_a_trajectory_goes_on_from_its_last_correct_kernel_be_it_slower() -> None:
    done = Course(1.0, 0.5, None, 0.6, trajectories=1, steps=3, max_repairs=0).course()
    assert [ask.about for ask in optimised(done)] == ["c001", "c002", "c002"]
    failed = next(one for one in done if isinstance(one, Conclude) and one.outcome is DepthOutcome.GIVEN_UP)
    assert (failed.candidate_id, failed.base_id, failed.reward) == ("c003", "c002", -0.5)


def test_what_was_tried_on_a_kernel_is_not_drawn_for_it_again() -> None:
    done = Course(1.0, None, None, None, trajectories=3, steps=1, max_repairs=0).course()
    drawn = [ask.makes.technique for ask in optimised(done) if ask.makes]
    assert sorted(drawn) == ["prefetch", "tiling", "unrolling"]


def test_a_kernel_six_times_slower_ends_its_trajectory() -> None:
    done = Course(1.0, 0.1, 1.5, 1.6, 1.7, trajectories=2, steps=3).course()
    assert [(ask.about, ask.makes.trajectory) for ask in optimised(done) if ask.makes] == [
        ("c001", 1), ("c001", 2), ("c003", 2), ("c004", 2),
    ]  # fmt: skip


def test_a_failed_kernel_is_repaired_up_to_the_limit_and_keeps_technique_and_trajectory() -> None:
    run = Course(1.0, None, None, 2.0, trajectories=1, steps=1, max_repairs=2)
    assert words(run.course()).count("repair") == 2
    assert run.record.candidates["c004"].created.trajectory == 1
    assert "tiling: predicted 2x, measured 2x" in run.record.concluded[-1].reason
    short = Course(1.0, None, None, None, trajectories=1, steps=1, max_repairs=1)
    assert words(short.course()).count("repair") == 1
    assert short.record.concluded[-1].outcome is DepthOutcome.GIVEN_UP


def test_a_first_kernel_that_cannot_be_had_ends_the_run() -> None:
    done = Course(*[None] * 4, first_tries=2, max_repairs=1).course()
    assert words(done) == [*["synthesise", "compile", "repair", "compile"] * 2, "finish"]
    assert done[-1] == Finish(RunState.FAILED, "no correct kernel: 4 kernels failed, 2 repairs among them")


def test_edits_that_cannot_be_used_spend_the_step_and_count_as_a_failed_attempt() -> None:
    run = Course(1.0, trajectories=1, steps=2, replies={"optimise": None})
    done = run.course()
    ends = [one for one in done if isinstance(one, Conclude)][1:]
    assert [(one.outcome, one.reward) for one in ends] == [(DepthOutcome.GIVEN_UP, -0.5)] * 2
    assert "2 attempts, 2 failed" in str(next(one for one in done if name_of(one) == "analyse"))


def test_a_state_that_the_rules_leave_open_is_asked_for_and_looked_up_under_the_models_word() -> None:
    run = Course(1.0, 1.5, trajectories=1, steps=1, sure=0.4)
    run.until("optimise")
    assert words(run.done)[6:] == ["consult", "classify", "consult", "plan"]
    consults = [one for one in run.done if isinstance(one, Consult)]
    assert [one.state for one in consults] == ["", "bound"]


def test_a_model_that_is_not_sure_makes_a_discovered_state_that_is_taught_before_it_is_looked_up() -> None:
    unsure = {"classify": {"state": "bound", "confidence": 0.3, "why": "two passes over memory"}}
    run = Course(1.0, 1.5, 2.0, trajectories=1, steps=2, sure=0.4, replies=unsure)
    run.until("optimise")
    assert words(run.done)[6:] == ["consult", "classify", "teach", "consult", "plan"]
    taught = next(one for one in run.done if isinstance(one, Teach))
    assert [(one.name, one.inherits, one.is_discovered) for one in taught.revision.states] == [
        ("discovered_memory_1", "bound", True)
    ]
    assert run.record.consulted[1, "c001"].state == "discovered_memory_1"
    run.course()
    names = [state.name for one in run.done if isinstance(one, Teach) for state in one.revision.states]
    assert names == ["discovered_memory_1", "discovered_memory_2"]


def test_the_state_of_a_kernel_is_asked_for_once() -> None:
    unsure = {"classify": {"state": "bound", "confidence": 0.3, "why": "two passes over memory"}}
    run = Course(1.0, 1.5, 1.6, trajectories=2, steps=1, sure=0.4, replies=unsure)
    done = run.course()
    assert words(done).count("classify") == 1
    assert [one.state for one in done if isinstance(one, Consult)] == ["", *["discovered_memory_1"] * 2]


def test_an_unreadable_answer_is_gone_without() -> None:
    run = Course(1.0, 1.5, trajectories=1, steps=1, sure=0.4, replies={"classify": None, "plan": None})
    run.until("optimise")
    assert words(run.done)[6:] == ["consult", "classify", "plan"]
    nothing = Course(1.0, trajectories=1, steps=1, found=(), replies={"plan": None})
    nothing.course()
    assert "no technique is known" in nothing.record.concluded[-1].reason


def test_a_technique_of_the_plans_own_is_taught_when_it_is_drawn() -> None:
    plan = {"reading": "waits", "new": [NEW]}
    run = Course(1.0, 1.5, trajectories=1, steps=1, found=(), replies={"plan": plan})
    run.until("optimise")
    assert words(run.done)[6:] == ["consult", "plan", "teach"]
    revision = next(one for one in run.done if isinstance(one, Teach)).revision
    assert [(one.name, one.category) for one in revision.techniques] == [("fusion", Category.MEMORY)]
    assert [(one.state, one.technique, one.gain) for one in revision.priors] == [("bound", "fusion", 1.5)]
    elsewhere = Course(1.0, 1.5, trajectories=1, steps=1, found=(), others=("Fusion",), replies={"plan": plan})
    elsewhere.until("optimise")
    revision = next(one for one in elsewhere.done if isinstance(one, Teach)).revision
    assert (revision.techniques, [one.technique for one in revision.priors]) == ((), ["Fusion"]), "its words stay"
    unused = Course(1.0, 1.5, trajectories=1, steps=1, replies={"plan": PLAN | {"new": [NEW | {"relevance": 0.0}]}})
    assert "teach" not in words(unused.course())


def test_after_a_round_the_base_is_taught_and_the_next_round_begins_with_it() -> None:
    edits = {"edits": [{"edit": "prediction", "state": "bound", "technique": "tiling", "gain": 1.1, "why": "kernel 2"}]}
    run = Course(1.0, 1.1, 1.2, trajectories=1, steps=1, rounds=2, replies={"revise": edits})
    done = words(run.course())
    assert done == [
        "synthesise", *JUDGED, *["consult", "plan", "optimise", *JUDGED, "analyse", "revise", "teach"] * 2, "finish",
    ]  # fmt: skip
    asked = next(one for one in run.done if name_of(one) == "analyse")
    assert "tiling (trajectory 1, step 1): predicted 2x, measured 1.1x" in str(asked)
    last = [one for one in run.done if name_of(one) == "analyse"][-1]
    assert "trajectory 1, step 1" not in str(last), "each round is looked at once"
    silent = Course(1.0, 1.1, trajectories=1, steps=1, learns=False)
    assert "analyse" not in words(silent.course())


def test_the_look_back_may_correct_and_describe_anew_what_a_plan_of_its_round_proposed() -> None:
    words_for_all = {"category": "memory", "about": "in words for all", "helps": "often", "hurts": "rarely"}
    prediction = EDIT | {"state": "bound", "technique": "fusion"}
    anew = words_for_all | {
        "edit": "technique", "technique": "Fusion", "state": "bound", "gain": 1.1, "confidence": 0.5, "why": "kernel 2",
    }  # fmt: skip
    run = Course(1.0, 1.1, trajectories=1, steps=1, found=(), replies={"plan": PLAN_WITH_NEW | {"relevance": {}}})
    asked = run.until("revise")
    assert isinstance(asked, Ask)
    assert asked.reads is not None
    read = asked.reads(json.dumps({"edits": [prediction, anew]})).payload["edits"]
    assert read == [prediction, anew | {"technique": "fusion"}]
    known = Course(1.0, 1.1, trajectories=1, steps=1).until("revise")
    assert isinstance(known, Ask)
    assert known.reads is not None
    with pytest.raises(EditError, match="'tiling' is known already"):
        known.reads(json.dumps({"edits": [anew | {"technique": "tiling"}]}))


def test_a_look_back_that_a_person_leaves_goes_on_without_that_part() -> None:
    edits = {"edits": [EDIT | {"state": "bound", "technique": "tiling"}]}
    run = Course(1.0, 1.1, trajectories=1, steps=1, replies={"revise": edits})
    for word in ("analyse", "revise", "teach"):
        asked = run.until(word)
        assert isinstance(asked, Ask | Teach)
        number = run.record.steps_finished + 1
        run.record.apply(ev.StepStarted(number, word, asked.index, asked.about))
        assert run.strategy.abandon(run.record, "skipped by a person") is None
        if word == "revise":
            run.record.apply(ev.StepFinished(number, word, 0.0, "dropped"))
            run.take(run.until("revise"))
        else:
            run.record.apply(ev.StepFinished(number, word, 0.0, "skipped"))
    assert run.strategy.next(run.record) == Finish(RunState.FINISHED, "the trajectory is done")


def test_without_a_profile_the_model_names_each_kernels_state() -> None:
    done = words(Course(1.0, 1.5, trajectories=1, steps=1, agent="cycles", sure=0.0).course())
    assert "profile" not in done
    assert done[5:10] == ["consult", "classify", "consult", "plan", "optimise"]


def test_a_minimal_agent_asks_nothing_and_chooses_by_itself() -> None:
    run = Course(1.0, 1.5, None, trajectories=1, steps=2, agent="minimal", max_repairs=0)
    done = run.course()
    judged = [word for word in JUDGED if word != "profile"]
    failed = ["optimise", "compile", "conclude", "finish"]
    assert words(done) == ["synthesise", *judged, "optimise", *judged, *failed]
    assert not any(ask.makes and ask.makes.technique for ask in optimised(done))
    assert not run.strategy.consults(run.record)


def test_a_frozen_base_is_taught_nothing_and_the_nearest_state_stands_for_a_new_one() -> None:
    replies = {"classify": {"state": "bound", "confidence": 0.2, "why": "not sure"}, "plan": PLAN_WITH_NEW}
    run = Course(1.0, 1.5, trajectories=1, steps=1, sure=0.3, replies=replies)
    run.settings = replace(run.settings, knowledge="frozen:/base")
    run.record = Record.of(run.settings, [])
    done = run.course()
    assert not {"teach", "analyse", "revise"} & set(words(done))
    assert [one.state for one in done if isinstance(one, Consult)] == ["", "bound"]


def test_a_limit_ends_the_round_with_a_look_back_unless_calls_are_used_up() -> None:
    by_target = Course(1.0, 5.0, trajectories=2, steps=3, budget=Budget(target_speedup=4.0))
    assert words(by_target.course())[-3:] == ["analyse", "revise", "finish"]
    by_steps = Course(1.0, 1.1, 1.2, trajectories=2, steps=3, budget=Budget(depths=2)).course()
    assert words(by_steps)[-3:] == ["analyse", "revise", "finish"]
    assert by_steps[-1] == Finish(RunState.FINISHED, "all 2 steps are done")


def test_the_judge_reads_each_correct_kernel_once_and_a_claim_alone_refuses_nothing() -> None:
    claims = {"judge": REPLIES["judge"] | {"work_dropped": True}}  # type: ignore[operator]
    run = Course(1.0, 1.5, trajectories=1, steps=1, verifies=True, replies=claims)
    done = words(run.course())
    assert done[:6] == ["synthesise", "compile", "check", "judge", "time", "profile"]
    assert done.count("judge") == 2
    assert "refuse" not in done
    assert all(one.flags for one in run.record.reviews.values() if one.label == "judge")


def test_a_claim_that_a_finding_bears_out_refuses_the_kernel_which_is_then_repaired() -> None:
    claims = {"judge": REPLIES["judge"] | {"work_dropped": True}}  # type: ignore[operator]
    run = Course(1.0, 1.5, verifies=True, replies=claims, proofs=(flagged(findings.VARIES),))
    refused = run.until("refuse")
    assert words(run.done)[-1] == "judge"
    run.take(refused)
    assert name_of(run.strategy.next(run.record)) == "repair"
    assert run.record.best_id is None


def test_a_person_moves_the_present_trajectory_and_the_next_starts_at_the_first_kernel() -> None:
    run = Course(1.0, 2.0, 0.9, 1.1, 1.2, trajectories=2, steps=2)
    run.until("conclude")
    run.take(run.strategy.next(run.record))
    run.until("conclude")
    run.take(run.strategy.next(run.record))
    run.steer(CommandKind.ROLL_BACK, "c001")
    assert run.until("optimise").about == "c001"  # type: ignore[union-attr]
    run.steer(CommandKind.SET_BASE, "c002")
    while run.record.step_index < 3:
        run.take(run.strategy.next(run.record))
    assert run.until("optimise").about == "c002"  # type: ignore[union-attr]
    note = run.strategy.note(run.record, Command("k", CommandKind.ROLL_BACK, "c001", "someone", 0.0))
    assert note == "step 3 starts from kernel 1; later trajectories from the first kernel"


def test_a_kernel_of_a_person_is_part_of_the_trajectory_and_says_nothing_of_a_technique() -> None:
    run = Course(1.0, 3.0, 3.1, trajectories=1, steps=2)
    run.until("optimise")
    made = ev.CandidateCreated(
        99, "c002", "c001", "c001", 1, 0, 0, Origin.MANUAL, "b", None, 1, 0, "mine", trajectory=1
    )
    run.record.apply(made)
    run.course()
    assert run.record.concluded[1].reason == "correct and timed"
    assert run.record.concluded[1].reward is None
    assert [ask.about for ask in optimised(run.done)] == ["c002"]


def test_a_submission_is_taken_into_the_trajectory() -> None:
    run = Course(1.0, 3.0, trajectories=1, steps=1)
    run.until("plan")
    given = Command("k9", CommandKind.SUBMIT, f"- {'a' * 64}", "someone", 0.0)
    run.record.apply(ev.CommandAcknowledged(given, 1))
    taken = run.strategy.next(run.record)
    assert isinstance(taken, TakeSubmission)
    assert (taken.base_id, taken.trajectory) == ("c001", 1)
