"""Two ways to call a network, timed in turns: which goes first changes, each turn has contents of its own, and the
ratio of neighbouring turns has an interval. Wall time, the GPU waited for: what whoever calls it waits."""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

from engine.evaluator.checks import clock
from engine.networks import place_times
from engine.networks.entries import Workload
from storage.networks.records import Speed

Called = Callable[[Workload], Any]
PRECISE = 0.003
"""Half the interval over the ratio: nothing is gained by more."""
LEAST_PAIRS, MOST_PAIRS = 16, 300
WARM_UP = 3
LEAST_TURN_MS = 5.0
MOST_BURST = 50


def alone_ms(called: Called, content: Workload, *, is_gpu: bool) -> float:
    """One way by itself: the median of its calls."""
    return statistics.median(place_times.walls_ms(lambda: called(content), is_gpu))


def paired(
    before: tuple[str, Called], after: tuple[str, Called], contents: Sequence[Workload], *, is_gpu: bool,
    limit_s: float, seed: int,
) -> Speed:  # fmt: skip
    """Time two ways, each with its name, until the ratio is precise or the time is spent; then see their memory."""
    pairs = _timed(before[1], after[1], contents, is_gpu, limit_s, seed)
    ratios = [first / second for first, second in pairs]
    low, high = clock.interval(ratios)
    peaks = [_peak_bytes(called, contents[0], is_gpu) for _, called in (before, after)]
    return Speed(
        contents[0].name, before[0], after[0], statistics.median(first for first, _ in pairs),
        statistics.median(second for _, second in pairs), statistics.median(ratios), low, high, len(pairs), *peaks,
    )  # fmt: skip


def _timed(
    before: Called, after: Called, contents: Sequence[Workload], is_gpu: bool, limit_s: float, seed: int
) -> list[tuple[float, float]]:
    """Milliseconds of neighbouring turns."""
    order = random.Random(seed)
    for called in (before, after):
        for number in range(WARM_UP):
            called(contents[number % len(contents)])
    place_times.settle(is_gpu)
    quicker = min(_turn_ms(called, contents[0], 1, is_gpu) for called in (before, after))
    burst = max(1, min(MOST_BURST, round(LEAST_TURN_MS / max(quicker, 1e-3))))
    pairs: list[tuple[float, float]] = []
    deadline = time.monotonic() + limit_s
    while len(pairs) < LEAST_PAIRS or (
        len(pairs) < MOST_PAIRS and time.monotonic() < deadline and clock.half_width(_as_pairs(pairs)) > PRECISE
    ):
        mine = contents[order.randrange(len(contents))]
        if order.random() < 0.5:
            first = _turn_ms(before, mine, burst, is_gpu)
            pairs.append((first, _turn_ms(after, mine, burst, is_gpu)))
        else:
            second = _turn_ms(after, mine, burst, is_gpu)
            pairs.append((_turn_ms(before, mine, burst, is_gpu), second))
    return pairs


def _as_pairs(pairs: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    return [(after, before) for before, after in pairs]


def _turn_ms(called: Called, content: Workload, burst: int, is_gpu: bool) -> float:
    """Of one call, the mean of a turn of several."""
    began = time.perf_counter()
    for _ in range(burst):
        called(content)
        place_times.settle(is_gpu)
    return 1e3 * (time.perf_counter() - began) / burst


def _peak_bytes(called: Called, workload: Workload, is_gpu: bool) -> int | None:
    """What a call holds on a GPU beyond what was held before."""
    return place_times.peak_bytes(lambda: called(workload)) if is_gpu else None
