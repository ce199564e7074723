"""Commands from people and what they changed; what waits for a person, and what a person must know of a replay."""

from __future__ import annotations

from dataclasses import dataclass

from storage.attendance import Fallback
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


@dataclass(frozen=True, slots=True)
class QuestionRow:
    """A call that waits for a person's answer. `source_blob` is the kernel it is about, None for a first one."""

    step: int
    call: int
    role: str
    depth: int
    candidate_id: str | None
    prompt_blob: str
    source_blob: str | None


@dataclass(frozen=True, slots=True)
class LeaveRow:
    """A step that waits for a yes, asked for at `at`; silence for `after_s` seconds means the fallback."""

    at: float
    step: int
    kind: str
    depth: int
    candidate_id: str | None
    number: int | None
    summary: str | None
    fallback: Fallback
    after_s: float


@dataclass(frozen=True, slots=True)
class DivergenceRow:
    """A replayed run left the path of its recording; `is_bridged` says that a reply could be found all the same."""

    seq: int
    step: int
    role: str
    candidate_id: str | None
    is_bridged: bool
    reason: str


@dataclass(frozen=True, slots=True)
class ImportRow:
    """What another system recorded about a candidate: its words and milliseconds, never mixed with ours."""

    candidate_id: str
    file: str
    status: str
    latency_ms: float | None
    baseline_latency_ms: float | None
    message: str


def open_question(db: Database, run_id: str) -> QuestionRow | None:
    """The call that waits for a person, or None."""
    sql = """SELECT q.step, q.call, q.role, q.depth, q.candidate_id, q.prompt_blob, c.source_blob FROM questions q
    LEFT JOIN candidates c ON c.run_id = q.run_id AND c.candidate_id = q.candidate_id
    WHERE q.run_id = $run
        AND NOT EXISTS (SELECT 1 FROM model_calls m WHERE m.run_id = $run AND m.seq > q.seq AND m.step = q.step)
        AND NOT EXISTS (SELECT 1 FROM steps s WHERE s.run_id = $run AND s.seq > q.seq AND s.phase = 'finished')
    ORDER BY q.seq DESC LIMIT 1"""
    return fetch.one(db, QuestionRow, sql, {"run": run_id})


def open_leave(db: Database, run_id: str) -> LeaveRow | None:
    """The step that waits for a yes, or None."""
    sql = """SELECT l.time AS at, l.step, l.kind, l.depth, l.candidate_id, a.number, a.summary, l.fallback, l.after_s
    FROM leaves l LEFT JOIN attempts a ON a.run_id = l.run_id AND a.candidate_id = l.candidate_id
    WHERE l.run_id = $run AND l.kind IS NOT NULL
        AND NOT EXISTS (SELECT 1 FROM states t WHERE t.run_id = $run AND t.seq > l.seq AND t.state <> 'waiting')
        AND NOT EXISTS (SELECT 1 FROM steps s WHERE s.run_id = $run AND s.seq > l.seq AND s.phase <> 'resumed')
    ORDER BY l.seq DESC LIMIT 1"""
    return fetch.one(db, LeaveRow, sql, {"run": run_id})


def divergences(db: Database, run_id: str) -> list[DivergenceRow]:
    """Where a replayed run left its recording, oldest first."""
    sql = "SELECT seq, step, role, candidate_id, is_bridged, reason FROM divergences WHERE run_id = ? ORDER BY seq"
    return fetch.rows(db, DivergenceRow, sql, [run_id])


def imported(db: Database, run_id: str, candidate_id: str) -> ImportRow | None:
    """What was recorded elsewhere about a candidate, or None for one of our own."""
    sql = """SELECT candidate_id, file, status, latency_ms, baseline_latency_ms, message FROM imports
        WHERE run_id = ? AND candidate_id = ? ORDER BY seq DESC LIMIT 1"""
    return fetch.one(db, ImportRow, sql, [run_id, candidate_id])


def waiting_runs(db: Database) -> list[str]:
    """Runs whose last word is that they wait for a person; whether their engines live is not known here."""
    sql = "SELECT run_id FROM states GROUP BY run_id HAVING arg_max(state, seq) = 'waiting' ORDER BY run_id"
    return [name for (name,) in fetch.tuples(db, sql)]
