"""The command line over runs of which one is damaged in any way; and an engine.json that names no engine."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine import supervisor
from storage.run import liveness
from storage.run.folder import RunFolder
from tests.damaged_runs import DAMAGE, HARMLESS
from tests.engine.test_cli import tilewright
from tests.samples import write_run


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TILEWRIGHT_HOME", str(tmp_path))
    (tmp_path / "runs").mkdir()
    return tmp_path / "runs"


@pytest.mark.parametrize("kind", DAMAGE)
def test_one_damaged_run_hides_no_other_and_is_told_in_a_sentence(kind: str, root: Path) -> None:
    write_run(root, "whole", depths=2)
    DAMAGE[kind](write_run(root, "broken", seed=3, depths=6, ending="running"))
    rows = {row["run"]: row for row in json.loads(tilewright("list", "--json").stdout)}
    assert rows["whole"]["state"] == "finished"
    assert rows["whole"]["damage"] == []
    assert bool(rows["broken"]["damage"]) == (kind not in HARMLESS)
    assert tilewright("list").returncode == 0
    if kind in HARMLESS:
        return
    shown, resumed = tilewright("show", "broken"), tilewright("resume", "broken")
    assert "Traceback" not in shown.stderr
    if "commands" not in kind and "labels" not in kind:
        assert resumed.returncode != 0
        assert resumed.stderr.startswith("tilewright: ")
        assert resumed.stderr.count("\n") == 1


WITHOUT_RIGHTS = """
import ctypes, os, sys
for capability in (1, 2):  # with these root may read what nobody may
    ctypes.CDLL(None).prctl(24, capability)
os.execv(sys.executable, [sys.executable, "-m", "engine", *sys.argv[1:]])
"""


def test_what_may_not_be_read_is_damage_of_that_run_alone(root: Path) -> None:
    for name in ("whole", "journal", "settings", "folder"):
        write_run(root, name, depths=2)
    closed = (root / "journal/journal.jsonl", root / "settings/run.json", root / "folder")
    for path in closed:
        path.chmod(0)
    told = {}
    for words in (("list", "--json"), ("show", "journal"), ("show", "settings"), ("show", "folder")):
        command = [sys.executable, "-c", WITHOUT_RIGHTS, *words]
        told[words[1]] = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    for path in closed:
        path.chmod(0o755)
    damage = {row["run"]: " ".join(row["damage"]) for row in json.loads(told["--json"].stdout)}
    assert damage.pop("whole") == ""
    assert all("cannot be read: Permission denied" in why for why in damage.values())
    assert len(damage) == len(closed)
    assert "journal.jsonl cannot be read: Permission denied" in told["journal"].stdout
    for name in ("settings", "folder"):
        assert re.fullmatch(r"tilewright: .*cannot be read: Permission denied\n", told[name].stderr)


anything = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=3,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(named=anything | st.fixed_dictionaries({"pid": anything, "started": anything}))
def test_no_signal_is_sent_for_an_engine_file_that_names_no_engine(named: Any, root: Path) -> None:
    run, sent = RunFolder(root / "r"), list[Any]()
    run.path.mkdir(exist_ok=True)
    run.engine_file.write_text(json.dumps(named))
    lock = liveness.hold(run)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "killpg", lambda *words: sent.append(words))
        assert not supervisor.stop(run, grace_s=0.0)
    os.close(lock)
    assert sent == []


@pytest.mark.parametrize("pid", [0, 1, -1, os.getpgrp()])
def test_neither_this_process_group_nor_everybody_is_stopped(pid: int, root: Path) -> None:
    run = RunFolder(root / "r")
    run.path.mkdir()
    run.engine_file.write_text(json.dumps({"pid": pid, "started": supervisor.process_start(pid)}))
    lock, heard = liveness.hold(run), list[int]()
    before = signal.signal(signal.SIGTERM, lambda number, frame: heard.append(number))
    assert not supervisor.stop(run, grace_s=0.1)
    signal.signal(signal.SIGTERM, before)
    os.close(lock)
    assert heard == []
