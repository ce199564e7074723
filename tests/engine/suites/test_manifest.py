"""A suite's best kernels in one file, judged again by the real toolchain."""

from __future__ import annotations

import json
from argparse import Namespace
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from engine.__main__ import main
from engine.cli import reproducing
from engine.errors import EngineError, ToolchainError
from engine.evaluator import tasks
from engine.evaluator.request import Evaluator
from engine.evaluator.tasks import Task
from engine.suites import manifest, tables
from engine.suites.manifest import ManifestKernel
from storage import codec
from storage.results.hardware_limit import HardwareLimit
from storage.run import events as ev
from storage.run import journal
from storage.run.blobs import Blobs
from storage.run.folder import RunFolder, find_run
from storage.suites import files, measured, summary
from storage.suites.records import Arm, CellLeft, CellLinked, CellState, Defined, SuiteTask
from storage.suites.standing import fold
from storage.suites.summary import Results
from tests.engine.test_cli import tilewright
from tests.sample_suites import NAME, write_suite

WORDS = ["run", "swish", "--toolchain", "cpu", "--depths", "0", "--collect", "off", "--set", "batch_size=16"]


def results_of(name: str) -> Results:
    suite = fold(files.read(files.find(name)))
    assert suite is not None
    return summary.gather(suite, measured.of_suite(suite))


