"""A kernel that breaks the device's rules gets a verdict within its limit, and the next evaluation is right."""

from __future__ import annotations

import time
from typing import Any

import pytest

from engine.errors import ProfileUnavailable
from engine.evaluator import tasks
from storage.results.evaluation_results import TimingResult
from storage.results.vocabulary import Verdict
from tests.engine.evaluator.toolchains.fixtures import GPU_TIMES
from tests.gpu.faults import FAULTS, Fault, kernel

pytestmark = pytest.mark.gpu
TASK = tasks.find("swish").task("cuda", {"batch_size": 1024, "dim": 16384})
WORK_S = 30.0


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_a_fault_is_a_verdict_and_the_device_works_on(gpu: Any, fault: Fault) -> None:
    assert gpu.compile(TASK, fault.source).is_ok
    started = time.monotonic()
    result = gpu.check(TASK, fault.source)
    assert time.monotonic() - started < GPU_TIMES.call_s + WORK_S
    assert (str(result.verdict), fault.word in result.message) == (fault.verdict, True), result.message
    assert gpu.check(TASK, kernel("right")).verdict is Verdict.PASSED


def test_the_sanitizer_names_the_line_of_an_illegal_write(gpu: Any) -> None:
    if not gpu.installation.sanitizer:
        pytest.skip("no compute-sanitizer here")
    result = gpu.check(TASK, FAULTS["illegal_address"].source)
    assert "Invalid __global__ write of size 4 bytes" in result.message


def test_a_right_kernel_is_timed_and_profiled(gpu: Any) -> None:
    source = kernel("right")
    assert gpu.compile(TASK, source).resources[0].registers > 0
    timed = gpu.time(TASK, source)
    assert isinstance(timed, TimingResult)
    assert 0.5 < timed.speedup < 5
    try:
        profile = gpu.profile(TASK, source)
    except ProfileUnavailable as error:
        pytest.fail(str(error))
    assert "kernel" in profile.summary
    assert not [metric for metric in profile.metrics if metric.name in profile.missing]
