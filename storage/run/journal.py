"""The run's journal: events as lines of JSON, one `os.write` each. Knows the events, not who reads them.

Beside it `journal.seq` keeps the number of the last event written: it tells a journal that was cut at its end from one
whose engine was killed.
"""

from __future__ import annotations

import contextlib
import os
import time
import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from storage import codec, files, untrusted
from storage.run import events
from storage.untrusted import UntrustedError

# Events whose name in journals is older than that of their record.
_WRITTEN_AS: Mapping[type, str] = {events.ApprovalAsked: "LeaveAsked", events.ApprovalSettled: "LeaveSettled"}
_KINDS: dict[str, type] = {_WRITTEN_AS.get(kind, kind.__name__): kind for kind in typing.get_args(events.Event)}
_DURABLE = (
    events.RunStarted,
    events.CallSent,
    events.CallFailed,
    events.ModelCalled,
    events.CandidateCreated,
    events.QuestionAsked,
    events.Imported,
    events.Compiled,
    events.Checked,
    events.Timed,
    events.Profiled,
    events.DepthFinished,
    events.CommandAcknowledged,
    events.CommandEffective,
    events.CommandRefused,
    events.BudgetChanged,
    events.RunEnded,
)


LARGEST_SEQ = 2**53


@dataclass(frozen=True, slots=True)
class Entry:
    """One journal line: `seq` rises by one from 1, `time` is seconds since the epoch."""

    seq: int
    time: float
    event: events.Event


class FaultKind(StrEnum):
    """What can be wrong with a run's files. NEWER is no damage: another version of Tilewright wrote the event. FOREIGN
    is none either: run.json has the id of another run. CLOSED is a file that cannot be read at all."""

    UNREADABLE = "unreadable"
    MISSING = "missing"
    REPEATED = "repeated"
    NEWER = "newer"
    FOREIGN = "foreign"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class Fault:
    """Events `first` to `last` that a reader has to do without. An unreadable line has the least number it can have."""

    kind: FaultKind
    first: int
    last: int
    message: str = ""


class NewerEventError(codec.DecodeError):
    """A whole line of a kind that this version does not know."""

    def __init__(self, seq: int, kind: str) -> None:
        super().__init__(f"event {seq} is of a kind that this version does not know: {kind[:80]}")
        self.seq, self.kind = seq, kind[:80]


class DamagedJournalError(codec.DecodeError):
    """A journal with holes: what a run did and spent cannot be told from it, so no engine may go on with it."""

    def __init__(self, faults: list[Fault]) -> None:
        super().__init__("; ".join(f"event {fault.first}: {fault.kind}" for fault in faults[:5]))
        self.faults = faults


def kind_of(event: events.Event) -> str:
    """What a journal calls an event of this kind."""
    return name_of(type(event))


def name_of(kind: type[events.Event]) -> str:
    """What a journal calls events of this kind."""
    return _WRITTEN_AS.get(kind, kind.__name__)


def encode(entry: Entry) -> str:
    """One line without its newline."""
    head = {"seq": entry.seq, "time": entry.time, "kind": kind_of(entry.event)}
    return codec.dumps(head | {"event": codec.to_plain(entry.event)})


def decode(line: str | bytes) -> Entry:
    """Read one line.

    Raises:
        NewerEventError: of a kind this version does not know.
        codec.DecodeError: not a journal line.
    """
    try:
        fields = untrusted.json_value(line, "the line", codec.LINE)
        seq, at, name = fields["seq"], float(fields["time"]), fields["kind"]
        if type(seq) is not int or not 0 < seq < LARGEST_SEQ or not 0 <= at <= codec.LATEST:
            raise ValueError("a number is out of range")
        if name not in _KINDS and isinstance(name, str) and name.isidentifier():
            raise NewerEventError(seq, name)
        return Entry(seq, at, codec.from_plain(_KINDS[name], fields["event"]))
    except NewerEventError:
        raise
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        raise codec.DecodeError(f"not a journal line ({error!r}): {line[:200]!r}") from error


