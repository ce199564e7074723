"""What PyTorch's dispatcher ran in this process, in every thread, and what ran on its GPU, between two questions.

Runs in both workers.

Everything it uses is taken before a candidate's code runs. It tells; the evaluator decides what was allowed.
"""

from __future__ import annotations

import math
import os
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

import torch
from torch._C._autograd import DeviceType, _disable_profiler, _enable_profiler, _prepare_profiler
from torch._C._profiler import ProfilerActivity, ProfilerConfig, ProfilerState, _ExperimentalConfig

from engine.evaluator.checks.launches import MAX_NAME
from engine.evaluator.checks.operators import COPIES, is_harmless

# It reports each start and stop on standard error otherwise, and a candidate's output is kept.
os.environ.setdefault("KINETO_LOG_LEVEL", "99")
_ACTIVITIES = {ProfilerActivity.CPU}
# The driver's records of each kernel: 0.4 ms more per observation and 8 us more per launch (measured on an H200).
_TRACED = {ProfilerActivity.CPU, ProfilerActivity.CUDA}
_CONFIG = ProfilerConfig(
    ProfilerState.KINETO, True, False, False, False, False, _ExperimentalConfig(profile_all_threads=True)
)
_NO_TENSOR = frozenset({"", "Scalar", "ScalarList"})
_LIST = "TensorList"
_DEVICE = DeviceType.CUDA
_mark = torch.ops.aten.alias.default
_MARK = "aten::alias"
OVERWRITING = ("aten::zero_", "aten::fill_")
NAMESPACES = frozenset(name.partition("::")[0] for name in torch._C._dispatch_get_all_op_names())
"""The namespaces of PyTorch's own operators, listed before a candidate can add some."""


LEAVING = ("numpy", "__array__", "__dlpack__")
"""Methods by which a tensor's numbers get to a library that has no dispatcher."""
_left: list[tuple[str, int]] = []


def watch_leaving(handed: Collection[str] = ()) -> None:
    """Note every tensor that is handed to another library; for the life of this process.

    By the methods `handed` kernels of the candidate's language are given tensors on a device, with each launch. On the
    host no kernel of these languages runs, and every call is noted.
    """
    for name in LEAVING:
        setattr(torch.Tensor, name, _noted(name, getattr(torch.Tensor, name), name in handed))


def _noted(name: str, method: Callable[..., Any], is_handed: bool) -> Callable[..., Any]:
    def noted(tensor: torch.Tensor, *given: Any, **named: Any) -> Any:
        if tensor.is_cpu or not is_handed:
            _left.append((f"torch::Tensor.{name}", tensor.numel()))
        return method(tensor, *given, **named)

    return noted


class Observer:
    """Begun by the question before a call, ended by the one after it; each end carries a mark of this call alone."""

    def __init__(self) -> None:
        self._is_on = self._is_traced = False
        self._one = torch.zeros(1, device="cpu")
        self._last = self._one
        self.own = 0
        """Elements that the worker itself overwrites before a call."""

    def begin(self, marks: Sequence[int], traced: bool = False) -> None:
        """`marks` are two lengths, drawn by the evaluator: tensors of them are the first and the last thing seen.

        `traced` asks for the kernels on the GPU as well.
        """
        first, self._last = (self._one.expand(mark) for mark in marks)
        _left.clear()
        activities = _TRACED if traced else _ACTIVITIES
        _prepare_profiler(_CONFIG, activities)
        _enable_profiler(_CONFIG, activities)
        self._is_on, self._is_traced = True, traced
        _mark(first)

    def end(self) -> dict[str, Any] | None:
        """What ran since it began: `marks` as seen, one row per operator, and per kernel where it was traced; None when
        it was not begun.
        """
        if not self._is_on:
            return None
        self._is_on = False
        _mark(self._last)
        try:
            events = list(_disable_profiler().events())
        except RuntimeError:  # somebody else has ended it
            return {"marks": [], "operators": []}
        seen = summary(events, self.own)
        if self._is_traced:
            seen["kernels"] = launches(events, self.own)
        for name in dict.fromkeys(name for name, _ in _left):
            sizes = [size for each, size in _left if each == name]
            seen["operators"].append([name, len(sizes), sum(sizes), 0])
        return seen


