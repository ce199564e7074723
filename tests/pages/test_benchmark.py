"""The page of suites: the list, and what one of them says, with the numbers of the engine's own fold."""

from __future__ import annotations

import json
import os
import re
import shlex
from dataclasses import replace
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from engine import supervisor
from engine.suites import definition, tables
from engine.suites.runner import hold
from pages.parts import index, suite_folders, wording
from pages.parts.benchmark import cells_matrix, suite_draft, suite_forecast, suites_list
from pages.parts.new_run import forecast
from pages.parts.new_run.forecast import Forecast
from storage import untrusted
from storage.index import queries
from storage.run import labels
from storage.run.folder import find_run
from storage.run.labels import MarkKind
from storage.run.settings import Budget
from storage.suites import files, measured, summary
from storage.suites.records import (
    Arm,
    CellLeft,
    CellLinked,
    CellState,
    Defined,
    Purpose,
    RunnerStarted,
    Spent,
    StopAsked,
    SuiteLimits,
    SuiteTask,
)
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
    assert all(act in said for act in ("Start quick", "Start kernelbench", "Edit a copy of demo"))
    assert "Edit a copy of kernelbench" not in said  # it takes words that a form has no field for
    assert "No suite 'gone' was started here" in words(open_page("benchmark", suite="gone"))
    assert "is no name of a suite" in words(open_page("benchmark", suite="../x"))


