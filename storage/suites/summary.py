"""What a suite says as a whole: figures per arm and class, arms compared in pairs. Pure; the page and the
exports show these same figures.

A task counts once: its repeats are averaged first. Cells that have not ended are left out unless they are asked for.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from storage.results import relative
from storage.run.labels import MarkKind
from storage.suites import statistics
from storage.suites.records import Cell
from storage.suites.results import RunResult
from storage.suites.standing import ENDED, CellStanding, Suite
from storage.suites.statistics import Estimate

ALL = ""  # the class of all tasks
WITHIN = (1, 2, 4, 8, 16, 32, 64)


class Against(StrEnum):
    """What a speed-up is over."""

    EAGER = "eager"
    OTHER = "the fastest beside eager"
    BETTER = "the best alternative"
    FIRST = "the run's first correct kernel"
    ARM = "the baseline arm"


@dataclass(frozen=True, slots=True)
class CellResult:
    """A cell, the class it is counted under, and its run's result; None before it has a run that can be read."""

    standing: CellStanding
    kernel_class: str
    result: RunResult | None

    @property
    def cell(self) -> Cell:
        """Which one it is."""
        return self.standing.cell

    @property
    def speedup(self) -> float | None:
        """The speed-up of the best kernel over eager; None without one."""
        return self.result.best.speedup if self.result and self.result.best else None


@dataclass(frozen=True)
class Results:
    """A suite with the results of its runs. `is_partial` counts cells that have not ended, as far as they are;
    `only_clean` says that the kernels are only those that a person has marked clean.

    What several tables of a page ask for is worked out once: it has no slots, and is not to be changed.
    """

    suite: Suite
    cells: tuple[CellResult, ...]
    is_partial: bool = False
    only_clean: bool = False

    @functools.cached_property
    def engine_s(self) -> float:
        """Engine time of all runs, that of runs still at work included, of which the suite's journal does not tell."""
        told = sum(max(cell.result.engine_s - cell.standing.spent.engine_s, 0.0) for cell in self.cells if cell.result)
        return self.suite.spent.engine_s + told

    @functools.cached_property
    def counted(self) -> list[CellResult]:
        """The cells that figures are made of; one that has no run yet is none of them. One that got more steps has
        ended before, and counts as far as it is."""
        partial = self.is_partial
        return [
            cell for cell in self.cells
            if cell.standing.state in ENDED or cell.standing.more_steps or (partial and cell.standing.run_id)
        ]  # fmt: skip

    @property
    def arms(self) -> list[str]:
        """Names, in the order of the suite."""
        return [arm.name for arm in self.suite.defined.arms]

    @property
    def classes(self) -> list[str]:
        """The kernel classes of its tasks, in the order of the suite."""
        return list(dict.fromkeys(cell.kernel_class for cell in self.cells if cell.kernel_class))

    @property
    def devices(self) -> list[str]:
        """What the kernels were measured on."""
        return sorted({cell.result.device for cell in self.cells if cell.result and cell.result.device})

    @property
    def measured(self) -> list[str]:
        """What the counted figures hold for, as Policy.measured names it: those of two such do not compare."""
        return sorted({cell.result.measured for cell in self.counted if cell.result})

    def of(self, arm: str, kernel_class: str = ALL) -> Mapping[str, list[CellResult]]:
        """Counted cells of an arm by task."""
        return self._cells_of.get((arm, kernel_class), {})

    @functools.cached_property
    def _cells_of(self) -> dict[tuple[str, str], dict[str, list[CellResult]]]:
        groups: dict[tuple[str, str], dict[str, list[CellResult]]] = {}
        for cell in self.counted:
            for kernel_class in {ALL, cell.kernel_class}:
                same = groups.setdefault((cell.cell.arm, kernel_class), {})
                same.setdefault(cell.cell.task, []).append(cell)
        return groups

    @functools.cached_property
    def figures(self) -> dict[tuple[str, str], ArmFigures]:
        """Those asked for so far, by arm and class."""
        return {}


def marked_clean(runs: Mapping[str, RunResult]) -> dict[str, RunResult]:
    """The runs without the kernels of those whose best one no person has marked clean: they count as unsolved."""
    return {
        name: run if run.mark is MarkKind.CLEAN else replace(run, best=None, timed=()) for name, run in runs.items()
    }


