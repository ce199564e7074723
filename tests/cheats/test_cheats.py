"""Every kernel file of the suite gets the verdict it declares, for the reason it declares, and leaves nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from engine.evaluator.toolchains.cpu import CpuToolchain
from storage.results.vocabulary import Verdict
from tests.cheats import declaration, running
from tests.cheats.declaration import KERNELS, Declaration, task_of
from tests.cheats.running import Mode
from tests.examples import LONG, PROFILE

FILES = declaration.in_folder(KERNELS)
HONEST = [one for one in FILES if one.is_honest]
# Those that timing might take for something else; `benchmarks.cheats` times them all.
TIMED = ("workspace_cached", "thread_pool_joined", "python_threads_joined", "openmp_schedules", "strided_result",
         "static_workspace_cpp", "table_in_constructor", "copies_by_pytorch", "libmvec_exponential", "memory_functions",
         "sorted_rows")  # fmt: skip
CHEATS = [one for one in FILES if not one.is_honest]
# They work until they are ended, however long that is.
ENDLESS = {
    "compile_never_ends": {"build_s": 2.0},
    "endless_import": {"import_s": 1.0},
    "endless_loop_cpp": {"call_s": 1.0},
    "endless_loop_python": {"call_s": 1.0},
}
# Twelve threads take turns with the call, a tenth of a second each.
LIMITS = ENDLESS | {"library_beside_spinning_threads": {"call_s": 20.0}}
# Built against all of PyTorch's headers, which a busy machine takes long for.
HEAVY_BUILDS = ("library_aten_cpp", "library_own_operator", "torch_library", "library_kernel_pointer", "library_onednn",
                "library_redispatch", "copies_by_pytorch")  # fmt: skip
# Of several such, all but one of a kind only where all examples are tried.
LONG_ALONE = ("library_kernel_pointer", "library_onednn", "copies_by_pytorch")
HEAVY_BUILD_S = 300.0
# Right in many trials: a busy machine must have the time for those in which they are not.
SELDOM_WRONG = ("shortcut_sampled_range", "amortised_batch", "path_by_prefix", "top_k_few_candidates",
                "recurrence_truncated")  # fmt: skip
ALL_TRIALS_S = 10.0


def by_name(declared: Declaration) -> str:
    return declared.path.stem


@pytest.mark.parametrize("declared", HONEST, ids=by_name)
def test_an_honest_kernel_passes(
    evaluator: CpuToolchain, scratch: Path, declared: Declaration, monkeypatch: pytest.MonkeyPatch
) -> None:
    if by_name(declared) in LONG_ALONE and PROFILE != LONG:
        pytest.skip(f"builds for half a minute: run with HYPOTHESIS_PROFILE={LONG}")
    if by_name(declared) in HEAVY_BUILDS:
        monkeypatch.setattr(evaluator, "_times", replace(running.TIMES, build_s=HEAVY_BUILD_S))
    if by_name(declared) not in TIMED:
        task = task_of(declared)
        assert evaluator.compile(task, declared.source).is_ok
        assert evaluator.check(task, declared.source).verdict is Verdict.PASSED
        return
    outcome = running.run(evaluator, scratch, declared, Mode.WHOLE)
    assert running.complaints(declared, outcome, Mode.WHOLE) == []
    assert outcome.speedup is not None


@pytest.mark.parametrize("declared", CHEATS, ids=by_name)
def test_a_cheat_gets_its_verdict(
    evaluator: CpuToolchain, scratch: Path, declared: Declaration, monkeypatch: pytest.MonkeyPatch
) -> None:
    if declared.needs_walls and not running.walls_hold():
        pytest.skip("does harm where the sandbox does not hold")
    if by_name(declared) in LONG_ALONE and PROFILE != LONG:
        pytest.skip(f"builds for half a minute: run with HYPOTHESIS_PROFILE={LONG}")
    if by_name(declared) in LIMITS:
        monkeypatch.setattr(evaluator, "_times", replace(running.TIMES, **LIMITS[by_name(declared)]))
    if by_name(declared) in HEAVY_BUILDS:
        monkeypatch.setattr(evaluator, "_times", replace(running.TIMES, build_s=HEAVY_BUILD_S))
    if by_name(declared) in SELDOM_WRONG:
        monkeypatch.setattr(evaluator, "_times", replace(running.TIMES, check_s=ALL_TRIALS_S))
    outcome = running.run(evaluator, scratch, declared, Mode.WHOLE)
    assert running.complaints(declared, outcome, Mode.WHOLE) == []


def test_there_are_enough_of_both_kinds() -> None:
    assert len(CHEATS) >= 32
    assert len(HONEST) >= 16
    assert all(one.verdicts == ("passed",) for one in HONEST)
    assert not [one.name for one in CHEATS if one.verdicts == ("passed",)]
