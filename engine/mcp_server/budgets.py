"""What one server may spend: evaluations, seconds of the device, runs. Knows no tool."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from engine.errors import EngineError

WHAT_STANDS = "What was judged stands: best_kernels, run_status, knowledge and the resources still answer."


class UsedUp(EngineError):
    """A budget of the server is used up; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Allowed:
    """Of a server, or what is left of it. `device_s`: how long evaluations may hold the device, as of a run."""

    evaluations: int
    device_s: float
    runs: int


class Budget:
    """Counts down. A step that has begun is finished, so the last one may overrun the seconds."""

    def __init__(self, allowed: Allowed) -> None:
        self._allowed = allowed
        self._evaluations = self._runs = 0
        self._device_s = 0.0
        self._guard = threading.Lock()

    @property
    def left(self) -> Allowed:
        """What is left."""
        allowed = self._allowed
        return Allowed(
            allowed.evaluations - self._evaluations, round(max(0.0, allowed.device_s - self._device_s), 3),
            allowed.runs - self._runs,
        )  # fmt: skip

    def take_evaluation(self) -> None:
        """One check, evaluation, profile, tuning or submission.

        Raises:
            UsedUp: none is left, or no time of the device.
        """
        self.see_that_there_is_time()
        with self._guard:
            if self.left.evaluations < 1:
                raise UsedUp(
                    f"All {self._allowed.evaluations} evaluations of this server are used. {WHAT_STANDS} For more, ask "
                    "the person who started the server to start it again with a larger --max-evaluations."
                )
            self._evaluations += 1

    def take_run(self) -> None:
        """One run.

        Raises:
            UsedUp: none is left.
        """
        with self._guard:
            if self.left.runs < 1:
                raise UsedUp(
                    f"All {self._allowed.runs} runs of this server are started. {WHAT_STANDS} For more, ask the person "
                    "who started the server to start it again with a larger --max-runs."
                )
            self._runs += 1

    def see_that_there_is_time(self) -> None:
        """Raises UsedUp where no time of the device is left."""
        if self.left.device_s <= 0:
            raise UsedUp(no_time(self._allowed.device_s))

    def spend(self, device_s: float) -> None:
        """The device was held for so long."""
        self._device_s += device_s


def no_time(allowed_s: float) -> str:
    """That the device was held for as long as it may be, and what to do."""
    return (
        f"The {allowed_s:g} seconds of the device that this server may use are used. {WHAT_STANDS} For more, ask the "
        "person who started the server to start it again with a larger --max-device-seconds."
    )
