"""The same call under torch.compile: its time, its kernels, and all places that each kernel's operators come from.

Inductor tells which operators of its graph a kernel computes, and a graph's operators tell the module that called them.
A kernel that works for several places is one row that names them all: nothing is split by guess. Private names of
PyTorch's are used for that (2.11 to 2.13); without them kernels have no places, and times stand.
"""

from __future__ import annotations

import contextlib
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import torch
from torch import fx, nn
from torch.profiler import profile

from engine.networks import cuda_graphs, graphs, place_times, watching
from engine.networks.entries import Workload
from storage.networks.records import MAX_AUTOTUNE, TUNED_GRAPH, CompiledKernel

PROVENANCE = "_inductor_triton_kernel_to_post_grad_node_info"
_OF_GRAPH = re.compile(r"^graph_\d+_")
_LOCAL = re.compile(r"^L\['\w+'\]\.?")
_LAUNCHES = ("aten::", "triton_", "cpp_")


@dataclass(frozen=True, slots=True)
class Compiled:
    """`note` says what could not be done; kernels are empty where nothing was compiled."""

    walls_ms: tuple[float, ...] = ()
    note: str = ""
    graph_breaks: int = 0
    kernels: tuple[CompiledKernel, ...] = ()
    replayed_ms: tuple[float, ...] = ()
    replayed_note: str = ""


@dataclass(slots=True)
class _Origins:
    """Kernels in the order in which they are launched, each with the places of its operators, one list a graph."""

    graphs: list[list[tuple[str, tuple[str, ...]]]] = field(default_factory=list)
    places: dict[str, str] = field(default_factory=dict)
    """Of the operators of the graph that is being compiled."""


def watched(module: nn.Module, workload: Workload, *, is_training: bool) -> Compiled:
    """Compile, time and watch a call; what fails is told in `note`."""
    torch._dynamo.reset()
    origins = _Origins()
    is_gpu = place_times.is_on_gpu(module, workload)
    try:
        with warnings.catch_warnings(), _told(origins):
            warnings.simplefilter("ignore")  # PyTorch's own, of what it imports and of caches that are off
            network: Any = torch.compile(module)
            work: Callable[[], Any] = lambda: watching.call(network, workload, is_training=is_training)  # noqa: E731
            work()
        place_times.settle(is_gpu)
        breaks = _graph_breaks()
        with place_times.profiler(is_gpu) as seen:
            work()
            place_times.settle(is_gpu)
        kernels = tuple(_kernels(workload.name, seen, origins, is_gpu))
        walls = place_times.walls_ms(work, is_gpu)
        replayed, replayed_note = _replayed(network, workload) if is_gpu and not is_training else ((), "")
    except Exception as error:  # noqa: BLE001 - the compiler runs the user's code and may raise anything
        return Compiled(note=f"torch.compile does not take it: {graphs.reason_of(error)}")
    finally:
        torch._dynamo.reset()
    note = "" if any(kernel.places for kernel in kernels) else "which places its kernels work for cannot be told"
    return Compiled(walls, note, breaks, kernels, replayed, replayed_note)


def _replayed(network: Any, workload: Workload) -> tuple[tuple[float, ...], str]:
    """Times of the compiled network's calls as one CUDA graph; or why there are none."""
    try:
        replay = cuda_graphs.captured(lambda held: watching.call(network, held), workload)
    except Exception as error:  # noqa: BLE001 - the compiler runs the user's code and may raise anything
        return (), f"a CUDA graph does not take it: {graphs.reason_of(error)}"
    return place_times.walls_ms(lambda: replay(workload), True), ""


def tuned(
    module: nn.Module, workload: Workload, *, is_training: bool
) -> tuple[dict[str, tuple[float, ...]], dict[str, str]]:
    """Times of the ways that take minutes to be ready, by way, and why there are none: max-autotune as it is, and one
    CUDA graph of what it compiles without graphs of its own."""
    times, notes = {}, {}
    is_gpu = place_times.is_on_gpu(module, workload)
    for way in (MAX_AUTOTUNE, TUNED_GRAPH) if is_gpu and not is_training else (MAX_AUTOTUNE,):
        torch._dynamo.reset()
        try:
            times[way] = place_times.walls_ms(_tuned_call(way, module, workload, is_training), is_gpu)
        except Exception as error:  # noqa: BLE001 - the compiler runs the user's code and may raise anything
            notes[way] = f"{way} does not take it: {graphs.reason_of(error)}"
        finally:
            torch._dynamo.reset()
    return times, notes


def _tuned_call(way: str, module: nn.Module, workload: Workload, is_training: bool) -> Callable[[], Any]:
    mode = "max-autotune" if way == MAX_AUTOTUNE else "max-autotune-no-cudagraphs"
    network: Any = torch.compile(module, mode=mode)
    if way == MAX_AUTOTUNE:
        return lambda: watching.call(network, workload, is_training=is_training)
    replay = cuda_graphs.captured(lambda held: watching.call(network, held), workload)
    return lambda: replay(workload)


def _graph_breaks() -> int:
    return sum(torch._dynamo.utils.counters["graph_break"].values())


