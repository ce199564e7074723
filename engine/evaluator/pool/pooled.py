"""A pool as an evaluator: what a run, a suite's cell or a command asks is handed to the pool. Judges nothing itself."""

from __future__ import annotations

from collections.abc import Callable

from engine.evaluator.machine import lease
from engine.evaluator.machine.turns import Share
from engine.evaluator.pool import Evaluation, Pool
from engine.evaluator.request import Evaluator, Request, Result


class PooledToolchain(Evaluator):
    """A toolchain of a pool, for one run. All its measurements are taken on one device: two devices of one model differ
    by more than the noise of either, and a run compares its kernels with each other.

    `model` is the model of device that the run's kernels were measured on, `device` which one; both are empty where it
    has measured nothing. `step` says which step of the run asks, `share` on whose account.
    """

    def __init__(self, pool: Pool, name: str, run_id: str = "", model: str = "", device: str = "") -> None:
        self.name = name
        self.step: Callable[[], int] = lambda: 0
        self.share: Callable[[], Share] = Share
        self._pool, self._run_id, self._model, self._device = pool, run_id, model, device

    @property
    def fingerprint(self) -> str:
        """That of the pool's toolchain."""
        return self._pool.fingerprint(self.name)

    @property
    def lease_files(self) -> lease.Files:
        """The lock files of the device that measures."""
        return self._pool.lease_files(self.name, self._settled())

    def evaluate(self, request: Request[Result]) -> Result:
        """Measured is on the device that this run has settled on; the rest anywhere, or on any device of the model."""
        if request.is_measuring:
            self._device = self._settled(request.task.name)
        asked = Evaluation(
            request, self.name, self._model, self._device, self._run_id, self.step(), self.share()
        )  # fmt: skip
        return self._pool.evaluate(asked)

    def close(self) -> None:
        """Give back what the pool holds for this run."""
        self._pool.close()

    def _settled(self, task: str = "") -> str:
        return self._pool.settle(self.name, self._model, self._device, self._run_id, task)
