"""Where a suite stands, folded from its journal alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from storage.suites.files import Line
from storage.suites.records import (
    Cell,
    CellLeft,
    CellLinked,
    CellState,
    Defined,
    JudgedAgain,
    RunnerEnded,
    RunnerStarted,
    Spent,
    StopAsked,
    Weighed,
)

ENDED = (CellState.FINISHED, CellState.FAILED)


@dataclass(frozen=True, slots=True)
class CellStanding:
    """One cell: its run, None before it has one, and what was last said of it. `more_steps` it got of what was left of
    the suite's budget, so that its run may go to `depths`; `weighed` is how that was decided last."""

    cell: Cell
    run_id: str | None = None
    state: CellState = CellState.PLANNED
    reason: str = ""
    spent: Spent = field(default_factory=Spent)
    more_steps: int = 0
    depths: int = 0
    weighed: Weighed | None = None

    @property
    def headroom(self) -> str:
        """Why it got more of the suite's budget or was left, in words; empty before that was decided."""
        if self.weighed is None:
            return ""
        got = f"{self.more_steps} more {'step' if self.more_steps == 1 else 'steps'}" if self.more_steps else ""
        if not self.weighed.steps:
            got = f"{got}, then left" if got else "no more steps"
        return f"{got}: {self.weighed.why}"


@dataclass(slots=True)
class Suite:
    """A suite as of its last event. `cells` also has those that the definition no longer names.

    `judged` holds the last word on a cell's kernel that was judged again, by cell and device. `compared_with` is the
    arm that a reader wants all others compared with, empty to leave that to the suite.
    """

    defined: Defined
    cells: dict[Cell, CellStanding] = field(default_factory=dict)
    judged: dict[tuple[Cell, str], JudgedAgain] = field(default_factory=dict)
    is_stop_asked: bool = False
    is_ended: bool = True
    reason: str = ""
    compared_with: str = ""

    def baseline_of(self, arm: str) -> str:
        """The arm that this one is compared with: by itself one that differs in its knowledge base alone, so that what
        the base adds is seen, else the suite's baseline arm."""
        return self.compared_with or self.defined.twin(arm) or self.defined.baseline_arm

    @property
    def planned(self) -> list[CellStanding]:
        """Every cell of the definition, in the order of the queue."""
        return [self.cells.get(cell, CellStanding(cell)) for cell in self.defined.cells]

    @property
    def startable(self) -> list[CellStanding]:
        """What a runner works on: what is not finished, and has its run or an arm whose settings are known."""
        adopted = {arm.name for arm in self.defined.arms if arm.is_adopted}
        unfinished = [standing for standing in self.planned if standing.state is not CellState.FINISHED]
        return [standing for standing in unfinished if standing.run_id or standing.cell.arm not in adopted]

    def held_by(self, cell: Cell) -> CellStanding | None:
        """The first cell that must end before this one begins, in an arm whose tasks are worked in their order."""
        size = next((arm.in_order for arm in self.defined.arms if arm.name == cell.arm), 0)
        if not size or self.cells.get(cell, CellStanding(cell)).run_id:
            return None
        line = [standing for standing in self.planned if standing.cell.arm == cell.arm]
        place = [standing.cell for standing in line].index(cell)
        before = line[: place - place % size]
        return next((standing for standing in before if standing.state not in ENDED), None)

    @property
    def finished(self) -> list[CellStanding]:
        """What may get more steps: cells whose runs have finished and whose settings are known."""
        adopted = {arm.name for arm in self.defined.arms if arm.is_adopted}
        finished = [standing for standing in self.planned if standing.state is CellState.FINISHED]
        return [standing for standing in finished if standing.run_id and standing.cell.arm not in adopted]

    @property
    def spent(self) -> Spent:
        """What all runs have spent that a runner has let go of."""
        return sum((standing.spent for standing in self.cells.values()), Spent())

    @property
    def counts(self) -> Counter[CellState]:
        """How many cells of the definition are in each state."""
        return Counter(standing.state for standing in self.planned)

    @property
    def is_left_behind(self) -> bool:
        """Whether a cell has lost its runner and its engine, as `as_left` finds."""
        return any(standing.reason == LEFT_BEHIND for standing in self.planned)

    def state(self, has_runner: bool) -> str:
        """Whether a runner works on it, or why not; with a cell that failed for good it is finished too."""
        if has_runner:
            return "running"
        ended = sum(self.counts[state] for state in ENDED)
        return "finished" if ended == len(self.planned) else "stopped"


LEFT_BEHIND = "engine and runner ended; suite resume goes on with it"


def as_left(suite: Suite, has_engine: Callable[[str], bool]) -> Suite:
    """The suite as its last runner left it, for one that has none: a cell whose engine is gone too does not run,
    whatever the journal said of it last."""
    cells = {
        cell: replace(standing, state=CellState.STOPPED, reason=LEFT_BEHIND)
        if standing.state is CellState.RUNNING and not (standing.run_id and has_engine(standing.run_id))
        else standing
        for cell, standing in suite.cells.items()
    }
    return replace(suite, cells=cells)


def fold(lines: Iterable[Line]) -> Suite | None:
    """The suite; None before it is defined."""
    suite: Suite | None = None
    for line in lines:
        if isinstance(line.event, Defined):
            if suite is None:
                suite = Suite(line.event)
            suite.defined = line.event
        elif suite is not None:
            _apply(suite, line)
    return suite


def _apply(suite: Suite, line: Line) -> None:
    match line.event:
        case RunnerStarted():
            suite.is_stop_asked, suite.is_ended, suite.reason = False, False, ""
        case RunnerEnded(reason):
            suite.is_ended, suite.reason = True, reason
        case StopAsked():
            suite.is_stop_asked = True
        case CellLinked(cell, run_id):
            before = suite.cells.get(cell, CellStanding(cell))
            if before.run_id in (None, run_id):  # the first run of a cell is its run for ever
                suite.cells[cell] = replace(before, run_id=run_id, state=CellState.RUNNING, reason="")
        case JudgedAgain(cell, device=device) as judged:
            suite.judged[cell, device] = judged
        case Weighed(cell, steps=steps) as weighed:
            before = suite.cells.get(cell, CellStanding(cell))
            state = CellState.RUNNING if steps else before.state  # its run has finished, and goes on
            more, depths = before.more_steps + steps, max(before.depths, weighed.depths)
            suite.cells[cell] = replace(before, state=state, more_steps=more, depths=depths, weighed=weighed)
        case CellLeft(cell, run_id, state, reason, spent):
            before = suite.cells.get(cell, CellStanding(cell))
            suite.cells[cell] = replace(before, run_id=run_id, state=state, reason=reason, spent=spent)
