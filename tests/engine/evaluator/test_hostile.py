"""Each kind of attack once: a verdict in time, nothing left behind, the next honest evaluation as before."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.machine import processes
from engine.machine.worker_limits import Limits, Times
from engine.tasks import Task
from engine.toolchains.cpu import CpuToolchain
from storage.records import Verdict
from tests.engine.evaluator import hostile
from tests.engine.toolchains import kernels

TIMES = Times(build_s=3.0, import_s=2.0, call_s=1.0, check_s=1.0, timing_s=1.0)
LIMITS = Limits(tree_memory=4 << 30, address_space=5 << 30)


@pytest.fixture(scope="module")
def short(tmp_path_factory: pytest.TempPathFactory, shared_cache: Path) -> Iterator[CpuToolchain]:
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("hostile")
        shared_cache.mkdir(exist_ok=True)
        (folder / "cache").symlink_to(shared_cache)
        patch.setenv("TILEWRIGHT_HOME", str(folder))
        with CpuToolchain(folder / "scratch", TIMES, LIMITS) as toolchain:
            yield toolchain


@pytest.mark.parametrize("kind", hostile.KINDS)
def test_an_attack_gets_a_verdict_in_time_and_leaves_nothing(short: CpuToolchain, small_swish: Task, kind: str) -> None:
    started = time.monotonic()
    result = short.check(small_swish, hostile.KINDS[kind])
    assert result.verdict is not Verdict.PASSED
    assert result.message
    assert time.monotonic() - started < 30
    process = short._evaluator._process
    assert process is not None
    assert processes.descendants(process.pid) == []
    assert list(short._scratch.iterdir()) == []


def test_the_honest_kernel_still_passes_after_all_of_them(short: CpuToolchain, small_swish: Task) -> None:
    assert short.check(small_swish, kernels.SWISH).verdict is Verdict.PASSED


def test_no_secret_reaches_the_compilers_message(short: CpuToolchain, small_swish: Task) -> None:
    for kind in ("a secret as header", "a secret as data"):
        message = short.check(small_swish, hostile.KINDS[kind]).message
        assert "/etc/shadow" in message
        assert "root:" not in message
        assert "not found" in message or "No such file" in message


def test_a_compiler_that_breaks_down_is_reported_in_its_own_words(short: CpuToolchain, small_swish: Task) -> None:
    message = short.check(small_swish, hostile.KINDS["templates without end"]).message
    assert "internal compiler error" in message or "memory" in message or "took longer" in message
    assert "-std=c++20" not in message
