"""What a user would run instead of eager PyTorch, in the candidate's place: compiled, or under a CUDA graph.

In half precision the faster way of each, as it is or under autocast, as of the module itself. What is chosen is chosen
in the first call, which warms up.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.utils import _pytree as pytree

from engine.evaluator.processes import half_baseline
from engine.evaluator.processes.half_baseline import Forward, UnderAutocast
from storage.results.baselines import Instead

# Without CUDA graphs: those copy their inputs, which can cost more than they save, and are a baseline of their own.
_MODES = {Instead.COMPILE: None, Instead.MAX_AUTOTUNE: "max-autotune-no-cudagraphs"}
WARM_UP = 3


def instead(how: str, forward: Forward, is_half: bool) -> Forward:
    """A module's forward as this baseline has it. `is_half`: products may be computed in half precision."""
    if how == Instead.GRAPH:
        return _Chosen(lambda inputs: [graph for way in _ways(forward, is_half, inputs) for graph in _graphs(way)])
    compiled = torch.compile(forward, mode=_MODES[Instead(how)])
    return _Chosen(lambda inputs: _ways(compiled, True, inputs)) if is_half else compiled


class _Chosen:
    """The fastest of several ways, chosen in the first call; those that fail are left out unless all do."""

    def __init__(self, ways: Callable[[Sequence[Any]], list[Forward]]) -> None:
        self._ways = ways
        self._way: Forward | None = None

    def __call__(self, *inputs: Any) -> Any:
        if self._way is None:
            self._way = half_baseline.fastest(self._ways(inputs), inputs)
        return self._way(*inputs)


def _ways(forward: Forward, is_half: bool, inputs: Sequence[Any]) -> list[Forward]:
    if not is_half:
        return [forward]
    leaves = [leaf for leaf in pytree.tree_leaves(forward(*inputs)) if isinstance(leaf, torch.Tensor)]
    return [forward, UnderAutocast(forward, leaves[0].device.type, [leaf.dtype for leaf in leaves])]


def _graphs(forward: Forward) -> list[Forward]:
    compiled = torch.compile(forward, mode="reduce-overhead")
    return [_Captured(forward), lambda *inputs: _copies(compiled(*inputs))]


class _Captured:
    """A forward as one CUDA graph. A call copies its inputs to where the graph reads them, and its outputs away: the
    next call writes them anew."""

    def __init__(self, forward: Forward) -> None:
        self._forward = forward
        self._graph: torch.cuda.CUDAGraph | None = None

    def __call__(self, *inputs: Any) -> Any:
        if self._graph is None:
            self._capture(inputs)
        assert self._graph is not None
        for kept, given in zip(pytree.tree_leaves(self._inputs), pytree.tree_leaves(inputs), strict=True):
            if isinstance(kept, torch.Tensor):
                kept.copy_(given)
        self._graph.replay()
        return _copies(self._outputs)

    def _capture(self, inputs: Sequence[Any]) -> None:
        self._inputs = _copies(list(inputs))
        stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(WARM_UP):
                self._forward(*self._inputs)
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self._outputs = self._forward(*self._inputs)
        self._graph = graph


def _copies(tree: Any) -> Any:
    return pytree.tree_map(lambda leaf: leaf.clone() if isinstance(leaf, torch.Tensor) else leaf, tree)
