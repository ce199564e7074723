"""A network's call as one CUDA graph: captured once, replayed with other inputs. Judges nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from engine.networks import watching
from engine.networks.entries import Workload

Called = Callable[[Workload], Any]
WARM_UP = 3


def captured(called: Called, example: Workload) -> Called:
    """The same call, replayed; its inputs are copied into the graph's own.

    Raises:
        Exception: whatever the capture or the user's code raises.
    """
    args, kwargs = watching.copied((example.args, dict(example.kwargs)))
    held = Workload(example.name, example.weight, args, kwargs)
    make_stream: Any = torch.cuda.Stream
    stream = make_stream()
    try:
        with torch.cuda.stream(stream):
            for _ in range(WARM_UP):
                called(held)
        stream.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            result = called(held)
    except Exception:  # the user's code may raise anything; what it has started is to end before anybody goes on
        torch.cuda.synchronize()
        raise
    inputs = _Inputs(watching.tensors_of((held.args, held.kwargs)))

    def replayed(workload: Workload) -> Any:
        inputs.take(watching.tensors_of((workload.args, workload.kwargs)))
        graph.replay()
        return result

    return replayed


@dataclass(slots=True)
class _Inputs:
    """The tensors that a CUDA graph reads. One that lies there already is not copied again: a cache of keys and values
    stays where it is from token to token, as it does for eager calls."""

    held: list[torch.Tensor]
    _taken: list[tuple[torch.Tensor, int]] = field(default_factory=list)

    def take(self, given: list[torch.Tensor]) -> None:
        now = [(tensor, tensor._version) for tensor in given]
        for number, (target, (tensor, version)) in enumerate(zip(self.held, now, strict=True)):
            lies_there = self._taken and self._taken[number][0] is tensor and self._taken[number][1] == version
            if not lies_there:
                target.copy_(tensor)
        self._taken = now
