"""One figure over several tasks: the geometric mean of the best speed-ups, and the share of tasks above a bar. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pages.parts import wording
from pages.parts.compare.compare_exposure import geometric_mean
from pages.parts.compare.compare_rows import Compared

BARS = (1.0, 1.5, 2.0)


@dataclass(frozen=True, slots=True)
class TaskBest:
    """The best kernel of the chosen runs of one task; None when none of them has a correct one."""

    task: str
    letters: tuple[str, ...]
    best: float | None
    best_letter: str


@dataclass(frozen=True, slots=True)
class Over:
    """All tasks together. `mean` is over the tasks that have a correct kernel; `fast` counts tasks above each bar."""

    tasks: tuple[TaskBest, ...]
    mean: float | None
    fast: tuple[tuple[float, int], ...]

    @property
    def solved(self) -> int:
        """Tasks with a correct kernel."""
        return sum(task.best is not None for task in self.tasks)


def over_tasks(runs: Sequence[Compared]) -> Over:
    """The summary; every task counts once, by its best run."""
    tasks = []
    for name in dict.fromkeys(run.run.task_name for run in runs):
        same = [run for run in runs if run.run.task_name == name]
        first = max(same, key=lambda run: run.run.best_speedup or 0.0)
        best = first.run.best_speedup
        tasks.append(TaskBest(first.run.title, tuple(r.letter for r in same), best, first.letter if best else ""))
    bests = [task.best for task in tasks if task.best is not None]
    fast = tuple((bar, sum(best > bar for best in bests)) for bar in BARS)
    return Over(tuple(tasks), geometric_mean(bests) if bests else None, fast)


def sentences(over: Over) -> list[tuple[str, str, str]]:
    """(name, value, note) of each figure."""
    left = len(over.tasks) - over.solved
    missing = f"; {left} without a correct kernel not counted" if left else ""
    figures = [
        ("Geometric mean", wording.speedup(over.mean), f"best kernels of {over.solved} tasks{missing}"),
    ]
    for bar, count in over.fast:
        share = wording.share(count, len(over.tasks))
        figures.append((f"fast_p at {bar:g}×", share, f"tasks with a correct kernel faster than {bar:g}×"))
    return figures
