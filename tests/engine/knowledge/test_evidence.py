"""Attempts that are over, as evidence: told histories, and a whole run on the real toolchain with recorded replies."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from engine.evaluator import tasks
from engine.evaluator.request import Evaluator
from engine.knowledge import evidence
from engine.search import loop
from engine.search.context import RunContext
from engine.search.human.inbox import Inbox
from storage.knowledge import files
from storage.knowledge.records import Bottleneck, Evidence, Outcome
from storage.results.evaluation_results import TimingResult
from storage.results.hardware_limit import HardwareLimit
from storage.results.profile_results import Metric, ProfileResult
from storage.results.vocabulary import KernelClass, Verdict
from storage.run import events as ev
from storage.run.record import Record
from storage.run.settings import Budget, DepthOutcome, Origin
from storage.run.settings import RunState as State
from tests.engine.contexts import open_context
from tests.engine.real_toolchain import toolchain
from tests.engine.story import Story
from tests.engine.swish_story import REPLIES
from tests.engine.test_steering import Meanwhile

__all__ = ["toolchain"]

LIMIT = HardwareLimit("a device, raised to what a kernel reached", 10.0, 100.0, 1000, 1000)


def no_text(blob: str) -> str:
    """No reply names a technique."""
    return ""


def told(story: Story, text: Callable[[str], str] = no_text, *, is_ending: bool = False) -> list[Evidence]:
    return evidence.rows(story.record, text, 5.0, is_ending=is_ending)


def begun(story: Story, technique: str = "loop tiling", gain: float | None = 1.5) -> Story:
    """A correct kernel, and another that is made from it under a technique's name."""
    story.tell(ev.LimitMeasured(LIMIT)).accepts("c001", 1.0)
    return changed(story, "c002", "c001", technique, gain)


def changed(story: Story, name: str, parent: str, technique: str, gain: float | None = None) -> Story:
    depth = story.record.step_index
    story.step += 1
    story.tell(ev.StepStarted(story.step, "optimise", depth, parent))
    call = ev.ModelCalled(story.step, 0, "optimise", depth, parent, "m1", "p", "r", 100, 50, 0, 0, 0.0, 1.0, "stop")
    story.tell(call)
    created = ev.CandidateCreated(
        story.step, name, parent, parent, depth, 0, 0, Origin.OPTIMISATION, f"blob-{name}", None, 1, 0, name, (),
        technique, gain,
    )  # fmt: skip
    return story.tell(created).tell(ev.StepFinished(story.step, "optimise", 1.0, "created"))


@pytest.mark.parametrize(
    ("speedup", "outcome"), [(1.3, Outcome.FASTER), (1.04, Outcome.SAME), (0.97, Outcome.SAME), (0.8, Outcome.SLOWER)]
)
def test_a_timed_attempt_is_faster_or_slower_beyond_the_noise_alone(speedup: float, outcome: Outcome) -> None:
    story = begun(Story(task_name="swish", language="cute")).passes("c002", speedup)
    assert told(story) == [], "its step index is not concluded"
    (row,) = told(story.settles("c002"))
    assert row.evidence_id == ("story", "c002", "loop tiling")
    assert (row.outcome, row.at, row.predicted_gain) == (outcome, 5.0, 1.5)
    assert row.gain == pytest.approx(speedup)
    assert row.gain_low is not None
    assert row.gain_high is not None
    assert row.gain_low < speedup < row.gain_high
    assert (row.gain_low > 1, row.gain_high < 1) == (outcome is Outcome.FASTER, outcome is Outcome.SLOWER)
    assert (row.task, row.kernel_class, row.strategy, row.model) == ("swish", "matmul", "cutegen", "m1")
    assert (row.device, row.toolchain, row.language, row.precision) == ("a device", "cpu", "cute", "fp32")
    assert (row.parent_hash, row.child_hash, row.tokens) == ("blob-c001", "blob-c002", 150)
    assert row.after[evidence.LATENCY] == pytest.approx(1.0)


