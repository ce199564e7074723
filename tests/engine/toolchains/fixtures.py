"""One cpu toolchain per session. Its cache is kept between sessions: precompiled headers cost ten seconds each."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from engine import tasks
from engine.machine.worker_limits import Times
from engine.tasks import Task
from engine.toolchains.cpu import CpuToolchain


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
    with CpuToolchain(times=Times(call_s=5.0, check_s=3.0, timing_s=1.0)) as toolchain:
        yield toolchain


@pytest.fixture(scope="session")
def small_swish() -> Task:
    return tasks.find("swish").task("cpu", {"batch_size": 16, "dim": 4096})
