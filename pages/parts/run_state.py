"""The state of a run as a person should see it: what its journal says, and whether an engine works on it."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence

from pages.parts import index
from storage.index import queries
from storage.index.queries import CommandRow, RunRow
from storage.run import liveness
from storage.run.folder import run_at
from storage.run.settings import RunState
from storage.run.steering.verbs import CommandKind

STARTING_S = 20.0
SILENT_S = 900.0
IDLE_S = 180.0  # that a device may stand idle while a model writes, before it is worth a word
STOP_GRACE_S = 10.0


def of(run: RunRow) -> RunState:
    """The run's own state, or lost: it is not over and has no engine."""
    return RunState.LOST if not run.state.is_finished and is_lost(run.run_id) else run.state


def is_lost(run_id: str) -> bool:
    """Whether a run that was not over when it was read has no engine and has not ended since. An engine lets go of the
    run once its end is written: that must be read before."""
    return not has_engine(run_id) and index.is_unfinished(run_id)


def shown_state(run: RunRow) -> RunState:
    """The state as shown; waiting too where it was left at a prompt of a person, though no engine works on it."""
    state = of(run)
    return RunState.WAITING if state is RunState.STOPPED and run.waiting_reason else state


def has_engine(run_id: str) -> bool:
    """True while an engine lives, or may still be starting."""
    folder = run_at(run_id)
    if liveness.is_held(folder):
        return True
    try:
        began = folder.settings_file.stat().st_mtime
    except OSError:
        return False
    return time.time() - began < STARTING_S and not os.path.lexists(folder.journal_file)


def lost(unfinished: Sequence[str]) -> list[str]:
    """Of runs that are not over by their journals those that have no engine."""
    return [name for name in unfinished if is_lost(name)]


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
