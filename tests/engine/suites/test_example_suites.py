"""The suite of shipped examples: made with its runs, finished, left alone, gone with them."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from pathlib import Path

import pytest

from engine import examples
from engine.__main__ import main
from engine.shown.runs import load
from engine.suites import exporting, formats, tables
from storage.results.flags import to_look_at
from storage.run.folder import RunFolder, runs_folder
from storage.run.record import checks_of
from storage.suites import files, measured, summary
from storage.suites.records import CellState
from storage.suites.standing import fold

SUITE = "table2_h200"


def test_examples_bring_a_finished_suite_that_nobody_goes_on_with(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = examples.shipped_examples()[0]
    examples.open_examples([first.run_id])
    assert not files.all_suites()  # which needs all of its runs
    examples.open_examples()
    suite = fold(files.read(files.find(SUITE)))
    assert suite is not None
    assert suite.defined.is_example
    assert suite.state(has_runner=False) == "finished"
    results = summary.gather(suite, measured.of_suite(suite))
    assert len(results.counted) == len(suite.planned) == 26
    paper = tables.paper_table(results)
    assert paper is not None
    assert all(row[3] != "–" for row in paper.rows)
    for words in (["resume", SUITE], ["adopt", SUITE, first.run_id], ["run", "quick", "--name", SUITE]):
        assert main(["suite", *words]) == 2
        assert "is an example" in capsys.readouterr().err
    assert main(["suite", "list"]) == 0
    assert "all 26 runs finished (26 tasks × 1 arm), example" in capsys.readouterr().out
    examples.remove_examples()
    assert not files.all_suites()


def test_an_example_suite_may_have_several_arms_and_knows_no_tokens_of_replies_handed_in(home: Path) -> None:
    examples.open_examples()
    suite = fold(files.read(files.find("levels_h200")))
    assert suite is not None
    assert [arm.name for arm in suite.defined.arms] == ["cutegen", "without_memory", "with_memory"]
    results = summary.gather(suite, measured.of_suite(suite))
    assert [(pair.arm, pair.baseline) for pair in tables.comparisons(results)] == [
        ("without_memory", "cutegen"), ("with_memory", "without_memory"),
    ]  # fmt: skip
    asked = summary.gather(replace(suite, compared_with="cutegen"), measured.of_suite(suite))
    assert {pair.baseline for pair in tables.comparisons(asked)} == {"cutegen"}
    told, left = tables.headline(results), suite.counts[CellState.PLANNED]
    if left:  # a task that an arm was not run on counts for no arm, but for two others
        assert f"the figures of its arms are of the {len(results.of('with_memory'))} tasks that all of them" in told[0]
        own = summary.figures(results, "cutegen")
        assert own.mean is not None
        sentences = [one for one in told if one.startswith("cutegen")]
        assert sentences[1].startswith(f"cutegen, all its 18 tasks: {formats.estimate(own.mean)} over eager, ")
        networks = summary.figures(results, "cutegen", "network")
        assert sentences[2:] == [
            f"cutegen, 6 of these, network: {formats.estimate(networks.mean)} over eager, "
            f"{formats.estimate(networks.over_best)} over the best alternative."
        ]
        assert sum("all its" in one for one in told) == 1  # the others have no more tasks
        assert tables.progress_line(results.suite).endswith(f", {left} not run")
    measured_cells = [cell.result for cell in results.cells if cell.result is not None]
    assert len(measured_cells) == 42
    assert all(result.is_unrecorded for result in measured_cells)  # each goes on with replies that were handed in


def test_only_trials_that_were_run_count_as_passed(home: Path) -> None:
    examples.open_examples()
    for name, made, left_out in (("table2_h200", 264, 108), ("levels_h200", 179, 1)):
        suite = fold(files.read(files.find(name)))
        assert suite is not None
        results = summary.gather(suite, measured.of_suite(suite))
        (robust,) = (row[1] for row in tables.scorecard(results).rows if row[0] == "Robustness")
        assert f"{made} trials with secret seeds and distributions passed by the best kernels; {left_out} w" in robust


def test_a_flag_counts_what_the_runs_own_page_says_is_to_look_at(home: Path) -> None:
    examples.open_examples()
    suite = fold(files.read(files.find("levels_h200")))
    assert suite is not None
    results = summary.gather(suite, measured.of_suite(suite))
    cells = {cell.standing.run_id: cell.result.best for cell in results.cells if cell.result and cell.result.best}
    for run_id, best in cells.items():
        assert run_id is not None
        record = load(RunFolder(runs_folder() / run_id))
        assert record.best is not None
        assert len(best.flags) == to_look_at(checks_of(record.events, record.best, record.limit)), run_id
    assert cells["40_GRUHidden-20261129-200622-27d9"].flags == (), "its two timings agree"
    assert cells["16_DenseNet201-20261129-195242-4754"].flags == ()
    exported = {row["run"]: row["flags"] for row in csv.DictReader(io.StringIO(exporting.as_csv(results)))}
    assert exported["40_GRUHidden-20261129-200622-27d9"] == ""
    assert exported["16_DenseNet201-20261129-195242-4754"] == ""
