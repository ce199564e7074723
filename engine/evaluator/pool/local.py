"""The pool of this host: its GPUs and its processors, each leased while it is needed. Knows no run and no other host.

A run's measurements are taken on the device that it settled on: they wait for that one alone. A check goes to whichever
device of the model is free first. What needs no device is done beside. A toolchain object does one thing at a time and
can do it on any device, so there are as many as threads that ask at once: one for a run that does one thing at a time.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import Any, Protocol, cast, runtime_checkable

from engine.errors import BaselineUnavailable, ProfileUnavailable, StopRequested, TaskError, ToolchainError
from engine.evaluator import languages
from engine.evaluator.build.host.installation import processor
from engine.evaluator.machine import device_health, devices, lease, turns
from engine.evaluator.machine.devices import Device
from engine.evaluator.pool import Evaluation
from engine.evaluator.pool.settling import Settlement
from engine.evaluator.request import Compile, CompileAll, Evaluator, Request, Result
from engine.evaluator.toolchain_table import find_toolchain
from engine.evaluator.toolchains.local import LocalToolchain
from storage import device_use
from storage.device_use import DEVICE, VERSIONS, Claim, KnownDevice
from storage.results.evaluation_results import CheckResult, TimingResult
from storage.results.profile_results import ProfileResult

LIMITS = (ProfileUnavailable, BaselineUnavailable)  # of a kernel or a task, not of a device


@runtime_checkable
class OnAnyDevice(Protocol):
    """A toolchain that can be told which of several devices to use."""

    def use(self, gpu: Device, *, is_only: bool) -> None:
        """From the next request on."""
        ...


class LocalPool:
    """Devices of this host. `scratch` is a folder for the files of what is at work."""

    def __init__(self, scratch: Path | None = None) -> None:
        self._scratch = scratch
        self._guard = threading.RLock()
        self._made: list[Evaluator] = []
        self._idle: dict[str, list[Evaluator]] = {}
        self._gpus: list[Device] = []
        self._settlement = Settlement()
        self._is_closing = False

    def evaluate(self, asked: Evaluation[Result]) -> Result:
        """What the toolchain answers. A device that fails its health check afterwards is taken out, and another of its
        model asked.

        Raises:
            ToolchainError: as the toolchain, or no device is left that could do it.
        """
        with (
            device_use.claimed(asked.request.act, asked.run_id, asked.step) as claim,
            turns.on_account(asked.share),
            self._toolchain(asked.toolchain) as toolchain,
        ):
            if isinstance(toolchain, LocalToolchain):
                toolchain.claim = claim
            if isinstance(toolchain, OnAnyDevice):
                return cast(Result, self._on_a_gpu(toolchain, asked, claim))
            claim.on(_processors())
            return toolchain.evaluate(asked.request)

    def settle(self, toolchain: str, model: str = "", wanted: str = "", run_id: str = "", task: str = "") -> str:
        """The device for a run's timings; the same for as long as this pool is used and the device can be. Of the
        processors there is nothing to choose: that a run settled on them is kept for people alone."""
        if not hasattr(find_toolchain(toolchain), "use"):
            self._settlement.among([_processors()], run_id=run_id, task=task)
            return ""
        return self._settlement.among([device.address for device in self._usable(model)], wanted, run_id, task)

    def known(self, toolchain: str) -> list[KnownDevice]:
        """The devices that a toolchain can use here, one at least.

        Raises:
            ToolchainError: there is none.
        """
        if hasattr(find_toolchain(toolchain), "use"):
            return [
                KnownDevice(device.address, device.name, device.memory_mib, device.driver)
                for device in self._usable("")
            ]
        name = _processors()
        return [device for device in device_use.devices() if device.device == name]

    def fingerprint(self, toolchain: str) -> str:
        """The fingerprint on the first usable device: all of one model build and judge alike."""
        with self._toolchain(toolchain) as evaluator:
            if isinstance(evaluator, OnAnyDevice):
                usable = self._usable("")
                evaluator.use(usable[0], is_only=len(self._gpus) == 1)
            return evaluator.fingerprint

    def lease_files(self, toolchain: str, device: str) -> lease.Files:
        """The lock files of a device by name, or of the processors."""
        gpu = next((gpu for gpu in self._gpus if gpu.address == device), None)
        if gpu is not None:
            return lease.of_host(gpu.lease)
        with self._toolchain(toolchain) as evaluator:
            return evaluator.lease_files

    def close(self) -> None:
        """End every child process and let go of the device."""
        self._is_closing = True
        for toolchain in list(self._made):
            toolchain.close()
        self._settlement.end()
        self._is_closing = False

    def look_again(self) -> None:
        """Keep what was found; one that was taken out earlier may work again."""
        out = {device.device: device for device in device_use.devices() if device.out}
        for gpu in self._gpus:
            before = out.get(gpu.address)
            why = device_health.why_unhealthy(gpu) if before else ""
            since = before.out_since if before and why else 0.0
            entry = KnownDevice(gpu.address, gpu.name, gpu.memory_mib, gpu.driver, out=why, out_since=since)
            device_use.found_here(entry)

    def _on_a_gpu(self, toolchain: Any, asked: Evaluation[Any], claim: Claim) -> Any:
        toolchain.begin()  # PyTorch is imported while the driver names its devices
        while True:
            usable = self._usable(asked.model)
            try:
                return self._at_one_of(usable, toolchain, asked, claim)
            except (ToolchainError, TaskError) as error:
                if self._is_closing or isinstance(error, LIMITS):
                    raise
                gpu: Device = toolchain.gpu
                if not (why := device_health.why_unhealthy(gpu)):
                    raise
                self._take_out(gpu, why)
                if len(usable) == 1:
                    raise ToolchainError(
                        f"{gpu.address} ({gpu.name}) was taken out of use: {why}. No other device of this model is left"
                    ) from error

    def _at_one_of(self, usable: Sequence[Device], toolchain: Any, asked: Evaluation[Any], claim: Claim) -> Any:
        is_only = len(self._gpus) == 1
        settled = asked.device
        if asked.request.is_measuring:
            settled = self.settle(asked.toolchain, asked.model, asked.device, asked.run_id, asked.request.task.name)
        near = sorted(usable, key=lambda gpu: gpu.address != settled)
        if len(near) == 1 or asked.request.is_measuring or not _needs_device(asked.request):
            toolchain.use(near[0], is_only=is_only)
            claim.on(near[0].address)
            return _named(toolchain.evaluate(asked.request), toolchain)
        toolchain.start()
        with turns.hold_first([lease.of_host(gpu.lease) for gpu in near], told=claim.waits) as (number, waited_s):
            gpu = near[number]
            toolchain.use(gpu, is_only=is_only)
            claim.on(gpu.address)
            claim.holds()
            with toolchain.alone(waited_s):
                return _named(toolchain.evaluate(asked.request), toolchain)

    def _usable(self, model: str) -> list[Device]:
        """Devices of one model that work: of the first's without a name.

        Raises:
            ToolchainError: there is none.
        """
        with self._guard:
            if not self._gpus:
                self._gpus = devices.usable()
                self.look_again()
            model = model or self._gpus[0].name
            if not (alike := [gpu for gpu in self._gpus if gpu.name == model]):
                self._gpus[0].see_that_it_is(model)
            out = {device.device: device.out for device in device_use.devices() if device.out}
            working = [gpu for gpu in alike if gpu.address not in out]
            if not working:
                reasons = "; ".join(f"{gpu.address}: {out[gpu.address]}" for gpu in alike)
                raise ToolchainError(f"no {model} of this host can be used. {reasons}")
            return working

    def _take_out(self, gpu: Device, why: str) -> None:
        device_use.take_out(KnownDevice(gpu.address, gpu.name, gpu.memory_mib, gpu.driver), why)

    @contextmanager
    def _toolchain(self, name: str) -> Iterator[Evaluator]:
        """One that is idle, or a new one. In one that a person broke off a request is still at work: it is ended."""
        with self._guard:
            idle = self._idle.setdefault(name, [])
            toolchain = idle.pop() if idle else self._new(name)
        try:
            yield toolchain
        except StopRequested:
            toolchain.close()  # a run that is paused has no process on a device
            idle.append(toolchain)
            raise
        except KeyboardInterrupt:
            raise
        except BaseException:
            idle.append(toolchain)
            raise
        idle.append(toolchain)

    def _new(self, name: str) -> Evaluator:
        number, scratch = len(self._made), self._scratch
        evaluator: Evaluator = find_toolchain(name)(scratch / f"beside-{number}" if scratch and number else scratch)
        self._made.append(evaluator)
        return evaluator


def _processors() -> str:
    """The processors that this process may use, as one device; known from the first time on."""
    allowed = sorted(os.sched_getaffinity(0))
    name = f"cpu {_ranges(allowed)}"
    if not any(device.device == name for device in device_use.devices()):
        device_use.found_here(KnownDevice(name, f"{processor().partition(' [')[0]}, {len(allowed)} threads"))
    return name


def _ranges(numbers: Sequence[int]) -> str:
    """Numbers as people write them: `0-3,6`."""
    spans: list[list[int]] = []
    for number in numbers:
        if spans and number == spans[-1][-1] + 1:
            spans[-1] = [spans[-1][0], number]
        else:
            spans.append([number])
    return ",".join("-".join(map(str, span)) for span in spans)


def _needs_device(request: Request[Any]) -> bool:
    if isinstance(request, Compile | CompileAll):
        return any(languages.of(source, request.task.language).compiler is not None for source in request.sources)
    return True


def _named(result: Any, toolchain: Any) -> Any:
    """The result with the device that it was taken on, and what with."""
    if not isinstance(result, CheckResult | TimingResult | ProfileResult):
        return result
    gpu: Device = toolchain.gpu
    versions = [torch_version(), *([f"driver {gpu.driver}"] if gpu.driver else [])]
    with suppress(ToolchainError):  # a host that builds nothing
        versions.append(f"nvcc {toolchain.installation.nvcc_version}")
    return replace(result, evidence={**result.evidence, DEVICE: gpu.address, VERSIONS: ", ".join(versions)})


def torch_version() -> str:
    """The version of PyTorch as results name it."""
    return f"torch {metadata.version('torch')}"
