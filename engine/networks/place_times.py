"""What each place of a network takes in a call: ranges around every module, operators and kernels within them.

On a GPU a kernel belongs to the range in which it was launched, by the profiler's launch correlation; on a processor
time is that of operators and of the Python between them. Nothing is guessed by name.
"""

from __future__ import annotations

import contextlib
import gc
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile, record_function

from engine.evaluator.machine import devices, lease
from engine.networks import watching
from engine.networks.entries import Workload
from storage.networks.records import PlaceTime

MARK = "place:"
WARM_UP = 2
TIMED_S = 2.0
LEAST_CALLS, MOST_CALLS = 5, 30


@dataclass(frozen=True, slots=True)
class Watched:
    """One watched call: the whole of it, its kernels, and its places."""

    wall_ms: float
    device_ms: float | None
    times: tuple[PlaceTime, ...]
    calls_ms: tuple[float, ...]
    """Of every call of a module, in the order in which they began, with what stands inside."""


def is_on_gpu(module: nn.Module, workload: Workload) -> bool:
    """Where it runs."""
    tensors = [*module.parameters(), *watching.tensors_of((workload.args, workload.kwargs))]
    return any(tensor.is_cuda for tensor in tensors)


def device_locks(device: str) -> lease.Files:
    """What every evaluation on the device takes too, so that none runs while a network is timed there."""
    if device == "cpu":
        return lease.of_host(*(f"cpu-{number}" for number in os.sched_getaffinity(0)))
    return lease.of_host(devices.usable()[0].lease)


def settle(is_gpu: bool) -> None:
    """Wait for the GPU."""
    if is_gpu:
        torch.cuda.synchronize()


def walls_ms(work: Callable[[], Any], is_gpu: bool) -> tuple[float, ...]:
    """Wall times of calls, nothing watching."""
    for _ in range(WARM_UP):
        work()
    settle(is_gpu)
    walls: list[float] = []
    began = time.perf_counter()
    while len(walls) < LEAST_CALLS or (time.perf_counter() - began < TIMED_S and len(walls) < MOST_CALLS):
        started = time.perf_counter()
        work()
        settle(is_gpu)
        walls.append(1e3 * (time.perf_counter() - started))
    return tuple(round(wall, 6) for wall in walls)


def peak_bytes(work: Callable[[], Any]) -> int:
    """What a call holds on the GPU at most beyond what is held before."""
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    work()
    torch.cuda.synchronize()
    return torch.cuda.max_memory_allocated() - before


def watched(module: nn.Module, workload: Workload, *, is_training: bool = False) -> Watched:
    """Watch one call."""
    is_gpu = is_on_gpu(module, workload)
    with ranges_around(module):
        watching.call(module, workload, is_training=is_training)
        settle(is_gpu)
        with no_collection(), profiler(is_gpu) as seen:
            started = time.perf_counter()
            watching.call(module, workload, is_training=is_training)
            settle(is_gpu)
            wall_ms = 1e3 * (time.perf_counter() - started)
    ranges = spans(seen, MARK)
    device_ms = kernels_ms(seen) if is_gpu else None
    inclusive, own = _figures(ranges, is_gpu)
    times = tuple(_times(workload.name, ranges, inclusive, own))
    return Watched(wall_ms, device_ms, times, tuple(us / 1e3 for us in inclusive))


