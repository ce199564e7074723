"""What the loop did and does, step by step, each with a sentence for the feed."""

from __future__ import annotations

from dataclasses import dataclass

from storage.database import Database
from storage.queries import fetch
from storage.queries.sentences import Move, sentence


@dataclass(frozen=True, slots=True)
class StepRow:
    """One step. `seconds` and `outcome` are None while it is in flight; a step that an engine's death cut short has the
    outcome "interrupted" and no seconds. `candidate_id` is the kernel it works on, `made_id` the one it made.
    """

    seq: int
    step: int
    kind: str
    depth: int
    candidate_id: str | None
    made_id: str | None
    started_at: float
    seconds: float | None
    outcome: str | None
    is_in_flight: bool
    text: str


_STEPS = """
WITH chosen AS (SELECT * FROM moves WHERE run_id = $run AND {where} ORDER BY seq {order} LIMIT $limit),
 numbers AS (SELECT candidate_id, number, step, seq, summary FROM numbered
    WHERE run_id = $run),
 made AS (SELECT step, arg_max(candidate_id, seq) AS made_id, arg_max(number, seq) AS made_number,
    arg_max(summary, seq) AS summary FROM numbers GROUP BY step),
 judged AS (SELECT step, arg_max(verdict, seq) AS verdict, arg_max(message, seq) AS message,
    arg_max(max_error, seq) AS max_error, arg_max(tolerance, seq) AS tolerance, arg_max(speedup, seq) AS speedup,
    arg_max(latency_ms, seq) AS latency_ms, arg_max(baseline, seq) AS baseline
    FROM evaluations WHERE run_id = $run AND step IN (SELECT step FROM chosen) GROUP BY step),
 seen AS (SELECT step, arg_max(coalesce(bound, ''), seq) AS bound, arg_max(coalesce(failure, ''), seq) AS failure
    FROM profiles WHERE run_id = $run AND step IN (SELECT step FROM chosen) GROUP BY step),
 tried AS (SELECT step, arg_max(reason, seq) AS patch_reason FROM patches
    WHERE run_id = $run AND NOT is_applied AND step IN (SELECT step FROM chosen) GROUP BY step),
 said AS (SELECT step, arg_max(summary, seq) AS said, arg_max(problem, seq) AS said_problem
    FROM reviews WHERE run_id = $run AND step IN (SELECT step FROM chosen) GROUP BY step),
 called AS (SELECT step, bool_or(is_profile_exposed) AS is_profile_exposed FROM model_calls
    WHERE run_id = $run AND step IN (SELECT step FROM chosen) GROUP BY step)
SELECT c.seq, c.step, c.kind, c.depth, c.candidate_id, c.started_at, c.seconds, c.outcome, c.is_in_flight,
    o.number, m.made_id, m.made_number, m.summary, j.verdict, j.message, j.max_error, j.tolerance, j.speedup,
    j.latency_ms, j.baseline, s.bound, s.failure, t.patch_reason, a.said,
    a.said_problem,
    coalesce(k.is_profile_exposed, FALSE) AS is_profile_exposed
FROM chosen c LEFT JOIN numbers o ON o.candidate_id = c.candidate_id LEFT JOIN made m ON m.step = c.step
LEFT JOIN judged j ON j.step = c.step LEFT JOIN seen s ON s.step = c.step
LEFT JOIN tried t ON t.step = c.step LEFT JOIN called k ON k.step = c.step
LEFT JOIN said a ON a.step = c.step
ORDER BY c.seq {order}
"""


def steps(db: Database, run_id: str, after_seq: int = 0, limit: int = 200, newest_first: bool = True) -> list[StepRow]:
    """Steps begun after a journal line (`StepRow.seq` of the last one seen), at most `limit` of them."""
    order = "DESC" if newest_first else "ASC"
    sql = _STEPS.format(where="seq > $after", order=order)
    return _rows(db, sql, {"run": run_id, "after": after_seq, "limit": limit})


def current_step(db: Database, run_id: str) -> StepRow | None:
    """The step in flight, as far as the journal tells: a lost engine leaves one behind."""
    sql = _STEPS.format(where="is_in_flight", order="DESC")
    found = _rows(db, sql, {"run": run_id, "limit": 1})
    return found[0] if found else None


def typical_seconds(db: Database, run_id: str, kind: str) -> float | None:
    """How long a finished step of this kind has taken in this run: the median; None before the first one ended."""
    sql = "SELECT median(seconds) FROM steps WHERE run_id = ? AND phase = 'finished' AND kind = ?"
    found = fetch.tuples(db, sql, [run_id, str(kind)])[0][0]
    return None if found is None else float(found)


def count_events(db: Database, run_id: str, after_seq: int) -> int:
    """How many events a run has had after one."""
    return int(fetch.tuples(db, "SELECT count(*) FROM events WHERE run_id = ? AND seq > ?", [run_id, after_seq])[0][0])


def last_seq(db: Database, run_id: str) -> int:
    """The number of the newest event; 0 before the first."""
    return int(fetch.tuples(db, "SELECT coalesce(max(seq), 0) FROM events WHERE run_id = ?", [run_id])[0][0])


def _rows(db: Database, sql: str, parameters: dict[str, object]) -> list[StepRow]:
    return [_row(move) for move in fetch.rows(db, Move, sql, parameters)]


def _row(m: Move) -> StepRow:
    return StepRow(
        m.seq, m.step, m.kind, m.depth, m.candidate_id, m.made_id, m.started_at, m.seconds, m.outcome, m.is_in_flight,
        sentence(m),
    )  # fmt: skip
