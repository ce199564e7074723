"""What the command line says about the checks behind a verdict."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import cast

import pytest
from rich.console import Console

from engine import doctor
from engine.cli import report
from engine.cli.judgement import print_judgement
from engine.evaluator.request import Check, Compile, Evaluator, Profile, Request, Result, Time
from engine.evaluator.sandbox import isolation
from engine.evaluator.tasks import Task
from engine.evaluator.toolchains.evaluating import evaluate
from storage.results.evaluation_results import CheckResult, CompileResult, TimingResult
from storage.results.profile_results import ProfileResult
from storage.results.vocabulary import KernelClass
from storage.run.folder import RunFolder
from tests.sample_checks import LOST_STRUCTURE, SUSPICIOUS
from tests.sample_results import BUILT, RIGHT, TURNED_AWAY, WRONG
from tests.samples import REFERENCE, write_run

TASK = Task("square_matmul", REFERENCE, {}, KernelClass.MATMUL)
TIMED = TimingResult((1.0, 1.1), (2.0, 2.1), proofs=SUSPICIOUS)


class GivenResults(Evaluator):
    """Answers for one source, whose results are known."""

    name, fingerprint, lease_files = "given", "", ()

    def __init__(
        self, built: CompileResult = BUILT, checked: CheckResult = RIGHT, timed: TimingResult | CheckResult = TIMED
    ) -> None:
        profiled = ProfileResult("k", (), "memory", "Memory-bound.")
        self._known = {Compile: built, Check: checked, Time: timed, Profile: profiled}

    def evaluate(self, request: Request[Result]) -> Result:
        return cast(Result, self._known[type(request)])

    def close(self) -> None:
        pass


def printed(toolchain: GivenResults, profile: bool = False) -> str:
    out = io.StringIO()
    print_judgement(Console(file=out, width=200), evaluate(toolchain, TASK, "source", profile))
    return out.getvalue()


def test_an_answer_holds_the_checks_of_every_stage() -> None:
    answer = evaluate(GivenResults(), TASK, "source")
    stages = [check_record["stage"] for check_record in answer["proofs"]]
    assert [stages.count(s) for s in ("compile", "check", "time")] == [
        len(BUILT.proofs), len(RIGHT.proofs), len(SUSPICIOUS)
    ]  # fmt: skip
    assert json.loads(json.dumps(answer)) == answer
    assert {"group", "check", "standing", "detail", "value", "limit", "stage"} == set(answer["proofs"][0])


def test_the_checks_of_a_timing_that_finds_a_wrong_result_are_kept_too() -> None:
    answer = evaluate(GivenResults(timed=WRONG), TASK, "source")
    assert answer["verdict"] == "incorrect"
    assert [check_record["stage"] for check_record in answer["proofs"]][-1] == "time"


def test_a_judgement_is_printed_with_one_row_per_check() -> None:
    told = printed(GivenResults(), profile=True)
    assert told.startswith("passed, 1.95x over eager (1.91 to 2), 1.05 ms (baseline 2.05 ms)")
    rows = [line.split() for line in told.splitlines()]
    assert [row[2] for row in rows if row[:2] == ["isolation", "network"]] == ["passed"]
    assert [row[2:5] for row in rows if row[:2] == ["timing", "machine"]] == [["note", "waiting", "for"]]
    assert "30 checks passed, 1 noted, 2 not done" in told
    assert "note: machine. Other programs took processors" in told
    assert "check took 4.0 s: the reference's answers 1.5 s, comparing 1.0 s, everything else 1.0 s" in told
    assert told.rstrip().endswith("Memory-bound.")


def test_a_refusal_is_printed_with_its_reason_first() -> None:
    told = printed(GivenResults(TURNED_AWAY))
    assert told.startswith("refused\nThe candidate was refused before it ran")
    assert "9 checks passed, 1 failed" in told
    rows = [line for line in told.splitlines() if line.startswith("screening")]
    assert "failed" in rows[0]


def test_a_candidates_words_cannot_act_on_the_terminal() -> None:
    evil = CompileResult(False, 1.0, "\x1b[2J\x1b]0;owned\x07[red]gone[/nothing]", verdict=TURNED_AWAY.verdict)
    told = printed(GivenResults(evil))
    assert "\x1b" not in told
    assert "\x07" not in told
    assert "[red]gone[/nothing]" in told


def test_a_run_shows_what_is_flagged_and_broken(tmp_path: Path) -> None:
    folder = write_run(tmp_path, depths=8)
    rows = {row["candidate"]: row for row in report.details(folder)["attempts"]}
    assert rows["c004"]["flags"] == (LOST_STRUCTURE,)
    assert [len(row["flagged"]) for row in rows.values()].count(1) >= 1
    refused = next(row for row in rows.values() if row["verdict"] == "refused")
    assert refused["broken"][0].startswith("no library fall-back: line 31")
    out = io.StringIO()
    report.print_run(Console(file=out, width=200), folder)
    assert f"kernel 4: look at this: intent kept: {LOST_STRUCTURE}" in out.getvalue()


def test_a_run_tells_its_best_kernel_over_torch_compile_too(tmp_path: Path) -> None:
    folder = write_run(tmp_path, depths=3)
    told = report.summary(folder)
    second = told["second_baseline"]
    assert (second["name"], second["failure"]) == ("torch.compile", "")
    assert second["speedup"] == pytest.approx(1.28)
    assert second["best_speedup"] == pytest.approx(told["speedup"] / second["speedup"])
    low, high = second["best_speedup_interval"]
    assert low < second["best_speedup"] < high
    line = (
        f"torch.compile: 1.28x over eager (1.28 to 1.28), 1.562 ms; best kernel: {second['best_speedup']:.3g}x over it"
    )
    assert line in shown(folder)


def test_a_run_tells_why_it_has_no_figure_over_torch_compile(tmp_path: Path) -> None:
    folder = write_run(tmp_path, depths=3, seed=2)
    assert report.summary(folder)["second_baseline"]["best_speedup"] is None
    assert "torch.compile: not measured: its answers differ: 3 of 1024 values are wrong" in shown(folder)
    new = write_run(tmp_path, "new", ending="new")
    assert report.summary(new)["second_baseline"] is None
    assert "torch.compile" not in shown(new)


def shown(folder: RunFolder) -> str:
    out = io.StringIO()
    report.print_run(Console(file=out, width=200), folder)
    return out.getvalue()


def test_doctor_names_each_wall_and_what_to_do_where_one_is_missing() -> None:
    out = io.StringIO()
    doctor.print_findings(Console(file=out, width=400))
    assert all(name in out.getvalue() for name in isolation.NAMES)
    assert all(("namespaces" in one.remedy) is not one.is_ok for one in doctor.sandbox_checks())
