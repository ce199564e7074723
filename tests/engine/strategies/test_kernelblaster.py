"""KernelBlaster: its arithmetic, its answers, and its course through runs with known outcomes."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from engine.actions import Action, Ask, Conclude, Consult, Evaluate, Finish, Refuse, Step, TakeSubmission, Teach, label
from engine.evaluation import findings, operators, timing_checks
from engine.evaluation.screening.finding import Rule
from engine.knowledge.states import SURE
from engine.patching.edits import EditError
from engine.record import Candidate, Record
from engine.strategies.kernelblaster import lessons
from engine.strategies.kernelblaster.drawing import draw, top, weights
from engine.strategies.kernelblaster.replies import CLAIMS as CLAIMED
from engine.strategies.kernelblaster.replies import ReadEdits, ReadPlan, ReadState, read_verification, state_name
from engine.strategies.kernelblaster.rewards import Attempt, evaluation, reward, saved
from engine.strategies.kernelblaster.strategy import KernelBlaster
from engine.strategies.kernelblaster.verification import COUNTS, objection
from engine.strategies.options import Value
from storage import events as ev
from storage.check_records import CheckOutcome, CheckRecord, Group
from storage.evaluation_results import CheckResult, CompileResult, TimingResult
from storage.knowledge.records import Advised, Bottleneck, Category, State
from storage.profile_results import ProfileResult
from storage.records import Budget, DepthOutcome, Origin, RunState, StepKind, Verdict
from storage.relative import Relative
from storage.verbs import Command, CommandKind
from tests.engine.strategies.test_contract import Play


def technique(name: str, gain: float, confidence: float = 0.5) -> Advised:
    return Advised(name, Category.MEMORY, "moves it", "here", "there", gain, confidence)


FOUND = (technique("tiling", 2.0, 0.5), technique("unrolling", 1.2, 0.5), technique("prefetch", 1.1, 0.25))


# --- the draw


def test_a_weight_is_the_cube_of_the_plans_relevance_and_never_nothing() -> None:
    assert weights(FOUND, FOUND, {"tiling": 0.5, "unrolling": 0.05, "prefetch": 1.0}) == [0.125, 0.001, 1.0]


def test_without_a_plan_the_relevance_is_gain_times_confidence_over_the_states_largest() -> None:
    found = weights(FOUND[1:], FOUND, {"unrolling": 0.3})
    assert found == pytest.approx([0.027, (1.1 * 0.25 / (2.0 * 0.5)) ** 3])


def test_the_draw_is_among_the_top_by_gain_and_leaves_what_was_tried_until_nothing_is_left() -> None:
    assert [one.technique for one in top(FOUND[::-1], 2)] == ["tiling", "unrolling"]
    assert [one.technique for one in top(FOUND, 2, {"tiling"})] == ["unrolling", "prefetch"]
    assert len(top(FOUND, 3, {"tiling", "unrolling", "prefetch"})) == 3
    assert draw((), {}, count=3, seed="run", place=(1, 1)) is None


def test_draws_are_spread_as_their_weights_say() -> None:
    relevance, times = {"tiling": 1.0, "unrolling": 0.8, "prefetch": 0.5}, 6000
    weighed = dict(zip(relevance, weights(FOUND, FOUND, relevance), strict=True))
    drawn = Counter(
        one.technique
        for number in range(times)
        if (one := draw(FOUND, relevance, count=3, seed=f"run-{number}", place=(1, 1)))
    )
    expected = {name: times * weight / sum(weighed.values()) for name, weight in weighed.items()}
    distance = sum((drawn[name] - count) ** 2 / count for name, count in expected.items())
    assert distance < 13.8  # chi square of two degrees of freedom: one in a thousand is further off


def test_a_draw_is_repeated_by_run_trajectory_and_step_and_differs_between_them() -> None:
    def drawn(seed: str, trajectory: int, step: int) -> str:
        found = draw(FOUND, dict.fromkeys(("tiling", "unrolling", "prefetch"), 1.0), count=3, seed=seed,
                     place=(trajectory, step))  # fmt: skip
        assert found is not None
        return found.technique

    places = [(seed, trajectory, step) for seed in "abc" for trajectory in range(1, 9) for step in range(1, 9)]
    assert [drawn(*place) for place in places] == [drawn(*place) for place in places]
    for along in ([(s, 1, 1) for s in "abcdefgh"], [("a", t, 1) for t in range(8)], [("a", 1, n) for n in range(8)]):
        assert len({drawn(*place) for place in along}) > 1


# --- the reward


@pytest.mark.parametrize(
    ("factor", "predicted", "is_faster", "expected"),
    [
        (2.0, 2.0, True, 0.5 + 0.2),  # as predicted
        (2.0, 1.0 / 0.6, True, 0.5 - 0.1 * 0.25),  # r = 1.25, just outside
        (1 / 0.52, 1 / 0.6, True, 0.48 + 0.2),  # r = 1.2, just inside
        (4.0, 1.25, True, 0.75 - 0.1),  # r = 3.75 counts as 2
        (1.0, 2.0, False, 0.0 - 0.5 - 0.1),  # r = 0
        (0.5, 2.0, False, -1.0 - 0.5 - 0.1 * 3),  # r = -2
        (1.02, 1.02, False, saved(1.02) + 0.2 - 0.5),  # within the noise
        (2.0, None, True, 0.5),
        (2.0, 0.9, True, 0.5),  # nothing gained was predicted: no ratio
        (None, 2.0, False, -0.5),  # failed
    ],
)
def test_the_reward_is_as_published(
    factor: float | None, predicted: float | None, is_faster: bool, expected: float
) -> None:
    assert reward(factor, predicted, is_faster=is_faster) == pytest.approx(expected)


def test_a_round_is_told_by_state_predicted_against_measured() -> None:
    tried = [
        Attempt(1, 1, "bound", "tiling", "c001", "c002", 2.0, Relative(1.0, 0.01)),
        Attempt(1, 2, "bound", "unrolling", "c002", None, 1.2, None),
        Attempt(2, 1, "", "prefetch", "c001", "c003", 2.0, Relative(2.0, 0.01)),
    ]
    assert list(evaluation(tried)) == [
        "bound: 2 attempts, 1 failed; predicted 2x and measured 1x on average of 1; mean reward -0.55",
        "- tiling (trajectory 1, step 1): predicted 2x, measured 1x (0.99 to 1.01), within the noise, reward -0.60",
        "- unrolling (trajectory 1, step 2): predicted 1.2x, failed, reward -0.50",
        "(state not known): 1 attempts, 0 failed; predicted 2x and measured 2x on average of 1; mean reward +0.70",
        "- prefetch (trajectory 2, step 1): predicted 2x, measured 2x (1.98 to 2.02), faster, reward +0.70",
    ]


@pytest.mark.parametrize(("factor", "ends"), [(1 / 5.9, False), (1 / 6.1, True), (2.0, False)])
def test_an_attempt_that_is_six_times_slower_ends_its_trajectory(factor: float, ends: bool) -> None:
    assert Attempt(1, 1, "", "t", "c001", "c002", 1.0, Relative(factor, 0.0)).ends_trajectory is ends


# --- what answers must hold

PLAN = {"reading": "memory waits", "relevance": {"Tiling": 0.7}, "new": []}
NEW = {
    "technique": "fusion", "category": "memory", "about": "one pass", "helps": "here", "hurts": "there",
    "predicted_gain": "1.5x", "relevance": 0.9,
}  # fmt: skip
CLAIMS = {"work_dropped": False, "library_called": False, "constant_folded": True, "evidence": "line 4"}
EDIT: dict[str, object] = {
    "edit": "prediction",
    "state": "bound",
    "technique": "tiling",
    "gain": 1.1,
    "why": "kernel 3",
}
COMPOSITE = {
    "edit": "composite", "technique": "both", "parts": ["tiling", "unrolling"], "category": "memory", "about": "a",
    "helps": "b", "hurts": "c", "state": "bound", "gain": 1.4, "confidence": 0.4, "why": "kernels 2 and 3",
}  # fmt: skip
read_plan, read_state = ReadPlan(("tiling", "unrolling")), ReadState(("bound", "waiting"))
read_edits = ReadEdits(("bound",), ("tiling", "unrolling", "prefetch", "fusion"))


def test_a_plan_is_read_with_its_new_techniques() -> None:
    read = read_plan(f"First thoughts.\n```json\n{json.dumps(PLAN | {'new': [NEW]})}\n```")
    assert read.payload["relevance"] == {"tiling": 0.7, "fusion": 0.9}
    assert read.payload["new"][0]["predicted_gain"] == 1.5
    assert read.fields["relevance"] == "tiling 0.7"
    assert "fusion (1.5x): one pass" in read.fields["new"]
    elsewhere = ReadPlan(("tiling",), ("Fusion",))(json.dumps(PLAN | {"relevance": {"tiling": 0.7, "fusion": 0.9}}))
    assert elsewhere.payload["relevance"] == {"tiling": 0.7}  # what is known from other states only is left out
    long = read_plan(json.dumps(PLAN | {"reading": "x " * 500}))
    assert 390 < len(long.fields["reading"]) <= 400  # cut, not asked for again


@pytest.mark.parametrize(
    ("reader", "reply", "report"),
    [
        (read_plan, [], "No JSON object"),
        (read_plan, {"reading": "x"}, '"relevance" must be an object'),
        (read_plan, PLAN | {"relevance": {}}, "rates none of the techniques"),
        (read_plan, PLAN | {"relevance": {"tiling": 1.5}}, '"tiling" must be a number from 0 to 1'),
        (read_plan, PLAN | {"relevance": {"tiling": True}}, '"tiling" must be a number from 0 to 1'),
        (read_plan, PLAN | {"relevance": {"magic": 0.5}}, "names 'magic', which is not on the list"),
        (read_plan, PLAN | {"reading": " "}, '"reading" must be a text'),
        (read_plan, PLAN | {"new": [NEW | {"technique": "x" * 61}]}, "61 characters: at most 60"),
        (read_plan, PLAN | {"best": "tiling"}, '"best" was not asked for'),
        (read_plan, PLAN | {"new": [NEW] * 4}, "4 entries: at most 3"),
        (read_plan, PLAN | {"new": [NEW | {"technique": "TILING"}]}, "is on the list already"),
        (read_plan, PLAN | {"new": [NEW | {"category": "magic"}]}, 'new 1: "category" must be one of'),
        (read_plan, PLAN | {"new": [NEW | {"predicted_gain": "much"}]}, 'new 1: "predicted_gain" must be a factor'),
        (ReadPlan(()), {"reading": "x", "new": []}, "at least one technique"),
        (read_state, {"state": "magic", "confidence": 0.5, "why": "x"}, '"state" must be one of "bound", "waiting"'),
        (read_state, {"state": "bound", "confidence": "high", "why": "x"}, '"confidence" must be a number'),
        (read_verification, CLAIMS | {"work_dropped": "no"}, '"work_dropped" must be true or false'),
        (read_verification, CLAIMS | {"evidence": ""}, '"evidence" must be a text'),
        (read_edits, {"changes": []}, '"edits" is missing'),
        (read_edits, {"edits": ["tiling"]}, '"edits" must be a list of objects'),
        (read_edits, {"edits": [EDIT] * 9}, "9 entries: at most 8"),
        (read_edits, {"edits": [EDIT | {"edit": "forget"}]}, 'edits 1: "edit" must be one of'),
        (read_edits, {"edits": [EDIT | {"technique": "magic"}]}, '"technique" must be one of "tiling"'),
        (read_edits, {"edits": [EDIT | {"state": "magic"}]}, '"state" must be one of "bound"'),
        (read_edits, {"edits": [EDIT | {"gain": 90}]}, '"gain" must be a factor over the parent from 0.2 to 20'),
        (read_edits, {"edits": [EDIT | {"gain": None}]}, "or confidence, or both"),
        (read_edits, {"edits": [EDIT | {"why": ""}]}, '"why" must be a text'),
        (read_edits, {"edits": [EDIT | {"about": "x"}]}, 'edits 1: "about" was not asked for'),
        (read_edits, {"edits": [COMPOSITE | {"parts": ["tiling"]}]}, "two or three different techniques"),
        (read_edits, {"edits": [COMPOSITE | {"parts": ["tiling", "TILING"]}]}, "two or three different"),
        (read_edits, {"edits": [COMPOSITE | {"parts": ["tiling", "magic"]}]}, "two or three different"),
        (read_edits, {"edits": [COMPOSITE | {"parts": ["tiling", "unrolling", "prefetch", "fusion"]}]}, "at most 3"),
        (read_edits, {"edits": [COMPOSITE | {"technique": "Tiling"}]}, "is known already"),
    ],
)
def test_an_answer_that_does_not_fit_is_reported(reader: object, reply: object, report: str) -> None:
    assert callable(reader)
    with pytest.raises(EditError) as raised:
        reader(json.dumps(reply))
    assert report in str(raised.value)


def test_all_faults_of_an_answer_are_told_at_once() -> None:
    with pytest.raises(EditError) as raised:
        read_edits(json.dumps({"edits": [EDIT | {"state": "x"}, EDIT | {"technique": "y"}]}))
    assert 'edits 1: "state"' in str(raised.value)
    assert 'edits 2: "technique"' in str(raised.value)


def test_an_edit_may_use_what_an_earlier_one_of_the_reply_has_made() -> None:
    state = {
        "edit": "state", "state": "Two Passes!", "bottleneck": "memory", "about": "x", "inherits": "bound", "why": "y",
    }  # fmt: skip
    later = EDIT | {"technique": "both", "state": "two_passes"}
    read = read_edits(json.dumps({"edits": [COMPOSITE, state, later]}))
    assert [one["edit"] for one in read.payload["edits"]] == ["composite", "state", "prediction"]
    assert state_name("Two Passes!") == "two_passes"


def test_edits_become_one_revision_that_leaves_what_they_do_not_name() -> None:
    known = {("bound", "tiling"): technique("tiling", 2.0, 0.7), ("bound", "unrolling"): technique("unrolling", 1.2)}
    edits: list[dict[str, object]] = [
        EDIT,
        EDIT | {"technique": "unrolling", "gain": None, "confidence": 0.1},
        {**COMPOSITE},
        {"edit": "deprecation", "technique": "tiling", "why": "never"},
    ]
    plain = [{name: value for name, value in one.items() if value is not None} for one in edits]
    made = lessons.of_round(read_edits(json.dumps({"edits": plain})).payload["edits"], known)
    assert [(one.technique, one.gain, one.confidence) for one in made.priors] == [
        ("tiling", 1.1, 0.7), ("unrolling", 1.2, 0.1), ("both", 1.4, 0.4),
    ]  # fmt: skip
    both, tiling = made.techniques
    assert both.parts == ("tiling", "unrolling")
    assert (tiling.is_disabled, tiling.about) == (True, "moves it")
    assert made.why.startswith("prediction tiling: kernel 3; prediction unrolling: kernel 3; composite both: ")


# --- soft verification


def flagged(check: str) -> CheckRecord:
    return CheckRecord(Group.CORRECTNESS, check, CheckOutcome.FLAGGED, "a person should look")


@pytest.mark.parametrize(
    ("claim", "check", "is_refused"),
    [
        ("work_dropped", findings.VARIES, True),
        ("work_dropped", timing_checks.CHECK, True),
        ("work_dropped", "noise", False),
        ("constant_folded", "fresh inputs", True),
        ("constant_folded", findings.SPECIAL_VALUES, False),
        ("library_called", "no library fall-back", True),
        ("library_called", findings.VARIES, False),
    ],
)
def test_a_claim_refuses_only_with_a_finding_that_bears_it_out(claim: str, check: str, is_refused: bool) -> None:
    made = ev.CandidateCreated(1, "c001", None, None, 0, 0, 0, Origin.SYNTHESIS, "b", None, 1, 0, "")
    kernel = Candidate(made, checked=CheckResult(Verdict.PASSED, 1.0, proofs=(flagged(check),)))
    told = objection(kernel, [claim], "line 4")
    assert bool(told) is is_refused
    assert not is_refused or ("line 4" in told and check in told)
    held = replace(
        kernel, checked=CheckResult(Verdict.PASSED, 1.0, proofs=(CheckRecord(Group.TIMING, check, CheckOutcome.HELD),))
    )
    assert objection(held, [claim], "line 4") == ""
    assert objection(kernel, [], "line 4") == ""


def test_the_findings_that_count_are_checks_of_the_evaluator() -> None:
    screening = {str(rule) for rule in Rule}
    checking = {findings.VARIES, findings.SPECIAL_VALUES, operators.CHECK}
    timing = {timing_checks.CHECK, timing_checks.DEVICE_TIME}
    text = Path(timing_checks.__file__).read_text()
    assert all(f'"{name}"' in text for name in ("fresh inputs", "nothing finishes later"))
    named = {name for names in COUNTS.values() for name in names}
    assert named <= screening | checking | timing | {"fresh inputs", "nothing finishes later"}
    assert set(COUNTS) == set(CLAIMED)


def test_claims_are_flags_for_a_person() -> None:
    read = read_verification(json.dumps(CLAIMS))
    assert read.payload["claims"] == ["constant_folded"]
    assert read.flags == ("the judge says that it holds results that were worked out beforehand: line 4",)
    assert read_verification(json.dumps(CLAIMS | {"constant_folded": False})).flags == ()


# --- the course of a run


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
    return "conclude" if isinstance(action, Conclude) else "finish" if isinstance(action, Finish) else label(action)


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
    assert done[-1] == Finish(RunState.FAILED, "no correct first kernel after 2 with their repairs")


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
