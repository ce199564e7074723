"""What one evaluation is asked about: the task, the candidate, the builder and the limits. Starts nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engine.evaluator import languages
from engine.evaluator.build.device.build import DeviceBuilder
from engine.evaluator.build.device.installation import DeviceInstallation
from engine.evaluator.build.host.build import Builder
from engine.evaluator.build.host.installation import Installation
from engine.evaluator.checks.candidate_failures import FailedBuild
from engine.evaluator.machine.stopwatch import Stopwatch
from engine.evaluator.machine.worker_limits import Limits, Times
from engine.evaluator.sandbox import Isolation
from storage.results.evaluation_results import KernelResources
from storage.results.examination import Examination
from storage.results.policy import Policy

AnyBuilder = Builder | DeviceBuilder


def builder_for(
    device: str, installation: Mapping[str, Any], cache: Path, limit_s: float, isolation: Isolation
) -> AnyBuilder:
    """The builder for a device as torch names it; `installation` is that as plain fields."""
    if device == "cpu":
        return Builder(Installation(**installation), cache, limit_s, isolation)
    return DeviceBuilder(DeviceInstallation(**installation), cache, limit_s, isolation)


@dataclass(frozen=True, slots=True)
class FirstCalls:
    """What the compile step gave of kernels compiled when they are launched. `kept` is None where it failed."""

    kept: Path | None
    failure: FailedBuild | None = None
    resources: tuple[KernelResources, ...] = ()
    remarks: tuple[str, ...] = ()
    is_cached: bool = False


@dataclass(frozen=True, slots=True)
class EvaluationRequest:
    """What is judged: a task, a candidate, where it builds, and the limits. `details` are of one act alone.

    `language` is the one that the candidate must be written in; empty for any. `first_calls` is what a compile step of
    its own gave, where the language has one. `spent` adds up where the time goes.
    `turn` waits for the device. `examined` is what the task was found to be; without it weights stay as constructed.
    `is_confined`: nobody has started a run on the task yet, so its reference is not trusted either.
    """

    task_source: str
    policy: Policy
    source: str
    builder: AnyBuilder
    times: Times
    limits: Limits
    isolation: Isolation = field(default_factory=Isolation)
    device: str = "cpu"
    language: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)
    first_calls: FirstCalls | None = None
    spent: Stopwatch = field(default_factory=Stopwatch)
    turn: Callable[[], None] = lambda: None
    examined: Examination | None = None
    is_confined: bool = False

    @property
    def is_just_in_time(self) -> bool:
        """Whether its kernels are compiled when they are launched, in the candidate's process."""
        return languages.of(self.source, self.language).compiler is not None