class Reader:
    """Reads lines one after the other and notes what is wrong with them. `seq` is the last number read."""

    def __init__(self, seq: int = 0) -> None:
        self.seq = seq

    def take(self, line: bytes) -> tuple[Entry | None, list[Fault]]:
        """One line without its newline. An event whose number has been read before is left out."""
        if not line:
            return None, []
        try:
            entry: Entry | None = decode(line)
            seq, newer = typing.cast(Entry, entry).seq, []
        except NewerEventError as error:
            entry, seq, newer = None, error.seq, [Fault(FaultKind.NEWER, error.seq, error.seq, error.kind)]
        except ValueError as error:
            return None, [Fault(FaultKind.UNREADABLE, self.seq + 1, self.seq + 1, f"{error}"[:500])]
        if seq <= self.seq:
            return None, [Fault(FaultKind.REPEATED, seq, seq, f"event {seq} stands in the journal again")]
        gap = [Fault(FaultKind.MISSING, self.seq + 1, seq - 1)] if seq > self.seq + 1 else []
        self.seq = seq
        return entry, gap + newer


class Journal:
    """Appends events. One writer per run: the engine that holds the run's lock.

    `lost_events` were written after the last one that the file still has when it is opened.

    Raises:
        DamagedJournalError: events are missing before the end; nothing is changed.
    """

    def __init__(self, path: Path, clock: Callable[[], float] = time.time) -> None:
        self.path = path
        self._clock = clock
        self.entries, faults = survey(path)
        if faults:
            raise DamagedJournalError(faults)
        self._lines = files.Lines(path, is_shared=False)
        self._seq = self.entries[-1].seq if self.entries else 0
        self.lost_events = max(0, (last_written(path) or 0) - self._seq)
        self._end = os.open(path.with_suffix(".seq"), os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)

    def append(self, event: events.Event) -> Entry:
        """Write one event; results and acknowledgements are on disk when this returns.

        Raises:
            OSError: the disk is full or fails. Unless the line is whole nothing of it is left.
        """
        entry = Entry(self._seq + 1, self._clock(), event)
        self._lines.append([encode(entry)], is_durable=False)
        self._seq = entry.seq
        self.entries.append(entry)
        with contextlib.suppress(OSError):  # the event counts all the same
            os.pwrite(self._end, b"%16d\n" % entry.seq, 0)
        if isinstance(event, _DURABLE):
            self._lines.sync()
        return entry

    def close(self) -> None:
        """Close the files."""
        self._lines.close()
        os.close(self._end)


def last_written(path: Path) -> int | None:
    """The number of the last event that an engine wrote to this journal; None where that was not kept."""
    try:
        text = untrusted.read_text(path.with_suffix(".seq"))
        return untrusted.whole_number(text, "the number of the last event", most=LARGEST_SEQ)
    except (FileNotFoundError, UntrustedError):
        return None


def read(path: Path) -> Iterator[Entry]:
    """Every event that can be read; a torn last line is left out."""
    return reading(path, lambda fault: None)


def survey(path: Path) -> tuple[list[Entry], list[Fault]]:
    """Every event that can be read, and what is wrong with the rest."""
    faults: list[Fault] = []
    return list(reading(path, faults.append)), faults


def reading(path: Path, tell: Callable[[Fault], object]) -> Iterator[Entry]:
    """Every event that can be read, one after the other; `tell` hears what is wrong with the rest."""
    reader = Reader()
    try:
        for line in untrusted.lines(path):
            entry, faults = reader.take(line)
            for fault in faults:
                tell(fault)
            if entry:
                yield entry
    except UntrustedError as error:
        tell(Fault(FaultKind.CLOSED, reader.seq + 1, reader.seq + 1, f"{error}"))


def read_from(path: Path, offset: int, limit_bytes: int = 1 << 24) -> tuple[list[Entry], int]:
    """Whole lines from a byte offset on, about `limit_bytes` at most, and the offset after them.

    Raises:
        codec.DecodeError: one of them is no journal line.
        UntrustedError: the file cannot be read.
    """
    entries: list[Entry] = []
    end = offset
    for line in untrusted.raw_lines(path, offset):
        end += len(line)
        entries += [decode(line)] if line != b"\n" else []
        if end - offset >= limit_bytes:
            break
    return entries, end
