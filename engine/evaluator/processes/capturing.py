"""The candidate's side of what is told of its deployment: memory of a call, work beside another stream, a call that is
captured and replayed. Runs in the candidate's process; what it says is a claim, and no verdict depends on it."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import torch
from torch._C._autograd import _disable_profiler, _enable_profiler, _prepare_profiler
from torch._C._profiler import ProfilerActivity, ProfilerConfig, ProfilerState, _ExperimentalConfig

from engine.evaluator.checks import poison
from engine.evaluator.checks.poison import Poison
from engine.evaluator.checks.structure import leaves_of
from engine.evaluator.processes.model_caller import ModelCaller, storages_of

WARM_UP = 3
DELAY_CYCLES = 200_000_000  # about a tenth of a second: far longer than a call is being launched
_ACTIVITIES = {ProfilerActivity.CPU}
# Of the calling thread: of all threads it would record no memory.
_CONFIG = ProfilerConfig(ProfilerState.KINETO, False, True, False, False, False, _ExperimentalConfig())


class Capturing:
    """Calls one model as its caller has it: on the inputs that were loaded last."""

    def __init__(self, caller: ModelCaller, device: str) -> None:
        self._caller = caller
        self._memory: Callable[[], dict[str, int]] = self._on_device if device != "cpu" else self._on_host
        self._rest: Callable[[], int | None] = torch.cuda.memory_allocated if device != "cpu" else _in_use
        self._graph: Any = None
        self._outputs: Any = None

    def kept(self) -> dict[str, Any]:
        """Bytes that one call leaves behind, its outputs given back; None where nobody can tell."""
        before = self._rest()
        self._call()
        after = self._rest()
        return {"kept": None if before is None or after is None else after - before}

    def memory(self) -> dict[str, Any]:
        """Bytes, allocations and peak of one call, its outputs left out."""
        return dict(self._memory())

    def beside(self) -> dict[str, Any]:
        """A call on another stream, whose inputs get there late: what does not wait for the stream misses them."""
        stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            torch.cuda._sleep(DELAY_CYCLES)  # type: ignore[no-untyped-call]
            self._caller.refill()
            outputs = self._call()
        torch.cuda.synchronize()
        self._caller.take(outputs)
        return {"called": True}

    def capture(self) -> dict[str, Any]:
        """One call as a graph, after some on another stream as PyTorch's own capture has them."""
        if not hasattr(torch._C, "_CudaStreamBase"):
            return {"untried": "this build of PyTorch has no CUDA graphs"}
        stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(WARM_UP):
                self._call()
        torch.cuda.current_stream().wait_stream(stream)
        graph, raised = torch.cuda.CUDAGraph(), list[BaseException]()
        try:
            with torch.cuda.graph(graph):
                self._outputs = self._noting(raised)
        finally:
            if raised:  # the end of such a capture fails too, and tells less
                raise raised[0] from None
        self._graph = graph
        return {"captured": True}

    def replay(self) -> dict[str, Any]:
        """The graph on the inputs loaded last, into outputs that hold what no answer holds."""
        poison.fill([leaf for leaf in leaves_of(self._outputs) if type(leaf) is torch.Tensor], Poison.NAN)
        self._graph.replay()
        torch.cuda.synchronize()
        self._caller.take(self._outputs)
        return {"replayed": True}

    def _call(self) -> Any:
        with torch.no_grad():
            return self._caller.call()

    def _noting(self, raised: list[BaseException]) -> Any:
        try:
            return self._call()
        except BaseException as error:
            raised.append(error)
            raise

    def _on_device(self) -> dict[str, int]:
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_stats()
        outputs = self._call()
        torch.cuda.synchronize()
        after = torch.cuda.memory_stats()
        size, number = self._made(outputs)
        at_start = before["allocated_bytes.all.current"]
        return {
            "taken": after["requested_bytes.all.allocated"] - before["requested_bytes.all.allocated"] - size,
            "allocations": after["allocation.all.allocated"] - before["allocation.all.allocated"] - number,
            "peak": after["allocated_bytes.all.peak"] - max(at_start, after["allocated_bytes.all.current"]),
        }

    def _on_host(self) -> dict[str, int]:
        """By the profiler's records of PyTorch's allocator; nobody records what `malloc` and `new` hand out."""
        _prepare_profiler(_CONFIG, _ACTIVITIES)
        _enable_profiler(_CONFIG, _ACTIVITIES)
        try:
            outputs = self._call()
        finally:
            events = _disable_profiler().events()
        changes = [event.nbytes() for event in sorted(_memory_events(events), key=lambda event: event.start_ns())]
        size, number = self._made(outputs)
        taken, held, most = [change for change in changes if change > 0], 0, 0
        for change in changes:
            held += change
            most = max(most, held)
        return {"taken": sum(taken) - size, "allocations": len(taken) - number, "peak": most - max(0, held)}

    def _made(self, outputs: Any) -> tuple[int, int]:
        """Bytes and number of the allocations that its outputs lie in."""
        lent = self._caller.lent
        made = {
            leaf.untyped_storage().data_ptr(): leaf.untyped_storage().nbytes()
            for leaf in leaves_of(outputs)
            if type(leaf) is torch.Tensor and storages_of([leaf]) - lent
        }
        return sum(made.values()), len(made)


def _memory_events(events: Any) -> list[Any]:
    return [event for event in events if event.name() == "[memory]"]


FIELDS = ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost")


class _Mallinfo(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in FIELDS]


_mallinfo: Any = getattr(ctypes.CDLL(None), "mallinfo2", None)
if _mallinfo is not None:
    _mallinfo.restype = _Mallinfo


def _in_use() -> int | None:
    """Bytes that the C library has handed out and not got back, whoever asked; None for one that does not tell."""
    if _mallinfo is None:
        return None
    told = _mallinfo()
    return int(told.uordblks + told.hblkhd)
