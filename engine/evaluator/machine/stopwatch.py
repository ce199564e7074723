"""Adds up where time goes while one piece of work is done. Parts may lie in each other; each counts without the inner.

One per thread of work. A second process has its own and hands over what it found as plain figures.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from storage.results.timeline import Part, Timeline

LEAST_S = 0.001


class Stopwatch:
    """Starts when it is made. Costs about a microsecond for each part, so it stays out of timed calls."""

    def __init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Begin anew, with nothing spent."""
        self.parts: dict[str, float] = {}
        self.lease_s = 0.0
        self._inner_s = 0.0
        self._began = time.monotonic()

    @contextmanager
    def on(self, part: Part) -> Iterator[None]:
        """What happens inside belongs to this part, but for parts inside it."""
        began, outer_s = time.monotonic(), self._inner_s
        self._inner_s = 0.0
        try:
            yield
        finally:
            took_s = time.monotonic() - began
            self.parts[part] = self.parts.get(part, 0.0) + max(0.0, took_s - self._inner_s)
            self._inner_s = outer_s + took_s

    def add(self, part: str, seconds: float) -> None:
        """Time that was measured elsewhere, and passed inside whatever is open here."""
        self.parts[part] = self.parts.get(part, 0.0) + seconds
        self._inner_s += seconds

    def add_before(self, part: str, seconds: float) -> None:
        """Time that passed before the start and belongs to the work all the same."""
        self.parts[part] = self.parts.get(part, 0.0) + seconds
        self._began -= seconds

    def take(self, parts: Mapping[str, float]) -> None:
        """What another process found while this one waited for it."""
        for part, seconds in parts.items():
            self.add(part, seconds)

    def timeline(self) -> Timeline:
        """What was spent since the start."""
        parts = {name: round(seconds, 3) for name, seconds in self.parts.items() if seconds >= LEAST_S}
        return Timeline(round(time.monotonic() - self._began, 3), round(self.lease_s, 3), parts)
