"""One set of compiled headers for all tests: they are the same for every home, and cost ten seconds to build."""

from __future__ import annotations

import atexit
import compileall
import gc
import importlib.util
import multiprocessing.util
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import hypothesis
import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

from tests import shared_servers, turns
from tests.examples import PROFILE, examples
from tests.progress import pytest_configure, pytest_terminal_summary
from tests.turns import pytest_addoption

__all__ = ["home", "pytest_addoption", "pytest_configure", "pytest_terminal_summary", "shared_cache"]

# A busy machine may stop a process for a second between two lines.
hypothesis.settings.register_profile(PROFILE, deadline=None, max_examples=examples())
hypothesis.settings.load_profile(PROFILE)
# Compiling takes long, and every run would do it once; one test of its own does.
os.environ["TILEWRIGHT_COMPILED_BASELINE"] = "off"
# Whole runs are about what follows what, not about a percent of speed.
os.environ |= {"TILEWRIGHT_TIMING_SECONDS": "0.2", "TILEWRIGHT_CHECK_SECONDS": "0.25"}

# What else measures on this machine, other workers' tests among it, is not waited for: hardly anything here is exact.
os.environ["TILEWRIGHT_LEASES"] = tempfile.mkdtemp(prefix="tilewright.leases.")
# A test that asks for no home of its own must neither read nor write the user's.
os.environ["TILEWRIGHT_HOME"] = tempfile.mkdtemp(prefix="tilewright.home.")
# Nor keep a key in the user's keyring.
os.environ["PYTHON_KEYRING_BACKEND"] = "keyring.backends.fail.Keyring"
for _name in ("TILEWRIGHT_LEASES", "TILEWRIGHT_HOME"):
    atexit.register(shutil.rmtree, os.environ[_name], ignore_errors=True)

# What is imported stays: looking for garbage among it takes a third of the time in which tests are collected.
gc.disable()

ROOT = Path(__file__).resolve().parent
# Those that build and judge kernels wait half of the time, and take long: two workers have them from the first to the
# last, in chains of about the same length, and browser tests take what the cores have left.
JUDGING = (
    "cheats",
    "engine/evaluator/build",
    "engine/evaluator/checks",
    "engine/evaluator/processes",
    "engine/evaluator/machine",
    "engine/evaluator/profiling",
    "engine/evaluator/sandbox",
    "engine/evaluator/toolchains",
    "engine/test_advance.py",
    "engine/test_prompt_pack.py",
    "engine/test_cli.py",
    "engine/test_loop.py",
    "engine/test_supervisor.py",
    "engine/test_live_run.py",
    "engine/test_forking.py",
    "engine/mcp_server/test_cancelling.py",
    "engine/mcp_server/test_optimisation.py",
    # These play runs of test_loop's kernels, which a worker judges once.
    "engine/test_tools.py",
    "engine/knowledge/test_evidence.py",
    "engine/search/methods/test_graph_search_run.py",
    "engine/search/methods/test_kernelblaster_run.py",
)
FIRST_CHAIN = (
    "cheats",
    "engine/evaluator/build",
    "engine/evaluator/toolchains",
    "engine/evaluator/profiling",
    "engine/test_cli.py",
)
TEXT_ONLY = "engine/evaluator/checks/screening"
# Those that take longest begin first: a long one at the end would leave the other workers without work.
LONG = (
    "browser/test_real_engine.py",
    "browser/test_manual.py",
    "browser/test_remeasure.py",
    "engine/networks/test_proof.py",
    "browser/test_screens.py",
    "test_benchmarks.py",
    "browser",
)
# Their tests share a server of the file's own.
TOGETHER = ("browser/test_screens.py", "browser/test_api.py")


class Scheduling(LoadScopeScheduling):  # type: ignore[misc]  # xdist ships no types
    """A worker takes the next file, or the next browser test, when it has nothing left; judging is two chains."""

    def _split_scope(self, nodeid: str) -> str:
        place = nodeid.partition("::")[0].removeprefix("tests/")
        if _judges(place):
            return "first chain" if place.startswith(FIRST_CHAIN) else "second chain"
        return nodeid if place.startswith("browser") and place not in TOGETHER else place


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Scheduling:
    config.option.loadscopereorder = False  # they are in order
    return Scheduling(config, log)


def pytest_report_header(config: pytest.Config) -> str | None:
    return turns.heading(config)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out long tests whose turn it is not, mark what judges kernels, and put what takes long in front."""
    turns.take(config, items)
    for item in items:
        if _judges(_place(item)):
            item.add_marker(pytest.mark.judging)
    items.sort(key=lambda item: _rank(_place(item)))


def pytest_collection_finish() -> None:
    gc.enable()
    gc.freeze()  # else each look for garbage goes through all that tests have imported, a sixth of what pages take
    atexit.register(gc.unfreeze)  # not before: pytest looks five times at the end. DuckDB would be told as leaked.


def pytest_sessionstart(session: pytest.Session) -> None:
    _link_cache(Path(os.environ["TILEWRIGHT_HOME"]), _shared_cache(session.config))
    # Fork servers outlive the test that starts them, and with them their sockets, whatever folder that test has.
    multiprocessing.util.get_temp_dir()
    shared_servers.take_turns()
    if session.config.getoption("numprocesses", None) and not sys.dont_write_bytecode:
        _compile_for_workers()


def _compile_for_workers() -> None:
    """Each of them would compile all files and rewrite their assertions, at the same time as the others."""
    for folder in ("engine", "storage", "pages", "benchmarks"):
        compileall.compile_dir(ROOT.parent / folder, quiet=2)
    for path in ROOT.rglob("test_*.py"):
        spec = importlib.util.find_spec(".".join(("tests", *path.relative_to(ROOT).with_suffix("").parts)))
        if spec and spec.loader:
            module = importlib.util.module_from_spec(spec)
            vars(module)["__builtins__"] = {}  # a module that can import nothing ends at its first line
            with suppress(ImportError, SyntaxError):
                spec.loader.exec_module(module)


def pytest_sessionfinish() -> None:
    shared_servers.end_all()


def _judges(place: str) -> bool:
    return place.startswith(JUDGING) and not place.startswith(TEXT_ONLY)


def _rank(place: str) -> int:
    return -1 if _judges(place) else next((n for n, long in enumerate(LONG) if place.startswith(long)), len(LONG))


def _place(item: pytest.Item) -> str:
    return item.path.relative_to(ROOT).as_posix()


@pytest.fixture(scope="session")
def shared_cache(request: pytest.FixtureRequest) -> Path:
    """The `cache` folder that test homes share, also with those of other workers and of the last time."""
    return _shared_cache(request.config)


def _shared_cache(config: pytest.Config) -> Path:
    assert config.cache is not None
    return Path(config.cache.mkdir("tilewright")) / "cache"


def _link_cache(folder: Path, shared: Path) -> None:
    shared.mkdir(exist_ok=True)
    (folder / "cache").symlink_to(shared)


@pytest.fixture
def own_server() -> Iterator[None]:
    """Each toolchain starts a fork server of its own and ends it."""
    shared_servers.start_each()
    yield
    shared_servers.take_turns()


@pytest.fixture
def home(tmp_path: Path, shared_cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A TILEWRIGHT_HOME of the test's own."""
    folder = tmp_path / "home"
    folder.mkdir()
    _link_cache(folder, shared_cache)
    monkeypatch.setenv("TILEWRIGHT_HOME", str(folder))
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "TILEWRIGHT_MODEL", "TILEWRIGHT_READ_ONLY"):
        monkeypatch.delenv(name, raising=False)
    return folder
