"""The suite's own judgement: it sees what is left, and complains where a file does not get what it declares."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from engine.evaluator.machine import lease
from engine.evaluator.toolchains.cpu import lease_files
from tests.cheats import declaration, leftovers
from tests.cheats.declaration import Declaration
from tests.cheats.running import Mode, Outcome, complaints

DECLARED = '''"""A cheat.

Task: softmax batch_size=2 dim=8
Verdict: refused | incorrect
Says: Wrong | clock
Also without screening: passed
Walls: needed
Speedup: at most 50
"""
'''


@pytest.fixture
def declared(tmp_path: Path) -> Declaration:
    path = tmp_path / "cheats" / "some.py"
    path.parent.mkdir()
    path.write_text(DECLARED)
    return declaration.of_file(path)


@pytest.fixture
def lonely_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TILEWRIGHT_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("TILEWRIGHT_LEASES", str(tmp_path / "leases"))
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    return scratch


def test_a_docstring_is_read(declared: Declaration) -> None:
    assert declared.verdicts == ("refused", "incorrect")
    assert declared.without == ("passed",)
    assert declared.says == ("wrong", "clock")
    assert declared.needs_walls
    assert declared.most == 50
    assert declaration.task_of(declared).sizes == {"batch_size": 2, "dim": 8}


def test_where_nothing_is_declared_the_folder_decides(tmp_path: Path) -> None:
    for folder in ("cheats", "honest"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "bare.py").write_text("import torch\n")
    cheat, honest = declaration.in_folder(tmp_path)
    assert honest.verdicts == ("passed",)
    assert "refused" in cheat.verdicts
    assert "passed" not in cheat.verdicts
    assert declaration.task_of(cheat).name == "swish"


@pytest.mark.parametrize(
    ("outcome", "mode", "said"),
    [
        (Outcome("passed", "", 1.0, 1.0), Mode.WHOLE, "passed instead of refused or incorrect"),
        (Outcome("incorrect", "NaN", None, 1.0), Mode.WHOLE, "does not say why"),
        (Outcome("passed", "", 60.0, 1.0), Mode.DYNAMIC, "credited with 60"),
        (Outcome("passed", "", None, 1.0), Mode.DYNAMIC, "without having been timed"),
        (Outcome("refused", "the clock", None, 1.0, ("process 7",)), Mode.WHOLE, "process 7"),
    ],
)
def test_what_is_not_as_declared_is_said(declared: Declaration, outcome: Outcome, mode: Mode, said: str) -> None:
    assert said in "\n".join(complaints(declared, outcome, mode))


def test_what_is_as_declared_is_no_complaint(declared: Declaration) -> None:
    assert complaints(declared, Outcome("refused", "the Clock is patched", None, 1.0), Mode.WHOLE) == []
    assert complaints(declared, Outcome("passed", "", 40.0, 1.0), Mode.DYNAMIC) == []


def test_a_process_at_home_in_scratch_is_found(lonely_home: Path) -> None:
    before = leftovers.processes(lonely_home)
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, cwd=lonely_home) as child:
        assert list(leftovers.of(lonely_home, before)) == [f"process {child.pid}"]
        child.kill()


def test_a_fork_of_the_evaluator_is_found_wherever_it_is(lonely_home: Path) -> None:
    program = (
        "import os, sys\nif os.fork():\n    os.wait()\nelse:\n    print('here', flush=True)\n    sys.stdin.read()\n"
    )
    command = [sys.executable, "-c", program, "engine.evaluator.processes.forkserver", str(os.getpid()), "7"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as forkserver:
        assert forkserver.stdin is not None
        assert forkserver.stdout is not None
        forkserver.stdout.readline()
        found = leftovers.processes(lonely_home)
        forkserver.stdin.close()
    assert len(found) == 1
    assert forkserver.pid not in found


def test_files_and_a_held_lease_are_found(lonely_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leftovers, "LEASE_S", 0.2)
    # Not in the real ones: the cheats that run beside this test are looked after there.
    monkeypatch.setattr(leftovers, "OUTSIDE", (str(tmp_path / "outside"),))
    (lonely_home / "forgotten").write_text("")
    stray = tmp_path / "outside" / "tilewright-cheat-of-the-test"
    stray.parent.mkdir()
    stray.write_text("")
    with lease.hold(*lease_files()):
        left = list(leftovers.of(lonely_home, set()))
    assert left == [f"{lonely_home}/forgotten in scratch", str(stray), "the lease"]
    assert not stray.exists()
    (lonely_home / "forgotten").unlink()
    assert list(leftovers.of(lonely_home, set())) == []