def test_a_shipped_suite_that_needs_a_gpu_says_where_there_is_none(
    home: Path, open_page: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    for lacks, is_told in (("no NVIDIA GPU on this machine", True), ("", False)):
        monkeypatch.setattr(supervisor, "available_toolchains", lambda lacks=lacks: {"cpu": "", "cuda": lacks})
        said = everything(open_page("benchmark"))
        assert "a GPU and a model" in said
        assert ("not here: no NVIDIA GPU on this machine" in said) == is_told
        off = re.findall(r'"name": "Start (\w+)", "off": "needs a GPU: no NVIDIA GPU', said.replace("\\", ""))
        assert ({"kernelbench", "graph_search"} <= {*off}) == is_told
        assert not {"demo", "quick"} & {*off}


def test_a_suite_whose_runs_have_no_recorded_replies_costs_what_nobody_knows_until_a_model_is_chosen(
    home: Path, open_page: Open
) -> None:
    open_page("benchmark")
    paid, recorded = (definition.read(definition.find(name)) for name in ("graph_search", "demo"))
    assert "no recorded replies for 9 of its 18 runs: choose a model" in suite_forecast.why_no_model(paid, "")
    assert [suite_forecast.why_no_model(*of) for of in ((paid, "--model manual"), (recorded, ""))] == ["", ""]
    unknown, nothing, own = (
        suite_forecast.of_suite(*of) for of in ((paid, ""), (recorded, ""), (paid, "--model manual"))
    )
    assert unknown
    assert nothing
    assert own
    assert (unknown.cost_usd, unknown.tokens, unknown.why_no_cost) == (None, None, suite_forecast.NO_MODEL)
    assert nothing.cost_usd == own.cost_usd == 0


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
    assert "7 of 8 runs finished, 1 stopped (4 tasks × 2 arms)" in words(app)  # no engine and no runner lives
    assert f"suite resume {NAME}" in everything(app)
    for view, shown in (
        ("runs", "run?run=run-0007"), ("runs", "over torch.compile"),
        ("curves", "fast_p over eager at every speed-up"),
        ("scorecard", "Reproducibility"), ("paper's table", "geometric mean, all"),
        ("KernelBench's terms", "cannot be told"),
    ):  # fmt: skip
        assert shown in everything(open_page("benchmark", suite=NAME, show_suite=view)), view
    assert "arm_a against arm_b: " in read(open_page("benchmark", suite=NAME, baseline_arm="arm_b"))
    listed = everything(open_page("benchmark"))
    assert f"benchmark?suite={NAME}" in listed
    assert "7 of 8 runs finished, 1 stopped" in listed


def test_what_replies_from_elsewhere_cost_is_not_zero_on_any_page(home: Path, open_page: Open) -> None:
    write_suite(home, 1, 1, 2, 20)
    zero = r'"(input_tokens|output_tokens|cached_tokens|reasoning_tokens|cost_usd)":[\d.]+'
    for folder in (home / "runs").iterdir():
        for file in (folder / "journal.jsonl", folder / "run.json"):
            lines = re.sub('"model": ?"[^"]+"', '"model":"manual"', file.read_text()).splitlines()
            file.write_text("\n".join(re.sub(zero, r'"\1":0', x) if "ModelCalled" in x else x for x in lines) + "\n")
    suite = fold(files.read(files.find(NAME)))
    assert suite is not None
    costs = {row[0]: row[1] for row in tables.costs_table(summary.gather(suite, measured.of_suite(suite))).rows}
    assert {costs[what] for what in ("Tokens", "Cost", "Cost per correct kernel", "Tokens per gain")} == {"–"}
    assert costs["Model calls"] != "–"
    for page, query in (("benchmark", {"suite": NAME}), ("overview", {}), ("run", {"run": "run-0000"})):
        said = everything(open_page(page, **query)).replace("\\", "")
        assert "not recorded" in said, page
        assert "$0.00" not in said, page


@pytest.mark.parametrize("name", [name for name in definition.shipped() if not definition.outline(name)[1]])
def test_a_copy_of_a_shipped_suite_says_what_the_suite_says(name: str) -> None:
    before = definition.read(path := definition.find(name))
    draft = suite_draft.draft_of(before, untrusted.read_toml(path))
    copy = definition.of_text(suite_draft.toml_of(draft), path)

    def said(defined: Defined) -> dict[str, set[str]]:
        return {arm.name: {*shlex.split(defined.settings), *shlex.split(arm.settings)} for arm in defined.arms}

    assert said(copy) == said(before)
    assert [(arm.name, arm.in_order) for arm in copy.arms] == [(arm.name, arm.in_order) for arm in before.arms]
    assert replace(copy, settings=before.settings, arms=before.arms, toml=before.toml) == before


def test_a_suite_is_estimated_as_its_runs_are_and_within_its_limits(home: Path, open_page: Open) -> None:
    samples.write_run(home / "runs", "one")
    said = read(open_page("benchmark", new="demo"))
    assert "No run so far tells how long these will take" in said  # on this toolchain
    tasks = SuiteTask("square_matmul", "square_matmul"), SuiteTask("swish", "swish", "--depths 1")
    arms = Arm("short", "--depths 2"), Arm("few", "--strategy best_of --max-calls 3")
    defined = Defined("mine", tasks, arms, repeats=2, settings="--toolchain cuda --model some-model")

    def of(task: str, strategy: str, budget: Budget) -> Forecast:
        return forecast.of_run(task, "cuda", strategy, "some-model", budget, {"N": 1024})

    cells = [
        of("square_matmul", "cutegen", Budget(depths=2)), of("square_matmul", "best_of", Budget(model_calls=3)),
        of("", "cutegen", Budget(depths=2)), of("", "best_of", Budget(depths=1, model_calls=3)),
    ]  # fmt: skip
    found, limited = (
        suite_forecast.of_suite(replace(defined, limits=limits), "") for limits in (SuiteLimits(), SuiteLimits(5))
    )
    assert found
    assert limited
    assert found.calls == pytest.approx(2 * sum(cell.calls or 0 for cell in cells))
    assert found.engine_s == pytest.approx(2 * sum(cell.engine_s or 0 for cell in cells))
    assert found.basis.startswith("Added up over 8 runs")
    assert (found.calls or 0) > (limited.calls or 0) == 5
    assert limited.engine_s == pytest.approx((found.engine_s or 0) * 5 / (found.calls or 1))
    unlike = suite_forecast.of_suite(defined, "--toolchain cpu")
    assert unlike
    assert (unlike.calls, unlike.engine_s) == (None, None)
    assert suite_forecast.of_suite(defined, "--max-calls many") is None


def test_the_form_says_what_it_makes_and_what_keeps_it_from_starting(home: Path, open_page: Open) -> None:
    write_suite(home, 1, 1, 1, 20)
    app = open_page("benchmark", new="blank")
    assert not app.exception
    assert "1 task × 1 arm × 1 repeat = **1 run**" in words(app)
    app.button(key="add_arm:blank").click().run()
    app.text_input(key="arm_name:blank:1").set_value("short")
    app.text_input(key="arm_depths:blank:1").set_value("1").run()
    app.text_input(key="suite_title:blank").set_value("Short beside long")
    app.text_input(key="suite_minutes:blank").set_value("90").run()
    toml = app.code[0].value
    made = definition.of_text(toml, Path("mine.toml"))
    assert made.title == "Short beside long"
    assert [(arm.name, arm.settings) for arm in made.arms] == [
        ("cutegen", "--strategy cutegen"), ("short", "--strategy cutegen --depths 1"),
    ]  # fmt: skip
    assert made.limits.engine_s == 5400
    assert app.code[1].value == "python -m engine suite run mine.toml"
    assert not app.button(key="start_new_suite").disabled
    for key, value, why in (
        ("arm_name:blank:1", "cutegen", "two arms have one name"),
        ("arm_name:blank:1", "short", ""),
        ("suite_name:blank", NAME, "was started here before"),
        ("suite_name:blank", "mine", ""),
        ("arm_depths:blank:1", "many", "“many” is not valid"),
        ("arm_depths:blank:1", "99", ""),
    ):
        app.text_input(key=key).set_value(value).run()
        assert app.button(key="start_new_suite").disabled == bool(why), key
        assert why in words(app)
    assert "replies for 8" in everything(app)  # that is all there is recorded
    app.multiselect(key="suite_tasks:blank").set_value(["relu"]).run()
    assert "no recorded replies for all runs of cutegen, short" in words(app)
    app.multiselect(key="suite_tasks:blank").set_value([]).run()
    assert "Choose a task." in read(app)


def test_a_suite_at_work_is_stopped_and_a_read_only_server_changes_none(
    home: Path, open_page: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_suite(home, 1, 1, 2, 20)
    lock = hold(folder)
    files.append(folder, RunnerStarted(1))
    app = open_page("benchmark", suite=NAME)
    app.button(key=f"stop_suite:{NAME}").click().run()
    assert not isinstance(files.read(folder)[-1].event, StopAsked), "it is asked once more"
    app.button(key="stop_suite_yes").click().run()
    assert isinstance(files.read(folder)[-1].event, StopAsked)
    assert app.button(key=f"stop_suite:{NAME}").disabled
    os.close(lock)
    assert not open_page("benchmark", suite=NAME).button(key=f"resume_suite:{NAME}").disabled
    monkeypatch.setenv("TILEWRIGHT_READ_ONLY", "1")
    assert [button.key for button in open_page("benchmark", suite=NAME).button] == []
    said = everything(open_page("benchmark", new="blank"))
    assert "Shipped suites" in said
    assert not any(act in said for act in ("Start quick", "Edit a copy", "New suite"))


def test_a_check_says_whether_it_works_and_an_example_that_it_is_one(home: Path, open_page: Open) -> None:
    folder = write_suite(home, 2, 1, 1, 60)
    defined = next(line.event for line in files.read(folder) if isinstance(line.event, Defined))
    files.append(folder, replace(defined, checks=Purpose.WORKS, is_example=True))
    app = open_page("benchmark", suite=NAME)
    assert "works: 2 of 2 runs have a correct, timed kernel." in read(app)
    assert "an example, made on another machine" in words(app)
    assert not app.button  # nobody goes on with it
    assert "over eager PyTorch (95" not in read(app)


def test_a_cell_of_a_check_that_has_not_finished_says_how_far_it_is(home: Path) -> None:
    suite = fold(files.read(write_suite(home, 1, 1, 1, 10)))
    assert suite is not None
    (result,) = summary.gather(suite, measured.of_suite(suite)).cells
    said = {}
    for state in (CellState.FINISHED, CellState.STOPPED, CellState.RUNNING):
        told = cells_matrix.cell(replace(result, standing=replace(result.standing, state=state)), is_check=True)
        assert isinstance(told, dict)
        said[state] = told["text"]
    assert list(said.values()) == ["works", "works, stopped", "works, running"]


@pytest.mark.parametrize(
    ("settings", "spent", "text", "title"),
    [
        ("--model recorded", Spent(3, 0, 0.0, 20.0), "nothing paid", wording.NOT_CALLED),
        ("--model manual", Spent(3, 0, 0.0, 20.0), "not recorded", wording.NOT_RECORDED),
        ("", Spent(3, 900, 0.0, 20.0), "nothing paid", ""),
        ("", Spent(3, 900, None, 20.0), "unknown", ""),
        ("", Spent(3, 900, 0.25, 20.0), "$0.25", ""),
        ("", Spent(), "–", "no run of it has asked a model and ended"),
    ],
)
def test_the_list_of_suites_tells_no_sum_of_what_cost_nothing_or_is_not_known(
    home: Path, open_page: Open, settings: str, spent: Spent, text: str, title: str
) -> None:
    open_page("benchmark")
    suite = fold(files.read(write_suite(home, 1, 1, 1, 10)))
    assert suite is not None
    (cell,) = suite.defined.cells
    arms = tuple(replace(arm, settings=settings) for arm in suite.defined.arms)
    told = suites_list.spent_cell(
        replace(suite, defined=replace(suite.defined, arms=arms), cells={cell: CellStanding(cell, spent=spent)})
    )
    assert isinstance(told, dict)
    assert (told["text"], told["title"]) == (text, title)


@pytest.mark.parametrize("model", ["recorded", "manual"])
def test_who_wrote_the_replies_and_not_the_settings_says_what_they_cost(
    home: Path, open_page: Open, model: str
) -> None:
    """Replies that were recorded have cost nothing; of those handed in, also after recorded ones, nobody knows it."""
    write_suite(home, 1, 1, 2, 20)
    zero = r'"(input_tokens|output_tokens|cached_tokens|reasoning_tokens|cost_usd)":[\d.]+'
    for file in (home / "runs").glob("*/journal.jsonl"):
        lines = file.read_text().splitlines()
        calls = [number for number, line in enumerate(lines) if '"kind":"ModelCalled"' in line]
        for number in calls:
            by = model if number == calls[-1] else "recorded"
            lines[number] = re.sub(zero, r'"\1":0', re.sub('"model": ?"[^"]+"', f'"model":"{by}"', lines[number]))
        file.write_text("\n".join(lines) + "\n")
    said = everything(open_page("benchmark", suite=NAME)).replace("\\", "")
    assert ("tokens and cost not recorded" in said) is (model == "manual")
    assert ("no model was paid" in said) is (model == "recorded")
    assert "$0.00" not in said
    suite = fold(files.read(files.find(NAME)))
    assert suite is not None
    assert suite_folders.is_recorded(suite) is (model == "recorded")
    others = replace(suite, cells={c: replace(s, spent=Spent(3, 900, 0.25)) for c, s in list(suite.cells.items())[:1]})
    cell = suites_list.spent_cell(others)
    assert isinstance(cell, dict)
    assert (cell["text"], str(cell["note"]).partition(",")[0]) == (
        ("at least $0.25", "at least 900 tokens") if model == "manual" else ("$0.25", "900 tokens")
    )
    costs = {row[0]: row[1] for row in tables.costs_table(summary.gather(suite, measured.of_suite(suite))).rows}
    paid = "nothing paid" if model == "recorded" else "–"
    assert (costs["Tokens"], costs["Cost"], costs["Cost per correct kernel"]) == ("–", paid, paid)


def test_only_what_a_person_has_marked_clean_counts_where_that_is_asked_for(home: Path, open_page: Open) -> None:
    write_suite(home, 2, 1, 1, 60)
    suite = fold(files.read(files.find(NAME)))
    assert suite is not None
    runs = measured.of_suite(suite)
    run_id, best = next((name, run.best) for name, run in runs.items() if run.best)
    labels.change(find_run(run_id), labels.marked(best.candidate_id, MarkKind.CLEAN, "read", "ada"))
    marked = measured.of_suite(suite)
    assert {name: run.best is not None for name, run in summary.marked_clean(marked).items()} == {
        name: name == run_id for name in runs
    }
    assert all(run.best for run in marked.values())
    clean = summary.gather(suite, marked, only_clean=True)
    one = next(cell for cell in clean.cells if cell.result and cell.result.best)
    assert "tasks with a correct kernel that is marked clean" in " ".join(tables.headline(clean))
    ended = [
        replace(cell, standing=replace(cell.standing, state=CellState.FINISHED))
        for cell in clean.cells
        if cell is not one
    ]
    left_out = [cells_matrix.cell(cell, only_clean=True) for cell in ended]
    assert {part["text"] for part in left_out if isinstance(part, dict)} == {"none marked clean"}
    assert one.result
    assert one.result.best
    for share, told in ((0.94, True), (0.999, False), (None, False)):
        best = replace(one.result.best, own_share=share)
        shown = cells_matrix.cell(replace(one, result=replace(one.result, best=best)))
        assert isinstance(shown, dict)
        assert ("94 % in its own code" in str(shown["note"])) is told
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
    cells = everything(open_page("benchmark", suite="young", show_suite="runs"))
    assert all(word in cells for word in ("kernel 3 waits for a reply", "no such task", "planned"))
    assert LEFT_BEHIND in cells  # neither its runner nor the engine of its last cell lives
    for view in ("summary", "curves", "scorecard", "KernelBench's terms"):
        assert "a: no correct kernel in 1 run." in read(open_page("benchmark", suite="young", show_suite=view))


def test_the_engine_time_of_a_suite_counts_the_cell_that_is_at_work(home: Path, open_page: Open) -> None:
    write_suite(home, 1, 1, 1, 20)
    app = open_page("benchmark", suite=NAME)
    run = queries.run(index.current(), "run-0000")
    assert run is not None
    assert run.engine_s > 0
    assert f"{wording.seconds(run.engine_s)} of engine time spent" in words(app)
    assert "0 s of engine time" not in words(app)
