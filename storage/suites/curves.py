"""A suite's curves: fast_p at every speed-up, and the best kernel so far over what was spent. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from storage.suites import statistics
from storage.suites.results import RunResult, TimedKernel
from storage.suites.summary import ALL, Against, Results, over

BARS = (0.5, 0.8, 1.0, 1.2, 1.5, 2.0, 3.0, 5.0, 10.0)
POINTS = 120


@dataclass(frozen=True, slots=True)
class FastCurve:
    """fast_p of an arm at every p: `steps` are (speed-up, share of cells that are faster from below it on)."""

    arm: str
    steps: tuple[tuple[float, float], ...]
    unknown: int

    def at(self, bar: float) -> float:
        """fast_p at this speed-up."""
        return next((share for speedup, share in self.steps if speedup > bar), 0.0)


def fast_curve(results: Results, arm: str, against: Against, kernel_class: str = ALL) -> FastCurve | None:
    """Tasks weigh alike, and of a task its repeats; None of no cell. `unknown` cells have a kernel but no such baseline
    and are left out."""
    ratio = over(results, against)
    weighed: list[tuple[float | None, float]] = []
    unknown = 0
    for repeats in results.of(arm, kernel_class).values():
        ratios = [(ratio(cell), cell.speedup) for cell in repeats]
        kept = [value for value, speedup in ratios if value is not None or speedup is None]
        unknown += len(ratios) - len(kept)
        weighed += [(value, 1 / len(kept)) for value in kept]
    whole = sum(weight for _, weight in weighed)
    if not whole:
        return None
    left, steps = sum(weight for value, weight in weighed if value is not None), []
    for value, weight in sorted((value, weight) for value, weight in weighed if value is not None):
        steps.append((value, left / whole))
        left -= weight
    return FastCurve(arm, tuple(steps), unknown)


class Spending(StrEnum):
    """What the best kernel so far is drawn over."""

    CALLS = "model calls"
    STEPS = "steps of the search"
    MINUTES = "engine minutes"
    TOKENS = "thousand tokens"
    MONEY = "US dollars"
    DEVICE_MINUTES = "device minutes"


def spent_by(spender: TimedKernel | RunResult, axis: Spending) -> float | None:
    """What had been spent when a kernel was timed, or by a whole run; None where that is not known.

    That nothing was recorded only a whole run tells: ask it too before a kernel's tokens or dollars are believed."""
    if isinstance(spender, RunResult) and spender.is_unrecorded and axis in (Spending.TOKENS, Spending.MONEY):
        return None
    match axis:
        case Spending.CALLS:
            return spender.calls
        case Spending.STEPS:
            return (
                spender.step
                if isinstance(spender, TimedKernel)
                else max((kernel.step for kernel in spender.timed), default=0)
            )
        case Spending.MINUTES:
            return spender.engine_s / 60
        case Spending.DEVICE_MINUTES:
            return spender.device_s / 60
        case Spending.TOKENS:
            return None if spender.tokens is None else spender.tokens / 1000
    return spender.cost_usd


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """What is used after so much was spent: geometric mean over tasks; lowest and highest of the repeats."""

    spent: float
    mean: float
    low: float
    high: float


def curve(results: Results, arm: str, kernel_class: str = ALL, axis: Spending = Spending.CALLS) -> list[CurvePoint]:
    """The best kernel so far over what was spent; eager PyTorch (1) counts while a task has nothing faster.

    A run that has ended stays at its best. Empty of no run, and where what was spent is not known of any.
    """
    cells = [cell for repeats in results.of(arm, kernel_class).values() for cell in repeats if cell.result]
    ends = [spent_by(cell.result, axis) for cell in cells if cell.result]
    known_ends = [end for end in ends if end is not None]
    if not cells or len(known_ends) < len(ends):
        return []
    rises: dict[int, list[list[tuple[float, float]]]] = {}
    for cell in cells:
        rises.setdefault(cell.cell.repeat, []).append(_rises(cell.result, axis) if cell.result else [])
    points = []
    for spent in _grid(max(known_ends), is_whole=axis in (Spending.CALLS, Spending.STEPS)):
        means = [statistics.geometric_mean([_reached(run, spent) for run in same]) for same in rises.values()]
        points.append(CurvePoint(spent, statistics.geometric_mean(means), min(means), max(means)))
    return points


def _grid(last: float, *, is_whole: bool) -> list[float]:
    step = max(1.0, math.ceil(last / POINTS)) if is_whole else last / POINTS
    return [*(index * step for index in range(math.ceil(last / step))), last] if step else [0.0]


def _rises(run: RunResult, axis: Spending) -> list[tuple[float, float]]:
    """(spent, best so far), where it is better than PyTorch and rises."""
    rises, best = [], 1.0
    for kernel in run.timed:
        if kernel.speedup > best:
            best = kernel.speedup
            rises.append((spent_by(kernel, axis) or 0.0, best))
    return rises


def _reached(rises: Sequence[tuple[float, float]], spent: float) -> float:
    return max((best for at, best in rises if at <= spent), default=1.0)
