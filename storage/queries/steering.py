"""Commands from people and what they changed."""

from __future__ import annotations

from dataclasses import dataclass

from storage.database import Database
from storage.queries import fetch
from storage.records import CommandKind, Switch


@dataclass(frozen=True, slots=True)
class CommandRow:
    """One command. Times are seconds since the epoch, None for what has not happened.

    `effective_step` is the first step it governs; `note` says what it changed or, when refused, why.
    """

    command_id: str
    kind: CommandKind
    argument: str
    asked_by: str
    asked_at: float
    acknowledged_at: float | None
    effective_at: float | None
    refused_at: float | None
    effective_step: int | None
    note: str


@dataclass(frozen=True, slots=True)
class SwitchesRow:
    """The switches as they are in force, and the hints that no prompt has carried yet (oldest first)."""

    collect: Switch
    expose: Switch
    pending_hints: tuple[str, ...]

    @property
    def pending_hint(self) -> str:
        """All waiting hints in one text, empty when there are none."""
        return "\n".join(self.pending_hints)


@dataclass(frozen=True, slots=True)
class SteeringMark:
    """Where on the curve a person steered: the depth in which a command came into force."""

    seq: int
    at: float
    step: int
    depth: int
    kind: CommandKind
    argument: str
    asked_by: str
    note: str


def commands(db: Database, run_id: str) -> list[CommandRow]:
    """Every command ever sent to a run, oldest first, those the engine has not read included."""
    sql = """SELECT command_id, kind, argument, asked_by, asked_at, acknowledged_at, effective_at, refused_at,
        effective_step, note FROM steering WHERE run_id = ? AND kind IS NOT NULL ORDER BY asked_at, command_id"""
    return fetch.rows(db, CommandRow, sql, [run_id])


def switches(db: Database, run_id: str) -> SwitchesRow:
    """What is in force now; `auto` and nothing for a run that is not in the index."""
    sql = """SELECT kind, arg_max(argument, effective_seq) FROM steering
        WHERE run_id = ? AND effective_seq IS NOT NULL AND kind IN ('collect', 'expose') GROUP BY kind"""
    steered = dict(fetch.tuples(db, sql, [run_id]))
    start = fetch.tuples(db, "SELECT collect FROM runs WHERE run_id = ?", [run_id])
    hints = """SELECT argument FROM steering WHERE run_id = ? AND kind = 'hint' AND effective_at IS NULL
        AND refused_at IS NULL ORDER BY asked_at, command_id"""
    return SwitchesRow(
        Switch(steered.get("collect") or (start[0][0] if start else Switch.AUTO)),
        Switch(steered.get("expose", Switch.AUTO)),
        tuple(text for (text,) in fetch.tuples(db, hints, [run_id])),
    )


def steering_marks(db: Database, run_id: str) -> list[SteeringMark]:
    """Commands in force, by the depth they came into force in."""
    sql = """
    WITH begun AS (SELECT seq, step, depth FROM steps WHERE run_id = $run AND phase = 'started'),
        asked AS (SELECT * FROM steering WHERE run_id = $run AND effective_seq IS NOT NULL AND kind IS NOT NULL)
    SELECT a.effective_seq AS seq, a.effective_at AS at, a.effective_step AS step, coalesce(
            (SELECT max(depth) FROM begun b WHERE b.step = a.effective_step),
            (SELECT arg_max(depth, b.seq) FROM begun b WHERE b.seq < a.effective_seq), 0) AS depth,
        a.kind, a.argument, a.asked_by, a.note
    FROM asked a ORDER BY a.effective_seq"""
    return fetch.rows(db, SteeringMark, sql, {"run": run_id})
