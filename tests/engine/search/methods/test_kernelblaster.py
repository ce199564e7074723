"""KernelBlaster: its arithmetic and its answers."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from engine.evaluator.checks import findings, operators, timing_checks
from engine.evaluator.checks.screening.finding import Rule
from engine.search.methods.kernelblaster import lessons
from engine.search.methods.kernelblaster.replies import CLAIMS as CLAIMED
from engine.search.methods.kernelblaster.replies import ReadEdits, ReadPlan, ReadState, read_verification, state_name
from engine.search.methods.kernelblaster.rewards import Attempt, evaluation, reward, saved
from engine.search.methods.kernelblaster.state import draw, top, weights
from engine.search.methods.kernelblaster.strategy import COUNTS, objection
from engine.search.patching.edits import EditError
from storage.knowledge.records import Advised, Category
from storage.results.check_records import DEVICE_TIME, RE_MEASURED, CheckOutcome, CheckRecord, Group
from storage.results.evaluation_results import CheckResult
from storage.results.relative import Relative
from storage.results.vocabulary import Verdict
from storage.run import events as ev
from storage.run.record import Candidate
from storage.run.settings import Origin


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
    assert draw((), {}, count=3, seed="run", trajectory=1, step=1) is None


def test_draws_are_spread_as_their_weights_say() -> None:
    relevance, times = {"tiling": 1.0, "unrolling": 0.8, "prefetch": 0.5}, 6000
    weighed = dict(zip(relevance, weights(FOUND, FOUND, relevance), strict=True))
    drawn = Counter(
        one.technique
        for number in range(times)
        if (one := draw(FOUND, relevance, count=3, seed=f"run-{number}", trajectory=1, step=1))
    )
    expected = {name: times * weight / sum(weighed.values()) for name, weight in weighed.items()}
    distance = sum((drawn[name] - count) ** 2 / count for name, count in expected.items())
    assert distance < 13.8  # chi square of two degrees of freedom: one in a thousand is further off


def test_a_draw_is_repeated_by_run_trajectory_and_step_and_differs_between_them() -> None:
    def drawn(seed: str, trajectory: int, step: int) -> str:
        found = draw(FOUND, dict.fromkeys(("tiling", "unrolling", "prefetch"), 1.0), count=3, seed=seed,
                     trajectory=trajectory, step=step)  # fmt: skip
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
        ("work_dropped", RE_MEASURED, True),
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
    timing = {RE_MEASURED, DEVICE_TIME}
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
