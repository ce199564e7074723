"""What a user would run instead of a kernel: which of it is the best, how the kernel stands against it, and what each
cost, wherever a run is shown."""

from __future__ import annotations

import html
import json
from dataclasses import replace
from pathlib import Path

import pytest

from pages.parts import index, wording
from pages.parts.api import api_answers
from pages.parts.compare import compare_table, compared_runs
from pages.parts.overview import runs_table
from pages.parts.report import report_run
from pages.parts.report.report_run import run_report
from pages.parts.run import curve_marks, key_figures
from pages.parts.status import alternatives, outcome
from storage.index import queries
from storage.index.queries import BaselineRow
from storage.results.evaluation_results import TimingResult
from storage.results.relative import Measured
from storage.results.timeline import Timeline
from storage.run import events as ev
from storage.run.folder import RunFolder
from storage.run.forks import Fork
from storage.run.journal import Journal
from tests import samples
from tests.pages.conftest import Open, words

EAGER_MS = 2.0
"""About what it takes beside the best kernel of a sample."""


def known(speedup: float, noise: float) -> Measured:
    return Measured(speedup, speedup * (1 - noise), speedup * (1 + noise), noise)


def row(name: str, speedup: float | None, seconds: float | None = None, noise: float = 0.01) -> BaselineRow:
    return BaselineRow(name, speedup, speedup, speedup, noise, 1.0, 1.0, "" if speedup else "no GPU", seconds)


def measured(name: str, speedup: float | None, seconds: float = 31.0) -> ev.BaselineMeasured:
    if speedup is None:
        return ev.BaselineMeasured(name, None, "it ran out of memory")
    eager = tuple(EAGER_MS * (1.0 + 0.002 * (i % 3 - 1)) for i in range(30))
    result = TimingResult(tuple(ms / speedup for ms in eager), eager, timeline=Timeline(seconds))
    return ev.BaselineMeasured(name, result)


def write(home: Path, *baselines: ev.BaselineMeasured) -> RunFolder:
    """A whole run whose best kernel is 2.5 times as fast as eager, with these baselines measured last."""
    folder = samples.write_run(home / "runs", "r1", seed=0)
    told = Journal(folder.journal_file, clock=lambda: 1.76e9)
    for event in baselines:
        told.append(event)
    told.close()
    return folder


FIVE = (
    measured("torch.compile", 0.93, 12.0), measured("torch.compile max-autotune", 3.2, 148.0),
    measured("CUDA graph", 0.94, 3.0), measured("mine.py", None), measured("export.py", 1.4, 2.0),
)  # fmt: skip


def test_a_kernel_that_loses_to_the_best_alternative_is_said_to_wherever_it_is_shown(
    home: Path, open_page: Open
) -> None:
    write(home, *FIVE)
    said = "beats eager PyTorch and loses to the best alternative timed in this run (torch.compile max-autotune): "
    app = open_page("run", run="r1")
    assert not app.exception
    run = queries.run(index.current(), "r1")
    assert run is not None
    assert [said in box.value.replace("\\", "") for box in app.warning] == [True]
    assert "as fast as the best alternative timed in this run (torch.compile max-autotune)." in words(app).replace(
        "\\", ""
    )
    header = key_figures._over_best_alternative(run)
    assert "over torch.compile max-autotune" in header["second"]
    assert header["second"].endswith("which is faster")
    assert header["second_tone"] == "poor"
    kernel = open_page("candidate", run="r1", candidate=run.best_candidate_id or "")
    assert any(f"This kernel {said}" in box.value.replace("\\", "") for box in kernel.warning)
    report = html.unescape(run_report(index.current(), "r1"))
    assert f"The best kernel {said}" in report
    assert f"compiled and timed in {wording.seconds(148.0)}" in report
    assert "could not be timed: it ran out of memory" in report


def test_tables_name_the_best_alternative_beneath_the_figure_over_it(home: Path, open_page: Open) -> None:
    write(home, *FIVE)
    open_page("overview")
    db = index.current()
    (compared,) = compared_runs.gather(db, ["r1"])
    fastest = queries.fastest_baselines(db, ["r1"])["r1"]
    for cell in (compare_table.second(compared), runs_table._over(compared.run, fastest)):
        assert isinstance(cell, dict)
        assert (cell["note"], cell["tone"]) == ("torch.compile max-autotune", "orange")
    told = api_answers.whole(compared.run)["baselines"]
    assert [(one["name"], one["seconds"], one["failure"]) for one in told] == [
        ("torch.compile", 12.0, None), ("torch.compile max-autotune", 148.0, None), ("CUDA graph", 3.0, None),
        ("mine.py", None, "it ran out of memory"), ("export.py", 2.0, None),
    ]  # fmt: skip


