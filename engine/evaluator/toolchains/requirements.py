"""Whether this machine can build and judge candidates, line by line, with the remedy for what is missing."""

from __future__ import annotations

import importlib.metadata
import os
import shutil
from collections.abc import Callable
from typing import NamedTuple

from engine.errors import ToolchainError
from engine.evaluator.build import cute_dsl, just_in_time
from engine.evaluator.build.host import installation
from engine.evaluator.profiling import perf


class Checked(NamedTuple):
    """One line of the report; `remedy` is empty when all is well."""

    name: str
    is_ok: bool
    detail: str
    remedy: str
    is_required: bool = False


def checks(*, has_gpu: bool = False) -> list[Checked]:
    """Look at everything the cpu toolchain uses, required things first.

    Where the cuda toolchain works its headers come with the compiler: those of the cpu toolchain are optional there.
    """
    headers = _required("CUDA headers", lambda: str(installation.find_cuda()), installation.INSTALL_HEADERS)
    return [
        _required("compiler", installation.find_compiler, installation.INSTALL_COMPILER),
        _required("ninja", installation.find_ninja, installation.INSTALL_NINJA),
        _required("torch", lambda: f"{version('torch')} in {installation.find_torch()}", installation.INSTALL_TORCH),
        _required("CuTe headers", lambda: str(installation.find_cutlass()), installation.INSTALL_HEADERS),
        headers if headers.is_ok or not has_gpu else headers._replace(is_required=False),
        _optional("objdump", "apt install binutils (for instruction counts in profiles)"),
        _optional("perf", "apt install linux-perf (for sampled time in profiles)"),
        _counters(),
        _triton(),
        _cute_dsl(),
        Checked("processor", True, f"{installation.processor()}, {len(os.sched_getaffinity(0))} threads", ""),
    ]


def _required(name: str, find: Callable[[], str], remedy: str) -> Checked:
    try:
        return Checked(name, True, find(), "", is_required=True)
    except ToolchainError as error:
        return Checked(name, False, str(error), remedy, is_required=True)


def _optional(name: str, remedy: str) -> Checked:
    path = shutil.which(name)
    return Checked(name, True, path, "") if path else Checked(name, False, "not installed; optional", remedy)


def _counters() -> Checked:
    events = perf.hardware_events()
    if events:
        return Checked("hardware counters", True, ", ".join(events), "")
    return Checked(
        "hardware counters", False, "not available (usual in a virtual machine); optional", "use a bare-metal host"
    )


def _triton() -> Checked:
    if version := just_in_time.version():
        return Checked("Triton", True, f"{version}; where there is no GPU its interpreter checks values", "")
    return Checked(
        "Triton",
        False,
        "not installed; optional",
        "pip install -r requirements-triton.txt (to check Triton kernels here)",
    )


def _cute_dsl() -> Checked:
    if found := cute_dsl.version():
        return Checked("CuTe's Python DSL", True, f"{found}; compiles without a GPU, runs on one", "")
    return Checked(
        "CuTe's Python DSL",
        False,
        "not installed; optional",
        "pip install -r requirements-cute-dsl.txt (for --language cute_dsl)",
    )


def version(package: str) -> str:
    """Of an installed package; nothing of it is imported."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "unknown version"
