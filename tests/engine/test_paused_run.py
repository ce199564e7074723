"""A run that a person has paused leaves the device, its line and its processes to others. With a real engine."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from engine.evaluator.machine import lease, turns
from engine.evaluator.machine.processes import descendants
from engine.evaluator.toolchains import cpu
from storage.run import events as ev
from storage.run import journal
from storage.run.folder import RunFolder
from storage.run.settings import RunState
from storage.run.steering import commands
from storage.run.steering.verbs import CommandKind
from tests.engine.test_cli import SET


def until(is_so: Callable[[], object]) -> None:
    deadline = time.monotonic() + 300
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_paused_run_holds_no_device_no_place_in_line_and_no_worker(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    leases = tmp_path / "leases"
    monkeypatch.setenv("TILEWRIGHT_LEASES", str(leases))
    words = ["run", "swish", "--model", "recorded", "--depths", "0", "--reply-seconds", "0", *SET]

    def tickets() -> list[Path]:
        return list((leases / turns.QUEUE).glob(f"{turns.TICKET}*"))

    def happened(kind: type) -> list[object]:
        found = (entry.event for entry in journal.read(folder.journal_file))
        return [event for event in found if isinstance(event, kind)]

    def is_device_free() -> bool:
        with lease.held_if_free(*cpu.lease_files()) as is_free:
            return is_free

    def is_paused() -> bool:
        told = [event.state for event in happened(ev.StateChanged) if isinstance(event, ev.StateChanged)]
        return bool(told) and told[-1] is RunState.PAUSED

    with ExitStack() as held:
        by_another = held.enter_context(ExitStack())
        by_another.enter_context(lease.hold(*cpu.lease_files()))
        engine = held.enter_context(subprocess.Popen([sys.executable, "-m", "engine", *words]))
        held.callback(engine.kill)
        until(tickets)
        (folder,) = (RunFolder(path) for path in (home / "runs").iterdir())
        commands.send(folder.commands_file, CommandKind.PAUSE)
        until(is_paused)
        assert tickets() == []
        assert descendants(engine.pid) == []
        commands.send(folder.commands_file, CommandKind.RESUME)
        until(tickets)  # it asks again
        by_another.close()
        until(lambda: happened(ev.Compiled))
        commands.send(folder.commands_file, CommandKind.PAUSE)
        until(is_paused)  # between two steps
        assert tickets() == []
        assert len(descendants(engine.pid)) <= 1, "but for the server that starts workers"
        until(is_device_free)  # a moment after the journal says that it is paused
        commands.send(folder.commands_file, CommandKind.RESUME)
        assert engine.wait(300) == 0
        assert len(happened(ev.Timed)) == 1
