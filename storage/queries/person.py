"""What waits for a person: questions to answer, steps to approve; and what left the path of a recording."""

from __future__ import annotations

from dataclasses import dataclass

from storage.command_arguments import Fallback
from storage.database import Database
from storage.queries import fetch


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
class ApprovalRow:
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


def open_approval(db: Database, run_id: str) -> ApprovalRow | None:
    """The step that waits for a yes, or None."""
    sql = """SELECT l.time AS at, l.step, l.kind, l.depth, l.candidate_id, a.number, a.summary, l.fallback, l.after_s
    FROM leaves l LEFT JOIN attempts a ON a.run_id = l.run_id AND a.candidate_id = l.candidate_id
    WHERE l.run_id = $run AND l.kind IS NOT NULL
        AND NOT EXISTS (SELECT 1 FROM states t WHERE t.run_id = $run AND t.seq > l.seq AND t.state <> 'waiting')
        AND NOT EXISTS (SELECT 1 FROM steps s WHERE s.run_id = $run AND s.seq > l.seq AND s.phase <> 'resumed')
    ORDER BY l.seq DESC LIMIT 1"""
    return fetch.one(db, ApprovalRow, sql, {"run": run_id})


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
