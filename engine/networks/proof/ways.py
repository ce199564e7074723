"""Ways to call a network, with kernels of a package or without: eager, compiled, max-autotune, in a CUDA graph.

A network with kernels is a copy of its modules that holds the very same parameters, so both can be called in turns.
"""

from __future__ import annotations

import copy
import importlib
import sys
import warnings
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import nn
from torch.utils import _pytree as pytree

from engine.networks import cuda_graphs, graphs, watching
from engine.networks.entries import Workload
from engine.networks.proof.pairing import Called
from storage.networks.records import CUDA_GRAPH, EAGER, MAX_AUTOTUNE

BUILDS_AT_ONCE = 4


class NoWay(Exception):
    """A way in which a network cannot be called; the message is the end of a sentence that says why."""


def imported(folder: Path, name: str) -> ModuleType:
    """A network's package, its C++ built.

    Raises:
        NoWay: it cannot be built or loaded.
    """
    sys.path.insert(0, str(folder))
    try:
        if (folder / name / "csrc").is_dir():
            sys.path.insert(0, str(folder / name))
            building = importlib.import_module("_build")  # of the package; it imports nothing of it
            sys.path.pop(0)
            with ThreadPoolExecutor(BUILDS_AT_ONCE) as pool:
                list(pool.map(lambda library: building.found(library) or building.built(library), building.BUILDS))
        return importlib.import_module(name)
    except Exception as error:
        raise NoWay(f"the package of its kernels cannot be loaded: {graphs.reason_of(error)}") from error


@dataclass(slots=True)
class Ways:
    """All ways to call one network. `package` is None where no kernel is put back."""

    network: nn.Module
    package: Any
    is_training: bool = False
    is_gpu: bool = False
    base: str = EAGER
    """What a CUDA graph holds: the network as it is, or compiled."""
    _twins: dict[frozenset[str], nn.Module] = field(default_factory=dict)

    def fused(self, regions: Collection[str]) -> frozenset[str]:
        """Those whose kernels no module calls: operators of the whole network's graph."""
        if self.package is None:
            return frozenset()
        return frozenset(region.name for region in self.package.REGIONS if not region.places) & frozenset(regions)

    def with_kernels(self, regions: Collection[str]) -> nn.Module:
        """The network with these regions' kernels in its modules; without any, the network itself.

        Raises:
            NoWay: a kernel cannot be put there.
        """
        chosen = frozenset(regions)
        if not chosen:
            return self.network
        if chosen not in self._twins:
            self._twins.clear()  # one at a time: module trees are small, what hangs on them may not be
            twin = twin_of(self.network)
            try:
                self.package.apply(twin, chosen)
            except ValueError as error:
                raise NoWay(str(error)) from error
            self._twins[chosen] = twin
        return self._twins[chosen]

    def called(self, way: str, regions: Collection[str] = (), *, example: Workload | None = None) -> Called:
        """The network as something to call with a workload. `torch._dynamo.reset` before two of them are compared.

        Raises:
            NoWay: it cannot be called in this way.
        """
        module = self.with_kernels(regions)
        if way == CUDA_GRAPH:
            return self._in_graph(self.called(self.base, regions), example)
        if way == EAGER and not self.fused(regions):
            callable_network: Any = module
        elif regions:
            mode = "max-autotune" if way == MAX_AUTOTUNE else None
            inner = self.package.EAGER if way == EAGER else self.package.INDUCTOR
            callable_network = self.package.compile(module, regions, inner=inner, mode=mode)
        else:
            mode = "max-autotune" if way == MAX_AUTOTUNE else None
            callable_network = torch.compile(module, mode=mode, dynamic=False)
        return lambda workload: watching.call(callable_network, workload, is_training=self.is_training)

    def _in_graph(self, called: Called, example: Workload | None) -> Called:
        """The same call as one CUDA graph, whose inputs are copied into it."""
        if not self.is_gpu or example is None:
            raise NoWay("there is no GPU here")
        if self.is_training:
            raise NoWay("a training step is not captured")
        try:
            return cuda_graphs.captured(called, example)
        except Exception as error:
            raise NoWay(f"a CUDA graph does not take it: {graphs.reason_of(error)}") from error


def twin_of(network: nn.Module) -> nn.Module:
    """The same modules once more, with the very same parameters and buffers.

    Raises:
        NoWay: its modules cannot be copied.
    """
    shared = {id(tensor): tensor for tensor in (*network.parameters(), *network.buffers())}
    try:
        return copy.deepcopy(network, shared)
    except Exception as error:
        raise NoWay(f"its modules cannot be copied: {graphs.reason_of(error)}") from error


def exact(network: nn.Module, dtype: torch.dtype) -> Callable[[Workload], Workload]:
    """Turn a copy of the network into one that computes in `dtype`, and say how workloads are."""
    network.to(dtype)

    def converted(workload: Workload) -> Workload:
        args, kwargs = pytree.tree_map_only(
            torch.Tensor,
            lambda tensor: tensor.to(dtype) if tensor.is_floating_point() else tensor,
            (workload.args, dict(workload.kwargs)),
        )
        return Workload(workload.name, workload.weight, args, kwargs)

    return converted


def anew() -> None:
    """Forget what was compiled: two ways that are compared are compiled beside each other, and nothing else is."""
    torch._dynamo.reset()
    warnings.filterwarnings("ignore", module=r"torch\.")  # PyTorch's own, of its compiler
