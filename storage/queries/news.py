"""The other news of a run: state changes, budget warnings, lines that could not be read."""

from __future__ import annotations

from dataclasses import dataclass

from storage.database import Database
from storage.journal import FaultKind
from storage.queries import fetch
from storage.records import RunState


@dataclass(frozen=True, slots=True)
class StateRow:
    """The run moved to a state; `reason` is written for people. `error_blob` has the traceback of a failed engine."""

    seq: int
    at: float
    state: RunState
    reason: str
    is_final: bool
    error_blob: str | None


@dataclass(frozen=True, slots=True)
class ProblemRow:
    """A line that could not be read and was left out, or events missing before it. `position` is its byte offset."""

    run_id: str
    file: str
    position: int
    kind: FaultKind
    message: str


@dataclass(frozen=True, slots=True)
class EventRow:
    """One journal line as it was written."""

    seq: int
    at: float
    kind: str
    json: str


def states(db: Database, run_id: str) -> list[StateRow]:
    """Every change of state, oldest first."""
    sql = "SELECT seq, time AS at, state, reason, is_final, error_blob FROM states WHERE run_id = ? ORDER BY seq"
    return fetch.rows(db, StateRow, sql, [run_id])


def problems(db: Database, run_id: str | None = None) -> list[ProblemRow]:
    """What is wrong with the files of one run, or of all."""
    sql = """SELECT run_id, file, position, kind, message FROM problems WHERE $run::VARCHAR IS NULL OR run_id = $run
        ORDER BY run_id, file, position"""
    return fetch.rows(db, ProblemRow, sql, {"run": run_id})


def events(db: Database, run_id: str, after_seq: int = 0, limit: int = 500) -> list[EventRow]:
    """Raw journal lines after one, oldest first."""
    sql = "SELECT seq, time AS at, kind, json FROM events WHERE run_id = ? AND seq > ? ORDER BY seq LIMIT ?"
    return fetch.rows(db, EventRow, sql, [run_id, after_seq, limit])
