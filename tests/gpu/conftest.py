"""The cuda toolchain on this machine's first GPU, once for all tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.machine.worker_limits import Times

TIMES = Times(call_s=8.0, check_s=4.0, timing_s=2.0)


@pytest.fixture(scope="session")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("scratch")


@pytest.fixture(scope="session")
def gpu(scratch: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    cuda = pytest.importorskip("engine.toolchains.cuda")
    with pytest.MonkeyPatch.context() as patch, cuda.CudaToolchain(scratch, TIMES) as toolchain:
        patch.setenv("TILEWRIGHT_HOME", str(tmp_path_factory.mktemp("home")))
        yield toolchain
