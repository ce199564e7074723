"""Each kind of attack once: a verdict in time, nothing left behind, the next honest evaluation as before."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from engine.evaluator.machine import processes
from engine.evaluator.machine.worker_limits import Limits, Times
from engine.evaluator.tasks import Task
from engine.evaluator.toolchains.cpu import CpuToolchain
from storage.results.vocabulary import Verdict
from tests.cheats.declaration import KERNELS
from tests.engine.evaluator.processes import hostile
from tests.engine.evaluator.toolchains import kernels

TIMES = Times(build_s=3.0, import_s=2.0, call_s=1.0, check_s=1.0, timing_s=1.0)
# What works until it is ended costs as much as it may take; nothing else needs to be done in that time.
BUILT_WITHOUT_END = replace(TIMES, build_s=1.0)
RUN_WITHOUT_END = replace(TIMES, import_s=0.5, call_s=0.5)
SECRET = ("a secret as header", "a secret as data")
BROKEN_DOWN = "templates without end"  # the compiler's own words are told, not its command line
# Files of tests/cheats do the same past screening, and are looked after in the same way; benchmarks.hostile runs all.
AMONG_CHEATS = {
    "endless loop in C++": "endless_loop_cpp",
    "endless loop at import": "endless_import",
    "memory hog": "memory_hog",
    "constexpr without end": "compile_never_ends",
}
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


def test_every_kind_with_words_of_its_own_is_an_attack() -> None:
    assert {*SECRET, BROKEN_DOWN, *AMONG_CHEATS} <= hostile.KINDS.keys()
    assert [name for name in AMONG_CHEATS.values() if not (KERNELS / "cheats" / f"{name}.py").exists()] == []


@pytest.mark.parametrize("kind", [kind for kind in hostile.KINDS if kind not in AMONG_CHEATS])
def test_an_attack_gets_a_verdict_in_time_and_leaves_nothing(
    short: CpuToolchain, small_swish: Task, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if kind in ("macros that explode", "a device as header"):
        monkeypatch.setattr(short, "_times", BUILT_WITHOUT_END)
    if kind in SECRET:  # what the compiler says of it is looked at, however long a busy machine compiles
        monkeypatch.setattr(short, "_times", replace(TIMES, build_s=25.0))
    if kind.startswith("endless loop"):
        monkeypatch.setattr(short, "_times", RUN_WITHOUT_END)
    started = time.monotonic()
    result = short.check(small_swish, hostile.KINDS[kind])
    assert result.verdict is not Verdict.PASSED
    assert result.message
    assert time.monotonic() - started < 120  # without limits it would never end; a busy machine takes its time
    process = short._evaluator._process
    assert process is not None
    assert processes.descendants(process.pid) == []
    assert list(short._scratch.iterdir()) == []
    if kind in SECRET:
        assert "/etc/shadow" in result.message
        assert "root:" not in result.message
        assert "not found" in result.message or "No such file" in result.message
    if kind == BROKEN_DOWN:
        assert any(words in result.message for words in ("internal compiler error", "memory", "took longer"))
        assert "-std=c++20" not in result.message


def test_the_honest_kernel_still_passes_after_all_of_them(short: CpuToolchain, small_swish: Task) -> None:
    assert short.check(small_swish, kernels.SWISH).verdict is Verdict.PASSED
