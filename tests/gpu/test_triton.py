"""Triton on a real GPU: compiled and tuned in the compile step, errors with lines, timed and profiled like others."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from engine.evaluator import tasks
from storage.results.check_records import DEVICE_TIME
from storage.results.evaluation_results import TimingResult
from storage.results.vocabulary import Verdict
from tests.cheats.declaration import TRITON_KERNELS

pytestmark = pytest.mark.gpu

_SWISH = tasks.find("swish").task("cuda", {"batch_size": 512, "dim": 16384})
TASK = replace(_SWISH, language="triton", policy=replace(_SWISH.policy, other_sizes=({"batch_size": 33, "dim": 1001},)))
KERNEL = (TRITON_KERNELS / "honest" / "autotuned.py").read_text()


def test_a_kernel_is_compiled_and_tuned_in_its_compile_step_and_judged_with_what_was_chosen(gpu: Any) -> None:
    built = gpu.compile(TASK, KERNEL)
    assert built.is_ok, built.diagnostics
    assert "6 configurations tried in the compile step, chosen TILE: " in built.remarks[0]
    assert [(one.kernel, one.registers > 0) for one in built.resources] == [("swish_kernel", True)]
    assert gpu.compile(TASK, KERNEL).is_cached
    assert gpu.check(TASK, KERNEL).verdict is Verdict.PASSED  # at the other sizes too, which compile anew
    timed = gpu.time(TASK, KERNEL)
    assert isinstance(timed, TimingResult), timed.message
    # A call takes 0.02 ms here: the device's clock decides, or where it may not, the interval covers what it says.
    [device] = [proof for proof in timed.proofs if proof.check == DEVICE_TIME]
    assert "the device's clock decides" in device.detail or timed.device_interval is not None
    assert timed.speedup > 1
    assert "swish_kernel" in gpu.profile(TASK, KERNEL, timed).summary


def test_what_tritons_compiler_says_is_a_compile_error_with_the_line_of_the_file(gpu: Any) -> None:
    built = gpu.compile(TASK, KERNEL.replace("tl.sigmoid(v)", "tl.sigmoid(w)"))
    assert built.verdict is Verdict.COMPILE_ERROR
    assert "candidate.py:25: error: " in built.diagnostics
    too_large = gpu.compile(TASK, KERNEL.replace("(512, 2048, 4096)", "(3000,)"))
    assert too_large.verdict is Verdict.COMPILE_ERROR
    assert "candidate.py:23: error: " in too_large.diagnostics, too_large.diagnostics
