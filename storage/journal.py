"""The run's journal: events as lines of JSON, one `os.write` each. Knows the events, not who reads them."""

from __future__ import annotations

import json
import os
import time
import typing
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from storage import codec, events

_KINDS: dict[str, type] = {kind.__name__: kind for kind in typing.get_args(events.Event)}
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


@dataclass(frozen=True, slots=True)
class Entry:
    """One journal line: `seq` rises by one from 1, `time` is seconds since the epoch."""

    seq: int
    time: float
    event: events.Event


def encode(entry: Entry) -> str:
    """One line without its newline."""
    head = {"seq": entry.seq, "time": entry.time, "kind": type(entry.event).__name__}
    return codec.dumps(head | {"event": codec.to_plain(entry.event)})


def decode(line: str) -> Entry:
    """Read one line.

    Raises:
        codec.DecodeError: not a journal line, or of a kind this version does not know.
    """
    try:
        fields = json.loads(line)
        kind = _KINDS[fields["kind"]]
        return Entry(int(fields["seq"]), float(fields["time"]), codec.from_plain(kind, fields["event"]))
    except (ValueError, KeyError, TypeError, OverflowError) as error:
        raise codec.DecodeError(f"not a journal line ({error!r}): {line[:200]}") from error


class Journal:
    """Appends events. One writer per run: the engine that holds the run's lock."""

    def __init__(self, path: Path, clock: Callable[[], float] = time.time) -> None:
        self.path = path
        self._clock = clock
        _drop_torn_tail(path)
        self.entries = list(read(path))
        self._seq = self.entries[-1].seq if self.entries else 0
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)

    def append(self, event: events.Event) -> Entry:
        """Write one event; results and acknowledgements are on disk when this returns."""
        entry = Entry(self._seq + 1, self._clock(), event)
        line = (encode(entry) + "\n").encode("utf-8", "surrogatepass")
        if os.write(self._file, line) != len(line):
            raise OSError(f"{self.path}: the disk took only part of a line")
        if isinstance(event, _DURABLE):
            os.fsync(self._file)
        self._seq = entry.seq
        self.entries.append(entry)
        return entry

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)


def read(path: Path) -> Iterator[Entry]:
    """Whole lines of a journal; a torn last line is left out."""
    if path.exists():
        with open(path, "rb") as file:
            for line in file:
                if line.endswith(b"\n"):
                    yield decode(line.decode("utf-8", "surrogatepass"))


def read_from(path: Path, offset: int, limit_bytes: int = 1 << 24) -> tuple[list[Entry], int]:
    """Whole lines from a byte offset on, and the offset after them."""
    if not path.exists():
        return [], offset
    with open(path, "rb") as file:
        file.seek(offset)
        data = file.read(limit_bytes)
        while data and b"\n" not in data and (more := file.read(limit_bytes)):
            data += more
    whole = data[: data.rfind(b"\n") + 1]
    return [decode(line) for line in whole.decode("utf-8", "surrogatepass").split("\n") if line], offset + len(whole)


def _drop_torn_tail(path: Path) -> None:
    """Cut a line that a killed engine could not finish: it was never acknowledged, and its move is redone."""
    if not path.exists():
        return
    data = path.read_bytes()
    keep = data.rfind(b"\n") + 1
    if keep != len(data):
        with open(path, "r+b") as file:
            file.truncate(keep)
