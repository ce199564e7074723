"""How many numbers an operator adds up, of operators that really run."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.nn import functional

from engine.evaluator.processes.reference_worker import OperationCounter

WIDE, TALL = torch.rand(3, 50_000), torch.rand(50_000, 8)


@pytest.mark.parametrize(
    ("call", "terms"),
    [
        (lambda: functional.relu(WIDE * 2 + 1), 0),
        (lambda: functional.hardswish(functional.hardsigmoid(WIDE)).add_(1).clamp_(max=2), 0),
        (lambda: functional.gelu(torch.cat([WIDE, WIDE])).t().contiguous(), 0),
        (lambda: WIDE.softmax(-1), 50_000),
        (lambda: TALL.softmax(-1), 8),
        (lambda: TALL.cumsum(1), 8),
        (lambda: TALL.sum(1), 8),
        (lambda: TALL.mean(), 400_000),
        (lambda: functional.layer_norm(TALL, [8]), 8),
        (lambda: functional.group_norm(WIDE.view(3, 10, 5_000), 5), 10_000),
        (lambda: TALL @ torch.rand(8, 4), 8),
        (lambda: WIDE @ WIDE.t(), 50_000),
        (lambda: functional.linear(TALL, torch.rand(4, 8), torch.rand(4)), 8),
        (lambda: torch.fft.rfft(WIDE), 50_000),
        (lambda: torch.empty(0).sum(), 0),
        (lambda: nn.BatchNorm1d(8)(TALL), 50_000),
    ],
)  # fmt: skip
def test_what_an_operator_adds_up_is_what_its_rows_are_long(call: Callable[[], object], terms: int) -> None:
    with torch.no_grad(), OperationCounter() as counter:
        call()
    assert counter.terms == terms
