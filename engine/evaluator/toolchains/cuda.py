"""The cuda toolchain: candidates built with nvcc and judged on an NVIDIA GPU, or built only. Imports no torch."""

from __future__ import annotations

import functools
import hashlib
import os
import shutil
import stat
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from types import TracebackType
from typing import Any

from engine.errors import BaselineUnavailable, ProfileUnavailable, ToolchainError
from engine.evaluator import languages
from engine.evaluator.build.device import installation
from engine.evaluator.build.device.installation import DeviceInstallation
from engine.evaluator.machine import devices, lease
from engine.evaluator.machine.devices import Device
from engine.evaluator.machine.worker_limits import Limits, Times, times_here
from engine.evaluator.processes.client import EvaluatorClient
from engine.evaluator.profiling.device import ceilings
from engine.evaluator.profiling.device.ceilings import DeviceCeilings
from engine.evaluator.request import Baseline
from engine.evaluator.tasks import Task, holds_float8
from engine.evaluator.toolchains.local import AMPLE, KnownLimits, LocalToolchain, called, laid_out
from storage import codec, locks
from storage.home import home
from storage.results.baselines import Instead
from storage.results.evaluation_results import CheckResult, CompileResult, TimingResult
from storage.results.hardware_limit import HardwareLimit, useful_rates
from storage.results.policy import Policy
from storage.results.profile_results import DISTURBED, ProfileResult, disturbance
from storage.results.vocabulary import Verdict

DEVICES = Path("/dev")
CALL_S = 30.0
SANITIZER = "compute-sanitizer"
# The profiler empties the caches before each launch; a call of several is longer there without anything being wrong.
APART_ON_DEVICE = 3.0
LIMIT_S = 900.0
SCALED_FROM = 8.9  # the compute capability


class CudaToolchain(LocalToolchain):
    """Builds, checks, times and profiles on the first GPU that is visible, or on the one that it was told to use."""

    name = "cuda"
    device = "cuda"

    def __init__(self, scratch: Path | None = None, times: Times | None = None, limits: Limits | None = None) -> None:
        # The driver reserves address space for all memory of the machine, so that it cannot be what is limited.
        bounded = replace(limits or Limits(), address_space=AMPLE)
        super().__init__(scratch, times or times_here(CALL_S), bounded)
        self._variables: Mapping[str, str] = {}
        self._limits_of = defaultdict[str, KnownLimits](dict)

    def use(self, gpu: Device, *, is_only: bool = False) -> None:
        """From the next request on work on this device. Where it `is_only`, every process sees it as the first."""
        self._variables = {} if is_only else {devices.VISIBLE: gpu.address}
        before: Device | None = self.__dict__.get("gpu")
        if before == gpu:
            return
        for name in ("lease_files", *(["installation"] if before and before.capability != gpu.capability else [])):
            self.__dict__.pop(name, None)
        self._known_limits = self._limits_of[gpu.address]
        self.gpu = gpu

    @property
    def variables(self) -> Mapping[str, str]:
        """The device that it was told to use; empty where it is the first that every process here sees."""
        return self._variables

    @functools.cached_property
    def installation(self) -> DeviceInstallation:
        """Compilers, headers and architecture, looked for once.

        Raises:
            ToolchainError: something is missing.
        """
        return installation.find(installation.arch_of(self.gpu.capability))

    @functools.cached_property
    def gpu(self) -> Device:
        """The first visible device, asked for once.

        Raises:
            ToolchainError: there is none, or the driver does not tell.
        """
        return devices.first()

    def _baseline(self, request: Baseline) -> TimingResult:
        """As on any machine, where this GPU multiplies in FP8."""
        if request.how == Instead.SCALED and float(self.gpu.capability) < SCALED_FROM:
            has = f"{self.gpu.name} has {self.gpu.capability}"
            raise BaselineUnavailable(f"torch._scaled_mm needs a GPU of compute capability {SCALED_FROM}, and {has}")
        return super()._baseline(request)

    @functools.cached_property
    def device_files(self) -> tuple[str, ...]:
        """The driver's device nodes.

        Raises:
            ToolchainError: there are none.
        """
        nodes = tuple(str(path) for path in sorted(DEVICES.glob("nvidia*")) if stat.S_ISCHR(path.stat().st_mode))
        if not nodes:
            raise ToolchainError("no NVIDIA GPU found (no /dev/nvidia*): use --toolchain cpu, or a machine with a GPU")
        return nodes

    @property
    def cache(self) -> Path:
        """Libraries, precompiled headers and measurements of the device; safe to delete."""
        return cache_folder()

    @functools.cached_property
    def lease_files(self) -> lease.Files:
        """The device's own, under whatever name and by whomever it was chosen."""
        return lease.of_host(self.gpu.lease)

    @contextmanager
    def _leased(self) -> Iterator[float]:
        """The server that forks the workers is there before the device is waited for: importing PyTorch needs none."""
        self.start()
        with super()._leased() as waited_s:
            yield waited_s

    def _compile(self, task: Task, source: str) -> CompileResult:
        """A kernel that is compiled when it is launched is launched, alone on the device."""
        if languages.of(source, task.language).compiler is None:
            return super()._compile(task, source)
        with self._leased():  # configurations are measured
            return super()._compile(task, source)

    def _check(self, task: Task, source: str) -> CheckResult:
        """The check's result; of a wrong or crashing kernel with the sanitizer's findings."""
        with self._leased():  # a check keeps the device busy, and another run may be timing
            result = super()._check(task, source)
        if result.verdict not in (Verdict.RUNTIME_ERROR, Verdict.INCORRECT) or not self.installation.sanitizer:
            return result
        with self._leased():
            report = str(
                self._ask("sanitize", task, source, details={"sanitizer": self.installation.sanitizer})["found"]
            )
        if not report:
            return result
        message = f"{result.message}\n\n{SANITIZER} (memcheck) on one call:\n{report}"
        return replace(result, message=message, evidence={**result.evidence, SANITIZER: report})

    def _session(self, task: Task, source: str, times: Mapping[str, object]) -> Any:
        """Inputs and the reference's answers are made on the device too, so it is leased from the start."""
        with self._leased():
            return self._ask("time", task, source, times=times)

    def _profile(self, task: Task, source: str, timed_ms: float | None) -> ProfileResult:
        details = {
            "kernel_hash": hashlib.sha256(source.encode()).hexdigest(),
            "ceilings": asdict(self._ceilings(again=False)),
            "limit": codec.to_plain(self._known_limit(task)),
            "cache": str(self.cache),
            "ncu": self.installation.ncu,
        }
        with self._leased():
            plain = self._ask("profile", task, source, details=details)
        if "failure" in plain:
            raise ProfileUnavailable(str(plain["failure"]))
        result: ProfileResult = codec.from_plain(ProfileResult, plain)
        took_s = next((metric.value for metric in result.metrics if metric.name == "device time"), 0.0)
        why = disturbance(1e3 * took_s, timed_ms, apart=APART_ON_DEVICE)
        return replace(result, evidence={**result.evidence, DISTURBED: why}) if why else result

    def _limit(self, task: Task, *, again: bool) -> HardwareLimit:
        rates = self._ceilings(again=again)
        with self._leased():
            needs = self._ask("describe", task, "")
        size, facts = int(needs["min_bytes"]), rates.facts(self.installation.arch)
        useful = useful_rates(facts.rates_gflop_s, task.policy.arithmetic, has_float8=holds_float8(task.source))
        peak_gflop_s = max(useful.values())
        limit = HardwareLimit(
            rates.device, rates.bandwidth_at(size), peak_gflop_s, size, int(needs["min_flop"]), facts,
            str(needs["signature"]), called(needs), laid_out(needs), leaves_masked_out=bool(needs["leaves_masked_out"]),
        )  # fmt: skip
        self._known_limits[task.source, task.policy.measured] = limit
        return limit

    def _ceilings(self, *, again: bool) -> DeviceCeilings:
        return ceilings.measured(
            self.gpu, self.installation.nvcc, self.cache, self._leased, again=again, variables=self.variables
        )


