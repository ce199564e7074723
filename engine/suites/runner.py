"""The queue of a suite: so many runs at a time, until every cell is finished or waits for a person.

A cell is linked to its run before the run's folder is made, and let go of after its run's last event. Runner and
engines may be killed at any moment between: the next runner finds what is linked, adopts engines that still live,
resumes runs whose engine is gone, and never starts a second run for a cell. More steps of what is left of the suite's
budget are journaled before the run is asked to take them, and asked for once.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from engine import supervisor
from engine.suites import headroom
from engine.suites.formats import counted
from engine.suites.metering import Meter, state_of
from storage import locks
from storage.run import liveness
from storage.run.folder import RunFolder, runs_folder
from storage.run.settings import LEFT, RunSettings, RunState, of_suite
from storage.run.steering import commands
from storage.run.steering.verbs import CommandKind
from storage.suites import files
from storage.suites.files import SuiteFolder
from storage.suites.records import (
    BudgetRule,
    Cell,
    CellLeft,
    CellLinked,
    CellState,
    Defined,
    RunnerEnded,
    RunnerStarted,
    Spent,
    Weighed,
)
from storage.suites.standing import CellStanding, Suite, fold

POLL_S = 0.2
DEATHS = 5  # of engines of one cell in a row, before its turn is over
ALREADY_RUNNING = 3
REFUSED = (2, 4)  # exit codes of an engine that will not do better the next time: bad input, something missing here


@dataclass(slots=True)
class _Work:
    """A cell at work. `engine` is None for one that another runner has started."""

    cell: Cell
    run: RunFolder
    meter: Meter
    engine: subprocess.Popen[bytes] | None
    began_at: int = 0  # in the run's journal
    deaths: int = 0
    is_told_to_stop: bool = False

    @property
    def is_over(self) -> bool:
        """Whether its engine has ended."""
        if self.engine is not None:
            return self.engine.poll() is not None
        return not liveness.is_held(self.run)


@dataclass(slots=True)
class Runner:
    """One life of a suite's queue. `settings_of` makes the settings of a cell that has no run yet, `waits_on` says
    whether a run waits for a person. `slots` name the places for runs at work at the same time; the
    pool of devices gives each what it needs."""

    folder: SuiteFolder
    slots: Sequence[str]
    settings_of: Callable[[Defined, Cell], RunSettings]
    waits_on: Callable[[RunFolder], bool]
    tell: Callable[[str], None]
    is_interrupted: Callable[[], bool] = lambda: False
    is_all_given: bool = field(default=False, init=False)
    """Whether, as of the last cell that was left, none is worth more steps."""

    def run(self) -> str:
        """Work on the queue until nothing is left to do here; returns why it ended.

        Raises:
            AlreadyRunningError: another runner is at work on this suite.
        """
        lock = hold(self.folder)
        try:
            files.append(self.folder, RunnerStarted(os.getpid(), tuple(self.slots)))
            reason = self._work_off()
            files.append(self.folder, RunnerEnded(reason))
        finally:
            os.close(lock)
        return reason

    def _work_off(self) -> str:
        queue = deque(standing.cell for standing in self._suite().startable)
        at_work: dict[str, _Work] = {}
        while True:
            for slot in [slot for slot, work in at_work.items() if work.is_over]:
                self._settle(slot, at_work)
            suite = self._suite()
            stopping = self._why_stop(suite, at_work.values())
            if stopping:
                self._stop(at_work.values())
            while not stopping and (free := [slot for slot in self.slots if slot not in at_work]):
                cell = self._next_of(queue) if queue else self._given(suite, at_work.values())
                if cell is None:
                    break
                if (work := self._take_up(self._suite(), cell)) is not None:
                    at_work[free[0]] = work
            if not at_work and (stopping or not self._next_of(queue.copy())):
                self._tell_who_was_left()
                return stopping or _summary(self._suite())
            time.sleep(POLL_S)

    def _next_of(self, queue: deque[Cell]) -> Cell | None:
        """The first cell of the queue that no other holds up, taken out of it."""
        suite = self._suite()
        cell = next((cell for cell in queue if suite.held_by(cell) is None), None)
        if cell is not None:
            queue.remove(cell)
        return cell

    def _given(self, suite: Suite, at_work: Iterable[_Work]) -> Cell | None:
        """The cell that gets the next steps of what is left of the budget; None where none is given any now. All others
        have had the steps of their settings first."""
        if suite.defined.budget is BudgetRule.EVEN or self.is_all_given:
            return None
        suite = self._suite()  # with what was taken up just now
        busy = {work.cell for work in at_work}
        firsts = [standing for standing in suite.startable if standing.cell not in busy or not standing.more_steps]
        if any(standing.state is not CellState.FAILED for standing in firsts):
            return None
        cells = headroom.weighed(suite, suite.finished)
        self._tell_of(suite, [cell for cell in cells if not cell.steps])
        best = headroom.best_of(cells)
        self.is_all_given = best is None
        if best is None:
            return None
        files.append(self.folder, best)
        self.tell(f"{best.cell.words}: {best.steps} more {'step' if best.steps == 1 else 'steps'}: {best.why}")
        return best.cell

    def _tell_of(self, suite: Suite, left: Iterable[Weighed]) -> None:
        """Journal which cells get no more steps, where it was not said in these words before."""
        said = {standing.cell: standing.weighed for standing in suite.planned}
        if news := [cell for cell in left if said[cell.cell] != cell]:
            files.append(self.folder, *news)

    def _tell_who_was_left(self) -> None:
        """Why the suite's limits gave a cell no more steps that were worth giving."""
        suite = self._suite()
        if suite.defined.budget is BudgetRule.HEADROOM and (reason := suite.spent.over(suite.defined.limits)):
            cells = headroom.weighed(suite, suite.finished)
            told = [replace(cell, steps=0, why=f"{cell.why}; {reason}") if cell.steps else cell for cell in cells]
            self._tell_of(suite, told)

    def _suite(self) -> Suite:
        suite = fold(files.read(self.folder))
        if suite is None:
            raise files.SuiteError(f"{self.folder.journal_file} defines no suite")
        return suite

    def _why_stop(self, suite: Suite, at_work: Iterable[_Work]) -> str:
        if suite.is_stop_asked or self.is_interrupted():
            return "stopped by a person"
        spent = {cell: standing.spent for cell, standing in suite.cells.items()}
        spent |= {work.cell: work.meter.read().spent for work in at_work}  # of its run, earlier turns included
        return sum(spent.values(), Spent()).over(suite.defined.limits)

    def _stop(self, at_work: Iterable[_Work]) -> None:
        for work in at_work:
            if not work.is_told_to_stop and liveness.is_held(work.run):
                commands.send(work.run.commands_file, CommandKind.STOP)
                work.is_told_to_stop = True

    def _take_up(self, suite: Suite, cell: Cell) -> _Work | None:
        """Begin with a cell, or go on with it; None where nothing is left to do or a person is waited for."""
        before = suite.cells.get(cell, CellStanding(cell))
        run = self._run_of(suite, before)
        meter = Meter(run).read()
        asked = self._ask_for_more(run, before)
        if not liveness.is_held(run):
            if meter.ended is not None and meter.ended.state is RunState.FINISHED and asked <= meter.settled:
                self._leave(cell, run, meter, CellState.FINISHED, meter.ended.reason)
                return None
            if self.waits_on(run):
                self._leave(cell, run, meter, CellState.WAITING, _reason(meter))
                return None
        work = _Work(cell, run, meter, None, meter.offset)
        if not liveness.is_held(run):
            work.engine = supervisor.begin(run)
        self.tell(f"{cell.words}: {'at work' if work.engine else 'already at work'} ({run.run_id})")
        return work

    def _ask_for_more(self, run: RunFolder, standing: CellStanding) -> set[str]:
        """Send the command for the steps that a cell was given, unless it was sent before; its id."""
        if standing.weighed is None or not standing.weighed.steps:
            return set()
        kind, limits, by = CommandKind.SET_BUDGET, standing.weighed.limits, of_suite(self.folder.name)
        sent, _ = commands.read_from(run.commands_file)
        mine = [command for command in sent if (command.kind, command.argument, command.asked_by) == (kind, limits, by)]
        return {(mine[-1] if mine else commands.send(run.commands_file, kind, limits, by)).command_id}

    def _run_of(self, suite: Suite, before: CellStanding) -> RunFolder:
        """The cell's run, made if need be."""
        settings, run_id = None, before.run_id
        if run_id is None:
            settings = self.settings_of(suite.defined, before.cell)
            run_id = settings.run_id
        files.append(self.folder, CellLinked(before.cell, run_id))
        run = RunFolder(runs_folder() / run_id)
        if not run.settings_file.exists():
            settings = settings or self.settings_of(suite.defined, before.cell)
            run.write_settings(replace(settings, run_id=run_id))
        return run

    def _settle(self, slot: str, at_work: dict[str, _Work]) -> None:
        """What came of an engine that has ended; one that was killed is started again."""
        work = at_work.pop(slot)
        ended, code = work.meter.read().ended, work.engine.returncode if work.engine else None
        if code and ended and ended.state is RunState.FINISHED and work.meter.offset == work.began_at:
            ended = None  # so it had ended before it got more steps, and this engine has not come so far as to begin
        if code == ALREADY_RUNNING or (ended is None and liveness.is_held(work.run)):
            at_work[slot] = replace(work, engine=None)
        elif ended is not None:
            self._leave(work.cell, work.run, work.meter, state_of(ended.state, ended.reason), _reason(work.meter))
        elif code in REFUSED or work.deaths + 1 >= DEATHS:
            reason = (
                supervisor.said_last(work.run) if code in REFUSED else f"its engine ended {DEATHS} times unexpectedly"
            )
            self._leave(work.cell, work.run, work.meter, CellState.FAILED, reason)
        elif work.is_told_to_stop:
            self._leave(work.cell, work.run, work.meter, CellState.STOPPED, "its engine ended while it was stopped")
        else:
            self.tell(f"{work.cell.words}: its engine is gone; resumed")
            begun = supervisor.begin(work.run)
            at_work[slot] = replace(work, engine=begun, began_at=work.meter.offset, deaths=work.deaths + 1)

    def _leave(self, cell: Cell, run: RunFolder, meter: Meter, state: CellState, reason: str) -> None:
        files.append(self.folder, CellLeft(cell, run.run_id, state, reason, meter.spent))
        self.is_all_given = False
        self.tell(f"{cell.words}: {state}" + (f": {reason}" if reason else ""))


def hold(folder: SuiteFolder) -> int:
    """Take the suite's lock for the life of this process.

    Raises:
        AlreadyRunningError: a runner is at work on it.
    """
    try:
        return liveness.hold(folder.runner)
    except locks.AlreadyRunningError as error:
        raise locks.AlreadyRunningError(
            f"suite {folder.name} is already running: follow it with `suite show`, or stop it first"
        ) from error


def _reason(meter: Meter) -> str:
    return meter.ended.reason.removeprefix(LEFT) if meter.ended else ""


def _summary(suite: Suite) -> str:
    counts = suite.counts
    words = [f"{counts[state]} {state}" for state in CellState if counts[state]]
    return ", ".join(words) + f" of {counted(len(suite.planned), 'run')}"