@contextlib.contextmanager
def no_collection() -> Iterator[None]:
    """Collect what is unreachable now, and not in between, where it would count for the place that it stops."""
    gc.collect()
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@contextlib.contextmanager
def profiler(is_gpu: bool) -> Iterator[profile]:
    """Torch's own, for operators, and for kernels where there are some."""
    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if is_gpu else [])]
    seen = profile(activities=activities, acc_events=True)
    with _quiet():
        seen.start()
    try:
        yield seen
    finally:
        with _quiet():
            seen.stop()


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Without what the profiler's library writes to standard error each time."""
    kept = os.dup(2)
    with open(os.devnull, "wb") as nothing:
        os.dup2(nothing.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


@contextlib.contextmanager
def ranges_around(module: nn.Module) -> Iterator[None]:
    """A range of the profiler around every module's forward."""
    open_ranges: list[Any] = []

    def before(path: str) -> Callable[..., None]:
        def begin(*_: Any) -> None:
            open_ranges.append(record_function(f"{MARK}{path}"))
            open_ranges[-1].__enter__()

        return begin

    def after(path: str) -> Callable[..., None]:
        return lambda *_: open_ranges.pop().__exit__(None, None, None)

    with watching.hooked(module, before, after):
        yield


@dataclass(slots=True)
class Span:
    """One range on the host's time line; microseconds."""

    name: str
    start: float
    end: float
    parent: Span | None = None
    device_us: float = 0.0
    """Of the kernels that were launched within it and in no range inside it."""
    kernels: int = 0
    """How many those are."""

    @property
    def host_us(self) -> float:
        """How long it lasted."""
        return self.end - self.start


def spans(seen: profile, mark: str) -> list[Span]:
    """The marked ranges, the outer ones first, with the kernels that were launched within each."""
    events = sorted(
        (event for event in events_of(seen) if is_of_host(event)),
        key=lambda event: (event.time_range.start, -event.time_range.end),
    )
    found: list[Span] = []
    open_spans: list[Span] = []
    for event in events:
        while open_spans and event.time_range.start >= open_spans[-1].end:
            open_spans.pop()
        inner = open_spans[-1] if open_spans else None
        if event.name.startswith(mark):
            span = Span(event.name.removeprefix(mark), event.time_range.start, event.time_range.end, inner)
            found.append(span)
            open_spans.append(span)
            inner = span
        if inner is not None:
            inner.device_us += sum(kernel.duration for kernel in event.kernels)
            inner.kernels += len(event.kernels)
    return found


def events_of(seen: profile) -> list[Any]:
    """What the profiler saw."""
    return list(seen.events() or ())  # type: ignore[no-untyped-call]


def is_of_host(event: Any) -> bool:
    """Whether an event of the profiler is one of the host's time line."""
    return bool(event.device_type.name == "CPU" and not event.is_async)


def kernels_ms(seen: profile) -> float:
    """Time of all kernels of a watched call, those at the same time counted once."""
    kernels = sorted(
        (event.time_range.start, event.time_range.end)
        for event in events_of(seen)
        if event.device_type.name == "CUDA" and not event.name.startswith(MARK)
    )
    busy, until = 0.0, -1.0
    for start, end in kernels:
        busy += max(0.0, end - max(start, until))
        until = max(until, end)
    return busy / 1e3


def _figures(ranges: list[Span], is_gpu: bool) -> tuple[list[float], list[float]]:
    """Microseconds of every range: with what stands inside, and without."""
    number = {id(span): place for place, span in enumerate(ranges)}
    own = [span.device_us if is_gpu else span.host_us for span in ranges]
    inclusive = list(own)
    for place in reversed(range(len(ranges))):  # the inner ones first
        if (parent := ranges[place].parent) is None:
            continue
        if is_gpu:
            inclusive[number[id(parent)]] += inclusive[place]
        else:
            own[number[id(parent)]] -= ranges[place].host_us
    return inclusive, own


def _times(workload: str, ranges: list[Span], inclusive: list[float], own: list[float]) -> Iterator[PlaceTime]:
    by_path: dict[str, list[int]] = {}
    for place, span in enumerate(ranges):
        by_path.setdefault(span.name, []).append(place)
    for path, same in by_path.items():
        whole, alone = (sum(figures[place] for place in same) / 1e3 for figures in (inclusive, own))
        yield PlaceTime(workload, path, len(same), round(whole, 6), round(max(0.0, alone), 6))
