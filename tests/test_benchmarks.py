"""Every program behind a published figure runs to its end, at its smallest."""

from __future__ import annotations

import importlib
import io
import json
import os
import pkgutil
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any

import pytest

import benchmarks
from benchmarks import demo_runs, kill_engine, mutations, several_devices
from benchmarks.recorded_kernels import kernels_of
from engine.evaluator import tasks
from engine.search.llm.recording import shipped_recording
from engine.suites import definition
from storage.run.folder import RunFolder
from tests import samples

ROOT = Path(__file__).resolve().parent.parent
LIMIT_S = 180
TINY = ("swish", "--set", "batch_size=16", "--set", "dim=4096")
JUDGING = {
    "a_a": (*TINY, "--runs", "1"),
    "cheats": ("--only", "honest/reversed_sum", "--mode", "without screening"),
    "cost_of_trust": ("--task", *TINY, "--rounds", "1"),
    "kernel_mutants": (
        "--match",
        "^tasks/relu",
        "--mutations",
        "activation_left_out,constant_changed",
        "--seconds",
        "0.2",
    ),
    "kernelbench_files": ("tasks/activation", "--match", "^relu", "--seconds", "0.2"),
    "hostile": ("--runs", "1", "--seconds", "0.2", "--match", "abort"),  # one that ends at once
    "processor_time": ("--match", "honest/reversed_sum", "--seconds", "0.2"),
    "tuner": ("--case", "softmax", "--variants", "1", "--rounds", "1", *TINY[1:]),
    "write_faults": ("--points", "8"),
    "kill_suite": (
        "quick",
        "--kills",
        "1",
        "--task",
        "swish",
        "--settings=--depths 0 --collect off --set batch_size=16 --set dim=4096",
    ),
}
READING = {
    "ingest": ("--runs", "1", "--depths", "3", "--lines", "2", "--restart", "3"),
    "knowledge": ("--rows", "200", "--rounds", "1"),
    "prompt_sizes": ("--class", "matmul", "--method", "cutegen"),
    "redraw": ("--rounds", "1"),
    "turns": ("--turns", "10"),
    "labelled_runs": ("--runs", "5", "--deleted", "2"),
    "pool_simulation": ("--gpus", "1", "2", "--runs", "8", "--iterations", "2", "--heads", "1"),
    "kill_server": ("--kills", "1", "--depths", "3", "--seconds", "2"),
}
# These run in tests/browser/test_programs.py.
BROWSING = {
    "dashboard_scale": (
        *("--runs", "4", "--iterations", "20", "--loads", "0", "--only", "source", "--lines", "1"),
        *("--watch", "small", "--minutes", "0.02"),
    ),
    "suite_scale": (
        *("--tasks", "2", "--arms", "2", "--repeats", "1", "--iterations", "20", "--loads", "0", "--only", "summary"),
    ),
    "wire": ("--rounds", "1", "--events", "1"),
}
DEVICE = {
    "a_a": (*TINY, "--runs", "1", "--toolchain", "cuda"),
    "builds": ("--toolchain", "cuda", "--limit", "1"),
    "languages": ("--task", "swish", "--language", "cuda", *TINY[1:]),
    "pytorch_defaults": (str(tasks.SHIPPED / "suites/levels/level2/24_Conv3d_Min_Softmax.py"),),
    "several_devices": ("measure", "0", "--tasks", "swish", "--depths", "0", "--times", "1"),
}
# Each has a test of its own below; the parts are imported or run by another program.
ELSEWHERE = {
    "builds", "languages", "several_devices", "demo_runs", "kill_engine", "mutations", "replies", "pytorch_defaults",
}  # fmt: skip
PARTS = {"meaning", "recorded_kernels", "scale_home", "stock_build", "mutation", "mutations_of_guards",
         "mutations_of_results", "chromium"}  # fmt: skip


# One leaves killed children behind, one is loaded with a library before libc. The others share the tests' process, its
# imports and its fork servers.
IN_A_PROCESS = {"kill_suite", "write_faults"}


def run(name: str, *words: str, **given: object) -> str:
    if name not in IN_A_PROCESS:
        return run_here(name, *words, **given)
    command = [sys.executable, "-m", f"benchmarks.{name}", *words]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=LIMIT_S, env=os.environ)
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout


@contextmanager
def within(limit_s: int) -> Iterator[None]:
    """A program that waits for what never comes is ended."""

    def end(*_: object) -> None:
        raise TimeoutError(f"it ran for more than {limit_s} s")

    before = signal.signal(signal.SIGALRM, end)
    signal.alarm(limit_s)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def run_here(name: str, *words: str, **given: object) -> str:
    """A program sets variables for what it starts, and another folder for temporary files: they are its own."""
    out, before, keep = io.StringIO(), dict(os.environ), tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
    with within(LIMIT_S), redirect_stdout(out), pytest.MonkeyPatch.context() as patch, keep as folder:
        patch.setattr(sys, "argv", [name, *words])
        # What judges kernels starts processes that serve the tests after it too, with files of their own.
        patch.setattr(tempfile, "tempdir", tempfile.tempdir if name in JUDGING else folder)
        patch.chdir(ROOT)
        try:
            code = importlib.import_module(f"benchmarks.{name}").main(**given)
        except SystemExit as ended:
            code = ended.code
        finally:
            os.environ.clear()
            os.environ.update(before)
    assert not code, out.getvalue()[-3000:]
    return out.getvalue()


