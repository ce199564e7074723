"""Products of FP8 matrices: which are found in a graph, and that `torch._scaled_mm` in their place gives the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn import functional

from engine.evaluator.processes.scaled_products import aten, rewritten

M, K, N = 32, 64, 48
Text = Callable[..., torch.Tensor]


def fp8(*shape: int) -> torch.Tensor:
    return (torch.randn(*shape) * 8).to(torch.float8_e4m3fn)


def scales(*shape: int) -> torch.Tensor:
    return torch.rand(*shape) + 0.1


def graph_of(text: Text, inputs: tuple[torch.Tensor, ...]) -> Any:
    return make_fx(text, tracing_mode="fake")(*inputs)


def called(module: Any) -> list[torch.fx.Node]:
    return [node for node in module.graph.nodes if node.target is aten._scaled_mm.default]


FOUND: dict[str, tuple[Text, tuple[torch.Tensor, ...]]] = {
    "a scale for each matrix": (
        lambda a, b, s, t: (a.float() * s) @ (b.float() * t).t(), (fp8(M, K), fp8(N, K), scales(1), scales(1))
    ),
    "after the product": (
        lambda a, b, s, t: ((a.float() @ b.float().T) * s / t).bfloat16(),
        (fp8(M, K), fp8(N, K), scales(1), scales(1)),
    ),
    "for rows and columns": (
        lambda a, b, s, t: functional.linear(a.float() * s, b.float() * t).bfloat16(),
        (fp8(M, K), fp8(N, K), scales(M, 1), scales(N, 1)),
    ),
    "rows alone, in float32": (
        lambda a, b, s: functional.linear(a.float() * s, b.float()), (fp8(M, K), fp8(N, K), scales(M, 1))
    ),
    "columns after the product": (
        lambda a, b, s, t: (a.float() @ b.float()) * s * t, (fp8(M, K), fp8(K, N), scales(M, 1), scales(N))
    ),
    "all of one length": (
        lambda a, b, s, t: (a.float() * s) @ (b.float() * t[:, None]).t(),
        (fp8(K, K), fp8(K, K), scales(K, 1), scales(K)),
    ),
    "several leading dimensions": (
        lambda a, b, s: functional.linear(a.float() * s, b.float() / 4), (fp8(2, 16, K), fp8(N, K), scales(2, 16, 1))
    ),
    "with a bias and what follows": (
        lambda a, b, s, c: functional.gelu(functional.linear(a.float() * s, b.float() * 0.25, c)),
        (fp8(M, K), fp8(N, K), scales(1), torch.randn(N)),
    ),
    "in float64": (lambda a, b, s: (a.double() * s) @ b.double().t(), (fp8(M, K), fp8(N, K), scales(1).double())),
}  # fmt: skip
PASSED_OVER: dict[str, tuple[Text, tuple[torch.Tensor, ...]]] = {
    "scales along the sum": (
        lambda a, b, s: (a.float() * s) @ b.float().t(), (fp8(M, K), fp8(N, K), scales(K))
    ),
    "as many scales along the sum as rows": (
        lambda a, b, s: (a.float() * s) @ b.float().t(), (fp8(K, K), fp8(N, K), scales(K))
    ),
    "one matrix of float32": (lambda a, b: a @ b.float().t(), (torch.randn(M, K), fp8(N, K))),
    "something else before the product": (lambda a, b: a.float().exp() @ b.float().t(), (fp8(M, K), fp8(N, K))),
    "weighed parts": (
        lambda a, b, c: torch.addmm(c, a.float(), b.float().t(), beta=0.5), (fp8(M, K), fp8(N, K), torch.randn(N))
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FOUND)
def test_a_product_of_scaled_fp8_matrices_is_found_and_computed_the_same(name: str) -> None:
    text, inputs = FOUND[name]
    module = graph_of(text, inputs)
    assert rewritten(module.graph) == 1
    module.recompile()
    (product,) = called(module)
    assert not {aten.mm.default, aten.addmm.default} & {node.target for node in module.graph.nodes}
    left, right = (node.meta["val"] for node in product.all_input_nodes[:2])
    assert (left.stride()[-1], right.stride()[0]) == (1, 1), "row-major and column-major, as a GPU takes them"
    expected, result = text(*inputs), module(*inputs)
    torch.testing.assert_close(result, expected, rtol=2e-2 if expected.dtype is torch.bfloat16 else 2e-5, atol=1e-3)


@pytest.mark.parametrize("name", PASSED_OVER)
def test_a_product_that_is_none_of_these_stays_as_it_is(name: str) -> None:
    text, inputs = PASSED_OVER[name]
    module = graph_of(text, inputs)
    assert rewritten(module.graph) == 0
    module.recompile()
    assert called(module) == []
    assert torch.equal(module(*inputs), text(*inputs))
