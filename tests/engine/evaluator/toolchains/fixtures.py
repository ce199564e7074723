"""One toolchain of each kind per session. The cpu's cache is kept between sessions: precompiled headers cost ten
seconds each; the GPU's begins empty."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from engine.evaluator import tasks
from engine.evaluator.machine import processes
from engine.evaluator.machine.worker_limits import Times
from engine.evaluator.tasks import Task
from engine.evaluator.toolchains.cpu import CpuToolchain
from engine.evaluator.toolchains.cuda import CudaToolchain
from storage.results.policy import EVERYTHING

GPU_TIMES = Times(call_s=8.0, check_s=4.0, timing_s=2.0)


@pytest.fixture(scope="session")
def cpu_home(tmp_path_factory: pytest.TempPathFactory, shared_cache: Path) -> Iterator[None]:
    home = tmp_path_factory.mktemp("cpu")
    shared_cache.mkdir(exist_ok=True)
    (home / "cache").symlink_to(shared_cache)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TILEWRIGHT_HOME", str(home))
        yield


@pytest.fixture(scope="session")
def cpu(cpu_home: None) -> Iterator[CpuToolchain]:
    with CpuToolchain(times=Times(call_s=5.0, check_s=3.0, timing_s=0.5)) as toolchain:
        yield toolchain


@pytest.fixture(scope="session")
def cuda_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TILEWRIGHT_HOME", str(tmp_path_factory.mktemp("home")))
        yield


@pytest.fixture(scope="session")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("scratch")


@pytest.fixture(scope="session")
def gpu(cuda_home: None, scratch: Path) -> Iterator[CudaToolchain]:
    """On this machine's first GPU."""
    with CudaToolchain(scratch, GPU_TIMES) as toolchain:
        yield toolchain


def free(task: Task) -> Task:
    """The task for candidates that PyTorch may help: what is tested is not who computes."""
    return replace(task, policy=replace(task.policy, library_operators=(EVERYTHING,)))


@pytest.fixture(scope="session")
def small_swish() -> Task:
    return tasks.find("swish").task("cpu", {"batch_size": 16, "dim": 4096})


def is_candidate_halted() -> bool:
    """Whether the candidate's process is stopped: of those below this one it is the deepest, inside its sandbox's."""
    with suppress(FileNotFoundError, ProcessLookupError, IndexError):
        deepest = processes.descendants(os.getpid())[-1]
        return Path(f"/proc/{deepest}/stat").read_text().rpartition(")")[2].split()[0] == "T"
    return False
