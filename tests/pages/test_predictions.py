"""Predicted gains where they are shown: the kernel's page, the report, and the calibration by model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pages.parts import index, wording
from pages.parts.api import api_answers
from pages.parts.kernel import kernel_header
from pages.parts.models import by_model, calibration
from pages.parts.report.report_run import run_report
from storage.index import queries
from tests import samples
from tests.pages.conftest import Open, words


@pytest.fixture
def predicted(home: Path) -> str:
    """A run each of whose optimisations was predicted to gain 1.5 times."""
    folder = samples.write_run(home / "runs", "told", depths=6)
    lines = [json.loads(line) for line in folder.journal_file.read_text().splitlines()]
    for line in lines:
        if line["kind"] == "CandidateCreated" and line["event"]["origin"] == "optimisation":
            line["event"] |= {"technique": "vectorised <loads>", "predicted_gain": 1.5}
    folder.journal_file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder.run_id


def test_the_models_page_says_that_nothing_was_predicted_yet(home: Path, open_page: Open) -> None:
    samples.write_run(home / "runs", "r1", depths=1)
    app = open_page("models")
    assert not app.exception
    assert "No gain predicted yet" in words(app)


def test_the_models_page_shows_how_far_predictions_hold(open_page: Open, predicted: str) -> None:
    app = open_page("models")
    assert not app.exception
    assert "On the dashed line a change gained what was predicted" in words(app)
    (row,) = queries.calibration(index.current())
    shown = calibration.cells(row)
    assert row.measured > 1
    assert shown["measured"] == by_model.part(row.measured, row.predictions)
    points = calibration.figure(queries.measured_predictions(index.current()))["data"][2:]
    assert [len(trace["x"]) for trace in points] == [row.measured]
    assert set(points[0]["x"]) == {1.5}
    assert all("vectorised &lt;loads&gt;" in text for text in points[0]["text"])


def test_the_kernels_page_has_the_prediction_beside_the_result(open_page: Open, predicted: str) -> None:
    open_page("models")
    db = index.current()
    told = queries.measured_predictions(db)[0]
    assert told.candidate_id is not None
    assert told.measured is not None
    shown = words(open_page("candidate", run=predicted, candidate=told.candidate_id))
    assert f"Predicted gain over kernel {told.base_number}" in shown
    assert wording.plain("1.50×, measured ") in shown
    (figure,) = kernel_header.gain(told, told.candidate_id)
    assert (figure.note, figure.about) == ("predicted 1.50×", "vectorised <loads>")
    assert kernel_header.gain(told, "another") == []
    assert "Predicted gain over kernel" in run_report(db, predicted)
    answer = api_answers.whole_kernel(predicted, told.candidate_id)
    assert answer is not None
    assert answer["prediction"]["measured_gain"] == pytest.approx(told.measured.speedup)


def test_a_kernel_of_which_nothing_was_predicted_says_nothing_of_it(home: Path, open_page: Open) -> None:
    samples.write_run(home / "runs", "r1", depths=4)
    assert "Predicted gain" not in words(open_page("candidate", run="r1", candidate="c001"))
