"""A pool of workers on several hosts, whatever they are reached by. The journal, the leases and who waits are here.

A worker has one device and does what it is asked; what another worker has begun and lost is asked of the next one. Only
engines of this host use the workers, so the lease of a worker's device is a lock of this host.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Protocol, cast

from engine.errors import BaselineUnavailable, ProfileUnavailable, ToolchainError
from engine.evaluator.machine import lease, turns
from engine.evaluator.pool import Evaluation
from engine.evaluator.pool.plain import read_result, request_text
from engine.evaluator.pool.settling import Settlement
from engine.evaluator.request import Compile, CompileAll, Result
from engine.evaluator.toolchain_table import GPU, device_of
from storage import device_use
from storage.device_use import Claim, KnownDevice
from storage.results.evaluation_results import CheckResult, CompileResult, TimingResult
from storage.results.profile_results import ProfileResult
from storage.results.timeline import Part

MOST_TRIES = 3
NONE_S = 120.0  # how long a cluster may have no worker for what is asked
REST_S = 1.0
SEEN_S = 60.0  # how often a worker's device is noted as there


class WorkerLost(Exception):
    """A worker ended, or its host did, before it had answered; the message says what is known."""


class RemoteWorker(Protocol):
    """A worker with one device."""

    @property
    def device(self) -> KnownDevice:
        """Its device; the name is unlike that of any other worker's."""
        ...

    def ask(self, request: str) -> str:
        """The answer to a request, both as `engine.evaluator.pool.plain` writes them.

        Raises:
            WorkerLost: it ended before.
        """
        ...


class Cluster(Protocol):
    """Other hosts with workers on them."""

    def workers(self, toolchain: str) -> Sequence[RemoteWorker]:
        """The workers that live, started where there is a device without one."""
        ...

    def troubles(self) -> Sequence[str]:
        """Why there is no worker where one should be, a sentence each."""
        ...

    def forget(self, worker: RemoteWorker) -> None:
        """A worker was lost: do not name it again before it had time to come back."""
        ...

    def close(self) -> None:
        """Let go of the cluster; workers go on for other engines."""
        ...