def test_where_all_others_are_slower_eager_is_the_fastest_alternative(home: Path, open_page: Open) -> None:
    write(home, measured("torch.compile", 0.93), measured("CUDA graph", 0.8))
    app = open_page("run", run="r1")
    run = queries.run(index.current(), "r1")
    assert run is not None
    assert "as fast as eager PyTorch, the fastest alternative." in words(app).replace("\\", "")
    assert key_figures._over_best_alternative(run) == {"second": "eager PyTorch is the fastest alternative"}
    assert not app.warning
    assert outcome.headline(index.current(), run).endswith("over eager PyTorch, the fastest alternative")
    assert "eager PyTorch 1×, the fastest alternative" in run_report(index.current(), "r1")
    (compared,) = compared_runs.gather(index.current(), ["r1"])
    cell = compare_table.second(compared)
    assert isinstance(cell, dict)
    assert (cell["text"], cell["note"]) == (wording.speedup(run.best_speedup, run.best_noise), "eager PyTorch")


def test_a_loss_within_the_noise_and_a_kernel_that_is_no_gain_over_eager_are_not_said_to_lose() -> None:
    assert alternatives.loses(row("x", 2.0), known(1.5, 0.01))
    assert alternatives.loses(row("x", 2.0, noise=0.3), known(1.5, 0.01)) == ""
    assert alternatives.loses(row("x", 2.0), Measured(1.5, 0.9, 1.51, 0.01)) == ""
    assert alternatives.loses(row("x", None), known(1.5, 0.01)) == alternatives.loses(None, known(1.5, 0.01)) == ""


def test_lines_close_together_share_a_name_and_the_best_alternative_stands_out() -> None:
    rows = [row("torch.compile", 0.93), row("mine.py", 1.6), row("torch.compile max-autotune", 1.3),
            row("CUDA graph", 0.935), row("export.py", 0.6), row("broken.py", None)]  # fmt: skip
    shapes, notes = curve_marks.reference_lines(2.4, 2.0, [0.5, 0.8, 1.1], is_log=True, baselines=rows)
    assert [shape["y0"] for shape in shapes] == [1.0, 1.6, 1.3, 0.935, 0.93, 0.6, 2.0, 2.4]
    assert [note.get("text") or note["texts"] for note in notes][1:5] == [
        "mine.py 1.60×", ["torch.compile max-autotune 1.30×", "max-autotune 1.30×"],
        ["CUDA graph, torch.compile 0.93 to 0.94×", "CUDA graph, 1 more 0.93 to 0.94×"], "export.py 0.60×",
    ]  # fmt: skip
    strong = [shape["y0"] for shape in shapes if shape["line"]["width"] > 2]
    assert strong == [1.6]


def test_eagers_line_stands_out_where_all_others_are_slower() -> None:
    shapes, notes = curve_marks.reference_lines(None, None, [1.5], True, [row("torch.compile", 0.9)])
    assert [shape["line"]["width"] > 2 for shape in shapes] == [True, False]
    assert notes[0]["texts"][0] == "eager baseline 1× (fastest alternative)"


def test_a_report_names_lines_close_together_once(home: Path, open_page: Open) -> None:
    write(home, measured("torch.compile", 1.31), measured("CUDA graph", 1.3), measured("mine.py", 1.8))
    open_page("overview")
    levels = report_run._levels(index.current(), queries.run(index.current(), "r1"), 1)  # type: ignore[arg-type]
    assert [(level.name, level.is_best) for level in levels if level.value in (1.31, 1.3, 1.8)] == [
        ("mine.py 1.80×", True), ("torch.compile, CUDA graph 1.30 to 1.31×", False), ("", False),
    ]  # fmt: skip


def in_run(home: Path, name: str, origin: str, *baselines: ev.BaselineMeasured) -> None:
    """A run without baselines of its own but these, forked from another one where that is named."""
    folder = samples.write_run(home / "runs", name, depths=2)
    lines = map(json.loads, folder.journal_file.read_text().splitlines())
    kept = [line for line in lines if line["kind"] != "BaselineMeasured"]
    numbered = [json.dumps(line | {"seq": seq}) + "\n" for seq, line in enumerate(kept, 1)]
    folder.journal_file.write_text("".join(numbered))
    if origin:
        settings = replace(folder.read_settings(), forked_from=Fork(origin, "c001", 1, "0" * 64))
        folder.settings_file.unlink()
        folder.write_settings(settings)
    journal = Journal(folder.journal_file)
    for baseline in baselines:
        journal.append(baseline)
    journal.close()


