"""Ways to call a network, with kernels of a package or without: eager, compiled, max-autotune, each in a CUDA graph.

A network with kernels is a copy of its modules that holds the very same parameters, so both can be called in turns.
"""

from __future__ import annotations

import copy
import importlib
import sys
import warnings
from collections.abc import Callable, Collection, Mapping
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
from storage.networks.records import CUDA_GRAPH, EAGER, MAX_AUTOTUNE, TUNED_GRAPH

BUILDS_AT_ONCE = 4
MODES = {MAX_AUTOTUNE: "max-autotune", TUNED_GRAPH: "max-autotune-no-cudagraphs"}
"""Of torch.compile; max-autotune makes CUDA graphs of its own, which no other graph can hold."""


class NoWay(Exception):
    """A way in which a network cannot be called; the message is the end of a sentence that says why."""


class Raised(NoWay):
    """What runs there has raised something: the user's code, a kernel, or PyTorch's compiler."""


def guarded(called: Callable[..., Any], why: str = "") -> Callable[..., Any]:
    """The same call of what is not ours, which may raise anything: that is `Raised`, or NoWay where `why` begins the
    sentence."""

    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return called(*args, **kwargs)
        except NoWay as error:
            raise (NoWay(f"{why}: {error}") if why else error) from error
        except Exception as error:  # of the user's code, a kernel, or PyTorch's compiler
            reason = graphs.reason_of(error)
            raise (NoWay(f"{why}: {reason}") if why else Raised(reason)) from error

    return call


def imported(folder: Path, name: str) -> ModuleType:
    """A network's package, its C++ built.

    Raises:
        NoWay: it cannot be built or loaded.
    """
    sys.path.insert(0, str(folder))
    module: ModuleType = guarded(_imported, "the package of its kernels cannot be loaded")(folder, name)
    return module


def _imported(folder: Path, name: str) -> ModuleType:
    if (folder / name / "csrc").is_dir():
        sys.path.insert(0, str(folder / name))
        building = importlib.import_module("_build")  # of the package; it imports nothing of it
        sys.path.pop(0)
        with ThreadPoolExecutor(BUILDS_AT_ONCE) as pool:
            list(pool.map(lambda library: building.found(library) or building.built(library), building.BUILDS))
    return importlib.import_module(name)


@dataclass(slots=True)
class Ways:
    """All ways to call one network. `package` is None where no kernel is put back."""

    network: nn.Module
    package: Any
    is_training: bool = False
    is_gpu: bool = False
    remade: Callable[[], nn.Module] | None = None
    """Makes the network once more, where its modules cannot be copied."""
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
            twin = twin_of(self.network, self.remade, is_shared=True)
            guarded(self._apply)(twin, chosen)
            self._twins[chosen] = twin
        return self._twins[chosen]

    def apart(self) -> nn.Module:
        """The network once more, with parameters of its own.

        Raises:
            NoWay: it can neither be copied nor made a second time.
        """
        return twin_of(self.network, self.remade, is_shared=False)

    def _apply(self, twin: nn.Module, chosen: Collection[str]) -> None:
        try:
            self.package.apply(twin, chosen)
        except ValueError as error:
            raise NoWay(str(error)) from error

    def called(self, way: str, regions: Collection[str] = (), *, example: Workload | None = None) -> Called:
        """The network as something to call with a workload. `torch._dynamo.reset` before two of them are compared.

        Raises:
            NoWay: it cannot be called in this way.
        """
        if way in (CUDA_GRAPH, TUNED_GRAPH):
            held = self.base if way == CUDA_GRAPH else TUNED_GRAPH
            return self._in_graph(self._compiled(held, regions), example)
        return self._compiled(way, regions)

    def _compiled(self, way: str, regions: Collection[str]) -> Called:
        module, mode = self.with_kernels(regions), MODES.get(way)
        if way == EAGER and not self.fused(regions):
            callable_network: Any = module
        elif regions:
            inner = self.package.EAGER if way == EAGER else self.package.INDUCTOR
            callable_network = self.package.compile(module, regions, inner=inner, mode=mode)
        else:
            callable_network = torch.compile(module, mode=mode, dynamic=False)
        return guarded(
            lambda workload: watching.call(callable_network, workload, is_training=self.is_training)
        )  # fmt: skip

    def _in_graph(self, called: Called, example: Workload | None) -> Called:
        """The same call as one CUDA graph, whose inputs are copied into it."""
        if not self.is_gpu or example is None:
            raise NoWay("there is no GPU here")
        if self.is_training:
            raise NoWay("a training step is not captured")
        captured: Called = guarded(cuda_graphs.captured, "a CUDA graph does not take it")(called, example)
        return guarded(captured)


def twin_of(network: nn.Module, remade: Callable[[], nn.Module] | None, *, is_shared: bool) -> nn.Module:
    """The same modules once more, copied, or else made a second time; with the very same parameters and buffers, or
    with copies of them.

    Raises:
        NoWay: its modules can neither be copied nor made a second time.
    """
    held = _held(network)
    shared = {id(tensor): tensor for tensor in held.values()} if is_shared else {}
    try:
        twin: nn.Module = guarded(copy.deepcopy)(network, shared)
    except Raised as error:
        if remade is None:
            raise NoWay(f"its modules cannot be copied: {error}") from error
        why = f"its modules cannot be copied ({error}), and it cannot be made a second time"
        twin = guarded(remade, why)()
        _see_alike(held, _held(twin))
        _give(twin, held if is_shared else copy.deepcopy(held))
    return twin


def _held(network: nn.Module) -> dict[str, torch.Tensor]:
    return dict([
        *network.named_parameters(remove_duplicate=False), *network.named_buffers(remove_duplicate=False)
    ])  # fmt: skip


def _see_alike(held: Mapping[str, torch.Tensor], other: Mapping[str, torch.Tensor]) -> None:
    """Raises NoWay."""
    for name in sorted(held.keys() | other.keys()):
        if name not in held or name not in other or held[name].shape != other[name].shape:
            raise NoWay(f"its modules cannot be copied, and made a second time it is another network: {name}")


def _give(twin: nn.Module, held: Mapping[str, torch.Tensor]) -> None:
    """Put tensors in the places of those of the same names."""
    for name, tensor in held.items():
        path, _, own = name.rpartition(".")
        module = twin.get_submodule(path)
        places: dict[str, Any] = module._parameters if own in module._parameters else module._buffers
        places[own] = tensor


def exact(network: nn.Module, dtype: torch.dtype) -> Callable[[Workload], Workload]:
    """Turn a twin of the network into one that computes in `dtype`, and say how workloads are."""
    guarded(network.to)(dtype)

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
