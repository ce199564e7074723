"""A suite for programs: its cells, and what to do next. Knows journals of suites and runs, no runner."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from engine.shown import runs
from engine.shown.runs import LimitForm
from storage.run.folder import RunFolder, runs_folder
from storage.suites.files import SuiteFolder
from storage.suites.records import Cell, CellState, Spent, Weighed
from storage.suites.standing import CellStanding, Suite

SHOWN_FAILURES = 5


@dataclass(frozen=True, slots=True)
class CellForm:
    """One cell: its run, null before it has one, and what was last said of it. `speedup` is its best over eager."""

    cell: Cell
    run_id: str | None
    state: str
    reason: str
    spent: Spent
    more_steps: int
    depths: int
    weighed: Weighed | None
    speedup: float | None


@dataclass(frozen=True, slots=True)
class SuiteHead:
    """A suite in short."""

    name: str
    title: str
    state: str
    reason: str
    cells: int
    finished: int
    counts: Mapping[str, int]
    spent: Spent
    is_example: bool
    """Made of runs that come with Tilewright."""


@dataclass(frozen=True, slots=True)
class SuiteForm(SuiteHead):
    """A suite. Times are seconds, speed-ups ratios over eager PyTorch; null is unknown or not yet known."""

    repeats: int
    cells_of: tuple[CellForm, ...]
    best: CellForm | None
    """The cell with the largest speed-up; null before there is one."""
    last_failures: tuple[CellForm, ...]
    """Cells that failed, in the order of the queue."""
    to_try: tuple[Cell, ...]
    """Cells that a runner would work on."""
    left: tuple[LimitForm, ...]
    next: str
    """The next sensible step, in words."""
    version: Literal[1] = 1


def head(folder: SuiteFolder, suite: Suite) -> SuiteHead:
    """A suite in short."""
    counts = {str(state): count for state, count in suite.counts.items()}
    finished = suite.counts[CellState.FINISHED]
    return SuiteHead(
        folder.name, suite.defined.title, suite.state(folder.has_runner), suite.reason, len(suite.planned), finished,
        counts, suite.spent, suite.defined.is_example,
    )  # fmt: skip


def form(folder: SuiteFolder, suite: Suite) -> SuiteForm:
    """A suite as it stands, with its cells."""
    short, cells = head(folder, suite), tuple(_cell(standing) for standing in suite.planned)
    return SuiteForm(
        short.name, short.title, short.state, short.reason, short.cells, short.finished, short.counts, short.spent,
        short.is_example, suite.defined.repeats, cells,
        max((cell for cell in cells if cell.speedup), key=lambda cell: cell.speedup or 0.0, default=None),
        tuple(cell for cell in cells if cell.state == CellState.FAILED)[-SHOWN_FAILURES:],
        tuple(standing.cell for standing in suite.startable),
        left(suite),
        _next(short, suite),
    )  # fmt: skip


def _cell(standing: CellStanding) -> CellForm:
    return CellForm(
        standing.cell, standing.run_id, str(standing.state), standing.reason, standing.spent, standing.more_steps,
        standing.depths, standing.weighed, speedup(standing.run_id),
    )  # fmt: skip


def speedup(run_id: str | None) -> float | None:
    """Of a cell's best kernel over eager; None before there is one."""
    run = RunFolder(runs_folder() / (run_id or "-"))
    if not run.settings_file.exists():
        return None
    best = runs.load(run).best
    return best.timed.speedup if best and best.timed else None


def left(suite: Suite) -> tuple[LimitForm, ...]:
    """What is left of each limit that is set for all cells together."""
    limits, spent = suite.defined.limits, suite.spent
    pairs = (
        ("model calls", spent.model_calls, limits.model_calls),
        ("tokens", spent.tokens, limits.tokens),
        ("cost in USD", spent.cost_usd or 0.0, limits.cost_usd),
        ("seconds of engine time", spent.engine_s, limits.engine_s),
    )
    return tuple(
        LimitForm(name, float(used), float(allowed), max(0.0, float(allowed) - used))
        for name, used, allowed in pairs
        if allowed is not None
    )


def _next(short: SuiteHead, suite: Suite) -> str:
    waiting = [standing.run_id for standing in suite.planned if standing.state is CellState.WAITING and standing.run_id]
    go_on = f"`python -m engine suite resume {short.name}` goes on with it."
    if short.state == "running":
        return "A runner is at work on it: look again later."
    if waiting:
        return f"Runs wait for replies: `python -m engine advance {' '.join(waiting)}`. Then {go_on}"
    if short.state == "finished":
        return f"It is over: `python -m engine suite export {short.name}` writes what came of it."
    return f"No runner is at work on it: {go_on}"
