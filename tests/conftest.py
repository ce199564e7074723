"""One set of compiled headers for all tests: they are the same for every home, and cost ten seconds to build."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from pathlib import Path

import pytest

from tests.progress import pytest_configure

__all__ = ["home", "pytest_configure", "shared_cache"]

# Compiling takes long, and every run would do it once; one test of its own does.
os.environ["TILEWRIGHT_COMPILED_BASELINE"] = "off"
# Whole runs are about what follows what, not about a percent of speed.
os.environ |= {"TILEWRIGHT_TIMING_SECONDS": "0.5", "TILEWRIGHT_CHECK_SECONDS": "2"}

# What else measures on this machine, other workers' tests among it, is not waited for: hardly anything here is exact.
os.environ["TILEWRIGHT_LEASES"] = tempfile.mkdtemp(prefix="tilewright.leases.")
atexit.register(shutil.rmtree, os.environ["TILEWRIGHT_LEASES"], ignore_errors=True)

ROOT = Path(__file__).resolve().parent
# Those that build and judge kernels wait most of the time, since a lease lets one at a time measure; browser tests keep
# every processor busy. Apart from each other neither holds the other up.
JUDGING = (
    "cheats",
    "engine/evaluation",
    "engine/toolchains",
    "engine/profiling",
    "engine/test_cli.py",
    "engine/test_loop.py",
    "engine/test_supervisor.py",
    "engine/test_live_run.py",
    "engine/test_forking.py",
    "browser/test_remeasure.py",
)
TEXT_ONLY = "engine/evaluation/screening"
# Those that take longest begin first: a long one at the end would leave the other workers without work.
LONG = (
    "browser/test_remeasure.py",
    "browser/test_real_engine.py",
    "browser/test_manual.py",
    "browser/test_new_run.py",
    "engine/test_forking.py",
    "engine/test_cli.py",
    "engine/test_supervisor.py",
    "engine/test_loop.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what judges kernels, and put what takes long in front."""
    items.sort(key=lambda item: not _place(item).startswith(LONG))
    for item in items:
        if _place(item).startswith(JUDGING) and not _place(item).startswith(TEXT_ONLY):
            item.add_marker(pytest.mark.judging)


def _place(item: pytest.Item) -> str:
    return item.path.relative_to(ROOT).as_posix()


@pytest.fixture(scope="session")
def shared_cache(request: pytest.FixtureRequest) -> Path:
    """The `cache` folder that test homes share, also with those of other workers and of the last time."""
    cache = request.config.cache
    assert cache is not None
    return Path(cache.mkdir("tilewright")) / "cache"


@pytest.fixture
def home(tmp_path: Path, shared_cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A TILEWRIGHT_HOME of the test's own."""
    folder = tmp_path / "home"
    folder.mkdir()
    shared_cache.mkdir(exist_ok=True)
    (folder / "cache").symlink_to(shared_cache)
    monkeypatch.setenv("TILEWRIGHT_HOME", str(folder))
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "TILEWRIGHT_MODEL", "TILEWRIGHT_READ_ONLY"):
        monkeypatch.delenv(name, raising=False)
    return folder
