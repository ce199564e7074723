"""Runs that were made one by one, as cells of a suite: their figures then stand in its tables. Starts nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from engine.errors import EngineError
from engine.suites.metering import Meter, state_of
from storage.run import liveness
from storage.run.folder import RunFolder
from storage.run.settings import LEFT
from storage.suites.records import Arm, Cell, CellLeft, CellLinked, Defined, Event, SuiteTask
from storage.suites.standing import Suite


def adopt(name: str, runs: Sequence[RunFolder], before: Suite | None, like: Defined | None, arm: str) -> list[Event]:
    """What to write into a suite's journal so that it has these runs; one that it has already keeps its cell.

    `before` is the suite so far, `like` another definition whose tasks, classes and paper's figures it takes over. Each
    run is the next repeat of its task in `arm`, or in an arm called after its strategy.

    Raises:
        EngineError: a run is still at work, has never ended, is a replay, or its task is none of the definition's.
    """
    tasks = {task.name: task for task in [*(like.tasks if like else ()), *(before.defined.tasks if before else ())]}
    arms = {known_arm.name: known_arm for known_arm in (before.defined.arms if before else ())}
    taken = {standing.run_id: cell for cell, standing in before.cells.items() if standing.run_id} if before else {}
    linked: list[Event] = []
    for run in runs:
        settings, ended = run.read_settings(), Meter(run).read()
        if settings.replay_of is not None:
            raise EngineError(f"{run.run_id} is a replay: name {settings.replay_of} instead")
        if liveness.is_held(run) or ended.ended is None:
            raise EngineError(f"run {run.run_id} has not ended: name it when it has")
        state, reason = state_of(ended.ended.state, ended.ended.reason), ended.ended.reason.removeprefix(LEFT)
        if (cell := taken.get(run.run_id)) is not None:
            standing = before.cells.get(cell) if before else None
            # It may have gone on since.
            if standing is not None and (standing.state, standing.spent) != (state, ended.spent):
                linked.append(CellLeft(cell, run.run_id, state, reason, ended.spent))
            continue
        if like and settings.task_name not in tasks:
            raise EngineError(f"{settings.task_name}, the task of {run.run_id}, is none of suite {like.name}")
        tasks.setdefault(settings.task_name, SuiteTask(settings.task_name, settings.task_name))
        column = arms.setdefault(arm or settings.strategy, Arm(arm or settings.strategy, is_adopted=True)).name
        repeats = [other.repeat for other in taken.values() if (other.task, other.arm) == (settings.task_name, column)]
        cell = Cell(settings.task_name, column, max(repeats, default=0) + 1)
        taken[run.run_id] = cell
        linked += [CellLinked(cell, run.run_id), CellLeft(cell, run.run_id, state, reason, ended.spent)]
    if not arms:
        raise EngineError("name at least one run that has ended")
    known_as = before.defined if before else like or Defined(name, (), (), about="Runs that were made one by one.")
    baseline = before.defined.baseline_arm if before else next(iter(arms))
    defined = replace(
        known_as, name=name, tasks=tuple(tasks.values()), arms=tuple(arms.values()),
        repeats=max(before.defined.repeats if before else 1, *(cell.repeat for cell in taken.values())),
        baseline_arm=baseline,
    )  # fmt: skip
    return ([defined] if before is None or defined != before.defined else []) + linked
