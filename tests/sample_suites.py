"""A suite whose runs are simulated: every cell a sample run, made faster or slower by its arm."""

from __future__ import annotations

import random
import time
from dataclasses import replace
from pathlib import Path

from engine.suites import definition
from storage.run import events, journal
from storage.run.folder import RunFolder
from storage.suites import files
from storage.suites.files import SuiteFolder
from storage.suites.records import Arm, CellLeft, CellLinked, CellState, Event, RunnerEnded, RunnerStarted, Spent
from tests import samples

NAME = "simulated"
ITERATIONS_PER_DEPTH = 1.95


def write_suite(home: Path, tasks: int = 26, arms: int = 3, repeats: int = 3, iterations: int = 20_000) -> SuiteFolder:
    """All finished but the last, at work without an engine."""
    whole = definition.read(definition.find("table2"))
    named = tuple(Arm(f"arm_{'abcdefg'[n]}", f"--depths {n + 1}") for n in range(arms))
    defined = replace(
        whole, name=NAME, title="Simulated", tasks=whole.tasks[:tasks], arms=named, repeats=repeats,
        baseline_arm=named[0].name,
    )  # fmt: skip
    folder = SuiteFolder(home / "suites" / NAME)
    events: list[Event] = [defined, RunnerStarted(1, ("0",))]
    cells, dice, started = defined.cells, random.Random(7), time.time() - 90_000
    depths = max(2, int(iterations / len(cells) / ITERATIONS_PER_DEPTH))
    for number, cell in enumerate(cells):
        run_id = f"run-{number:04d}"
        is_last = number == len(cells) - 1
        run = samples.write_run(
            home / "runs", run_id, seed=number, depths=2 * depths if is_last else depths,
            ending="running" if is_last else "finished", created_at=started + 300 * number, has_blobs=False,
        )  # fmt: skip
        _scale(run, dice.lognormvariate(0.12 * named.index(next(a for a in named if a.name == cell.arm)), 0.25))
        events.append(CellLinked(cell, run_id))
        if not is_last:
            spent = Spent(3 * depths, 9000 * depths, 0.012 * 3 * depths, 20.0 * depths)
            events.append(CellLeft(cell, run_id, CellState.FINISHED, "all depths are done", spent))
    events.append(RunnerEnded("simulated"))
    files.append(folder, *events)
    return folder


def _scale(run: RunFolder, factor: float) -> None:
    """Make every kernel of a run so much faster."""
    found = []
    for entry in journal.read(run.journal_file):
        event = entry.event
        if isinstance(event, events.Timed):
            timed = replace(event.result, candidate_ms=tuple(ms / factor for ms in event.result.candidate_ms))
            entry = replace(entry, event=replace(event, result=timed))
        found.append(samples.as_line(entry))
    run.journal_file.write_bytes(b"".join(found))
