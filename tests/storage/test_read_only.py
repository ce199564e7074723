"""On a read-only server nothing is written and no engine is touched, whoever calls."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path

import pytest

from engine import supervisor
from engine.errors import EngineError
from engine.networks import starting
from storage.run import labels, trash
from storage.run.folder import RunFolder
from storage.run.labels import LabelError
from storage.run.steering import commands
from storage.run.steering.commands import CommandError
from storage.run.steering.verbs import CommandKind
from storage.run.trash import TrashError
from tests import samples


def files(home: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in home.rglob("*")}


def test_nothing_that_writes_gets_past_the_guard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = samples.write_run(tmp_path / "runs", "shown", depths=2, ending="stopped")
    monkeypatch.setenv("TILEWRIGHT_HOME", str(tmp_path))
    before = files(tmp_path)
    monkeypatch.setenv("TILEWRIGHT_READ_ONLY", "1")
    for write in writers(folder):
        with pytest.raises(
            (EngineError, CommandError, LabelError, TrashError),
            match="read-only: start it without TILEWRIGHT_READ_ONLY to ",
        ):
            write()
    assert files(tmp_path) == before


def writers(folder: RunFolder) -> list[Callable[[], object]]:
    """Everything reachable from a page that writes or touches an engine."""
    found: list[Callable[[], object]] = [
        functools.partial(commands.send, folder.commands_file, kind, "1") for kind in CommandKind
    ]
    found.append(lambda: supervisor.start(samples.sample_settings("another")))
    found.append(lambda: supervisor.resume(folder))
    found.append(lambda: supervisor.stop(folder))
    found.append(lambda: supervisor.fork(folder, "c001"))
    found.append(lambda: supervisor.start_replay(folder.run_id, None))
    found.append(lambda: supervisor.delete_replay(folder.run_id))
    kernel = (folder.run_id, "c001")
    found.append(lambda: supervisor.remeasure(kernel, kernel))
    found.append(lambda: supervisor.stop_remeasuring("r"))
    found.append(lambda: starting.stop_measuring("n"))
    found.append(lambda: supervisor.set_day_limits({}))
    found.append(lambda: labels.change(folder, labels.archived()))
    found += [lambda: trash.delete(folder.run_id), lambda: trash.restore(folder.run_id), trash.empty]
    return found


def test_without_the_variable_the_guard_lets_everything_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TILEWRIGHT_READ_ONLY", raising=False)
    folder = samples.write_run(tmp_path / "runs", "steered", depths=2, ending="stopped")
    commands.send(folder.commands_file, CommandKind.STOP)
    assert len(commands.read_from(folder.commands_file)[0]) > 0