class RemotePool:
    """Workers of a cluster as a pool, for one run: all it is asked is done on devices of one model.

    Where none is named, that is the one whose name contains `wanted`, or else which most workers have, when the first
    evaluation is asked.
    """

    def __init__(self, cluster: Cluster, wanted: str = "", rest: Callable[[float], None] = time.sleep) -> None:
        self._cluster, self._wanted, self._rest = cluster, wanted, rest
        self._models: dict[str, str] = {}
        self._guard = threading.RLock()
        self._turn = itertools.count()
        self._settlement = Settlement()
        self._seen: dict[KnownDevice, float] = {}

    def evaluate(self, asked: Evaluation[Result]) -> Result:
        """What a worker answers; asked of another one when it is lost or cannot do it, at most MOST_TRIES in all.

        Raises:
            ToolchainError: as the toolchain there; or no worker was to be had, or too many were lost.
        """
        lost: list[str] = []
        with device_use.claimed(asked.request.act, asked.run_id, asked.step) as claim, turns.on_account(asked.share):
            while len(lost) < MOST_TRIES:
                try:
                    return cast(Result, self._asked_of_one(asked, claim))
                except WorkerLost as ended:
                    lost.append(str(ended))
        raise ToolchainError(f"{len(lost)} workers could not do it, one after the other: {'; '.join(lost)}")

    def settle(self, toolchain: str, model: str = "", wanted: str = "", run_id: str = "", task: str = "") -> str:
        """The device for a run's timings; another one when its worker is gone."""
        usable = [worker.device.device for worker in self._workers(toolchain, model)]
        return self._settlement.among(usable, wanted, run_id, task)

    def fingerprint(self, toolchain: str) -> str:
        """Results of a cluster are not remembered: no two lives of it need be alike.

        Raises:
            ToolchainError: always.
        """
        raise ToolchainError("results of a cluster are not remembered: evaluate with --fresh")

    def lease_files(self, toolchain: str, device: str) -> lease.Files:
        """The lock that stands for the worker's device."""
        return lock_of(device) if device else ()

    def close(self) -> None:
        """Let go of the cluster. What a worker has begun it finishes."""
        self._settlement.end()
        self._cluster.close()

    def _asked_of_one(self, asked: Evaluation[Any], claim: Claim) -> Any:
        workers = self._workers(asked.toolchain, asked.model)
        if not _needs_device(asked):
            preferred = [
                worker for worker in workers if worker.device.device == asked.device
            ]  # there its library is used next
            worker = preferred[0] if preferred else workers[next(self._turn) % len(workers)]
            claim.on(worker.device.device)
            return self._answer(worker, asked)
        near = sorted(workers, key=lambda worker: worker.device.device != asked.device)
        if asked.request.is_measuring:
            settled = self.settle(asked.toolchain, asked.model, asked.device, asked.run_id, asked.request.task.name)
            near = [worker for worker in workers if worker.device.device == settled]
            if not near:
                raise WorkerLost(f"{settled}: its worker ended")
        claim.on(near[0].device.device if len(near) == 1 else "")
        with turns.hold_first([lock_of(worker.device.device) for worker in near], told=claim.waits) as (
            number,
            waited_s,
        ):
            claim.on(near[number].device.device)
            claim.holds()
            try:
                return self._answer(near[number], asked, waited_s)
            finally:
                claim.lets_go()

    def _answer(self, worker: RemoteWorker, asked: Evaluation[Any], waited_s: float = 0.0) -> Any:
        """The model and the device are of this pool's choice: the worker has one device alone."""
        began = time.monotonic()
        try:
            text = worker.ask(request_text(replace(asked, model="", device="")))
        except WorkerLost:
            with self._guard:
                self._cluster.forget(worker)
            raise
        try:
            return _with_wait(read_result(asked.request, text), waited_s, time.monotonic() - began)
        except (ProfileUnavailable, BaselineUnavailable):
            raise
        except ToolchainError as error:
            # It may be of the worker's host, or of its end: its own processes end before it does.
            with self._guard:
                self._cluster.forget(worker)
            raise WorkerLost(f"{worker.device.device}: {error}") from error

    def _workers(self, toolchain: str, model: str) -> list[RemoteWorker]:
        """The workers with a device of one model that works. Hosts come and go, so none is waited for.

        Raises:
            ToolchainError: there has been none for a while; or the run is of another model than the one wanted.
        """
        deadline = time.monotonic() + NONE_S
        while True:
            with self._guard:
                living = self._cluster.workers(toolchain)
                self._note(living)
                usable = [worker for worker in living if not worker.device.out]
                named = self._model(toolchain, model, [worker.device.model for worker in usable])
            if matching := [worker for worker in usable if worker.device.model == named]:
                return matching
            if time.monotonic() > deadline:
                asked_for = named or (f"a device called {self._wanted!r}" if self._wanted else "a device")
                raise ToolchainError(
                    f"the cluster has had no worker with {asked_for} for {NONE_S:.0f} s; {self._there(living)}"
                )
            self._rest(REST_S)

    def _model(self, toolchain: str, model: str, there: Sequence[str]) -> str:
        """The model of a run; empty while there is none that it could be."""
        if model and self._wanted.casefold() not in model.casefold():
            raise ToolchainError(
                f"the run was measured on {model}, which is not called {self._wanted!r}: resume it with --device ''"
            )
        if not (model or self._models.get(toolchain)):
            counted = Counter(sorted(name for name in there if self._wanted.casefold() in name.casefold()))
            if counted:
                self._models[toolchain] = counted.most_common(1)[0][0]
        return model or self._models.get(toolchain, "")

    def _note(self, living: Sequence[RemoteWorker]) -> None:
        """For *Devices*, once a minute and where a device was taken out or is back."""
        for worker in living:
            if time.monotonic() - self._seen.get(worker.device, -SEEN_S) >= SEEN_S:
                device_use.found_here(worker.device)
                self._seen[worker.device] = time.monotonic()

    def _there(self, living: Sequence[RemoteWorker]) -> str:
        names = sorted({worker.device.model for worker in living})
        out = [f"{worker.device.device} is out of use: {worker.device.out}" for worker in living if worker.device.out]
        has = f"it has {', '.join(names)}" if names else "it has none"
        return "; ".join([has, *out, *self._cluster.troubles()])


def _with_wait(result: Any, waited_s: float, took_s: float) -> Any:
    """The result's timeline as seen from here: with the wait for the device, and with what the way there took."""
    if not isinstance(result, CompileResult | CheckResult | TimingResult | ProfileResult) or result.timeline is None:
        return result
    timeline = result.timeline
    before_s = timeline.parts.get(Part.LEASE, 0.0)
    parts = {**timeline.parts, Part.LEASE: round(before_s + waited_s, 3)} if before_s + waited_s else timeline.parts
    if isinstance(result, TimingResult):
        result = replace(result, evidence={**result.evidence, "lease wait": f"{before_s + waited_s:.2f} s"})
    return replace(result, timeline=replace(timeline, total_s=round(took_s + waited_s, 3), parts=parts))


def lock_of(device: str) -> lease.Files:
    """The lock of this host that stands for a worker's device."""
    return lease.of_host(
        "remote-" + "".join(character if character.isalnum() or character in "-." else "_" for character in device)
    )


def _needs_device(asked: Evaluation[Any]) -> bool:
    """On processors what is compared alone; a GPU is wanted for all but builds, those of its own languages included."""
    if device_of(asked.toolchain) != GPU:
        return asked.request.is_measuring
    return not isinstance(asked.request, Compile | CompileAll)
