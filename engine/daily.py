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

import fcntl
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.errors import ModelError
from storage import untrusted
from storage.untrusted import UntrustedError

FILE = "budget.toml"
FOLDER = "spent"
_WORDS = {"calls": "calls", "tokens": "tokens", "cost": "US dollars"}


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
        with self._locked() as file:
            if limits and (reason := _refusal(_sum(file), expected, limits)):
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
            with self._locked() as file:
                _enter(file, difference)

    def spent(self) -> Spent:
        """What was spent today."""
        with self._locked() as file:
            return _sum(file)

    def shares(self) -> list[tuple[str, float, float]]:
        """(words, used today, allowed) of every limit of a day that is set."""
        limits = read_limits(self._home / FILE)
        spent = self.spent() if limits else Spent()
        return [(f"{_WORDS[name]} of a day", getattr(spent, name), allowed) for name, allowed in limits.items()]

    @contextmanager
    def _locked(self) -> Iterator[int]:
        folder = self._home / FOLDER
        folder.mkdir(parents=True, exist_ok=True)
        day = time.strftime("%Y-%m-%d", time.localtime(self._now()))
        file = os.open(folder / f"{day}.jsonl", os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield file
        finally:
            os.close(file)


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
        shutil.copy2(path, path.with_suffix(".toml.before"))
    lines = [f"{name} = {limits[name]!r}" for name in _WORDS if name in limits]
    draft = path.with_suffix(f".{os.getpid()}")
    draft.write_text("\n".join(["[day]", *lines]) + "\n", encoding="utf-8")
    draft.replace(path)


def _refusal(spent: Spent, expected: Spent, limits: dict[str, float]) -> str | None:
    if "cost" in limits and (spent.unpriced or expected.unpriced):
        return "the day's money budget cannot be kept: the price of a call is unknown (see prices.toml)"
    for name, allowed in limits.items():
        used, more = getattr(spent, name), getattr(expected, name)
        if used >= allowed or used + more > allowed:
            return f"daily limit reached: {used:g} of {allowed:g} {_WORDS[name]} used by all runs (set in {FILE})"
    return None


def _sum(file: int) -> Spent:
    os.lseek(file, 0, os.SEEK_SET)
    with os.fdopen(os.dup(file), "rb") as text:
        entries = [json.loads(line) for line in text if line.endswith(b"\n")]
    return Spent(*(sum(entry[name] for entry in entries) for name in ("calls", "tokens", "cost", "unpriced")))


def _enter(file: int, spent: Spent) -> None:
    entry = {"calls": spent.calls, "tokens": spent.tokens, "cost": spent.cost, "unpriced": spent.unpriced}
    os.write(file, (json.dumps(entry) + "\n").encode())
    os.fsync(file)