def gather(suite: Suite, runs: Mapping[str, RunResult], is_partial: bool = False, only_clean: bool = False) -> Results:
    """The suite's cells with what their runs have come to, the kernels that nobody has marked clean left out where
    `only_clean` says so. A class that the suite states goes before the run's own."""
    runs = marked_clean(runs) if only_clean else runs
    stated = {task.name: task.kernel_class for task in suite.defined.tasks}
    run_of = {}
    for standing in suite.planned:
        run_of[standing.cell] = runs.get(standing.run_id or "")
    learned = {cell.task: run.kernel_class for cell, run in run_of.items() if run}
    cells = [
        CellResult(
            standing, stated.get(standing.cell.task) or learned.get(standing.cell.task, ""), run_of[standing.cell]
        )
        for standing in suite.planned
    ]
    return Results(suite, tuple(cells), is_partial, only_clean)


def alike(results: Results) -> Results:
    """The same results; of a suite that is not complete, those of the tasks of which every arm that has any has a
    counted cell. An arm that is further on has figures of other tasks, which do not compare."""
    begun = [set(tasks) for arm in results.arms if (tasks := results.of(arm))]
    shared = set.intersection(*begun) if begun else set()
    if len(results.counted) == len(results.cells) or not shared or all(tasks == shared for tasks in begun):
        return results
    return replace(results, cells=tuple(cell for cell in results.cells if cell.cell.task in shared))


def by_task(cells: Mapping[str, Sequence[CellResult]], of: Callable[[CellResult], float | None]) -> dict[str, float]:
    """The geometric mean, by task, of a ratio over the repeats that have one; a task without any is left out."""
    means = {}
    for task, repeats in cells.items():
        if values := [value for cell in repeats if (value := of(cell)) is not None]:
            means[task] = statistics.geometric_mean(values)
    return means


def over(results: Results, against: Against) -> Callable[[CellResult], float | None]:
    """What gives a cell's speed-up over something else than eager; None where one of both is not known."""
    arm = results.suite.defined.baseline_arm
    baseline = by_task(results.of(arm), lambda cell: cell.speedup) if against is Against.ARM else {}
    theirs = {task: _measured(results.of(arm)[task]) for task in baseline}

    def ratio(cell: CellResult) -> float | None:
        if cell.speedup is None or cell.result is None:
            return None
        second, first = cell.result.second_speedup, cell.result.timed[0].speedup
        match against:
            case Against.OTHER:
                return cell.speedup / second if second else None
            case Against.BETTER:
                return cell.speedup / max(1.0, second) if second else None
            case Against.FIRST:
                return cell.speedup / first
            case Against.ARM:
                is_alike = theirs.get(cell.cell.task) == {cell.result.measured}
                return cell.speedup / baseline[cell.cell.task] if is_alike else None
        return cell.speedup

    return ratio


def _measured(cells: Iterable[CellResult]) -> set[str]:
    return {cell.result.measured for cell in cells if cell.result}


@dataclass(frozen=True, slots=True)
class ArmFigures:
    """One arm over the tasks of one class, or all. Shares are 0..1.

    `mean` is over the tasks with a correct kernel. `over_best` and `fast_1_best` are over the best alternative, eager
    or another baseline, where one was timed; `used` counts it (1) where it is faster or there is no kernel, over those
    tasks, and is None where none of an arm with kernels was timed. `pass_at` and `compiled_at` are (k, mean over
    tasks). Costs are over all counted cells, `minutes` those of engines and `device_minutes` those for which
    evaluations held a device; a gain is a kernel that was faster than the best before it. None: not known, or nothing
    to divide by.
    """

    arm: str
    kernel_class: str
    tasks: int
    cells: int
    solved: int
    mean: Estimate | None
    used: Estimate | None
    valid: Estimate | None
    over_best: Estimate | None
    fast_1: Estimate | None
    fast_1_best: Estimate | None
    correct_share: float | None
    pass_at: tuple[tuple[int, float], ...]
    compiled_at: tuple[tuple[int, float], ...]
    limit_share: Estimate | None
    sol_score: float | None
    gap_closed: float | None
    shapes_held: tuple[int, int]
    specials_held: tuple[int, int]
    trials: int
    left_out: tuple[str, ...]
    kernels: int
    gains: int
    calls: int
    tokens: int | None
    cost_usd: float | None
    minutes: float
    device_minutes: float = 0.0
    is_unrecorded: bool = False
    """Whether tokens and dollars of some of its runs are not recorded."""

    def per(self, total: float | None, count: int) -> float | None:
        """A sum for each kernel or gain."""
        return total / count if total is not None and count else None