def test_a_row_says_how_the_kernel_stands_over_eager_and_over_the_best_alternative() -> None:
    story = begun(Story()).passes("c002", 1.3).settles("c002")
    (row,) = told(story)
    assert row.over_eager == pytest.approx(1.3)
    assert row.task_hash == hashlib.sha256(story.record.settings.task_source.encode()).hexdigest()[:16]
    assert (row.over_best, row.limit_share) == (None, None), "no other baseline, and a limit that a kernel has set"
    other = replace(LIMIT, device="a device", bandwidth_gb_s=0.004)
    compiled = TimingResult((0.5,) * 9, (1.0,) * 9)
    (row,) = told(story.tell(ev.LimitMeasured(other)).tell(ev.BaselineMeasured("torch.compile", compiled)))
    assert row.over_best == pytest.approx(0.65)
    assert row.limit_share == pytest.approx(0.25)


def test_a_kernel_that_failed_stands_over_nothing() -> None:
    story = begun(Story()).does_not_compile("c002").settles("c002", DepthOutcome.GIVEN_UP)
    (row,) = told(story, is_ending=True)
    assert (row.outcome, row.over_eager, row.over_best) == (Outcome.NOT_COMPILED, None, None)


def test_a_row_has_the_rules_of_the_verdict_it_stands_on() -> None:
    story = begun(Story()).passes("c002", 1.3).settles("c002")
    assert told(story)[0].rules == 1, "as journals of before have it"
    kernel = story.record.candidates["c002"]
    assert kernel.timed is not None
    story.record.candidates["c002"] = replace(kernel, timed=replace(kernel.timed, rules=2))
    assert told(story)[0].rules == 2


def test_repairs_belong_to_the_attempt_and_their_tokens_count_for_it() -> None:
    story = begun(Story()).does_not_compile("c002")
    story.tell(ev.StepStarted(8, "repair", 1, "c002"))
    story.tell(ev.ModelCalled(8, 0, "repair", 1, "c002", "m2", "p", "r", 10, 7, 0, 0, 0.0, 1.0, "stop"))
    story.candidate("c003", Origin.REPAIR, "c002").passes("c003", 1.6).settles("c003")
    (row,) = told(story)
    assert (row.candidate_id, row.outcome, row.child_hash) == ("c002", Outcome.FASTER, "blob-c003")
    assert (row.tokens, row.model, row.error) == (167, "m1", "")


@pytest.mark.parametrize(
    ("fail", "outcome"),
    [
        (lambda story: story.does_not_compile("c002"), Outcome.NOT_COMPILED),
        (lambda story: story.compiles("c002").checks("c002", Verdict.INCORRECT), Outcome.INCORRECT),
        (lambda story: story.compiles("c002").checks("c002", Verdict.TIMEOUT), Outcome.INCORRECT),
    ],
)
def test_a_failure_is_over_once_the_run_goes_on_to_something_else(
    fail: Callable[[Story], Story], outcome: Outcome
) -> None:
    story = fail(begun(Story())).settles("c002", DepthOutcome.GIVEN_UP)
    assert told(story) == [], "the next step index may mend it"
    story.tell(ev.StepStarted(9, "judge", 2, "c002"))
    assert told(story) == []
    (at_the_end,) = told(story, is_ending=True)
    story.tell(ev.StepStarted(10, "optimise", 2, "c001"))
    (row,) = told(story)
    assert row == at_the_end
    assert (row.outcome, row.gain, row.after) == (outcome, None, {})


def test_a_run_that_ends_in_the_middle_keeps_what_was_timed_and_leaves_the_rest_open() -> None:
    story = begun(Story()).passes("c002", 1.4)
    assert [row.outcome for row in told(story, is_ending=True)] == [Outcome.FASTER]
    story = begun(Story()).does_not_compile("c002")
    assert told(story, is_ending=True) == [], "when the run is resumed it may be repaired"


def test_a_fold_reads_on_and_tells_what_refolding_tells() -> None:
    story = begun(Story())
    fold = evidence.AttemptFold(story.record, no_text)
    assert fold.rows(5.0) == []
    story.passes("c002", 1.4).settles("c002")
    (first,) = fold.rows(5.0)
    changed(story, "c003", "c002", "unrolling").does_not_compile("c003")
    assert fold.rows(6.0, is_ending=True) == [first], "what may still be repaired is open"
    story.settles("c003", DepthOutcome.GIVEN_UP)
    assert [row.technique for row in fold.rows(7.0, is_ending=True)] == ["loop tiling", "unrolling"]
    changed(story, "c004", "c002", "tiling").passes("c004", 2.0).settles("c004")
    assert [replace(row, at=5.0) for row in fold.rows(8.0)] == told(story)
    assert [row.at for row in fold.rows(9.0)] == [5.0, 8.0, 8.0], "a row stays as it was first told"


