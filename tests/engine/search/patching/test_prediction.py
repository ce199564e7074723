"""What a reply predicts of its change: read from whatever words models use, and journaled with the kernel."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine.search.loop import take_step
from engine.search.methods.coder_judge.strategy import CoderJudge
from engine.search.patching.prediction import LENGTH, Prediction, read_gain, read_prediction
from storage.results.evaluation_results import CompileResult
from storage.results.vocabulary import Verdict
from storage.run import events as ev
from storage.run import journal
from storage.run.settings import Origin
from tests.engine.contexts import SOURCE, add_candidate, context_with_tools
from tests.engine.story import Step, take

EDITS = '```json\n[{"action": "replace", "line_number": 4, "old_code": "    pass", "new_code": "    x = 1"}]\n```'
MISPLACED = '```json\n[{"action": "replace", "line_number": 400, "old_code": "no such line", "new_code": "x"}]\n```'
TOLD = "Optimisation: wider loads of A\nTechnique: vectorised loads\nPredicted gain: 1.3x\n"


@pytest.mark.parametrize(
    ("text", "gain"),
    [
        ("1.3x", 1.3),
        ("**~1.3×** over the base", 1.3),
        ("`1,25X`", 1.25),
        ("x1.5", 1.5),
        ("1.3x (3.1 ms to 2.4 ms)", 1.3),
        ("a 4x4 register tile gives 1.5x", 1.5),
        ("0.9x", 0.9),
        ("1.2-1.4x", 1.2961),
        ("1.2x to 1.4x", 1.2961),
        ("about 1.1", 1.1),
        ("2-fold", 2.0),
        ("1.15 (fewer transactions)", 1.15),
        ("about 30 % faster", 1.3),
        ("10–20%", 1.1414),
        (1.25, 1.25),
    ],
)
def test_a_gain_is_read_from_what_models_write(text: str | float, gain: float) -> None:
    assert read_gain(text) == pytest.approx(gain, abs=1e-4)


@pytest.mark.parametrize(
    "text",
    ["", "none", "large", "3.1 ms to 2.4 ms", "0.05 ms", "30", "30 % less time", "-20 %", "1e9x", "99999x", "2x2 tile",
     "nan", True, None, ["1.3x"], "9" * 100_000],
)  # fmt: skip
def test_what_says_no_factor_is_no_gain(text: object) -> None:
    assert read_gain(text) is None


@pytest.mark.parametrize(
    "reply",
    [
        f"{TOLD}{EDITS}",
        f"{EDITS}\n\n**Technique:** `vectorised loads`\n**Predicted gain:** 1.3x",
        "<think>\nTechnique: split-K\nPredicted gain: 9x\n</think>\n1. Technique (own word): vectorised loads.\r\n"
        "2. Expected speed-up over the base: 30%",
        "- technique = vectorised loads; predicted gain = 1.3x",
        f"```cpp\n// Technique: none of this\n```\n{TOLD}",
        "Technique: n/a\nPredicted gain: hard to say\nTechnique: vectorised loads\nPredicted gain: 1.3x",
    ],
)
def test_both_lines_are_found_wherever_they_stand_outside_of_code_and_thought(reply: str) -> None:
    found = read_prediction(reply)
    assert (found.technique, found.gain and round(found.gain, 6)) == ("vectorised loads", 1.3)


def test_a_reply_without_them_predicts_nothing_and_a_long_name_is_cut() -> None:
    assert read_prediction(f"Optimisation: this technique is widely used\n{EDITS}") == Prediction()
    assert len(read_prediction(f"Technique: {'very ' * 9_000}wide loads").technique) == LENGTH


def created(home: Path, *replies: str, about: str = SOURCE, kind: str = "optimise") -> ev.CandidateCreated:
    """The kernel that these replies, one after the other, make of the first one."""
    context = context_with_tools(home, [(kind, about, reply) for reply in replies])
    context.emit(ev.StepStarted(1, "synthesise", 0, None))
    add_candidate(context, speedup=None if kind == "repair" else 1.0)
    if kind == "repair":
        refused = CompileResult(False, 1.0, "error: no", verdict=Verdict.COMPILE_ERROR)
        context.emit(ev.Compiled(1, "c001", refused, None))
    context.emit(ev.StepFinished(1, "synthesise", 1.0, "created"))
    take(context, Step(kind, 1, "c001"))
    made = [e.event for e in journal.read(context.folder.journal_file) if isinstance(e.event, ev.CandidateCreated)][-1]
    assert made.candidate_id == "c002"
    return made


def test_technique_and_gain_are_journaled_with_the_kernel(tmp_path: Path) -> None:
    made = created(tmp_path, TOLD + EDITS)
    assert (made.summary, made.technique, made.predicted_gain) == ("wider loads of A", "vectorised loads", 1.3)


def test_a_reply_that_only_mends_its_edits_keeps_what_the_first_one_predicted(tmp_path: Path) -> None:
    made = created(tmp_path, TOLD + MISPLACED, EDITS)
    assert (made.technique, made.predicted_gain) == ("vectorised loads", 1.3)


def test_a_reply_that_predicts_nothing_makes_its_kernel_all_the_same(tmp_path: Path) -> None:
    made = created(tmp_path, f"Optimisation: wider loads\nPredicted gain: a lot\n{EDITS}")
    assert (made.origin, made.technique, made.predicted_gain) == (Origin.OPTIMISATION, "", None)


def test_a_repair_predicts_nothing(tmp_path: Path) -> None:
    assert created(tmp_path, TOLD + EDITS, kind="repair").predicted_gain is None


def test_a_judge_may_predict_beside_its_point(tmp_path: Path) -> None:
    point = {"bottleneck": "loads", "change": "widen them", "plan": "float4"}
    told = point | {"technique": "vectorised loads", "predicted_gain": "1.3x"}
    context = context_with_tools(tmp_path, [("judge", SOURCE, json.dumps(told))], strategy="coder_judge")
    add_candidate(context, speedup=1.0)
    context.strategy = CoderJudge()
    take_step(context, context.strategy.again(context.record, "judge", "c001"))
    (review,) = context.record.reviews.values()
    assert (review.problem, review.technique, review.predicted_gain) == ("", "vectorised loads", 1.3)
    assert json.loads(context.blobs.get(review.text_blob)) == point, "the coder is told the point alone"
