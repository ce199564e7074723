"""What was predicted of kernels beside what was measured: of one kernel, and by model over all runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from storage.index import queries
from storage.index.database import Database
from storage.index.ingest import Ingest
from storage.results.evaluation_results import CheckResult, CompileResult, TimingResult
from storage.results.hardware_limit import HardwareLimit
from storage.results.vocabulary import Verdict
from storage.run import events as ev
from storage.run.folder import RunFolder
from storage.run.journal import Journal
from storage.run.settings import Origin, StepKind
from tests.samples import sample_settings


def timed(step: int, name: str, speedup: float) -> list[ev.Event]:
    pairs = tuple(speedup for _ in range(9))
    passed = ev.Checked(step, name, CheckResult(Verdict.PASSED, 1.0))
    return [ev.Compiled(step, name, CompileResult(True, 1.0), None), passed,
            ev.Timed(step, name, TimingResult((1.0,) * 9, pairs))]  # fmt: skip


def failed(step: int, name: str) -> list[ev.Event]:
    result = CompileResult(False, 1.0, "error: no", verdict=Verdict.COMPILE_ERROR)
    return [ev.Compiled(step, name, result, None)]


def made(
    step: int, name: str, parent: str | None, *, gain: float | None = None, technique: str = "", model: str = "m",
    base: str | None = None, depth: int = 1,
) -> list[ev.Event]:  # fmt: skip
    """A kernel and the call that made it; a repair where the base is not the parent."""
    origin = Origin.SYNTHESIS if parent is None else Origin.REPAIR if base else Origin.OPTIMISATION
    called = ev.ModelCalled(step, 0, StepKind.OPTIMISE, depth, parent, model, "p", "r", 1, 1, 0, 0, 0.0, 1.0, "stop")
    created = ev.CandidateCreated(step, name, parent, base or parent, depth, 0, 0, origin, "s", None, 1, 0, name)
    return [called, replace(created, technique=technique, predicted_gain=gain)]


FIRST = [*made(1, "c001", None, depth=0), *timed(2, "c001", 1.0)]


def tell(
    db: Database, root: Path, *events: ev.Event, run_id: str = "r1", replay_of: str | None = None,
    toolchain: str = "cpu",
) -> None:  # fmt: skip
    folder = RunFolder(root / run_id)
    folder.write_settings(replace(sample_settings(run_id), replay_of=replay_of, toolchain=toolchain))
    journal = Journal(folder.journal_file)
    for event in events:
        journal.append(event)
    journal.close()
    Ingest(db, root).catch_up()


def test_a_gain_is_measured_over_the_base_whatever_the_base_gained_before(db: Database, root: Path) -> None:
    second = made(3, "c002", "c001", gain=1.5, technique="tiling") + timed(4, "c002", 2.0)
    tell(db, root, *FIRST, *second, *made(5, "c003", "c002", gain=1.25, depth=2), *timed(6, "c003", 2.2))
    told = queries.prediction(db, "r1", "c002")
    assert told is not None
    assert (told.model, told.technique, told.predicted, told.number, told.base_number) == ("m", "tiling", 1.5, 2, 1)
    assert told.measured is not None
    assert told.measured.speedup == pytest.approx(2.0)
    told = queries.prediction(db, "r1", "c003")
    assert told is not None
    assert told.measured is not None
    assert (told.predicted, told.technique) == (1.25, "")
    assert told.measured.speedup == pytest.approx(1.1)
    assert queries.prediction(db, "r1", "c001") is None


def test_where_eager_was_held_up_on_a_gpu_latencies_tell_what_was_gained(db: Database, root: Path) -> None:
    second = made(3, "c002", "c001", gain=1.5) + timed(4, "c002", 2.0)  # as slow as the first, beside a slower eager
    for run_id, toolchain, gained in (("r1", "cpu", 2.0), ("r2", "cuda", 1.0)):
        tell(db, root, *FIRST, *second, run_id=run_id, toolchain=toolchain)
        told = queries.prediction(db, run_id, "c002")
        assert told is not None
        assert told.measured is not None
        assert told.measured.speedup == pytest.approx(gained)
    (of_model,) = queries.calibration(db)
    assert of_model.median_measured == pytest.approx(1.5)


def test_what_was_predicted_of_a_failed_kernel_is_measured_on_its_repair(db: Database, root: Path) -> None:
    tell(
        db, root, *FIRST, *made(3, "c002", "c001", gain=1.5), *failed(4, "c002"),
        *made(5, "c003", "c002", base="c001"), *failed(6, "c003"),
        *made(7, "c004", "c003", base="c001"), *timed(8, "c004", 1.2),
        *made(9, "c005", "c004", gain=3.0, depth=2), *failed(10, "c005"),
    )  # fmt: skip
    for name in ("c002", "c003", "c004"):
        told = queries.prediction(db, "r1", name)
        assert told is not None
        assert (told.predicted, told.candidate_id) == (1.5, "c004"), name
        assert told.speedup == pytest.approx(1.2)
    last = queries.prediction(db, "r1", "c005")
    assert last is not None
    assert (last.predicted, last.measured, last.number) == (3.0, None, None)


def test_a_judges_prediction_is_of_the_kernel_rewritten_from_its_point(db: Database, root: Path) -> None:
    review = ev.ReviewWritten(3, 0, "judge", 1, "c001", "t", "loads", technique="wide loads", predicted_gain=1.5)
    asked = ev.ModelCalled(3, 0, "judge", 1, "c001", "critic", "p", "r", 1, 1, 0, 0, 0.0, 1.0, "stop")
    started: list[ev.Event] = [ev.StepStarted(3, "judge", 1, "c001"), asked, review]
    tell(db, root, *FIRST, *started, *made(4, "c002", "c001", model="coder"), *timed(5, "c002", 1.8))
    told = queries.prediction(db, "r1", "c002")
    assert told is not None
    assert (told.model, told.technique, told.predicted, told.candidate_id) == ("critic", "wide loads", 1.5, "c002")


def test_calibration_is_by_model_and_counts_what_was_measured(db: Database, root: Path) -> None:
    assert queries.calibration(db) == []
    assert queries.measured_predictions(db) == []
    events = list(FIRST)
    for number, (gain, speedup) in enumerate([(2.0, 1.0), (2.0, 1.6), (1.25, 1.25), (4.0, None)], start=2):
        name = f"c{number:03d}"
        events += made(2 * number, name, "c001", gain=gain, depth=number)
        events += timed(2 * number + 1, name, speedup) if speedup else failed(2 * number + 1, name)
    events += made(20, "c006", "c001", gain=3.0, model="bold", depth=6) + made(
        21, "c007", "c001", technique="x", depth=7
    )
    tell(db, root, *events)
    tell(db, root, *events, run_id="r2", replay_of="r1")
    first, bold = queries.calibration(db)
    assert (first.model, first.predictions, first.measured) == ("m", 4, 3)
    assert (first.median_predicted, first.median_measured, first.median_ratio) == pytest.approx((2.0, 1.25, 0.8))
    assert (bold.model, bold.predictions, bold.measured, bold.median_ratio) == ("bold", 1, 0, None)
    shown = queries.measured_predictions(db)
    assert [(row.run_id, row.candidate_id, row.predicted) for row in shown] == [
        ("r1", "c004", 1.25), ("r1", "c003", 2.0), ("r1", "c002", 2.0),
    ]  # fmt: skip


def test_one_prediction_of_one_change_counts_once_in_however_many_runs_it_was_made(db: Database, root: Path) -> None:
    here = ev.LimitMeasured(HardwareLimit("NVIDIA H200", 4000.0, 60000.0, 1 << 20, 1 << 20))
    second = made(3, "c002", "c001", gain=1.5, technique="tiling") + timed(4, "c002", 2.0)
    bolder = made(3, "c002", "c001", gain=1.8, technique="tiling") + timed(4, "c002", 2.0)
    elsewhere = ev.LimitMeasured(replace(here.limit, device="NVIDIA H100"))
    for run_id, told in (("r1", [here, *FIRST, *second]), ("r2", [here, *FIRST, *second])):
        tell(db, root, *told, run_id=run_id)
    (of_model,) = queries.calibration(db)
    assert (of_model.predictions, of_model.measured) == (1, 1)
    assert [row.run_id for row in queries.measured_predictions(db)] == ["r1"], "the first run's"
    assert (found := queries.prediction(db, "r2", "c002")) is not None
    assert found.predicted == 1.5
    tell(db, root, here, *FIRST, *bolder, run_id="r3")
    tell(db, root, elsewhere, *FIRST, *second, run_id="r4")
    (of_model,) = queries.calibration(db)
    assert (of_model.predictions, of_model.measured) == (3, 3), "another gain was predicted, and on another device"
    assert len(queries.measured_predictions(db)) == 3
