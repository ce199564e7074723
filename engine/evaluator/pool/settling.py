"""On which device a run's timings are taken: decided once, kept while that device can be used. Knows names alone."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence

from engine.evaluator.machine import lease
from storage import device_use
from storage.device_use import Claim, Stage


class Settlement:
    """That of one engine. Others see it, so that runs spread over the devices."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._claim: Claim | None = None

    def among(self, usable: Sequence[str], wanted: str = "", run_id: str = "", task: str = "") -> str:
        """The device so far, or `wanted`, or else the first of those that fewest have settled on; one of `usable`.
        `run_id` says whose timings it takes, for people, `task` whose kernels. Runs of that task count twice: their
        timings take alike long, and a suite's long ones on one device would keep it at work beside an idle one."""
        with self._guard, lease.hold(device_use.folder() / "settling.lock"):
            chosen = self._claim.claimed.device if self._claim is not None else wanted
            if chosen not in usable:
                settled = [claim for claim in device_use.claims() if claim.stage is Stage.SETTLED]
                runs = Counter(claim.device for claim in settled)
                alike = Counter(claim.device for claim in settled if claim.task == task)
                chosen = min(usable, key=lambda device: (runs[device] + alike[device], alike[device]))
            if self._claim is None:
                self._claim = device_use.claim("settled", run_id, task=task)
            if self._claim.claimed.device != chosen:
                self._claim.settles(chosen)
            return chosen

    def end(self) -> None:
        """The run needs none any more."""
        with self._guard:
            if self._claim is not None:
                self._claim.end()
                self._claim = None
