"""Recorded kernels do on a real GPU what the recordings say: the broken ones fail, the last ones are right."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from engine.evaluator import tasks
from storage.results.vocabulary import Verdict
from storage.run.blobs import text_hash
from storage.run.settings import StepKind
from tests.engine.evaluator.checks.screening import recorded
from tests.engine.search.llm.test_cuda_recordings import last

pytestmark = pytest.mark.gpu

SIZES: Mapping[str, Mapping[str, int]] = {
    "square_matmul": {"N": 1024},
    "diagonal_matmul": {"N": 1000, "M": 1022},
    "swish": {"batch_size": 63, "dim": 65537},
    "softmax": {"batch_size": 40, "dim": 393216},
}
BROKEN = [
    (task, source)
    for task in recorded.CUDA_TASKS
    for digest, source in recorded.kernels(task, "cuda").items()
    if (StepKind.DIAGNOSE, digest) in recorded.of(task, "cuda").replies
]


@pytest.mark.parametrize("task", recorded.CUDA_TASKS)
def test_the_last_recorded_kernel_is_right_at_other_sizes_too(gpu: Any, task: str) -> None:
    checked = gpu.check(tasks.find(task).task("cuda", SIZES[task]), last(task))
    assert checked.verdict is Verdict.PASSED, checked.message
    assert checked.precision == "fp32-exact"


@pytest.mark.parametrize(
    ("task", "source"), BROKEN, ids=lambda value: value if len(value) < 40 else text_hash(value)[:8]
)
def test_a_kernel_that_the_recording_calls_broken_fails(gpu: Any, task: str, source: str) -> None:
    about = tasks.find(task).task("cuda", SIZES[task])
    built = gpu.compile(about, source)
    assert not built.is_ok or gpu.check(about, source).verdict in (Verdict.INCORRECT, Verdict.RUNTIME_ERROR)
