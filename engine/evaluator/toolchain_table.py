"""The toolchains by name: where the class is, on what kernels run, and why one cannot be used here. Imports none."""

from __future__ import annotations

import importlib
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.errors import ToolchainError

HOST, GPU = "cpu", "cuda"


@dataclass(frozen=True, slots=True)
class Entry:
    """`place` is `module:Class`, made as `Class(scratch)`, a folder for its files. `device`: HOST or GPU, where its
    kernels run.

    `lacks` says at a glance what this machine lacks for it, empty when it lacks nothing: the doctor looks closely.
    """

    place: str
    device: str
    lacks: Callable[[], str]


def lacks_compiler() -> str:
    """What building for the host's processor needs."""
    return "" if shutil.which("g++") else "g++ is not installed (on Debian: apt install g++)"


def lacks_gpu() -> str:
    """What building and running on a GPU needs. Asks no driver."""
    if not any(Path("/dev").glob("nvidia[0-9]*")):
        return "no NVIDIA GPU on this machine"
    places = [shutil.which("nvcc"), *(f"{os.environ.get(name)}/bin/nvcc" for name in ("CUDA_HOME", "CUDA_PATH"))]
    if not any(path and Path(path).exists() for path in (*places, "/usr/local/cuda/bin/nvcc")):
        return "nvcc is not installed (the CUDA toolkit, or NVIDIA's pip packages)"
    return ""


TABLE: dict[str, Entry] = {
    "cpu": Entry("engine.evaluator.toolchains.cpu:CpuToolchain", HOST, lacks_compiler),
    "cuda": Entry("engine.evaluator.toolchains.cuda:CudaToolchain", GPU, lacks_gpu),
}


def device_of(name: str) -> str:
    """Where the kernels of a toolchain run; a name that is not in the table is taken for one of a GPU."""
    return TABLE[name].device if name in TABLE else GPU


def find_toolchain(name: str) -> type[Any]:
    """The class of a toolchain.

    Raises:
        ToolchainError: there is none of this name.
    """
    if name not in TABLE:
        raise ToolchainError(f"unknown toolchain {name!r}: use {' or '.join(TABLE)}")
    module, _, kind = TABLE[name].place.partition(":")
    toolchain: type[Any] = getattr(importlib.import_module(module), kind)
    return toolchain
