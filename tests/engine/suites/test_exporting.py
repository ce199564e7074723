"""A suite as a file: every form says the same, and the command line writes it without the index."""

from __future__ import annotations

import csv
import html
import io
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from engine.__main__ import main
from engine.suites import exporting, formats, tables
from storage.suites import files, measured, summary
from storage.suites.records import CellState, Purpose
from storage.suites.standing import fold
from storage.suites.summary import Results
from tests.sample_suites import NAME, write_suite


@pytest.fixture
def results(home: Path) -> Results:
    write_suite(home, 4, 2, 2, 100)
    suite = fold(files.read(files.find(NAME)))
    assert suite is not None
    return summary.gather(suite, measured.of_suite(suite))


def test_every_form_holds_every_table(results: Results) -> None:
    found = exporting.all_tables(results)
    assert {one.title for one in found} >= {"Arms compared in pairs", "Table 2 of the paper beside ours", "Made with"}
    page = exporting.as_html(results)
    for form, cell in (
        (exporting.as_markdown(results), lambda text: text.replace("|", "\\|")),
        (html.unescape(page), lambda text: text),
        (exporting.as_latex(results), exporting._latex),
    ):  # fmt: skip
        for table in found:
            missing = [text for row in table.rows for text in row if cell(text) not in form]
            assert missing == [], table.title
    assert not re.search(r"https?://|<script|src=|@import|url\(", page)
    assert page.count("<figure>") == 2


def test_few_tasks_are_told_as_what_they_are_and_arms_of_a_suite_under_way_on_the_same_tasks(results: Results) -> None:
    first, second = (task.name for task in results.suite.defined.tasks[:2])
    speed = {"arm_a": 1.0, "arm_b": 2.0}
    two = replace(results, cells=tuple(
        replace(cell, result=replace(cell.result, best=replace(cell.result.best, speedup=speed[cell.cell.arm])))
        for cell in results.cells if cell.cell.task in (first, second) and cell.result and cell.result.best
    ))  # fmt: skip
    assert tables.headline(two)[-1].endswith(
        "faster on both tasks; two are too few to tell whether other tasks agree (that takes 6)."
    )
    split = replace(summary.paired(two, "arm_b", "arm_a"), faster=1, slower=1)
    assert "faster on 1, slower on 1, level on 0 of 2 tasks; two are too few" in tables.comparison(split)
    waiting = [cell.cell.task == second and cell.cell.arm == "arm_b" for cell in two.cells]
    under_way = replace(two, cells=tuple(
        replace(cell, standing=replace(cell.standing, state=CellState.RUNNING)) if waits else cell
        for cell, waits in zip(two.cells, waiting, strict=True)
    ))  # fmt: skip
    said = tables.headline(under_way)
    assert "are of the 1 task that all of them have ended so far. Two arms are compared on the tasks that" in said[0]
    assert {row[2] for row in tables.arms_table(under_way).rows} == {"1 of 1"}
    alone = tables.compared(under_way)[0]
    for table in (
        tables.arms_table,
        tables.costs_table,
        tables.reaching_table,
        tables.scorecard,
        tables.kernelbench_fast,
    ):
        assert table(under_way).about.endswith("are of the 1 task that all of them have ended so far.")
        assert table(under_way).rows == table(alone).rows
        assert not table(two).about.endswith(said[0])
    assert tables.costs_table(under_way).rows != tables.costs_table(two).rows
    assert "faster on the one task; one is too few" in said[-1]


def test_a_suite_that_checks_whether_everything_works_says_so_in_place_of_a_speed_up(results: Results) -> None:
    suite = results.suite
    check = replace(results, suite=replace(suite, defined=replace(suite.defined, checks=Purpose.WORKS)))
    assert tables.headline(check) == ["works: 16 of 16 runs have a correct, timed kernel."]
    last = check.cells[-1]
    unsolved = replace(last, result=None)
    assert tables.headline(replace(check, cells=(*check.cells[:-1], unsolved))) == [
        "so far: 15 of 16 runs have a correct, timed kernel."
    ]
    at_work = {cell: replace(standing, state=CellState.RUNNING) for cell, standing in suite.cells.items()}
    early = replace(check, suite=replace(check.suite, cells=at_work), cells=(check.cells[0], unsolved))
    assert tables.headline(early) == [
        "so far: 1 of 2 runs has a correct, timed kernel. A run goes on after its first one."
    ]
    assert tables.progress_with_size(early.suite) == "0 of 16 runs finished, 16 running (4 tasks × 2 arms × 2 repeats)"
    failed = replace(unsolved, standing=replace(last.standing, state=CellState.FAILED, reason="no compiler"))
    assert tables.headline(replace(check, cells=(*check.cells[:-1], failed))) == [
        f"does not work: 15 of 16 runs have a correct, timed kernel. Without one: {last.cell.words} (no compiler)."
    ]


def test_a_gap_that_has_grown_is_not_closed() -> None:
    assert [formats.closed(gap) for gap in (None, -9.38, 0.45)] == ["–", "none", "45 %"]


def test_figures_are_written_unrounded(results: Results) -> None:
    rows = list(csv.DictReader(io.StringIO(exporting.as_csv(results))))
    plain = json.loads(exporting.as_json(results))
    bests = [tables.best_of(one) for one in results.cells]
    assert [float(row["speedup"]) for row in rows] == [best.speedup for best in bests if best]
    assert [one["result"]["best"]["speedup"] for one in plain["cells"]] == [best.speedup for best in bests if best]
    assert rows[-1]["state"] == "running"
    figures = summary.figures(results, "arm_b")
    assert figures.mean is not None
    assert plain["arms"][1]["mean"]["value"] == figures.mean.value
    assert plain["pairs"][0]["sign_test_p"] == summary.paired(results, "arm_b", "arm_a").chance


def test_the_command_line_writes_what_the_page_offers(
    results: Results, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for form in exporting.FORMATS:
        target = tmp_path / f"out.{form}"
        assert main(["suite", "export", NAME, "--format", form, "--output", str(target)]) == 0
        assert target.read_text() == exporting.exported(results, form)
    assert main(["suite", "export", NAME, "--unfinished"]) == 0
    assert "in 8 runs" in capsys.readouterr().out
    assert main(["suite", "export", NAME, "--baseline", "arm_b"]) == 0
    assert "arm_a against arm_b" in capsys.readouterr().out
    assert main(["suite", "export", NAME, "--baseline", "none"]) == 2
    assert "it has arm_a, arm_b" in capsys.readouterr().err
    assert main(["suite", "export", "gone"]) == 2
    assert "no suite 'gone' was started here" in capsys.readouterr().err


def test_a_suite_that_has_not_begun_is_a_file_too(results: Results) -> None:
    nothing = summary.gather(type(results.suite)(results.suite.defined), {})
    for form in exporting.FORMATS:
        assert exporting.exported(nothing, form)
    assert "no run has ended yet" in exporting.as_html(nothing)
