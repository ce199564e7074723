"""A run as it stood at an earlier point of its journal. Knows a run's files; writes none of them."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from storage.index import chunks, database
from storage.index.database import Database
from storage.run import events, journal
from storage.run.folder import ORIGINAL, RunFolder
from storage.run.journal import Entry


@dataclass(frozen=True, slots=True)
class Course:
    """A whole journal, and after how many of its events each finished step ended, in order."""

    entries: Sequence[Entry]
    ends: Sequence[int]

    def until(self, step: int) -> Sequence[Entry]:
        """Everything up to the end of a step; before the first step's end what came before it began, after the last
        one's all there is."""
        if step >= len(self.ends):
            return self.entries
        return self.entries[: self.ends[step - 1] if step > 0 else self._before_the_first]

    @property
    def _before_the_first(self) -> int:
        kinds = (isinstance(entry.event, events.StepStarted) for entry in self.entries)
        return next((index for index, is_start in enumerate(kinds) if is_start), len(self.entries))


def course_of(replay: RunFolder) -> Course:
    """What a replay tells, the part that it has not told yet included; empty where its copy of the journal is gone."""
    file = replay.path / ORIGINAL
    try:
        stat = file.stat()
    except OSError:
        return Course((), ())
    return _course(file, stat.st_mtime_ns, stat.st_size)


@functools.lru_cache(maxsize=4)
def _course(file: Path, _changed: int, _size: int) -> Course:
    entries = tuple(journal.read(file))
    finished = (isinstance(entry.event, events.StepFinished) for entry in entries)
    return Course(entries, tuple(index + 1 for index, is_end in enumerate(finished) if is_end))


def index_until(run: RunFolder, entries: Sequence[Entry]) -> Database:
    """An index of its own, in memory, that holds one run with these events and no more. The caller closes it."""
    index = database.in_memory()
    chunk = chunks.whole_of(run, entries)
    with index.transaction() as writer:
        writer.add(chunk.rows)
        writer.put(chunk.states)
    return index