def figures(results: Results, arm: str, kernel_class: str = ALL) -> ArmFigures:
    """The figures of one arm."""
    key = arm, kernel_class
    if key not in results.figures:
        results.figures[key] = _figures(results, arm, kernel_class)
    return results.figures[key]


def _figures(results: Results, arm: str, kernel_class: str) -> ArmFigures:
    tasks = results.of(arm, kernel_class)
    cells = [cell for repeats in tasks.values() for cell in repeats]
    runs = [cell.result for cell in cells if cell.result is not None]
    speedups = by_task(tasks, lambda cell: cell.speedup)
    best = over(results, Against.BETTER)
    over_best = by_task(tasks, best)
    timed = {task: kept for task, repeats in tasks.items() if (kept := [c for c in repeats if _is_compared(c)])}
    used = by_task(timed if over_best or not speedups else {}, lambda cell: max(1.0, best(cell) or 1.0))
    limit = by_task(tasks, _limit_share)
    tries = [attempt for run in runs for attempt in run.tries]
    bests = [run.best for run in runs if run.best is not None]
    shapes = [best.other_shapes for best in bests if best.other_shapes not in (None, "absent")]
    specials = [best.special_values for best in bests if best.special_values not in (None, "absent")]
    return ArmFigures(
        arm, kernel_class, len(tasks), len(cells), len(speedups),
        statistics.mean_speedup(list(speedups.values())),
        _never_slower(statistics.mean_speedup(list(used.values()))),
        share_of_tasks(tasks, lambda cell: cell.speedup is not None),
        statistics.mean_speedup(list(over_best.values())),
        share_of_tasks(tasks, lambda cell: (cell.speedup or 0.0) > 1.0),
        share_of_tasks(timed, lambda cell: (best(cell) or 0.0) > 1.0),
        sum(attempt.is_passed for attempt in tries) / len(tries) if tries else None,
        _within(tasks, lambda run, k: _passed_within(run, k, lambda attempt: attempt.is_passed)),
        _within(tasks, lambda run, k: _passed_within(run, k, lambda attempt: attempt.is_compiled)),
        statistics.mean_speedup(list(limit.values())),
        _mean(_score(cell, statistics.sol_score) for cell in cells),
        _mean(_score(cell, statistics.gap_closed) for cell in cells),
        (sum(outcome == "held" for outcome in shapes), len(shapes)),
        (sum(outcome == "held" for outcome in specials), len(specials)), sum(best.trials for best in bests),
        tuple(reason for best in bests for reason in best.left_out),
        sum(run.correct for run in runs), sum(run.gains for run in runs), sum(run.calls for run in runs),
        None if any(run.tokens is None for run in runs) else sum(run.tokens or 0 for run in runs),
        None if any(run.cost_usd is None for run in runs) else sum(run.cost_usd or 0.0 for run in runs),
        sum(run.engine_s for run in runs) / 60, sum(run.device_s for run in runs) / 60,
        any(run.is_unrecorded for run in runs),
    )  # fmt: skip


def _is_compared(cell: CellResult) -> bool:
    """Whether another baseline than eager was timed, or there is no kernel to compare with one."""
    return cell.speedup is None or bool(cell.result and cell.result.second_speedup)


def _never_slower(estimate: Estimate | None) -> Estimate | None:
    return estimate and replace(estimate, low=None if estimate.low is None else max(1.0, estimate.low))


def share_of_tasks(tasks: Mapping[str, Sequence[CellResult]], holds: Callable[[CellResult], bool]) -> Estimate | None:
    """Repeats of a task are no samples of their own: the interval is that of as many samples as there are tasks."""
    return statistics.share(sum(sum(map(holds, repeats)) / len(repeats) for repeats in tasks.values()), len(tasks))


def _limit_share(cell: CellResult) -> float | None:
    best = cell.result.best if cell.result else None
    return cell.result.limit_ms / best.latency_ms if cell.result and best and cell.result.limit_ms else None


def _score(cell: CellResult, score: Callable[[float, float, float], float | None]) -> float | None:
    best = cell.result.best if cell.result else None
    if best is None or cell.result is None or not cell.result.limit_ms:
        return None
    return score(best.eager_ms, best.latency_ms, cell.result.limit_ms)