def test_a_run_that_timed_no_alternative_is_told_beside_that_of_the_run_it_was_forked_from(
    home: Path, open_page: Open
) -> None:
    in_run(home, "newer", "", measured("CUDA graph", 4.0))
    in_run(home, "origin", "", measured("torch.compile", 2.0))
    in_run(home, "fork", "origin")
    app = open_page("run", run="fork")
    assert not app.exception
    db, run = index.current(), queries.run(index.current(), "fork")
    assert run is not None
    assert run.best_speedup is not None
    other = queries.baselines_elsewhere(db, ["fork"])
    ratio = other["fork"].baseline.under(run.best_measured)
    assert ratio is not None
    over = f"about {wording.speedup(ratio.speedup, ratio.noise)}"
    said = (
        "The best alternative was not measured in this run. In the run it was forked from, torch.compile was 2.00× as "
        f"fast as eager PyTorch, so this run's best kernel is {over} as fast as that."
    )
    assert said in words(app).replace("\\", "")
    links = {str(link.proto.label): str(link.proto.page) for link in app.get("page_link")}
    assert "Open that run" in links
    assert key_figures._best(run, run.state)["second"] == (
        f"{over} over torch.compile, timed in the run it was forked from"
    )
    cell = runs_table._cells(run, run.state, (), None, other["fork"])["over"]
    assert isinstance(cell, dict)
    assert (cell["text"], cell["title"]) == (wording.NONE, said)
    assert said in list(report_run._warnings(db, run))
    assert queries.baseline(db, "fork") is None, "no figure that is added up has it"
    assert queries.baselines_elsewhere(db, ["origin"]) == {}


def test_without_an_origin_another_run_of_the_same_work_is_told_as_such_and_one_on_another_device_is_not(
    home: Path, open_page: Open
) -> None:
    in_run(home, "other", "", measured("CUDA graph", 4.0))
    in_run(home, "bare", "")
    in_run(home, "moved", "")
    moved = home / "runs" / "moved" / "journal.jsonl"
    text = moved.read_text()
    assert '"device": "' in text
    moved.write_text(text.replace('"device": "', '"device": "another '))
    open_page("run", run="bare")
    found = queries.baselines_elsewhere(index.current(), ["bare", "moved"])
    assert [(name, row.run_id, row.is_origin) for name, row in found.items()] == [("bare", "other", False)]
    told = alternatives.elsewhere(found["bare"], known(8.0, 0.01))
    assert "In another run of this task on the same model of device, CUDA graph was 4.00×" in told
    assert told.endswith("so this run's best kernel is about 2.00× as fast as that.")
    assert (
        alternatives.elsewhere_in_short(found["bare"], known(8.0, 0.01))
        == "about 2.00× over CUDA graph, timed in another run"
    )
    assert alternatives.elsewhere(found["bare"], None) == alternatives.elsewhere(None, known(8.0, 0.01)) == ""


def test_an_alternative_beside_which_a_gpus_eager_was_much_faster_is_compared_by_latency(
    home: Path, open_page: Open
) -> None:
    graph = BaselineRow("CUDA graph", 1.4, 1.3, 1.5, 0.05, 16.0, 22.4, "", is_on_gpu=True)
    beside = graph.beside(48.0)
    ratio = beside.under(known(5.2, 0.01))
    assert (beside.speedup, beside.low, beside.high) == pytest.approx((3.0, 2.786, 3.214), abs=1e-3)
    assert ratio is not None
    assert ratio.speedup == pytest.approx(5.2 / 3)
    assert graph.beside(25.0) == graph.beside(10.0) == graph.beside(None) == graph, "its speed-up is the lower bound"
    assert replace(graph, is_on_gpu=False).beside(48.0).speedup == 1.4, "on a processor everything slows together"
    write(home)
    open_page("overview")
    kernel = replace(index.attempts("r1")[0], speedup=5.2, latency_ms=48 / 5.2)
    (_, _, _, _, ours, _), (_, took, eager, itself, over_it, _) = alternatives.lines([graph], kernel)
    assert (took, eager, itself[:5], over_it[:5]) == ("16.0 ms", "22.4 ms", "1.40×", "1.73×"), ours
