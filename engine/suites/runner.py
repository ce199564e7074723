"""The queue of a suite: so many runs at a time, until every cell is finished or waits for a person.

A cell is linked to its run before the run's folder is made, and let go of after its run's last event. Runner and
engines may be killed at any moment between: the next runner finds what is linked, adopts engines that still live,
resumes runs whose engine is gone, and never starts a second run for a cell.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from engine import supervisor
from engine.suites.metering import Meter
from storage import locks
from storage.run import liveness
from storage.run.folder import RunFolder, runs_folder
from storage.run.settings import LEFT, RunSettings, RunState
from storage.run.steering import commands
from storage.run.steering.verbs import CommandKind
from storage.suites import files
from storage.suites.files import SuiteFolder
from storage.suites.records import (
    Cell,
    CellLeft,
    CellLinked,
    CellState,
    Defined,
    RunnerEnded,
    RunnerStarted,
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
        suite = self._suite()
        queue = deque(standing.cell for standing in suite.startable)
        at_work: dict[str, _Work] = {}
        while True:
            suite = self._suite()
            for slot in [slot for slot, work in at_work.items() if work.is_over]:
                self._settle(slot, at_work)
            stopping = self._why_stop(suite, at_work.values())
            if stopping:
                self._stop(at_work.values())
            while not stopping and queue and (free := [slot for slot in self.slots if slot not in at_work]):
                if (work := self._take_up(suite, queue.popleft())) is not None:
                    at_work[free[0]] = work
            if not at_work and (stopping or not queue):
                return stopping or _summary(self._suite())
            time.sleep(POLL_S)

    def _suite(self) -> Suite:
        suite = fold(files.read(self.folder))
        if suite is None:
            raise files.SuiteError(f"{self.folder.journal_file} defines no suite")
        return suite

    def _why_stop(self, suite: Suite, at_work: Iterable[_Work]) -> str:
        if suite.is_stop_asked or self.is_interrupted():
            return "stopped by a person"
        spent = suite.spent
        for work in at_work:
            standing = suite.cells.get(work.cell)
            spent = (
                spent + work.meter.read().spent if standing is None or standing.state is CellState.RUNNING else spent
            )
        return spent.over(suite.defined.limits)

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
        if not liveness.is_held(run):
            if meter.ended is not None and meter.ended.state is RunState.FINISHED:
                self._leave(cell, run, meter, CellState.FINISHED, meter.ended.reason)
                return None
            if self.waits_on(run):
                self._leave(cell, run, meter, CellState.WAITING, _reason(meter))
                return None
        work = _Work(cell, run, meter, None)
        if not liveness.is_held(run):
            work.engine = supervisor.begin(run)
        self.tell(f"{cell.words}: {'at work' if work.engine else 'already at work'} ({run.run_id})")
        return work

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
            at_work[slot] = replace(work, engine=supervisor.begin(work.run), deaths=work.deaths + 1)

    def _leave(self, cell: Cell, run: RunFolder, meter: Meter, state: CellState, reason: str) -> None:
        files.append(self.folder, CellLeft(cell, run.run_id, state, reason, meter.spent))
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


def state_of(state: RunState, reason: str) -> CellState:
    """What a run that ended so makes of its cell."""
    if state is RunState.FINISHED:
        return CellState.FINISHED
    if state is RunState.FAILED:
        return CellState.FAILED
    return CellState.WAITING if reason.startswith(LEFT) else CellState.STOPPED


def _reason(meter: Meter) -> str:
    return meter.ended.reason.removeprefix(LEFT) if meter.ended else ""


def _summary(suite: Suite) -> str:
    counts = suite.counts
    words = [f"{counts[state]} {state}" for state in CellState if counts[state]]
    return ", ".join(words) + f" of {len(suite.planned)} cells"