def test_every_program_has_a_smallest_run() -> None:
    programs = {module.name for module in pkgutil.iter_modules(benchmarks.__path__)}
    assert programs == {*JUDGING, *READING, *BROWSING, *ELSEWHERE, *PARTS}


@pytest.mark.judging
@pytest.mark.parametrize("name", JUDGING)
def test_a_program_that_judges_kernels_runs(home: Path, name: str) -> None:
    assert run(name, *JUDGING[name])


@pytest.mark.parametrize("name", READING)
def test_a_program_that_reads_runs_runs(home: Path, name: str) -> None:
    assert run(name, *READING[name])


@pytest.mark.gpu
@pytest.mark.parametrize("name", DEVICE)
def test_a_program_on_a_gpu_runs(home: Path, name: str) -> None:
    assert run(name, *DEVICE[name])


def test_a_finished_run_is_told_as_a_demo(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = samples.write_run(tmp_path, "told", depths=3)
    demo_runs.report(folder, 2.0, demo_runs.first_point(folder))
    assert "curve:" in capsys.readouterr().out


def test_a_killed_run_is_compared_without_what_two_measurements_differ_by(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    calm, killed = (samples.write_run(tmp_path / name, "run", depths=3) for name in ("calm", "killed"))
    again = re.sub(r'("detail":)"[^"]*"', r'\1"measured again"', killed.journal_file.read_text())
    killed.journal_file.write_text(re.sub(r'("seconds":)[\d.]+', r"\g<1>7.25", again))
    with pytest.raises(SystemExit):
        kill_engine.report(calm, killed, 1)
    assert "entries): True" in capsys.readouterr().out


def test_a_width_is_measured_on_the_same_kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["measure", "0", "--toolchain", "cpu", "--tasks", "swish,dim=4096", "softmax", "--samples", "3"]
    shipped = shipped_recording("swish")
    assert shipped is not None
    for width in ("--width 1", "--width 3"):
        monkeypatch.setattr(sys, "argv", ["several_devices", *words, f"--settings={width}"])
        file = tmp_path / "suite.toml"
        file.write_text(several_devices.definition(several_devices.options(), tmp_path))
        defined = definition.read(file)
        assert "--strategy best_of --samples 3" in defined.settings
        assert defined.settings.endswith(width)
        assert [arm.name for arm in defined.arms] == ["once", "again"]
        assert defined.tasks[0].settings == f"--set dim=4096 --recording {tmp_path / 'swish.jsonl'}"
        assert kernels_of(tmp_path / "swish.jsonl") == kernels_of(shipped)[:3]


def test_measurements_of_devices_are_compared_kernel_by_kernel(tmp_path: Path) -> None:
    """Whatever the order in which a run with a width writes them, and though one suite goes further."""
    folder = samples.write_run(tmp_path, "told", depths=3)
    kernels = several_devices.kernels(RunFolder(folder.path))
    assert any(one["speedup"] for one in kernels.values())
    one = {"seconds": 10.0, "busy": {"a": 0.2}, "judged": len(kernels), "states": {"c": "finished"},
           "cells": [{"cell": "c", "kernels": kernels}]}  # fmt: skip
    turned = {source: kernels[source] for source in reversed(kernels)}
    assert "speed-ups beyond both noises: 0 of" in "\n".join(several_devices.compared(one, _with(one, turned)))
    source = next(name for name, kernel in kernels.items() if kernel["speedup"])
    found = kernels[source]
    other = {source: {**found, "speedup": found["speedup"] * 2, "verdicts": ["incorrect"]}}
    told = several_devices.compared(one, _with(one, other))
    assert told[0] == "time: 5.0 / 10.0 s = 0.500"
    assert f"kernels judged: {len(kernels)} and 1, 1 of them the same" in told
    assert "verdicts that differ: 1 of 1" in told
    assert "speed-ups beyond both noises: 1 of 1, of two sessions: 1" in told


def _with(one: dict[str, Any], kernels: dict[str, Any]) -> dict[str, Any]:
    return one | {"seconds": 5.0, "judged": len(kernels), "cells": [{"cell": "c", "kernels": kernels}]}


def test_raw_replies_are_judged(home: Path, tmp_path: Path) -> None:
    file = tmp_path / "replies.jsonl"
    file.write_text(json.dumps({"source": "a\n", "answer": "no edit", "source_after": "a\n"}) + "\n")
    assert "0 of 1 replies apply" in run("replies", str(file))


def test_every_mutation_still_finds_its_line() -> None:
    stale = [
        f"{one.file}: {one.old.strip()!r}"
        for one in mutations.MUTATIONS
        if (ROOT / one.file).read_text().count(one.old) != 1 or not all(map(_exists, one.tests))
    ]
    assert stale == []


def _exists(test: str) -> bool:
    """True for options such as `-k`, and their words, which name no file."""
    return not test.startswith("tests/") or (ROOT / test).exists()
