"""One toolchain with short limits for all kernel files; its home is the one the other toolchain tests keep."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.evaluator.toolchains.cpu import CpuToolchain
from tests.cheats import leftovers, running
from tests.engine.evaluator.toolchains.fixtures import cpu_home

__all__ = ["cpu_home", "evaluator", "scratch"]


@pytest.fixture(scope="session")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("scratch")


@pytest.fixture(scope="session")
def evaluator(cpu_home: None, scratch: Path) -> Iterator[CpuToolchain]:
    leftovers.write_secret()
    with CpuToolchain(scratch, running.TIMES, running.LIMITS) as toolchain:
        yield toolchain
    leftovers.remove_secret()
