"""The best kernels of a suite with all that it takes to judge them again elsewhere: a manifest. And doing so."""

from __future__ import annotations

import hashlib
import importlib.metadata
import platform
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from engine.errors import EngineError, TaskError
from engine.evaluator import tasks
from engine.evaluator.request import Evaluator
from engine.evaluator.tasks import Task
from engine.evaluator.toolchains.evaluating import evaluate
from engine.suites.tables import best_of
from storage import codec, untrusted
from storage.results import relative
from storage.results.policy import Policy
from storage.results.vocabulary import KernelClass
from storage.run.blobs import Blobs
from storage.run.folder import RunFolder, policy_as_of_now, runs_folder
from storage.run.settings import RunSettings
from storage.suites.records import Cell, Defined, JudgedAgain
from storage.suites.summary import CellResult, Results
from storage.untrusted import Limits

VERSION = 1
MANIFEST = Limits(most_bytes=1 << 28)  # every kernel's text stands in it
PACKAGES = ("torch", "numpy", "nvidia-cutlass", "triton", "nvidia-cutlass-dsl")


@dataclass(frozen=True, slots=True)
class ManifestKernel:
    """The best kernel of a cell: what it is, how it was made, and what it was measured at.

    `prompts` and `recording` are hashes, empty where there are none; `seed` is that of the check.
    """

    cell: Cell
    run_id: str
    candidate_id: str
    task_name: str
    task_source: str
    sizes: Mapping[str, int | float]
    kernel_class: KernelClass
    policy: Policy
    toolchain: str
    language: str
    model: str
    strategy: str
    strategy_options: Mapping[str, str | int | float | bool | None]
    knowledge: str
    prompts: str
    recording: str
    seed: int | None
    device: str
    source: str
    speedup: float
    low: float
    high: float
    noise: float
    latency_ms: float
    precision: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """A suite's definition and its best kernels. `made_with` are the versions on the machine that wrote it."""

    defined: Defined
    made_with: Mapping[str, str]
    kernels: tuple[ManifestKernel, ...]
    version: int = VERSION
    missing: tuple[str, ...] = field(default_factory=tuple)


def of_suite(results: Results) -> Manifest:
    """The best kernel of every cell that counts; `missing` names those whose texts are gone."""
    kernels, missing = [], []
    for cell in results.counted:
        if best_of(cell) is None:
            continue
        try:
            kernels.append(_kernel(cell))
        except (OSError, codec.DecodeError) as error:
            missing.append(f"{cell.cell.words}: {error}")
    return Manifest(results.suite.defined, versions(), tuple(kernels), missing=tuple(missing))


def _kernel(cell: CellResult) -> ManifestKernel:
    best, run = best_of(cell), cell.result
    assert best is not None
    assert run is not None
    folder = RunFolder(runs_folder() / run.run_id)
    settings = folder.read_settings()
    return ManifestKernel(
        cell.cell, run.run_id, best.candidate_id, settings.task_name, settings.task_source, settings.sizes,
        KernelClass(run.kernel_class), settings.policy, settings.toolchain, settings.language, settings.model,
        settings.strategy, settings.strategy_options, settings.knowledge, settings.prompts.hash, _recording(settings),
        best.seed, run.device, Blobs(folder.blobs).get(best.source_blob), best.speedup, best.low, best.high, best.noise,
        best.latency_ms, best.precision,
    )  # fmt: skip


def _recording(settings: RunSettings) -> str:
    path = Path(settings.recording) if settings.recording else None
    return hashlib.sha256(path.read_bytes()).hexdigest() if path and path.is_file() else ""


def versions() -> dict[str, str]:
    """What judges here."""
    installed = {"python": platform.python_version(), "machine": platform.platform(terse=True)}
    for name in PACKAGES:
        try:
            installed[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return installed


def read(path: Path) -> Manifest:
    """A manifest from its file.

    Raises:
        EngineError: it is none, or of a later version.
    """
    try:
        plain = untrusted.read_json(path, MANIFEST)
        for kernel in plain["kernels"]:
            kernel["policy"] = policy_as_of_now(kernel["policy"])
        manifest: Manifest = codec.from_plain(Manifest, plain)
    except (OSError, ValueError, KeyError, TypeError, codec.DecodeError) as error:
        raise EngineError(f"{path} is no manifest of a suite: {error}. `suite manifest NAME` writes one") from error
    if manifest.version > VERSION:
        raise EngineError(f"{path} was written by a later version of Tilewright: update this one")
    return manifest


def is_shipped(kernel: ManifestKernel) -> bool:
    """Whether its reference is, but for sizes, that of the task which comes with Tilewright under its name."""
    shipped = _shipped(kernel)
    try:
        return shipped is not None and (
            tasks.set_constants(kernel.task_source, kernel.sizes) == tasks.set_constants(shipped.text, kernel.sizes)
        )
    except TaskError:
        return False


def other_rules(kernel: ManifestKernel) -> list[str]:
    """What its policy has otherwise than the shipped task of its name, or than a task has by default."""
    shipped = _shipped(kernel)
    usual = shipped.policy if shipped else Policy()
    pairs = ((rule.name, getattr(kernel.policy, rule.name), getattr(usual, rule.name)) for rule in fields(Policy))
    return [f"{name} is {was!r} and not {is_usual!r}" for name, was, is_usual in pairs if was != is_usual]


def _shipped(kernel: ManifestKernel) -> tasks.TaskFile | None:
    try:
        task_file = tasks.find(kernel.task_name)
    except (TaskError, ValueError):
        return None
    return task_file if task_file.is_shipped else None


def judge_again(kernel: ManifestKernel, toolchain: Evaluator) -> tuple[JudgedAgain, dict[str, Any]]:
    """Build, check and time one kernel here, and say what is not as the manifest has it; also the whole answer.

    Raises:
        EngineError: the task or this machine is at fault, not the kernel.
    """
    task = Task(
        kernel.task_name, kernel.task_source, kernel.sizes, kernel.kernel_class, policy=kernel.policy,
        language=kernel.language,
    )  # fmt: skip
    device = toolchain.limit(task).model
    answer = evaluate(toolchain, task, kernel.source)
    judged = JudgedAgain(
        kernel.cell, kernel.run_id, kernel.candidate_id, device, answer["verdict"], answer["speedup"], answer["noise"],
        tuple(differences(kernel, device, answer)),
    )  # fmt: skip
    return judged, answer


def differences(kernel: ManifestKernel, device: str, answer: Mapping[str, Any]) -> list[str]:
    """What is not as in the manifest; a speed-up differs by more than the noise of both and of two sessions.

    On another device another speed-up is no difference: only the verdict and the precision are compared there.
    """
    if answer["verdict"] != "passed":
        return [f"it is {answer['verdict']} here: {' '.join(str(answer['message']).split())[:200]}"]
    remarks = []
    if answer["precision"] and answer["precision"] != kernel.precision:
        remarks.append(f"its precision is {answer['precision']} here and was {kernel.precision}")
    if device == kernel.device and answer["speedup"] is not None:
        ratio = relative.between_sessions(answer["speedup"], answer["noise"], kernel.speedup, kernel.noise)
        if ratio.is_faster or ratio.is_slower:
            remarks.append(f"it is {answer['speedup']:.3g}x over eager here and was {kernel.speedup:.3g}x")
    return remarks
