"""What all runs under one home have spent today, and the limits of a day. Knows sums, not what was asked.

`budget.toml` in the home folder, edited by people, holds the limits:

    [day]
    calls = 200
    tokens = 2000000
    cost = 20.0          # US dollars

Every call that may cost something is entered before it is sent, under a lock that all engines share, so that two runs
together keep to the limits as well. A day is the machine's local date.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

from engine.errors import ModelError
from storage import codec, files, untrusted
from storage.untrusted import UntrustedError

FILE = "budget.toml"
FOLDER = "spent"
_WORDS = {"calls": "calls", "tokens": "tokens", "cost": "US dollars"}
_LARGEST = 2.0**53


@dataclass(frozen=True, slots=True)
class Spent:
    """Calls, tokens and US dollars; `unpriced` calls cost something that nobody knows."""

    calls: int = 0
    tokens: int = 0
    cost: float = 0.0
    unpriced: int = 0


class Ledger:
    """The day's entries of one home. Entries are only ever added; a correction is an entry of its own."""

    def __init__(self, home: Path, now: Callable[[], float] = time.time) -> None:
        self._home = home
        self._now = now

    def reserve(self, expected: Spent) -> str | None:
        """Enter a call that is about to be sent; when a limit of the day forbids it, say which and enter nothing."""
        limits = read_limits(self._home / FILE)
        with self._open() as file:
            if limits and (reason := _refusal(_sum(file.read())[0], expected, limits)):
                return reason
            _enter(file, expected)
        return None

    def has_room(self, more: Spent) -> bool:
        """Whether the limits of the day leave room for that; enters nothing."""
        limits = read_limits(self._home / FILE)
        return not limits or _refusal(self.spent(), more, limits) is None

    def settle(self, expected: Spent, actual: Spent) -> None:
        """Correct an entry by what the call turned out to be."""
        difference = Spent(
            actual.calls - expected.calls,
            actual.tokens - expected.tokens,
            actual.cost - expected.cost,
            actual.unpriced - expected.unpriced,
        )
        if difference != Spent():
            with self._open() as file:
                _enter(file, difference)

    def spent(self) -> Spent:
        """What was spent today, entries apart that cannot be read."""
        return self._read()[0]

    def damage(self) -> str:
        """What of the day's entries cannot be read, as a sentence; empty where all can."""
        count = self._read()[1]
        lines = "1 line of it cannot be read and is" if count == 1 else f"{count} lines of it cannot be read and are"
        return f"{self._file()} says what was spent today; {lines} left out of the sums" if count else ""

    def shares(self) -> list[tuple[str, float, float]]:
        """(words, used today, allowed) of every limit of a day that is set."""
        limits = read_limits(self._home / FILE)
        spent = self.spent() if limits else Spent()
        return [(f"{_WORDS[name]} of a day", getattr(spent, name), allowed) for name, allowed in limits.items()]

    def _file(self) -> Path:
        day = time.strftime("%Y-%m-%d", time.localtime(self._now()))
        return self._home / FOLDER / f"{day}.jsonl"

    def _open(self) -> files.Lines:
        files.make_folder(self._home / FOLDER)
        return files.Lines(self._file())

    def _read(self) -> tuple[Spent, int]:
        try:
            return _sum(self._file().read_bytes())
        except FileNotFoundError:
            return Spent(), 0


def read_limits(path: Path) -> dict[str, float]:
    """The limits of a day by name; empty when none are set.

    Raises:
        ModelError: the file cannot be read, or names something else than a limit: no call is sent on a guess.
    """
    try:
        table: Any = untrusted.read_toml(path).get("day", {})
    except FileNotFoundError:
        return {}
    except UntrustedError as error:
        raise ModelError(f"cannot read the daily limits: {error}") from error
    is_right = isinstance(table, dict) and all(
        name in ("calls", "tokens", "cost") and type(value) in (int, float) and value >= 0
        for name, value in table.items()
    )
    if not is_right:
        raise ModelError(f"{path}: [day] takes calls, tokens and cost, each a number")
    return dict(table)


def write_limits(path: Path, limits: Mapping[str, float]) -> None:
    """Set the limits of a day; the file is replaced as a whole, and its former self kept beside it.

    Raises:
        ModelError: the file cannot be read, so what people wrote there would be lost unseen.
    """
    read_limits(path)
    if path.exists():
        files.replace(path.with_suffix(".toml.before"), path.read_bytes())
    lines = [f"{name} = {limits[name]!r}" for name in _WORDS if name in limits]
    files.replace(path, "\n".join(["[day]", *lines]) + "\n")


def _refusal(spent: Spent, expected: Spent, limits: dict[str, float]) -> str | None:
    if "cost" in limits and (spent.unpriced or expected.unpriced):
        return "the day's money budget cannot be kept: the price of a call is unknown (see prices.toml)"
    for name, allowed in limits.items():
        used, more = getattr(spent, name), getattr(expected, name)
        if used >= allowed or used + more > allowed:
            return f"daily limit reached: {used:g} of {allowed:g} {_WORDS[name]} used by all runs (set in {FILE})"
    return None


def _sum(text: bytes) -> tuple[Spent, int]:
    """The sum of all entries that can be read, and how many cannot; one that is being written is left out."""
    entries, damaged = list[Spent](), 0
    for line in text.split(b"\n")[:-1]:
        try:
            entry: Spent = codec.read_line(Spent, line)
        except codec.DecodeError:
            damaged += 1
            continue
        is_right = all(abs(number) < _LARGEST for number in astuple(entry))  # not of NaN either
        damaged += not is_right
        entries += [entry] if is_right else []
    return Spent(*map(sum, zip(*map(astuple, entries), strict=True))), damaged


def _enter(file: files.Lines, spent: Spent) -> None:
    file.append([codec.dumps(spent)])