@contextlib.contextmanager
def _told(origins: _Origins) -> Iterator[None]:
    """While it compiles, have Inductor tell what its kernels are made of."""
    from torch._inductor import config, debug

    torch._dynamo.utils.counters.clear()
    dump = getattr(debug, "dump_inductor_provenance_info", None)
    settings: dict[str, Any] = {"cpp.enable_kernel_profile": True, "force_disable_caches": True}
    if dump is None or not hasattr(debug, PROVENANCE):
        with config.patch(settings):
            yield
        return

    def dumped(*args: Any, **kwargs: Any) -> Any:
        origins.graphs.append(_in_order(getattr(debug, PROVENANCE), origins.places))
        return dump(*args, **kwargs)

    settings |= {"trace.provenance_tracking_level": 1, "post_grad_custom_post_pass": _Places(origins)}
    with config.patch(settings), mock.patch.object(debug, "dump_inductor_provenance_info", dumped):
        yield


class _Places:
    """A pass over Inductor's graph that changes nothing and notes where each operator comes from."""

    def __init__(self, origins: _Origins) -> None:
        self._origins = origins

    def __call__(self, graph: fx.Graph) -> None:
        self._origins.places = {node.name: _place(node) for node in graph.nodes if node.meta.get("nn_module_stack")}

    def uuid(self) -> None:
        """No key: nothing that it sees may come from a cache."""
        return


def _place(node: fx.Node) -> str:
    path = str(list(node.meta["nn_module_stack"].values())[-1][0])
    return re.sub(r"\[['\"]?(\w+)['\"]?\]", r".\1", _LOCAL.sub("", path)).removeprefix(".").replace("._modules.", ".")


def _in_order(told: dict[str, list[str]], places: dict[str, str]) -> list[tuple[str, tuple[str, ...]]]:
    """Kernels by their number, which is that of their launch."""
    numbered = [(*key.rpartition(":")[::2], nodes) for key, nodes in told.items()]
    return [
        (name.rpartition(".")[2], tuple(sorted({places[node] for node in nodes if node in places})))
        for name, _, nodes in sorted(numbered, key=lambda entry: int(entry[1]) if entry[1].isdigit() else 0)
    ]


def _kernels(workload: str, seen: profile, origins: _Origins, is_gpu: bool) -> Iterator[CompiledKernel]:
    launches = list(_launches(seen, {name for graph in origins.graphs for name, _ in graph}, is_gpu))
    places = _matched([name for name, _ in launches], origins.graphs)
    rows: dict[tuple[str, tuple[str, ...]], list[float]] = {}
    for (name, ms), where in zip(launches, places, strict=True):
        rows.setdefault((name, where), []).append(ms)
    for (name, where), times in sorted(rows.items(), key=lambda row: -sum(row[1])):
        yield CompiledKernel(workload, name, len(times), round(sum(times), 6), where)


def _launches(seen: profile, known: set[str], is_gpu: bool) -> Iterator[tuple[str, float]]:
    """Every outermost operator or kernel of the compiler's, in order, with its milliseconds."""
    events = sorted(
        (event for event in place_times.events_of(seen) if place_times.is_of_host(event)),
        key=lambda event: (event.time_range.start, -event.time_range.end),
    )
    name, until, ms = "", -1.0, 0.0
    for event in events:
        if event.time_range.start >= until:
            if name and ms:
                yield name, ms
            name, ms = "", 0.0
            plain = _OF_GRAPH.sub("", event.name)
            if plain in known or plain.startswith(_LAUNCHES):
                name, until = plain.removeprefix("aten::"), event.time_range.end
                ms = 0.0 if is_gpu else (event.time_range.end - event.time_range.start) / 1e3
        if name and is_gpu:
            ms += sum(kernel.duration for kernel in event.kernels) / 1e3
    if name and ms:
        yield name, ms


def _matched(launched: Sequence[str], graphs: Sequence[Sequence[tuple[str, tuple[str, ...]]]]) -> list[tuple[str, ...]]:
    """The places of each launch: those of the kernel of the same name and the same turn. Where a name is launched more
    or less often than it was written, its launches have none."""
    written: dict[str, list[tuple[str, ...]]] = {}
    for graph in graphs:
        for name, places in graph:
            written.setdefault(name, []).append(places)
    counts = {name: launched.count(name) for name in written}
    turns: dict[str, Iterator[tuple[str, ...]]] = {
        name: iter(places) for name, places in written.items() if counts[name] == len(places)
    }
    return [next(turns[name]) if name in turns else () for name in launched]


def touching(seen: Compiled | None, places: Iterable[str], *, is_exact: bool) -> tuple[float | None, bool]:
    """Milliseconds of the kernels that do work of these places, and whether they also do other places' work. None where
    nothing tells. Unless `is_exact` what stands inside a place belongs to it."""
    if seen is None or not any(kernel.places for kernel in seen.kernels):
        return None, False
    paths = set(places)
    total, is_shared, is_found = 0.0, False, False
    for kernel in seen.kernels:
        inside = [place for place in kernel.places if place in paths or (not is_exact and _is_in(place, paths))]
        if inside:
            is_found = True
            total += kernel.ms
            is_shared |= len(inside) < len(kernel.places)
    return (round(total, 6), is_shared) if is_found else (None, False)


def _is_in(place: str, paths: set[str]) -> bool:
    return any(not path or place == path or place.startswith(f"{path}.") for path in paths)
