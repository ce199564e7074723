"""Operations that a reference's masks make needless are not counted as its task's."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch.nn import functional

from engine.evaluator.checks import flop_formulas
from engine.evaluator.checks.masked_products import MaskedProducts
from engine.evaluator.processes.reference_worker import OperationCounter

LENGTH, WIDTH = 64, 32
Q, K, V = torch.randn(3, 2, 4, LENGTH, WIDTH, generator=torch.Generator().manual_seed(1))
SEEN = (LENGTH + 1) / (2 * LENGTH)  # of the pairs of positions, by a position itself and those after it
LATER = torch.ones(LENGTH, LENGTH, dtype=torch.bool).triu(1)
HIDDEN = torch.zeros(LENGTH, LENGTH).masked_fill(LATER, -math.inf)
LAYER = torch.nn.MultiheadAttention(WIDTH, 4, batch_first=True)
X = Q[0]
OF_LAYER = 2 * X.shape[0] * LENGTH * WIDTH * (4 * WIDTH + 2 * LENGTH)


def scores() -> torch.Tensor:
    return torch.matmul(Q, K.transpose(-2, -1)) / 8


def with_gradients() -> torch.Tensor:
    query = Q.clone().requires_grad_()
    with torch.enable_grad():
        answer = torch.matmul(functional.softmax(query @ K.transpose(-2, -1) + HIDDEN, -1), V)
        torch.autograd.grad(answer.sum(), query)
    return answer


def largest_alone() -> torch.Tensor:
    chosen = scores()
    best = torch.zeros_like(chosen).scatter_(-1, chosen.topk(4, -1).indices, 1.0)
    return torch.matmul(chosen.masked_fill(best == 0, -math.inf).softmax(-1), V)


@pytest.mark.parametrize(
    ("call", "left"),
    [
        (lambda: scores().masked_fill(LATER, -math.inf).softmax(-1) @ V, SEEN),
        (lambda: scores().masked_fill_(LATER, -math.inf).softmax(-1) @ V, SEEN),
        (lambda: torch.where(LATER, -math.inf, scores()).softmax(-1) @ V, SEEN),
        (lambda: (scores() + HIDDEN).softmax(-1) @ V, SEEN),
        (lambda: functional.relu(scores().masked_fill(LATER, -math.inf)) @ V, SEEN),
        (lambda: (scores() * ~LATER) @ V, SEEN),
        (lambda: scores().tril() @ V, SEEN),
        (lambda: scores().tril(), SEEN),
        (lambda: LAYER(X, X, X, attn_mask=HIDDEN), 1 - (1 - SEEN) * 4 * X.shape[0] * LENGTH**2 * WIDTH / OF_LAYER),
        (with_gradients, SEEN),
        # A softmax needs what is masked after it; zeros that the values themselves make are known to no kernel before.
        (lambda: (scores().softmax(-1) * ~LATER) @ V, (1 + SEEN) / 2),
        (lambda: functional.relu(scores()) @ V, 1.0),
        (lambda: torch.where(scores() > 0, scores(), 0.0) @ V, 1.0),
        (largest_alone, 1.0),
        (lambda: scores().masked_fill(LATER, 0.5) @ V, (SEEN + 1) / 2),  # what is no zero is multiplied
        (lambda: scores().softmax(-1) @ V, 1.0),
        (lambda: functional.linear(X, LAYER.out_proj.weight).relu(), 1.0),
    ],
)
def test_what_a_mask_leaves_counts(call: Callable[[], torch.Tensor], left: float) -> None:
    with torch.no_grad(), OperationCounter() as counter:
        call()
    assert counter.total > 0
    assert counter.masked.needed / counter.total == pytest.approx(left, rel=1e-3)


@pytest.mark.parametrize(
    ("is_causal", "mask", "left"),
    [(True, None, SEEN), (False, None, 1.0), (False, ~LATER, SEEN), (False, HIDDEN, SEEN)],
)
def test_a_fused_attention_counts_the_pairs_that_it_takes_into_account(
    is_causal: bool, mask: torch.Tensor | None, left: float
) -> None:
    attention = torch.ops.aten._scaled_dot_product_efficient_attention.default  # it runs on a GPU alone
    args = (Q, K, V, mask, False, 0.0, is_causal)
    flop, masked = flop_formulas.flop_of(attention, args, {}, (Q,)), MaskedProducts()
    masked.take(attention, args, {}, (Q,), flop)
    assert masked.needed == round(left * flop)
