"""What several builders of one library do to each other."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from engine.evaluator.build import build_cache
from engine.evaluator.build.build_cache import BuildCache, Built
from tests.engine.evaluator.machine.test_turns import until

KEY = "0123456789abcdef" * 4


def written(work: Path) -> Built:
    (work / "kernel.so").write_text("a library")
    (work / "kernel.o").write_text("on the way there")
    return Built("kernel.so", "stable", "here", 1.0, "", ())


def openings(name: str) -> int:
    """How often this process has a file of that name open."""
    found = 0
    for one in Path("/proc/self/fd").iterdir():
        try:
            found += name in str(one.readlink())
        except FileNotFoundError:
            continue
    return found


def test_what_another_builds_is_waited_for_and_not_built_again(tmp_path: Path) -> None:
    cache = BuildCache(tmp_path / "libraries")
    builds, goes_on = threading.Event(), threading.Event()

    def slowly(work: Path) -> Built:
        builds.set()
        assert goes_on.wait(60)
        return written(work)

    def never(work: Path) -> Built:
        raise AssertionError("it was built a second time")

    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(cache.found_or_built, KEY, slowly)
        assert builds.wait(60)
        second = threads.submit(cache.found_or_built, KEY, never)
        until(lambda: openings(f"{KEY[:32]}.lock") == 2)
        goes_on.set()
        built, found = first.result(60), second.result(60)
    assert (built.is_cached, found.is_cached) == (False, True)
    assert built.library == found.library
    assert Path(found.library).read_text() == "a library"
    assert [one.name for one in cache.folder.iterdir()] == [KEY[:32]]
    assert sorted(one.name for one in Path(found.library).parent.iterdir()) == ["built.json", "kernel.so"]


def test_a_build_that_fails_leaves_nothing_behind_and_the_next_one_builds(tmp_path: Path) -> None:
    cache = BuildCache(tmp_path / "libraries")

    def fails(work: Path) -> Built:
        (work / "kernel.o").write_text("half")
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        cache.found_or_built(KEY, fails)
    assert list(cache.folder.iterdir()) == []
    assert not cache.found_or_built(KEY, written).is_cached
    assert cache.found_or_built(KEY, fails).is_cached


def test_a_build_that_fails_on_a_full_disk_is_no_verdict_on_the_kernel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "libraries").mkdir()
    cache = BuildCache(tmp_path / "libraries")

    def build(work: Path) -> Built:
        raise ValueError("error: expected ';'")

    with pytest.raises(ValueError, match="expected"):
        cache.found_or_built("k" * 40, build)
    monkeypatch.setattr(build_cache, "LEAST_FREE", 1 << 62)
    with pytest.raises(OSError, match="No space left"):
        cache.found_or_built("k" * 40, build)
    assert [path.name for path in (tmp_path / "libraries").iterdir()] == []
