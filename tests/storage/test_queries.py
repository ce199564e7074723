"""What pages show of a run is what its journal says."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from storage.index import queries
from storage.index.database import Database
from storage.index.ingest import Ingest
from storage.index.queries import KernellessRow
from storage.index.queries.suites import run_results
from storage.results import relative
from storage.results.evaluation_results import CheckResult, CompileResult, TimingResult
from storage.results.hardware_limit import HardwareLimit
from storage.results.profile_results import Metric, ProfileResult
from storage.results.vocabulary import KernelClass, Verdict
from storage.run import events as ev
from storage.run import journal
from storage.run.folder import RunFolder
from storage.run.record import Record
from storage.run.settings import DepthOutcome, RunState, StepKind
from storage.run.steering.verbs import Command, CommandKind
from storage.suites import measured
from tests.samples import sample_script, sample_settings, write_run
from tests.storage.growth import created, grow


def call(step: int, cost: float | None) -> ev.ModelCalled:
    return ev.ModelCalled(step, 0, StepKind.SYNTHESISE, 0, None, "m", "p", "r", 10, 5, 0, 0, cost, 1.0, "stop")


def test_the_best_kernel_is_told_alike_by_the_run_and_by_its_kernels(sample: Database) -> None:
    run, settled = queries.run(sample, "sample"), sample_script(sample_settings("sample")).entries
    best = [e.event for e in settled if isinstance(e.event, ev.DepthFinished) and e.event.is_best][-1]
    assert run is not None
    assert run.best_candidate_id == best.candidate_id
    row = queries.candidate(sample, "sample", best.candidate_id or "")
    assert row is not None
    assert row.is_best
    assert (row.speedup, row.low, row.high) == (run.best_speedup, run.best_low, run.best_high)
    assert [a.candidate_id for a in queries.attempts(sample, "sample") if a.is_best] == [best.candidate_id]


def test_the_curve_has_one_value_per_finished_depth_and_never_falls(sample: Database) -> None:
    run = queries.run(sample, "sample")
    assert run is not None
    depths = queries.depths(sample, "sample")
    assert run.curve == [depth.best_speedup for depth in depths]
    assert run.curve == sorted(run.curve)


def timed(step: int, name: str, speedup: float, spread: float = 0.0, eager_ms: float = 1.0) -> list[ev.Event]:
    """A correct kernel of depth 0 with its timing; `spread` is the noise."""
    pairs = TimingResult((eager_ms / speedup,) * 9, tuple(eager_ms * (1 + spread * k / 4) for k in range(-4, 5)))
    return [created(step, name), ev.Checked(step, name, CheckResult(Verdict.PASSED, 1.0)), ev.Timed(step, name, pairs)]


def test_the_best_is_the_fastest_correct_kernel_as_soon_as_it_is_timed_and_whatever_became_of_its_depth(
    db: Database, root: Path
) -> None:
    grow(db, root, *timed(1, "c001", 1.2), ev.DepthFinished(2, 0, DepthOutcome.ACCEPTED, "c001", None, False, True, ""))
    grow(db, root, *timed(3, "c002", 1.6))
    run = queries.run(db, "sample")
    assert run is not None
    assert (run.best_candidate_id, run.best_speedup, run.curve) == ("c002", 1.6, [1.6])
    left = ev.DepthFinished(4, 1, DepthOutcome.GIVEN_UP, "c002", "c001", False, False, "left by a roll-back to c001")
    grow(db, root, left, *timed(5, "c003", 1.4), ev.RunEnded(RunState.FINISHED, "", "c001"))
    run = queries.run(db, "sample")
    assert run is not None
    assert (run.best_candidate_id, run.best_speedup) == ("c002", 1.6)
    assert [row.speedup for row in queries.rises(db, "sample")] == [1.2, 1.6, 1.6]
    found = {
        a.candidate_id: (a.is_best, a.is_tied, a.is_accepted, a.is_pending) for a in queries.attempts(db, "sample")
    }
    assert found["c001"] == (False, False, True, False)
    assert found["c002"] == (True, False, False, False)
    assert found["c003"] == (False, False, False, True)


def of_depth(depth: int, name: str, took_ms: float, eager_ms: float, untrusted: str = "") -> list[ev.Event]:
    """A depth that ends with a correct kernel, timed once."""
    step, event = 2 * depth + 1, created(2 * depth + 1, name)
    told: list[ev.Event] = [
        ev.StepStarted(step, StepKind.OPTIMISE, depth, None), replace(event, depth=depth),
        ev.Checked(step, name, CheckResult(Verdict.PASSED, 1.0)),
        ev.StepFinished(step, StepKind.OPTIMISE, 1.0, "candidate"),
    ]  # fmt: skip
    ended = ev.DepthFinished(step + 1, depth, DepthOutcome.ACCEPTED, name, None, False, True, "")
    return [*told, *once_more(step + 1, depth, name, took_ms, eager_ms, untrusted), ended]


def once_more(step: int, depth: int, name: str, took_ms: float, eager_ms: float, untrusted: str = "") -> list[ev.Event]:
    """A step that only times a kernel."""
    timed = TimingResult((took_ms,) * 9, (eager_ms,) * 9, untrusted=untrusted)
    return [
        ev.StepStarted(step, StepKind.TIME, depth, name), ev.Timed(step, name, timed),
        ev.StepFinished(step, StepKind.TIME, 1.0, "passed"),
    ]  # fmt: skip


@pytest.mark.parametrize("is_older", [False, True])
def test_kernels_timed_once_more_before_the_run_ends_stay_at_their_depths_and_begin_none(
    db: Database, root: Path, is_older: bool
) -> None:
    depths = ("c001", 2.0, 1.82, ""), ("c002", 1.3, 2.0, ""), ("c003", 1.2, 1.6, ""), ("c004", 1.0, 1.8, "busy")
    grow(db, root, *(event for depth, kernel in enumerate(depths) for event in of_depth(depth, *kernel)))
    again = [(3, "c004", 1.0, 1.1), (1, "c002", 1.3, 1.846), (2, "c003", 1.2, 1.6)]
    for turn, (depth, name, took_ms, eager_ms) in enumerate(again):
        grow(db, root, *once_more(9 + turn, 4 if is_older else depth, name, took_ms, eager_ms))
    run, folder = queries.run(db, "sample"), RunFolder(root / "sample")
    assert run is not None
    assert (run.depth, [row.depth for row in queries.depths(db, "sample")]) == (3, [0, 1, 2, 3])
    assert [row.is_best for row in queries.depths(db, "sample")] == [True, True, False, False]
    rises = queries.rises(db, "sample")
    assert [(row.x, row.number, round(row.speedup, 3)) for row in rises] == [(0, 1, 0.91), (1, 2, 1.42), (3, 2, 1.42)]
    assert all(row.is_gain for row in rises)
    reached = [row.best_speedup for row in queries.reached(db, ["sample"])]
    assert reached == [pytest.approx(value) for value in (0.91, 1.42, 1.42, 1.42)]
    folded = measured.of_run(folder.read_settings(), list(journal.read(folder.journal_file)))
    assert [kernel.candidate_id for kernel in folded.timed] == ["c001", "c002", "c003", "c004"]
    assert folded.timed == run_results(db, ["sample"])["sample"].timed
    assert folded.gains == 1


def test_a_depth_that_ended_without_a_kernel_is_told_with_its_reason(db: Database, root: Path) -> None:
    left = "left to go back to kernel 1"
    grow(
        db, root, *of_depth(0, "c001", 2.0, 2.0),
        ev.DepthFinished(3, 1, DepthOutcome.GIVEN_UP, None, "c001", False, False, left), *of_depth(2, "c002", 2.0, 2.1),
        ev.StepStarted(7, StepKind.OPTIMISE, 3, "c002"), ev.StepFinished(7, StepKind.OPTIMISE, 1.0, "patch_failed"),
        ev.DepthFinished(7, 3, DepthOutcome.GIVEN_UP, None, "c002", False, False, "no edit applied"),
    )  # fmt: skip
    assert queries.kernelless(db, "sample") == [KernellessRow(1, 1, left)]
    assert queries.unapplied(db, "sample")[0].depth == 3, "an edit that could not be applied has a mark of its own"


def test_a_kernel_timed_late_counts_from_its_own_place_on(db: Database, root: Path) -> None:
    depths = ("c001", 2.0, 2.0, ""), ("c002", 1.0, 3.0, "busy"), ("c003", 1.0, 2.5, "")
    grow(db, root, *(event for depth, kernel in enumerate(depths) for event in of_depth(depth, *kernel)))
    grow(db, root, *once_more(7, 3, "c002", 1.0, 3.0))
    assert [(row.x, row.number) for row in queries.rises(db, "sample")] == [(0, 1), (1, 2), (2, 2)]


def test_kernels_that_the_best_does_not_beat_beyond_the_noise_are_tied_with_it(db: Database, root: Path) -> None:
    names = {"c001": (1.5216, 0.0), "c002": (1.6, 0.0), "c003": (1.55, 0.0), "c004": (1.3, 0.4), "c005": (1.6, 0.0)}
    names["c006"] = names["c001"]  # at the edge of the noise, where the ratio and its reverse say different things
    for step, (name, (speedup, spread)) in enumerate(names.items(), 1):
        grow(db, root, *timed(step, name, speedup, spread))
    rows = {a.candidate_id: a for a in queries.attempts(db, "sample")}
    best, run = rows["c002"], queries.run(db, "sample")
    assert best.is_best
    assert run is not None
    assert run.tied_kernels == 4
    for row in rows.values():
        assert row.speedup is not None
        told = relative.gain(row, best, is_on_gpu=False) if row.number > best.number else None
        before = relative.gain(best, row, is_on_gpu=False) if row.number < best.number else None
        is_beaten = bool((told and told.is_slower) or (before and before.is_faster))
        assert row.is_tied == (row is not best and not is_beaten), row.candidate_id


@pytest.mark.parametrize("seed", range(3))
def test_the_engine_and_the_index_name_the_same_best(db: Database, root: Path, seed: int) -> None:
    folder = write_run(root, depths=12, seed=seed)
    Ingest(db, root).catch_up()
    history = Record.of(folder.read_settings(), list(journal.read(folder.journal_file)))
    run = queries.run(db, "sample")
    assert run is not None
    assert run.best_candidate_id == history.best_id is not None


def test_the_limit_as_a_speedup_is_that_of_the_session_that_timed_the_best_kernel(db: Database, root: Path) -> None:
    grow(db, root, *timed(1, "c001", 1.2, eager_ms=1.2))
    assert queries.limit_speedup(db, "sample") is None
    grow(db, root, ev.LimitMeasured(HardwareLimit("cpu", 40.0, 100.0, 10_000_000, 0)))
    assert queries.limit_speedup(db, "sample") == pytest.approx(1.2 / 0.25)
    grow(db, root, *timed(2, "c002", 2.4, eager_ms=2.4), *timed(3, "c003", 1.9, eager_ms=1.9))
    assert queries.limit_speedup(db, "sample") == pytest.approx(2.4 / 0.25)


def test_derived_numbers_are_those_of_the_record(sample: Database) -> None:
    timed = [e.event for e in sample_script(sample_settings("sample")).entries if isinstance(e.event, ev.Timed)]
    rows = {attempt.candidate_id: attempt for attempt in queries.attempts(sample, "sample")}
    for event in timed:
        row, result = rows[event.candidate_id], event.result
        assert (row.speedup, row.low, row.high) == (result.speedup, *result.speedup_interval)
        assert (row.latency_ms, row.baseline_latency_ms) == (result.latency_ms, result.baseline_latency_ms)
        samples = queries.timing_samples(sample, "sample", event.candidate_id)
        assert samples is not None
        assert samples.candidate_ms == list(result.candidate_ms)


def test_a_failed_candidate_has_a_message_and_no_latency(sample: Database) -> None:
    failed = [attempt for attempt in queries.attempts(sample, "sample") if attempt.verdict is Verdict.COMPILE_ERROR]
    assert failed
    assert failed[0].speedup is None
    assert failed[0].message.startswith("candidate.py:11: error")
    found = queries.evaluation(sample, "sample", failed[0].candidate_id)
    assert found is not None
    assert (found.compile_ok, found.check_verdict, found.latency_ms) == (False, None, None)
    assert found.diagnostics.count("\n") > 1


def test_a_candidate_that_fails_while_it_is_timed_loses_its_speed(db: Database, root: Path) -> None:
    write_run(root, depths=1)
    crashed = ev.Checked(4, "c001", CheckResult(Verdict.RUNTIME_ERROR, 1.0, message="illegal memory access"))
    grow(db, root, crashed)
    row = queries.candidate(db, "sample", "c001")
    assert row is not None
    assert (row.verdict, row.speedup, row.message) == (Verdict.RUNTIME_ERROR, None, "illegal memory access")
    assert queries.timing_samples(db, "sample", "c001") is None
    crashes = [step for step in queries.steps(db, "sample") if step.result.verdict is Verdict.RUNTIME_ERROR]
    assert [step.result.message for step in crashes] == ["illegal memory access"]


def test_a_candidate_that_compiles_is_not_judged_yet(db: Database, root: Path) -> None:
    grow(db, root, created(1, "c001"), ev.Compiled(2, "c001", CompileResult(True, 1.0), None))
    assert [attempt.verdict for attempt in queries.attempts(db, "sample")] == [None]
    run = queries.run(db, "sample")
    assert run is not None
    assert (run.attempts, run.passed, run.failed) == (1, 0, 0)


def test_wrong_values_come_with_place_and_heat(sample: Database) -> None:
    wrong = [row.candidate_id for row in queries.attempts(sample, "sample") if row.verdict is Verdict.INCORRECT]
    newest = queries.correctness_errors(sample, "sample", wrong[-1])[0]
    assert (newest.first_index, newest.shape) == ([0, 96], [1024, 1024])
    assert len(newest.heat) == len(newest.heat[0]) == 16
    assert (newest.candidate_id, newest.verdict) == (wrong[-1], Verdict.INCORRECT)


def test_two_functions_of_one_name_are_compared_each_with_its_own(db: Database, root: Path) -> None:
    def profiled(name: str, *shares: float) -> list[ev.Event]:
        metrics = tuple(Metric("sampled time share", "1", share, "tile (1.so)") for share in shares)
        parent = None if name == "c001" else "c001"
        return [created(1, name, parent), ev.Profiled(2, name, ProfileResult("h", metrics, "memory", ""), None)]

    grow(db, root, *profiled("c001", 0.9, 0.1), *profiled("c002", 0.8, 0.2))
    changes = queries.metric_changes(db, "sample", "c002")
    assert [(change.previous, change.value) for change in changes] == [(0.9, 0.8), (0.1, 0.2)]


def test_an_unknown_price_makes_the_cost_unknown(db: Database, root: Path) -> None:
    grow(db, root, call(1, 0.5), call(2, 0.25))
    assert (run := queries.run(db, "sample")) is not None
    assert (run.cost_usd, run.tokens, run.model_calls) == (0.75, 30, 2)
    grow(db, root, call(3, None))
    assert (run := queries.run(db, "sample")) is not None
    assert run.cost_usd is None


def test_the_class_is_the_one_last_proposed_or_set(db: Database, root: Path) -> None:
    grow(db, root, ev.ClassProposed(KernelClass.LOSS))
    assert (run := queries.run(db, "sample")) is not None
    assert run.kernel_class is KernelClass.LOSS
    command = Command("1", CommandKind.SET_CLASS, "attention", "ada", 1.0)
    grow(db, root, ev.CommandAcknowledged(command, 1))
    assert (run := queries.run(db, "sample")) is not None
    assert run.kernel_class is KernelClass.LOSS
    grow(db, root, ev.CommandEffective("1", 1, ""))
    assert (run := queries.run(db, "sample")) is not None
    assert run.kernel_class is KernelClass.ATTENTION


def test_a_profile_is_compared_with_the_nearest_profiled_ancestor(sample: Database) -> None:
    attempts = queries.attempts(sample, "sample")
    profiled = [a.candidate_id for a in attempts if queries.metrics(sample, "sample", a.candidate_id)]
    first, second = profiled[:2]
    assert all(change.previous is None for change in queries.metric_changes(sample, "sample", first))
    changes = queries.metric_changes(sample, "sample", second)
    before = {row.metric: row.value for row in queries.metrics(sample, "sample", first)}
    assert {change.metric: change.previous for change in changes} == before
    assert {change.previous_id for change in changes} == {first}
    parent = next(a.parent_id for a in attempts if a.candidate_id == second)
    assert parent != first  # the kernel between them has no profile
    failed = queries.profile(sample, "sample", parent or "")
    assert failed is not None
    assert "locked" in failed.failure


def test_a_circle_of_parents_does_not_hold_a_page(db: Database, root: Path) -> None:
    grow(db, root, created(1, "a", "b"), created(2, "b", "a"))
    assert queries.profiled_ancestor(db, "sample", "a") is None


def test_what_led_to_a_candidate_is_found_with_it(sample: Database) -> None:
    calls = queries.model_calls(sample, "sample", "c003")
    made = [call for call in calls if call.made_id == "c003"]
    about = [call for call in calls if call.candidate_id == "c003"]
    assert [call.role for call in made] == [StepKind.REPAIR]
    assert StepKind.DIAGNOSE in [call.role for call in about]
    assert [d.candidate_id for d in queries.diagnoses(sample, "sample", "c003")] == ["c002", "c003"]
    tries = queries.patches(sample, "sample", "c003")
    assert [(p.candidate_id, p.made_id, p.is_applied) for p in tries] == [
        ("c002", "c003", True), ("c003", None, False), ("c003", None, False), ("c003", "c004", True),
    ]  # fmt: skip
    assert queries.model_calls(sample, "sample", step=made[0].step) == made


def test_the_family_tree_keeps_failures(sample: Database) -> None:
    tree = {node.candidate_id: node for node in queries.attempts(sample, "sample")}
    assert {node.parent_id for node in tree.values()} <= {*tree, None}
    assert [name for name, node in tree.items() if node.parent_id is None] == ["c001"]
    found = queries.candidate(sample, "sample", "c002")
    assert found is not None
    assert (found.children, found.parent_number, found.base_number) == (["c003"], 1, 1)


def test_a_depth_given_up_keeps_its_reason(sample: Database) -> None:
    given_up = [depth for depth in queries.depths(sample, "sample") if depth.outcome is DepthOutcome.GIVEN_UP]
    assert [(depth.depth, depth.speedup, depth.reason) for depth in given_up] == [
        (6, None, "still wrong after 3 repairs")
    ]
    assert given_up[0].attempts == given_up[0].failed == 4


def test_a_version_changes_when_a_run_does(db: Database, root: Path) -> None:
    write_run(root, depths=1)
    write_run(root, "other", depths=1)
    Ingest(db, root).catch_up()
    before, other = queries.version(db, "sample"), queries.version(db, "other")
    grow(db, root, ev.BudgetWarned("tokens", 1.0, 2.0))
    assert queries.version(db, "sample") > before
    assert queries.version(db, "other") == other
    assert queries.overview_version(db) == queries.version(db, "sample")


def test_a_forecast_rests_on_work_apart_from_calls_and_leaves_out_models_that_tell_nothing(
    db: Database, root: Path
) -> None:
    for number, model in enumerate(("recorded", "live")):
        folder = write_run(root, model, depths=4 + number, ending=("running", "finished")[number])
        settings = replace(folder.read_settings(), model=model)
        folder.settings_file.unlink()
        folder.write_settings(settings)
    Ingest(db, root).catch_up()
    both = queries.pace(db, "cuda")
    live = queries.pace(db, "cuda", without=("recorded",))
    spent = queries.allowance(db, "live")
    assert both
    assert live
    assert spent
    assert (both.runs, live.runs) == (2, 1)
    assert (both.unfinished, live.unfinished) == (1, 0)
    assert queries.pace(db, "cuda", sizes={"N": 1024}) == both
    assert both.sizes == ('{"N": 1024}',)
    assert queries.pace(db, "cuda", sizes={"N": 2048}) is None
    steps = len(queries.depths(db, "live"))
    assert live.calls_s == pytest.approx(live.calls * 5.5)
    assert (live.engine_s + live.calls_s) * steps == pytest.approx(spent.spent_s)
    assert queries.pace(db, "cuda", without=("recorded", "live")) is None
    counted, of_live = queries.tokens_per_call(db), queries.tokens_per_call(db, "", ("recorded",))
    assert counted
    assert of_live
    assert 0 < of_live.calls < counted.calls
    assert queries.tokens_per_call(db, "", ("recorded", "live")) is None
