"""The CPU toolchain for tests that play a whole run: real compiler and evaluator, each kernel judged once a worker."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.evaluator.request import Evaluator
from engine.evaluator.toolchains.cached import CachedToolchain
from engine.evaluator.toolchains.cpu import CpuToolchain


@pytest.fixture(scope="module")
def toolchain(tmp_path_factory: pytest.TempPathFactory, shared_cache: Path) -> Iterator[Evaluator]:
    """Of one module; what was built stays in the cache that all tests share."""
    patch = pytest.MonkeyPatch()
    home = tmp_path_factory.mktemp("real")
    shared_cache.mkdir(exist_ok=True)
    (home / "cache").symlink_to(shared_cache)
    patch.setenv("TILEWRIGHT_HOME", str(home))
    with CpuToolchain() as real:
        # The worker's own: two that judge a kernel at once would find one another's figures.
        yield CachedToolchain(real, tmp_path_factory.getbasetemp() / "judged")
    patch.undo()