def test_attempts_without_a_name_or_a_timed_parent_and_runs_played_back_are_no_evidence() -> None:
    unnamed = begun(Story(), technique="").passes("c002", 1.4).settles("c002")
    assert told(unnamed) == []
    untimed = Story().candidate("c001").compiles("c001")
    assert told(changed(untimed, "c002", "c001", "tiling").passes("c002", 2.0).settles("c002")) == []
    left = begun(Story()).compiles("c002").settles("c002", DepthOutcome.GIVEN_UP)
    assert told(left, is_ending=True) == [], "nobody judged it"
    played = begun(Story(replay_of="another")).passes("c002", 1.4).settles("c002")
    assert told(played) == []


def test_what_a_judge_advised_is_the_technique_of_the_kernel_that_came_of_it() -> None:
    story = Story().accepts("c001", 1.0)
    review = ev.ReviewWritten(2, 0, "judge", 1, "c001", "blob", "the point")
    story.tell(replace(review, technique="split-K", predicted_gain=2.0))
    story.step = 2
    changed(story, "c002", "c001", "").passes("c002", 1.4).settles("c002")
    (row,) = told(story)
    assert (row.technique, row.predicted_gain) == ("split-K", 2.0)


def test_a_reply_that_brought_no_kernel_is_an_attempt_by_what_it_or_the_judge_named() -> None:
    story = Story().accepts("c001", 1.0)
    story.tell(ev.StepStarted(3, "optimise", 1, "c001"))
    story.tell(ev.ModelCalled(3, 0, "optimise", 1, "c001", "m1", "p", "reply", 9, 9, 0, 0, 0.0, 1.0, "stop"))
    story.tell(ev.PatchTried(3, 0, "c001", "edits", False, 1, "line 3 differs\nmore", None))
    story.tell(ev.StepFinished(3, "optimise", 1.0, "patch_failed"))
    story.settles(None, DepthOutcome.GIVEN_UP)
    (row,) = told(story, lambda blob: "Technique: loop interchange\nPredicted gain: 1.2x" if blob == "reply" else "")
    assert (row.candidate_id, row.technique, row.outcome) == ("step 3", "loop interchange", Outcome.PATCH_FAILED)
    assert (row.predicted_gain, row.error, row.child_hash, row.tokens) == (1.2, "line 3 differs", "", 18)
    assert told(story) == [], "nobody named it"


def test_a_technique_that_the_method_chose_is_told_once_where_no_reply_could_be_used() -> None:
    story = Story().accepts("c001", 1.0)
    story.tell(ev.StepStarted(3, "optimise", 1, "c001"))
    story.tell(ev.AttemptFailed(3, 1, "c001", "SIMD", 1.7, "the reply holds no kernel"))
    story.tell(ev.StepFinished(3, "optimise", 1.0, "patch_failed")).settles(None, DepthOutcome.GIVEN_UP)
    (row,) = told(story, lambda blob: "Technique: another")
    assert (row.technique, row.predicted_gain, row.error) == ("SIMD", 1.7, "the reply holds no kernel")


def test_the_state_is_what_the_base_was_asked_about_else_what_the_rules_are_sure_of() -> None:
    found = {"latency": 0.01, "memory throughput share": 0.9, "working threads": 2.0, "processors available": 2.0}
    profile = ProfileResult("h", tuple(Metric(name, "1", value) for name, value in found.items()), "memory", "")
    story = Story().candidate("c001").passes("c001", 1.0).tell(ev.Profiled(1, "c001", profile, None)).settles("c001")
    changed(story, "c002", "c001", "fusion").passes("c002", 1.4).settles("c002")
    assert told(story)[0].state == "memory_bandwidth_saturated"
    assert told(story)[0].before["share of the memory path's peak"] == 90.0

    def asked(state: str, sure: float) -> str:
        event = ev.Consulted(2, 1, "c001", state, Bottleneck.MEMORY, sure, (), "mark")
        again = Record.of(story.settings, [])
        for one in (*story.record.events, event):
            again.apply(one)
        return evidence.rows(again, no_text, 5.0)[0].state

    assert asked("discovered_memory_1", 1.0) == "discovered_memory_1"
    assert asked("memory_latency_bound", 0.4) == "", "the rules were not sure"


