"""Whether anything that a page shows has changed: the version in the index, and which engines live."""

from __future__ import annotations

import time
from collections.abc import Sequence

from pages.parts import index
from storage import liveness, queries, remeasurements
from storage.folder import RunFolder, runs_folder
from storage.queries import CommandRow, RunRow
from storage.records import CommandKind, RunState

STARTING_S = 20.0
SILENT_S = 900.0
STOP_GRACE_S = 10.0


def version(run_ids: Sequence[str], is_overview: bool, has_measurements: bool = False) -> str:
    """Text that differs whenever a page over these runs would look different. Costs no query while nothing is new.

    `has_measurements` is for a page that also shows how far the re-measurements of these runs are.
    """
    db = index.current()
    if is_overview:
        return f"{queries.overview_version(db)}{engines(run_ids)}"
    late = [is_overdue(pending_stop(name)) for name in run_ids]
    shown = f"{[queries.version(db, name) for name in run_ids]}{engines(run_ids)}{late}"
    return shown + measured(run_ids) if has_measurements else shown


def measured(run_ids: Sequence[str]) -> str:
    """How far every re-measurement of these runs is."""
    return str([(one.request.remeasure_id, one.progress) for one in remeasurements.concerning(run_ids)])


def pending_stop(run_id: str) -> CommandRow | None:
    """The stop that was asked of the engine at work and has not ended it yet."""
    db = index.current()
    asked = [c for c in queries.commands(db, run_id) if c.kind is CommandKind.STOP]
    if not asked or asked[-1].refused_at is not None or not has_engine(run_id):
        return None
    began = queries.engine_began(db, run_id)
    is_for_it = began is None or (asked[-1].acknowledged_at or asked[-1].asked_at) >= began
    return asked[-1] if is_for_it else None


def is_overdue(stop: CommandRow | None) -> bool:
    """True once a stop has taken so long that a person may end the engine."""
    return stop is not None and time.time() - stop.asked_at >= STOP_GRACE_S


def engines(run_ids: Sequence[str]) -> str:
    """One sign per run: has it an engine, and has that one been silent for long?"""
    return "".join(_sign(name) for name in run_ids)


def _sign(run_id: str) -> str:
    if not has_engine(run_id):
        return "-"
    try:
        silent_s = time.time() - RunFolder(runs_folder() / run_id).journal_file.stat().st_mtime
    except OSError:
        return "+"
    return "!" if silent_s > SILENT_S else "+"


def has_engine(run_id: str) -> bool:
    """True while an engine lives, or may still be starting."""
    folder = RunFolder(runs_folder() / run_id)
    if liveness.is_held(folder):
        return True
    try:
        began = folder.settings_file.stat().st_mtime
    except OSError:
        return False
    return time.time() - began < STARTING_S and not folder.journal_file.exists()


def lost(unfinished: Sequence[str]) -> list[str]:
    """Of runs that are not over by their journals those that have no engine."""
    return [name for name in unfinished if not has_engine(name)]


def state_of(run: RunRow) -> RunState:
    """The state a person should see: a run that is not over and has no engine is lost."""
    return run.state if run.state.is_finished or has_engine(run.run_id) else RunState.LOST
