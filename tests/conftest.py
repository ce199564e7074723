"""One set of compiled headers for the whole session: they are the same for every home, and cost seconds to build."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

# Compiling takes long, and every run would do it once; one test of its own does.
os.environ["TILEWRIGHT_COMPILED_BASELINE"] = "off"


ROOT = Path(__file__).resolve().parent
# With two workers the first half of the tests goes to one of them and the second to the other. Browser tests keep the
# processors busy, tests that judge kernels wait most of the time: side by side they take half as long as in turn. Those
# of a kind that take longest begin first: a long one at the end would leave the other worker without work.
BROWSER = ("browser/test_real_engine.py", "browser/test_manual.py", "browser/")
JUDGING = (
    "engine/test_forking.py",
    "engine/test_cli.py",
    "engine/test_loop.py",
    "engine/test_supervisor.py",
    "engine/test_live_run.py",
    "engine/toolchains",
    "engine/profiling",
    "engine/evaluation",
    "cheats",
)
TEXT_ONLY = "engine/evaluation/screening"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Browser tests first, tests that judge kernels last."""
    items.sort(key=_rank)


def _rank(item: pytest.Item) -> int:
    place = item.path.relative_to(ROOT).as_posix()
    for rank, start in enumerate(BROWSER):
        if place.startswith(start):
            return rank
    if place.startswith(TEXT_ONLY):
        return len(BROWSER)
    return len(BROWSER) + 1 + next((rank + 1 for rank, start in enumerate(JUDGING) if place.startswith(start)), 0)


@pytest.fixture(scope="session")
def shared_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The `cache` folder that test homes share."""
    return tmp_path_factory.mktemp("shared") / "cache"


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
