"""The page of suites: the list, and what one of them says, with the numbers of the engine's own fold."""

from __future__ import annotations

import json
from pathlib import Path

from streamlit.testing.v1 import AppTest

from engine.suites import tables
from storage.run import labels
from storage.run.folder import find_run
from storage.run.labels import MarkKind
from storage.suites import files, measured, summary
from storage.suites.records import Arm, CellLeft, CellLinked, CellState, Defined, RunnerStarted, SuiteTask
from storage.suites.standing import LEFT_BEHIND, CellStanding, Suite, fold
from tests import samples
from tests.pages.conftest import Open, everything, words
from tests.sample_suites import NAME, write_suite


def sent(text: str) -> str:
    """A text as it stands in what a component is given."""
    return json.dumps(text)[1:-1].replace("\\", "\\\\")


def read(app: AppTest) -> str:
    """What a person reads outside of components: Markdown without its signs."""
    return words(app).replace("\\", "").replace("*", "")


def test_without_a_suite_the_page_says_what_one_is_and_how_to_start_it(home: Path, open_page: Open) -> None:
    said = everything(open_page("benchmark"))
    assert "No suite has been started here" in said
    assert "python -m engine suite run quick" in said
    assert "python -m engine suite run kernelbench LEVEL PATH" in said
    assert "no suite 'gone' was started here" in words(open_page("benchmark", suite="gone"))
    assert "is no name of a suite" in words(open_page("benchmark", suite="../x"))


def test_the_page_says_what_the_journals_say(home: Path, open_page: Open) -> None:
    write_suite(home, 4, 2, 1, 60)
    suite = fold(files.read(files.find(NAME)))
    assert suite is not None
    results = summary.gather(suite, measured.of_suite(suite))
    app = open_page("benchmark", suite=NAME)
    said = everything(app)
    for table in (tables.arms_table(results), tables.costs_table(results), tables.paired_table(results)):
        for row in table.rows:
            assert all(sent(text) in said for text in row), row
    for sentence in tables.headline(results):
        assert sentence in read(app)
    assert "7 of 8 cells finished, 1 stopped" in words(app)  # no engine and no runner lives
    assert f"suite resume {NAME}" in words(app)
    for view, shown in (
        ("cells", "run?run=run-0007"), ("cells", "over torch.compile"),
        ("curves", "fast_p over eager at every speed-up"),
        ("scorecard", "Reproducibility"), ("paper's table", "geometric mean, all"),
        ("KernelBench's terms", "cannot be told"),
    ):  # fmt: skip
        assert shown in everything(open_page("benchmark", suite=NAME, show_suite=view)), view
    assert "arm_a against arm_b: " in read(open_page("benchmark", suite=NAME, baseline_arm="arm_b"))
    listed = everything(open_page("benchmark"))
    assert f"benchmark?suite={NAME}" in listed
    assert "7 of 8 cells finished, 1 stopped" in listed


def test_only_what_a_person_has_marked_clean_counts_where_that_is_asked_for(home: Path, open_page: Open) -> None:
    write_suite(home, 2, 1, 1, 60)
    suite = fold(files.read(files.find(NAME)))
    assert suite is not None
    runs = measured.of_suite(suite)
    run_id, best = next((name, run.best) for name, run in runs.items() if run.best)
    labels.change(find_run(run_id), labels.marked(best.candidate_id, MarkKind.CLEAN, "read", "ada"))
    marked = measured.of_suite(suite)
    assert {name: run.best is not None for name, run in summary.only_clean(marked).items()} == {
        name: name == run_id for name in runs
    }
    assert all(run.best for run in marked.values())
    clean = summary.gather(suite, summary.only_clean(marked))
    shown = everything(open_page("benchmark", suite=NAME, only_clean="true"))
    for row in tables.arms_table(clean).rows:
        assert all(sent(text) in shown for text in row), row


def test_a_suite_is_finished_with_a_cell_that_failed_and_stopped_with_one_that_may_go_on() -> None:
    defined = Defined("mixed", (SuiteTask("swish", "swish"),), (Arm("a"),), 2)
    first, second = defined.cells
    for state, told in ((CellState.FAILED, "finished"), (CellState.STOPPED, "stopped"), (CellState.PLANNED, "stopped")):
        cells = {first: CellStanding(first, "one", CellState.FINISHED), second: CellStanding(second, "two", state)}
        assert Suite(defined, cells).state(has_runner=False) == told


def test_a_suite_that_has_hardly_begun_says_so_in_every_view(home: Path, open_page: Open) -> None:
    tasks = tuple(SuiteTask(name, name) for name in ("swish", "softmax", "relu", "gelu"))
    defined = Defined("young", tasks, (Arm("a"),), baseline_arm="a")
    waiting, failed, lost, _ = defined.cells
    samples.write_run(home / "runs", "half", ending="new")
    files.append(
        files.folder_of("young"), defined, RunnerStarted(1), CellLinked(waiting, "half"),
        CellLeft(waiting, "half", CellState.WAITING, "kernel 3 waits for a reply"), CellLinked(failed, "gone"),
        CellLeft(failed, "gone", CellState.FAILED, "no such task"), CellLinked(lost, "never-made"),
    )  # fmt: skip
    cells = everything(open_page("benchmark", suite="young", show_suite="cells"))
    assert all(word in cells for word in ("kernel 3 waits for a reply", "no such task", "planned"))
    assert LEFT_BEHIND in cells  # neither its runner nor the engine of its last cell lives
    for view in ("summary", "curves", "scorecard", "KernelBench's terms"):
        assert "a: no correct kernel in 1 run." in read(open_page("benchmark", suite="young", show_suite=view))