def _mean(values: Iterable[float | None]) -> float | None:
    known_values = [value for value in values if value is not None]
    return sum(known_values) / len(known_values) if known_values else None


def _within(
    tasks: Mapping[str, Sequence[CellResult]], share: Callable[[RunResult, int], float]
) -> tuple[tuple[int, float], ...]:
    """(k, mean over tasks), up to the tries that any run has made."""
    runs = [[cell.result for cell in repeats if cell.result and cell.result.tries] for repeats in tasks.values()]
    tried = [repeats for repeats in runs if repeats]
    longest = max((len(run.tries) for repeats in tried for run in repeats), default=0)
    return tuple(
        (k, sum(sum(share(run, k) for run in repeats) / len(repeats) for repeats in tried) / len(tried))
        for k in WITHIN if k <= longest
    )  # fmt: skip


def _passed_within(run: RunResult, k: int, passed: Callable[..., bool]) -> float:
    """The chance of a pass within k tries: estimated where no try was told of another, else what happened."""
    count = len(run.tries)
    if k < count and all(attempt.is_alone for attempt in run.tries):
        return statistics.pass_at(sum(map(passed, run.tries)), count, k)
    return float(any(map(passed, run.tries[:k])))


@dataclass(frozen=True, slots=True)
class Paired:
    """An arm against another, task by task. `ratio` is the median over the tasks that both have solved.

    `ratios` has it task by task. `faster` and `slower` also count tasks that only one of both has solved; `level`
    differ by less than two sessions do. `chance` is that of the sign test. `unlike` names tasks that are left out: one
    arm has measured them in another precision, or with other passes, than the other.
    """

    arm: str
    baseline: str
    kernel_class: str
    tasks: int
    ratio: Estimate | None
    ratios: tuple[tuple[str, float], ...]
    faster: int
    slower: int
    level: int
    only_arm: int
    only_baseline: int
    unlike: tuple[str, ...] = ()

    @property
    def chance(self) -> float:
        """How likely so uneven a split is if neither arm is better."""
        return statistics.sign_test(self.faster, self.slower)


def paired(results: Results, arm: str, baseline: str, kernel_class: str = ALL) -> Paired:
    """Over the tasks that both arms have ended cells of."""
    ours, theirs = results.of(arm, kernel_class), results.of(baseline, kernel_class)
    mine, other = (by_task(cells, lambda cell: cell.speedup) for cells in (ours, theirs))
    unlike = [task for task in ours if task in theirs and len(_measured([*ours[task], *theirs[task]])) > 1]
    shared = [task for task in ours if task in theirs and task not in unlike]
    both = [task for task in shared if task in mine and task in other]
    ratios = [mine[task] / other[task] for task in both]
    clear = [abs(math.log(ratio)) > math.log1p(relative.SESSION_NOISE) for ratio in ratios]
    faster = sum(ratio > 1 for ratio, is_clear in zip(ratios, clear, strict=True) if is_clear)
    only = sum(task in mine and task not in other for task in shared)
    lacking = sum(task in other and task not in mine for task in shared)
    return Paired(
        arm, baseline, kernel_class, len(shared), statistics.median(ratios), tuple(zip(both, ratios, strict=True)),
        faster + only,
        sum(clear) - faster + lacking, len(both) - sum(clear), only, lacking, tuple(unlike),
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class PaperRow:
    """A row of the paper's table beside ours, by arm. `ours` is the geometric mean over repeats with its interval."""

    task: str
    kernel_class: str
    paper: float
    ours: Mapping[str, Estimate | None]


def paper_rows(results: Results) -> list[PaperRow]:
    """The tasks that the paper reports, in the order of the suite; empty where it reports none."""
    classes = {cell.cell.task: cell.kernel_class for cell in results.cells}
    rows = []
    for task in results.suite.defined.tasks:
        if task.paper is not None:
            ours = {arm: _of_repeats(results.of(arm).get(task.name, [])) for arm in results.arms}
            rows.append(PaperRow(task.name, classes.get(task.name, ""), task.paper, ours))
    return rows


def _of_repeats(repeats: Sequence[CellResult]) -> Estimate | None:
    """One kernel has its measurement's interval, several that of their mean."""
    bests = [cell.result.best for cell in repeats if cell.result and cell.result.best]
    if len(bests) == 1:
        return Estimate(bests[0].speedup, bests[0].low, bests[0].high)
    return statistics.mean_speedup([best.speedup for best in bests])
