"""Keeps the index in step with the run folders: what is new is written with how far it is read. That the knowledge base
beside them has changed is told too; who shows it reads its files.
"""

from __future__ import annotations

import logging
import os
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import duckdb
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
from watchdog.observers.api import BaseObserver

from storage import untrusted
from storage.index import chunks
from storage.index.chunks import (
    COMMANDS,
    FILES,
    JOURNAL,
    LABELS,
    SETTINGS,
    Chunk,
    Position,
    read_commands,
    read_journal,
    read_labels,
)
from storage.index.database import Database
from storage.index.fold import RunFold
from storage.knowledge.files import EVIDENCE, FAILURES, REVISIONS
from storage.run import folder
from storage.run.folder import RunFolder
from storage.untrusted import UntrustedError

POLL_S = 1.0
LONGEST_PAUSE_S = 4.0
LOOKING_SHARE = 0.02  # of a processor core
DEBOUNCE_S = 0.05
BATCH_BYTES = 1 << 21
ROUND_BYTES = 1 << 22
MOST_FOLDS = 64
KNOWLEDGE = "knowledge/"  # in the place of a run's id, which none can be

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Lag:
    """How far the index is behind the files: bytes not yet read, and seconds since the oldest of them was written."""

    size: int
    seconds: float


class Ingest:
    """One per index. A thread of its own once started; `catch_up` does the same work at once, for whoever waits.

    The index lags behind only while `failure` says why.
    """

    def __init__(self, db: Database, root: Path | None = None) -> None:
        self._failures: dict[str, str] = {}
        self._db = db
        self._root = root or folder.runs_folder()
        self._knowledge = self._root.parent / "knowledge"
        self._read: dict[str, dict[str, Position]] = {}
        for run_id, file, *position in db.positions():
            self._read.setdefault(run_id, {})[file] = Position(*position)
        self._learned: tuple[Position | None, ...] = ()
        self._folds: dict[str, RunFold] = {}
        self._passes = threading.Lock()
        self._names: set[str] = set()
        self._foreign: set[str] = set()
        self._news = threading.Condition()
        self._is_stopping = False
        self._thread: threading.Thread | None = None
        self._watches: list[Watch] = []

    def start(self) -> None:
        """Begin to follow the run folders. What is there already is read by the thread, first."""
        self._is_stopping = False
        if is_watching_wanted():
            self._watches.append(Watch(self._root, frozenset(FILES), self._note))
            self._watches.append(Watch(self._knowledge, frozenset(), lambda file: self._note(KNOWLEDGE)))
            for watch in self._watches:
                watch.start()
        self._thread = threading.Thread(target=self._work, name="ingest", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Finish the batch in hand and end the thread."""
        for watch in self._watches:
            watch.stop()
        with self._news:
            self._is_stopping = True
            self._news.notify_all()
        if self._thread:
            self._thread.join()
        self._watches, self._thread = [], None

    @property
    def failure(self) -> str:
        """Why the index, or some run in it, does not move on; empty while all is well."""
        return "; ".join(self.failures.values())

    @property
    def failures(self) -> dict[str, str]:
        """Why each run that does not move on does not, by run; what holds up all of them has an empty name."""
        failures = dict(self._failures)
        if self._thread and not self._thread.is_alive():
            failures[""] = "the thread that reads run folders has ended: restart the dashboard"
        return failures

    def lag(self) -> Lag:
        """What is on disk and not yet in the index. Looks at every run's files; a half-written last line counts."""
        waiting = [unread for run_id in self._on_disk() - self._foreign for unread in self._unread(run_id)]
        since = min((changed for _, changed in waiting), default=time.time())
        return Lag(sum(count for count, _ in waiting), max(0.0, time.time() - since) if waiting else 0.0)

    def has_read(self, run_id: str) -> bool:
        """Whether the index holds all that can be read of a run's journal: neither a last line without its end, nor
        what comes after something that cannot be read."""
        at = self._read.get(run_id, {}).get(JOURNAL)
        try:
            with untrusted.open_file(self._root / run_id / JOURNAL) as file:
                file.seek(at.offset if at else 0)
                return b"\n" not in file.read(BATCH_BYTES) or bool(self.failures)
        except (OSError, UntrustedError):
            return True

    def _unread(self, run_id: str) -> Iterator[tuple[int, float]]:
        """Unread bytes of each file that has any, and when it was last written."""
        read = self._read.get(run_id, {})
        for file in FILES:
            try:
                stat = (self._root / run_id / file).stat()
            except OSError:
                continue
            if left := stat.st_size - (read[file].offset if file in read else 0):
                yield max(left, 0), stat.st_mtime

    def catch_up(self) -> None:
        """Read everything that is whole now and return when it can be queried.

        Raises:
            duckdb.Error: the index cannot be written.
        """
        with self._passes:
            self._look_at_knowledge()
            present = self._on_disk()
            for run_id in sorted(self._read.keys() - present):
                self._forget(run_id)
            while self._follow(self._newest_first(present)):
                present = self._on_disk()

    def _look_at_knowledge(self) -> None:
        """Tell where the files of the knowledge base are others than at the last look."""
        now = tuple(chunks.end_of(self._knowledge / file) for file in (EVIDENCE, REVISIONS, FAILURES))
        if now != self._learned:
            self._learned = now
            self._db.mark_changed([KNOWLEDGE])

    def look_at(self, run_ids: Iterable[str]) -> None:
        """Read what is new of these runs at once: what a person has just changed, deleted or restored shows at once.

        Raises:
            duckdb.Error: the index cannot be written.
        """
        with self._passes:
            present = self._on_disk()
            for run_id in sorted(set(run_ids) & (self._read.keys() - present)):
                self._forget(run_id)
            while self._follow(sorted(set(run_ids) & present)):
                pass

    def _newest_first(self, run_ids: set[str]) -> list[str]:
        """Runs not read yet come after the others and newest first: those are what people look at."""
        ages = {run_id: self._age(run_id) for run_id in run_ids - self._read.keys()}
        return [*sorted(run_ids & self._read.keys()), *sorted(ages, key=lambda run_id: (ages[run_id], run_id))]

    def _age(self, run_id: str) -> float:
        try:
            return -(self._root / run_id / SETTINGS).stat().st_mtime
        except OSError:
            return 0.0

    def _work(self) -> None:
        next_look = time.monotonic()
        while not self._is_stopping:
            if time.monotonic() >= next_look:
                began = time.thread_time()
                self._try(None)
                next_look = time.monotonic() + _pause(time.thread_time() - began)
            if names := self._changed_runs(next_look):
                self._try(names)

    def _note(self, run_id: str) -> None:
        with self._news:
            self._names.add(run_id)
            self._news.notify_all()

    def _changed_runs(self, until: float) -> set[str]:
        """Names of changed runs, collected for a moment so that a burst is one batch; empty when it is time to look."""
        with self._news:
            self._news.wait_for(lambda: bool(self._names) or self._is_stopping, max(0.0, until - time.monotonic()))
            if self._names:
                self._news.wait_for(lambda: self._is_stopping, DEBOUNCE_S)
            names, self._names = self._names, set()
        return names

    def _try(self, names: set[str] | None) -> None:
        """Nothing must end the thread: it is shown, and tried again."""
        try:
            if names is None:
                self.catch_up()
            else:
                with self._passes:
                    self._look_at_knowledge()
                    self._follow(sorted(names & self._on_disk()))
            self._failures.pop("", None)
        except Exception as error:  # noqa: BLE001 - a thread that ends unseen would leave every page as it is for ever
            self._report("", error)

    def _report(self, run_id: str, error: Exception) -> None:
        text = f"{error}" if isinstance(error, UntrustedError) else f"{type(error).__name__}: {error}"
        if self._failures.get(run_id) != text:
            _log.error("the index cannot follow %s: %s", self._root / run_id, text)
        self._failures[run_id] = text

    def _on_disk(self) -> set[str]:
        if not self._root.is_dir():
            return set()
        return {path.name for path in self._root.iterdir() if folder.has_settings(path)}

    def _follow(self, run_ids: Iterable[str]) -> bool:
        """Write the news of these runs, several to a transaction but no more than a batch of bytes.

        True when some run has more to read: a very long journal is read in rounds, so that others need not wait for it.
        """
        batch: list[Chunk] = []
        is_behind = False
        for run_id in run_ids:
            size = 0
            for chunk in self._readable_news_of(run_id):
                batch.append(chunk)
                size += chunk.size
                if sum(c.size for c in batch) >= BATCH_BYTES:
                    self._commit(batch)
                    batch = []
                if size >= ROUND_BYTES:
                    is_behind = True
                    break
        self._commit(batch)
        return is_behind

    def _readable_news_of(self, run_id: str) -> Iterator[Chunk]:
        """News of one run. One that cannot be read, or is deleted just now, does not hold up the others."""
        try:
            yield from self._news_of(RunFolder(self._root / run_id))
            self._failures.pop(run_id, None)
        except FileNotFoundError:
            return
        except Exception as error:  # noqa: BLE001 - whatever one run's files say, the others are shown as ever
            self._folds.pop(run_id, None)
            self._report(run_id, error)

    def _news_of(self, run: RunFolder) -> Iterator[Chunk]:
        """New stretches of a run's files. A run whose files were replaced or cut is read again from the start.

        Raises:
            UntrustedError: some of them are no files, or may not be read; of the others there is all that is new.
        """
        read, closed = self._read.get(run.run_id, {}), list[str]()
        ends = {file: _end(run.path / file, read.get(file), closed) for file in FILES}
        if any(_is_outdated(file, position, ends[file]) for file, position in read.items()):
            self._forget(run.run_id)
            read = {}
        if (settings := ends[SETTINGS]) and SETTINGS not in read:
            chunk, fold = chunks.read_settings(run, settings)
            if fold:
                self._folds[run.run_id] = fold
            yield chunk
        if JOURNAL not in read and folder.claimed_id(run):  # of such a folder nothing but that is ever read
            self._foreign.add(run.run_id)
            return
        self._foreign.discard(run.run_id)
        readers = (JOURNAL, self._read_journal), (COMMANDS, read_commands), (LABELS, read_labels)
        for file, read_new in readers:
            try:
                if (end := ends[file]) and end.offset > (start := read.get(file, Position(end.inode))).offset:
                    yield from read_new(run, start)
            except UntrustedError as error:
                closed.append(f"{error}")
        if closed:
            raise UntrustedError("; ".join(closed))

    def _read_journal(self, run: RunFolder, start: Position) -> Iterator[Chunk]:
        """With the fold of what is read of it already, made again where it was let go."""
        fold = self._folds.pop(run.run_id, None) or chunks.fold_until(run, start, self._db.snapshot_of(run.run_id))
        if fold:
            self._folds[run.run_id] = fold
        yield from read_journal(run, start, fold)

    def _let_go(self) -> None:
        """Folds of runs that are over, and where runs are many those that had news longest ago."""
        for run_id in [name for name, fold in self._folds.items() if fold.is_over]:
            del self._folds[run_id]
        for run_id in list(self._folds)[:-MOST_FOLDS]:
            del self._folds[run_id]

    def _commit(self, batch: list[Chunk]) -> None:
        """Runs are written one by one where they cannot be together, so that one alone is left behind."""
        run_ids = list(dict.fromkeys(chunk.run_id for chunk in batch))
        try:
            self._write(batch)
            self._let_go()
        except (duckdb.Error, ValueError, TypeError, OverflowError):
            if len(run_ids) < 2:
                self._folds.pop(run_ids[0], None)
                raise
            for run_id in run_ids:
                self._write_one(run_id, [chunk for chunk in batch if chunk.run_id == run_id])

    def _write_one(self, run_id: str, batch: list[Chunk]) -> None:
        try:
            self._write(batch)
        except (duckdb.Error, ValueError, TypeError, OverflowError) as error:
            self._folds.pop(run_id, None)  # it is ahead of the index now
            self._report(run_id, error)

    def _write(self, batch: list[Chunk]) -> None:
        if not batch:
            return
        with self._db.transaction() as writer:
            writer.add(row for chunk in batch for row in chunk.all_rows)
            writer.put(state for chunk in batch for state in chunk.states)
        for chunk in batch:
            self._read.setdefault(chunk.run_id, {})[chunk.file] = chunk.end
        self._db.mark_changed({chunk.run_id for chunk in batch})

    def _forget(self, run_id: str) -> None:
        with self._db.transaction() as writer:
            writer.remove_run(run_id)
        self._read.pop(run_id, None)
        self._folds.pop(run_id, None)
        self._failures.pop(run_id, None)
        self._db.mark_changed([run_id])


def _pause(cost_s: float) -> float:
    """Seconds until the next look at all runs: rarer where there are thousands, since changes are told anyway."""
    return min(LONGEST_PAUSE_S, max(POLL_S, cost_s / LOOKING_SHARE))


def _end(path: Path, read: Position | None, closed: list[str]) -> Position | None:
    """Where a file ends now; as far as it is read where nobody may look, which is noted."""
    try:
        return chunks.end_of(path)
    except OSError as error:
        closed.append(f"{path} cannot be read: {error.strerror or error}")
        return read or Position(0)


def _is_outdated(file: str, read: Position, now: Position | None) -> bool:
    """Files only grow, and run.json not even that: anything else means that what was read may not be there any more."""
    if now is None or now.inode != read.inode:
        return True
    return now.offset != read.offset if file == SETTINGS else now.offset < read.offset


# Without this list the reader's own opens and closes would wake it for ever.
_KINDS = [FileModifiedEvent, FileCreatedEvent, FileMovedEvent, DirCreatedEvent, DirMovedEvent]


def is_watching_wanted() -> bool:
    """False where people asked for polling, as they must on network file systems, which report no events."""
    return os.environ.get("TILEWRIGHT_WATCH", "") != "poll"


class Watch(FileSystemEventHandler):
    """Calls `wake(run_id)` from its own thread when one of the named files of a run changes."""

    def __init__(self, root: Path, files: frozenset[str], wake: Callable[[str], None]) -> None:
        self._root = os.fspath(root)
        self._files = files
        self._wake = wake
        self._observer: BaseObserver | None = None
        # A run that was moved away and back is watched anew; watchdog calls that an overwriting, in 30 kB of text.
        warnings.filterwarnings("ignore", "Callback with id", RuntimeWarning)

    def start(self) -> bool:
        """False when the folder cannot be watched (none can be made, limits are used up): polling has to do then."""
        try:
            Path(self._root).mkdir(parents=True, exist_ok=True)
            observer = Observer()
            observer.schedule(self, self._root, recursive=True, event_filter=_KINDS)
            observer.start()
        except OSError as error:
            _log.warning("cannot watch %s (%s): looking once a second instead", self._root, error)
            return False
        self._observer = observer
        return True

    def stop(self) -> None:
        """End the thread."""
        if self._observer and self._observer.is_alive():
            self._observer.stop()
            self._observer.join()

    def on_any_event(self, event: FileSystemEvent) -> None:
        """Only note the run's name: opening a file here would cause the next event."""
        path = os.fsdecode(event.dest_path or event.src_path)
        run_id, _, file = path.removeprefix(self._root).strip(os.sep).partition(os.sep)
        if run_id and (file in self._files or not file):
            self._wake(run_id)