def summary(events: Iterable[Any], flushed: int = 0) -> dict[str, Any]:
    """Marks and rows `[name, calls, elements, nanoseconds]`; elements are -1 where nobody can tell.

    What overwrites as many elements as `flushed` is the worker's.
    """
    rows: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
    marks: list[int] = []
    for event in topmost(events):
        shapes = event.shapes()
        if event.name() == _MARK and shapes and len(shapes[0]) == 1 and shapes[0][0] > 1 << 40:
            marks.append(shapes[0][0])
            continue
        size = elements(shapes, event.dtypes())
        if flushed and size == flushed and event.name() in OVERWRITING:
            continue
        row = rows[event.name()[:100]]
        row[0] += 1
        row[1] = -1 if size < 0 or row[1] < 0 else row[1] + size
        row[2] += event.duration_ns()
    return {"marks": marks, "operators": [[name, *row] for name, row in rows.items()]}


def launches(events: Sequence[Any], flushed: int) -> dict[str, Any]:
    """How often the worker itself overwrote `flushed` elements, rows `[kernel, operator, launches, nanoseconds]`, and
    `[launches, nanoseconds]` of each call: what began on the device after the worker's overwriting before it.

    The operator is the innermost that launched the kernel, empty when none did.
    """
    operators = {event.correlation_id(): event for event in events if event.name().partition("::")[0] in NAMESPACES}
    rows: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0])
    overwrites = 0
    calls: list[list[int]] = []
    last = None
    for event in sorted(
        (event for event in events if event.device_type() == _DEVICE), key=lambda event: event.start_ns()
    ):
        by = operators.get(event.linked_correlation_id())
        if by is not None and by.name() in OVERWRITING and flushed and elements(by.shapes(), by.dtypes()) == flushed:
            overwrites += 1
            if by is not last:
                calls.append([0, 0])
            last = by
            continue
        row = rows[event.name()[:MAX_NAME], by.name()[:100] if by is not None else ""]
        for counted in (row, *calls[-1:]):
            counted[0] += 1
            counted[1] += event.duration_ns()
    return {
        "overwrites": overwrites,
        "rows": [[*key, *row] for key, row in rows.items()],
        "calls": calls,
    }


def topmost(events: Iterable[Any]) -> list[Any]:
    """Operators that no other called; of those below, a copy that a view called and what computes below either.

    Below `matmul` is what PyTorch makes of it; below a copy may be more than a copy.
    """
    threads: dict[int, list[Any]] = defaultdict(list)
    for event in events:
        threads[event.start_thread_id()].append(event)
    kept = []
    for thread in threads.values():
        computing_until = copying_until = any_until = 0
        for event in sorted(thread, key=lambda event: (event.start_ns(), -event.duration_ns())):
            namespace, _, name = event.name().partition("::")
            if not name or namespace not in NAMESPACES or event.start_ns() < computing_until:
                continue
            if not is_harmless(name):
                computing_until = event.end_ns()
            elif event.start_ns() < (copying_until if name in COPIES else any_until):
                continue
            elif name in COPIES:
                copying_until = event.end_ns()
            any_until = max(any_until, event.end_ns())
            kept.append(event)
    return kept


def elements(shapes: Sequence[Sequence[int]], kinds: Sequence[str]) -> int:
    """The elements of the largest tensor that goes in; -1 where a list of tensors does, whose sizes are not told."""
    if _LIST in kinds:
        return -1
    pairs = zip(shapes, kinds, strict=False)
    return max((math.prod(shape) for shape, kind in pairs if kind not in _NO_TENSOR), default=0)
