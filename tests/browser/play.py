"""A stand-in for an engine: holds a run's lock and appends the events that a test wants to see arrive."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

from storage.run import events as ev
from storage.run import liveness
from storage.run.folder import RunFolder
from storage.run.journal import Entry, Journal
from storage.run.steering import commands
from storage.run.steering.verbs import Command
from tests import samples


class PretendEngine:
    """A run written up to some event, with an engine that looks alive."""

    def __init__(self, runs: Path, run_id: str, depths: int = 6, seed: int = 0) -> None:
        settings = samples.sample_settings(run_id, seed, depths)
        self.script = samples.sample_script(settings, seed)
        self.folder = RunFolder(runs / run_id)
        samples.write_blobs(self.folder, self.script)
        self.folder.write_settings(settings)
        self._lock = liveness.hold(self.folder)
        self._journal = Journal(self.folder.journal_file)
        self._left: list[Entry] = list(self.script.entries)
        self._offset = 0

    def play_until(self, is_last: Callable[[ev.Event], bool], times: int = 1) -> ev.Event:
        """Append the script's events up to the n-th one that fits."""
        while self._left:
            entry = self._left.pop(0)
            if _is_steering(entry.event):
                continue
            self._journal.append(entry.event)
            times -= is_last(entry.event)
            if not times:
                return entry.event
        raise AssertionError("the script ended before")

    def emit(self, event: ev.Event) -> None:
        self._journal.append(event)

    def asked(self) -> list[Command]:
        """Commands that have been sent since the last look."""
        found, self._offset = commands.read_from(self.folder.commands_file, self._offset)
        return found

    def next_command(self, patience_s: float = 20.0) -> Command:
        """The one command sent since the last look; a click takes a moment to become one."""
        deadline = time.monotonic() + patience_s
        while not (found := self.asked()):
            assert time.monotonic() < deadline, "no command was sent"
            time.sleep(0.02)
        (command,) = found
        return command

    def write(self, text: str) -> None:
        """Go on with the reply that is being written."""
        with open(self.folder.stream_file, "a") as stream:
            stream.write(text)

    def die(self) -> None:
        """End without a last word."""
        self._journal.close()
        os.close(self._lock)


def finished_depth(event: ev.Event) -> bool:
    return isinstance(event, ev.DepthFinished)


def model_step(event: ev.Event) -> bool:
    return isinstance(event, ev.StepStarted) and event.kind in ("optimise", "repair", "synthesise", "diagnose")


def _is_steering(event: ev.Event) -> bool:
    return isinstance(event, (ev.CommandAcknowledged, ev.CommandEffective, ev.CommandRefused))
