"""What it takes to come to a share of the hardware limit. A run that ended before it came there is counted as what it
is, censored: it would have taken more than it has spent. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from storage.suites import statistics
from storage.suites.curves import Spending, spent_by
from storage.suites.results import RunResult
from storage.suites.statistics import Estimate
from storage.suites.summary import ALL, Results

SHARES = (0.5, 0.75, 0.9)
SPENT = (Spending.CALLS, Spending.TOKENS, Spending.MONEY, Spending.MINUTES, Spending.DEVICE_MINUTES)


@dataclass(frozen=True, slots=True)
class Reaching:
    """How an arm comes to a share of the limit, over the tasks of a class. `runs` have a limit, `reached` of them came
    there. `medians` by what was spent: None where what was spent is not known, and of everything where fewer than half
    came there, whatever Kaplan and Meier make of the runs that ended early."""

    arm: str
    kernel_class: str
    share: float
    runs: int
    reached: int
    medians: tuple[tuple[Spending, Estimate | None], ...]

    @property
    def is_by_half(self) -> bool:
        """Whether at least half of the runs came there."""
        return 2 * self.reached >= self.runs


def reaching(results: Results, arm: str, kernel_class: str = ALL) -> Iterator[Reaching]:
    """One for each of `SHARES`; nothing where no run has a limit."""
    cells = [cell for repeats in results.of(arm, kernel_class).values() for cell in repeats]
    runs = [cell.result for cell in cells if cell.result and cell.result.limit_ms]
    for share in SHARES if runs else ():
        first = [_first(run, share) for run in runs]
        reached = sum(turn is not None for turn in first)
        way = Reaching(arm, kernel_class, share, len(runs), reached, tuple((axis, None) for axis in SPENT))
        medians = tuple((axis, _median(runs, first, axis)) for axis in SPENT)
        yield replace(way, medians=medians) if way.is_by_half else way


def _first(run: RunResult, share: float) -> int | None:
    """The place in `timed` of the first kernel that reached it."""
    enough_ms = (run.limit_ms or 0.0) / share
    return next((turn for turn, kernel in enumerate(run.timed) if kernel.latency_ms <= enough_ms), None)


def _median(runs: list[RunResult], first: list[int | None], axis: Spending) -> Estimate | None:
    observed = []
    for run, turn in zip(runs, first, strict=True):
        spent = spent_by(run if turn is None else run.timed[turn], axis)
        if spent is None or spent_by(run, axis) is None:
            return None
        observed.append((spent, turn is not None))
    return statistics.median_until(observed)
