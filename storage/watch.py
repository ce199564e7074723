"""Wakes someone when a run's files change. Only a hint: events merge and get lost; the woken one looks for itself."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from pathlib import Path

from watchdog.events import (
    DirCreatedEvent,
    DirMovedEvent,
    FileCreatedEvent,
    FileModifiedEvent,
    FileMovedEvent,
    FileSystemEvent,
    FileSystemEventHandler,
)
from watchdog.observers import Observer

_log = logging.getLogger(__name__)

# Without this list the reader's own opens and closes would wake it for ever.
_KINDS = [FileModifiedEvent, FileCreatedEvent, FileMovedEvent, DirCreatedEvent, DirMovedEvent]


def is_wanted() -> bool:
    """False where people asked for polling, as they must on network file systems, which report no events."""
    return os.environ.get("TILEWRIGHT_WATCH", "") != "poll"


class Watch(FileSystemEventHandler):
    """Calls `wake(run_id)` from its own thread when one of the named files of a run changes."""

    def __init__(self, root: Path, files: frozenset[str], wake: Callable[[str], None]) -> None:
        self._root = os.fspath(root)
        self._files = files
        self._wake = wake
        self._observer = Observer()

    def start(self) -> bool:
        """False when the system refuses to watch (its limits are used up): polling has to do then."""
        Path(self._root).mkdir(parents=True, exist_ok=True)
        self._observer.schedule(self, self._root, recursive=True, event_filter=_KINDS)
        try:
            self._observer.start()
        except OSError as error:
            _log.warning("cannot watch %s (%s): looking once a second instead", self._root, error)
            return False
        return True

    def stop(self) -> None:
        """End the thread."""
        if self._observer.is_alive():
            self._observer.stop()
            self._observer.join()

    def on_any_event(self, event: FileSystemEvent) -> None:
        """Only note the run's name: opening a file here would cause the next event."""
        path = os.fsdecode(event.dest_path or event.src_path)
        run_id, _, file = path.removeprefix(self._root).strip(os.sep).partition(os.sep)
        if run_id and (file in self._files or not file):
            self._wake(run_id)
