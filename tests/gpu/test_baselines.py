"""What a user would run instead of a kernel on a GPU, timed in the candidate's place."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine.errors import BaselineUnavailable
from engine.evaluator import tasks
from storage.results.baselines import Instead
from storage.results.policy import Policy

pytestmark = pytest.mark.gpu

PRODUCT = Path(__file__).parent / "fp8_product.py"
SIZES = {"batch_size": 512, "dim": 8192}
OWN = """
import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return torch.nn.functional.silu(x)
"""


@pytest.mark.parametrize("how", [how for how in Instead if how is not Instead.SCALED])
def test_each_baseline_of_a_module_is_right_and_timed_in_the_sandbox(
    gpu: Any, monkeypatch: pytest.MonkeyPatch, how: Instead
) -> None:
    monkeypatch.delenv("TILEWRIGHT_COMPILED_BASELINE")
    timed = gpu.baseline(tasks.find("swish").task("cuda", SIZES), how)
    assert timed.latency_ms > 0
    assert timed.baseline == "eager"


def test_a_product_of_converted_fp8_matrices_is_timed_as_scaled_mm_has_it(
    gpu: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TILEWRIGHT_COMPILED_BASELINE")
    task = tasks.find(str(PRODUCT)).task("cuda", {"M": 1024, "K": 1024, "N": 1024})
    timed = gpu.baseline(task, Instead.SCALED)
    assert timed.speedup > 1


def test_a_persons_own_baseline_may_call_the_library(gpu: Any) -> None:
    """One kernel in place of two: even where only compilers are switched off it is timed, and it is faster."""
    assert gpu.baseline(tasks.find("swish").task("cuda", SIZES), "", OWN).speedup > 1


def test_a_graph_of_both_passes_is_not_timed_and_said_to_be_so(gpu: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TILEWRIGHT_COMPILED_BASELINE")
    task = replace(tasks.find("swish").task("cuda", SIZES), policy=Policy(backward=True))
    with pytest.raises(BaselineUnavailable, match="a graph of both passes is not timed"):
        gpu.baseline(task, Instead.GRAPH)
