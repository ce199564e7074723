"""What a user would run instead of eager PyTorch, in the candidate's place: compiled, under a CUDA graph, or with
`torch._scaled_mm` for products of FP8 matrices.

In half precision the faster way of each, as it is or under autocast, as of the module itself. What is chosen is chosen
in the first call, which warms up.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from engine.evaluator.checks import structure
from engine.evaluator.checks.arguments import Arguments, Kinds, flattened
from engine.evaluator.processes import half_baseline, scaled_products
from engine.evaluator.processes.half_baseline import Forward, UnderAutocast
from storage.results.baselines import Instead

# Without CUDA graphs: those copy their inputs, which can cost more than they save, and are a baseline of their own.
_MODES = {Instead.COMPILE: None, Instead.MAX_AUTOTUNE: "max-autotune-no-cudagraphs"}
WARM_UP = 3


def instead(how: str, forward: Forward, is_half: bool) -> Forward:
    """A module's forward as this baseline has it. `is_half`: products may be computed in half precision."""
    if how == Instead.GRAPH:
        return _Chosen(lambda inputs: [graph for way in _ways(forward, is_half, inputs) for graph in _graphs(way)])
    if how == Instead.SCALED:
        return scaled_products.compiled(forward)
    compiled = torch.compile(forward, mode=_MODES[Instead(how)])
    return _Chosen(lambda inputs: _ways(compiled, True, inputs)) if is_half else compiled


class _Chosen:
    """The fastest of several ways, chosen in the first call; those that fail are left out unless all do."""

    def __init__(self, ways: Callable[[Arguments], list[Forward]]) -> None:
        self._ways = ways
        self._way: Forward | None = None

    def __call__(self, *inputs: Any, **named: Any) -> Any:
        if self._way is None:
            given = Arguments(list(inputs), named)
            self._way = half_baseline.fastest(self._ways(given), given)
        return self._way(*inputs, **named)


def _ways(forward: Forward, is_half: bool, inputs: Arguments) -> list[Forward]:
    if not is_half:
        return [forward]
    leaves = structure.leaves_of(inputs.passed_to(forward))
    return [forward, UnderAutocast(forward, leaves[0].device.type, [leaf.dtype for leaf in leaves])]


def _graphs(forward: Forward) -> list[Forward]:
    compiled = torch.compile(forward, mode="reduce-overhead")
    return [_Captured(forward), lambda *inputs, **named: _copies(compiled(*inputs, **named))]


class _Captured:
    """A forward as one CUDA graph. A call copies its inputs to where the graph reads them, and its outputs away: the
    next call writes them anew."""

    def __init__(self, forward: Forward) -> None:
        self._forward = forward
        self._graph: torch.cuda.CUDAGraph | None = None

    def __call__(self, *inputs: Any, **named: Any) -> Any:
        given = Arguments(list(inputs), named)
        if self._graph is None:
            self._capture(given)
        assert self._graph is not None
        for kept, tensor in zip(flattened(self._inputs, Kinds())[0], flattened(given, Kinds())[0], strict=True):
            kept.copy_(tensor)
        self._graph.replay()
        return _copies(self._outputs)

    def _capture(self, inputs: Arguments) -> None:
        self._inputs = inputs.mapped(torch.clone)
        stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(WARM_UP):
                self._inputs.passed_to(self._forward)
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self._outputs = self._inputs.passed_to(self._forward)
        self._graph = graph


def _copies(outputs: Any) -> Any:
    return structure.with_leaves(outputs, [leaf.clone() for leaf in structure.leaves_of(outputs)])