class CompileGate:
    """Screens, builds and imports candidates for `arch` (None: the device here). No kernel runs.

    A kernel in CuTe's Python DSL is compiled as its task calls it, with tensors that have no contents.
    """

    def __init__(self, arch: str | None = None, policy: Policy | None = None) -> None:
        """Raises ToolchainError when something is missing, or no architecture is named and there is no device."""
        self._here = installation.find(arch)
        self._policy = policy or Policy()
        self._scratch = Path(tempfile.mkdtemp(prefix="tilewright."))
        locks.hold_file(self._scratch / "lock")  # by which the next engine knows a folder whose process was killed
        self._evaluator = EvaluatorClient(len(os.sched_getaffinity(0)))

    def __enter__(self) -> CompileGate:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._evaluator.close()
        shutil.rmtree(self._scratch, ignore_errors=True)

    def prepare(self) -> None:
        """Start the processes and build what all candidates share."""
        self._ask("prepare", "")

    def compile(self, source: str, task: Task | None = None) -> CompileResult:
        """Screen, build and import one candidate; `task` says how one in CuTe's Python DSL is called.

        Raises:
            ToolchainError: its kernels are compiled when they are launched, and nothing says how.
        """
        language = languages.of(source)
        if language.compiler and (language.name != languages.CuteDsl.name or task is None):
            how = (
                "name the task that it is for (--task TASK)"
                if language.name == languages.CuteDsl.name
                else "use `python -m engine evaluate TASK FILE` on a machine with a GPU"
            )
            raise ToolchainError(f"a {language.label} kernel is compiled when it is launched: {how}")
        result: CompileResult = codec.from_plain(CompileResult, self._ask("compile", source, task))
        return result

    def _ask(self, act: str, source: str, task: Task | None = None) -> object:
        request = {
            "act": act,
            "device": "cuda",
            "device_files": (),
            "task_source": task.source if task else "",
            "policy": codec.to_plain(task.policy if task else self._policy),
            "source": source,
            "installation": asdict(self._here),
            "cache": str(cache_folder()),
            "scratch": str(self._scratch),
            "times": asdict(Times()),
            "limits": asdict(replace(Limits(), address_space=AMPLE)),
            "details": {"arch": self._here.arch},
        }
        return self._evaluator.ask(request, LIMIT_S)


def cache_folder() -> Path:
    """Libraries built for devices; safe to delete."""
    return home() / "cache" / "cuda"
