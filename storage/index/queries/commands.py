"""Commands that people have sent to a run, and what became of each."""

from __future__ import annotations

from dataclasses import dataclass, replace

from storage.index.database import Database
from storage.index.queries import fetch
from storage.run.events import CommandAcknowledged, CommandEffective, CommandRefused
from storage.run.steering.verbs import CommandKind


@dataclass(frozen=True, slots=True)
class CommandRow:
    """One command. Times are seconds since the epoch, None for what has not happened.

    `effective_step` is the first step it governs, `effective_seq` the line of the journal since which it is in force;
    `note` says what it changed or, when refused, why.
    """

    command_id: str
    kind: CommandKind
    argument: str
    asked_by: str
    asked_at: float
    acknowledged_at: float | None = None
    effective_at: float | None = None
    refused_at: float | None = None
    effective_step: int | None = None
    note: str = ""
    effective_seq: int | None = None


def commands(db: Database, run_id: str) -> list[CommandRow]:
    """Every command ever sent to a run, oldest first, those the engine has not read included."""
    sql = "SELECT command_id, kind, argument, asked_by, asked_at FROM commands WHERE run_id = ? ORDER BY seq DESC"
    rows = {row.command_id: row for row in fetch.rows(db, CommandRow, sql, [run_id])}
    for entry in fetch.events(db, run_id, CommandAcknowledged, CommandEffective, CommandRefused):
        event = entry.event
        if isinstance(event, CommandAcknowledged):
            asked = event.command
            first = CommandRow(asked.command_id, asked.kind, asked.argument, asked.asked_by, asked.asked_at)
            first = rows.get(asked.command_id, first)
            rows[asked.command_id] = replace(first, acknowledged_at=first.acknowledged_at or entry.at)
        elif row := rows.get(event.command_id):
            rows[event.command_id] = _settled(row, entry.seq, entry.at, event)
    return sorted(rows.values(), key=lambda row: (row.asked_at, row.command_id))


def _settled(row: CommandRow, seq: int, at: float, event: CommandEffective | CommandRefused) -> CommandRow:
    """The first word counts."""
    is_first = row.effective_at is None and row.refused_at is None
    note = event.reason if isinstance(event, CommandRefused) else event.note
    row = replace(row, note=note) if is_first else row
    if isinstance(event, CommandRefused):
        return row if row.refused_at is not None else replace(row, refused_at=at)
    if row.effective_at is not None:
        return row
    return replace(row, effective_at=at, effective_step=event.step, effective_seq=seq)


def in_force(db: Database, run_id: str, *kinds: CommandKind) -> list[CommandRow]:
    """The commands of these kinds that the engine has obeyed, in the order in which they came into force."""
    rows = [row for row in commands(db, run_id) if row.kind in kinds and row.effective_seq is not None]
    return sorted(rows, key=lambda row: row.effective_seq or 0)