def test_a_kernel_is_judged_again_and_what_differs_is_said_and_kept(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    done = tilewright(*WORDS, "--set", "dim=4096", "--reply-seconds", "0")
    assert done.returncode == 0, done.stderr
    (run,) = (home / "runs").iterdir()
    defined = Defined("mine", (SuiteTask("swish", "swish"),), (Arm("a"),), baseline_arm="a")
    cell, folder = defined.cells[0], files.folder_of("mine")
    files.append(folder, defined, CellLinked(cell, run.name), CellLeft(cell, run.name, CellState.FINISHED))
    file, answers = tmp_path / "mine.json", tmp_path / "answers.json"
    assert main(["suite", "manifest", "mine", "--output", str(file)]) == 0
    found = manifest.read(file)
    (kernel,) = found.kernels
    assert kernel.source == Blobs(RunFolder(run).blobs).get(_best(run.name).source_blob)
    assert (kernel.toolchain, kernel.model, len(kernel.recording), kernel.seed is None) == (
        "cpu",
        "recorded",
        64,
        False,
    )
    # So much slower that it shows through any noise; one that was faster would not, where a busy machine's noise is 1.
    slower = replace(kernel, speedup=kernel.speedup / 1000, latency_ms=1000 * kernel.latency_ms)
    file.write_text(codec.dumps(replace(found, kernels=(slower,), made_with={"torch": "1.0"})))
    capsys.readouterr()
    assert main(["reproduce", str(file), "--output", str(answers)]) == 1
    told = capsys.readouterr().out
    assert "here, 1.0 where the manifest was written" in told
    assert "swish, a, repeat 1: passed" in told
    assert "x over eager here and was" in told
    assert "0 of 1 kernels came out alike." in told
    assert json.loads(answers.read_text())["judged"][0]["answer"]["verdict"] == "passed"
    again = results_of("mine")
    assert len(again.suite.judged) == 1
    (row,) = tables.portability_table(again).rows
    assert row[0] == "swish"
    assert "0 of 1 kernels that were judged again came out alike" in str(tables.scorecard(again).rows)


class Refusing:
    """A toolchain on a machine that the kernels do not fit."""

    def limit(self, task: Task) -> HardwareLimit:
        raise ToolchainError(f"{task.name} does not fit")

    def close(self) -> None:
        pass


def test_what_cannot_be_judged_here_is_named_and_the_rest_goes_on(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shipped = tasks.find("swish").task("cpu", {"batch_size": 16})
    first = replace(
        kernel_of(home), task_name="swish", task_source=shipped.source, sizes=shipped.sizes,
        policy=replace(shipped.policy, library_operators=("*",)),
    )  # fmt: skip
    stranger = replace(first, task_source=shipped.source + "\nimport os\n")
    assert [manifest.is_shipped(one) for one in (first, stranger)] == [True, False]
    assert not manifest.is_shipped(replace(first, task_name="../swish"))
    file, answers = tmp_path / "m.json", tmp_path / "answers.json"
    file.write_text(codec.dumps(manifest.Manifest(Defined("x", (), ()), {}, (first, stranger))))
    options = Namespace(manifest=str(file), tasks=[], output=str(answers), run_references=False)
    assert reproducing.reproduce(options, lambda name: cast(Evaluator, Refusing())) == 1
    told = capsys.readouterr().out
    assert "other rules than the task swish has here: library_operators is ('*',) and not ()" in told
    assert "could not be judged here: swish does not fit" in told
    assert "could not be judged here: its reference is not that of a task that comes with Tilewright" in told
    assert "0 of 0 kernels came out alike. 2 could not be judged here." in told
    assert [bool(one["not_judged"]) for one in json.loads(answers.read_text())["judged"]] == [True, True]
    options.run_references = True
    assert reproducing.reproduce(options, lambda name: cast(Evaluator, Refusing())) == 1
    assert capsys.readouterr().out.count("swish does not fit") == 2


def _best(run_id: str) -> ev.CandidateCreated:
    path = find_run(run_id)
    best = measured.of_run(path.read_settings(), entries := list(journal.read(path.journal_file))).best
    assert best is not None
    created = [one.event for one in entries if isinstance(one.event, ev.CandidateCreated)]
    return next(one for one in created if one.candidate_id == best.candidate_id)


def kernel_of(home: Path) -> ManifestKernel:
    write_suite(home, 1, 1, 1, 20)
    suite = fold(files.read(files.find(NAME)))
    assert suite is not None
    found = manifest.of_suite(summary.gather(suite, measured.of_suite(suite), is_partial=True))
    assert found.kernels == ()
    assert "square_matmul, arm_a, repeat 1" in found.missing[0]  # a sample run keeps no texts
    results = summary.gather(suite, measured.of_suite(suite), is_partial=True)
    best = tables.best_of(results.cells[0])
    assert best is not None
    return ManifestKernel(
        results.cells[0].cell, "r", "c001", "t", "", {}, "matmul", None, "cpu", "cute", "m", "s", {}, "off", "", "",  # type: ignore[arg-type]
        None, "here", "", 2.0, 1.98, 2.02, 0.01, 1.0, "fp32",
    )  # fmt: skip


def test_only_what_is_not_noise_differs_and_on_another_device_speed_does_not(home: Path) -> None:
    kernel = kernel_of(home)
    answer = {"verdict": "passed", "message": "", "precision": "fp32", "speedup": 2.05, "noise": 0.01}
    assert manifest.differences(kernel, "here", answer) == []
    assert manifest.differences(kernel, "here", answer | {"speedup": 1.5}) == ["it is 1.5x over eager here and was 2x"]
    assert manifest.differences(kernel, "there", answer | {"speedup": 1.5}) == []
    assert manifest.differences(kernel, "there", answer | {"precision": "tf32"})
    wrong = manifest.differences(kernel, "there", answer | {"verdict": "incorrect", "message": "wrong at\n(0, 1)"})
    assert wrong == ["it is incorrect here: wrong at (0, 1)"]


def test_a_file_that_is_no_manifest_is_refused_in_a_sentence(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "other.json"
    file.write_text('{"kernels": 3}')
    assert main(["reproduce", str(file)]) == 2
    assert "is no manifest of a suite" in capsys.readouterr().err
    file.write_text(codec.dumps(manifest.Manifest(Defined("x", (), ()), {}, (), version=manifest.VERSION + 1)))
    with pytest.raises(EngineError, match="later version"):
        manifest.read(file)