SIZES = {"batch_size": 4, "dim": 1024}
SETTINGS = {
    "run_id": "real", "task_name": "swish", "kernel_class": KernelClass.ACTIVATION, "base_policy": "latest",
    "budget": Budget(depths=2), "knowledge": "on",
}  # fmt: skip
CHANGED = "Technique: single precision arithmetic\nPredicted gain: 1.4x\n"


def context_at(folder: Path, toolchain: Evaluator, **changes: object) -> RunContext:
    """A run whose every optimisation names its technique."""
    replies = [(role, source, CHANGED * (role == "optimise") + reply) for role, source, reply in REPLIES]
    context = open_context(folder, replies, toolchain, **(SETTINGS | changes))
    context.task = tasks.find("swish").task("cpu", SIZES)
    context.knowledge = folder / "knowledge"
    return context


def work(context: RunContext) -> ev.RunEnded:
    inbox = Inbox(context, Meanwhile())
    context.interrupt = inbox.interrupt
    return loop.run(context, inbox)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory, toolchain: Evaluator) -> Path:
    folder = tmp_path_factory.mktemp("finished")
    assert work(context_at(folder, toolchain)).state is State.FINISHED
    return folder


def test_a_whole_run_leaves_a_row_an_attempt_and_asks_the_base_before_each(
    finished: Path, toolchain: Evaluator
) -> None:
    context = context_at(finished, toolchain)
    rows = files.load(finished / "knowledge", seeded=False).rows
    made = [one for one in context.record.candidates.values() if one.created.origin is Origin.OPTIMISATION]
    assert [row.candidate_id for row in rows] == [one.candidate_id for one in made]
    assert {row.technique for row in rows} == {"single precision arithmetic"}
    for row in rows:
        assert row.outcome.is_timed
        assert row.gain is not None
        assert row.gain > 0
        assert row.predicted_gain == pytest.approx(1.4)
        assert row.before[evidence.LATENCY] > 0
        assert row.after[evidence.LATENCY] > 0
        assert row.architecture
        assert row.tokens >= 0
    asked = context.record.consulted
    assert [index for index, _ in asked] == [1, 2]
    for (index, name), one in asked.items():
        assert one.candidate_id == name
        assert one.mark.startswith("evidence:"), "the base under this home"
        assert one.state or one.why
        assert index == one.depth
    assert asked[2, made[1].created.base_id or ""].mark != asked[1, made[0].created.base_id or ""].mark


def test_a_run_cut_off_after_any_line_ends_with_the_same_evidence_and_asks_no_answered_question_again(
    finished: Path, toolchain: Evaluator, tmp_path: Path
) -> None:
    lines = (finished / "run/journal.jsonl").read_text().splitlines(keepends=True)
    kinds = [json.loads(line)["kind"] for line in lines]
    wanted = [row.evidence_id for row in files.load(finished / "knowledge", seeded=False).rows]
    cuts = {i + 1 for i, kind in enumerate(kinds) if kind in ("Consulted", "DepthFinished", "Timed")}
    cuts |= {i for i, kind in enumerate(kinds) if kind in ("Consulted", "RunEnded")}
    for cut in sorted(cuts):
        folder = tmp_path / f"cut{cut}"
        (folder / "run").mkdir(parents=True)
        (folder / "run/run.json").write_bytes((finished / "run/run.json").read_bytes())
        (folder / "run/journal.jsonl").write_text("".join(lines[:cut]))
        (folder / "run/blobs").symlink_to(finished / "run/blobs")
        context = context_at(folder, toolchain)
        answered = dict(context.record.consulted)
        work(context)
        assert [row.evidence_id for row in files.load(folder / "knowledge", seeded=False).rows] == wanted
        assert {key: one for key, one in context.record.consulted.items() if key in answered} == answered
        events = [json.loads(line) for line in (folder / "run/journal.jsonl").read_text().splitlines()]
        assert [one["kind"] for one in events].count("Consulted") == 2
        work(context_at(folder, toolchain))
        assert [row.evidence_id for row in files.load(folder / "knowledge", seeded=False).rows] == wanted


def test_a_run_that_asks_no_base_adds_evidence_all_the_same(tmp_path: Path, toolchain: Evaluator) -> None:
    context = context_at(tmp_path, toolchain, knowledge="off")
    work(context)
    assert len(files.load(tmp_path / "knowledge", seeded=False).rows) == 2
    assert context.record.consulted == {}
    journal = (tmp_path / "run/journal.jsonl").read_text()
    assert "Consulted" not in journal
