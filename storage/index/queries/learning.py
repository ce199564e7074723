"""What runs asked of the knowledge base, what they were told, whether they followed it, and what they added to it."""

from __future__ import annotations

from dataclasses import dataclass

from storage.index.database import Database
from storage.index.queries import fetch
from storage.knowledge.records import Bottleneck

PAGE = 50


@dataclass(frozen=True, slots=True)
class LearningRun:
    """What one run has to do with the knowledge base: how often it asked, the attempts that it added and how many of
    them were faster, its changes."""

    run_id: str
    asked: int
    attempts: int
    faster: int
    changes: int
    last_at: float


@dataclass(frozen=True, slots=True)
class AnswerRow:
    """One answer to a run. `offered` begins with what promised most, `negative` are those that went wrong before.

    `tried` are the techniques of the kernels that were made from this one before it was asked about again; `outcomes`
    are theirs, empty for one that is not over yet.
    """

    run_id: str
    seq: int
    step: int
    depth: int
    at: float
    candidate_id: str
    number: int | None
    state: str
    bottleneck: Bottleneck | None
    state_confidence: float
    why: str
    offered: list[str]
    negative: list[str]
    tried: list[str]
    outcomes: list[str]

    def is_offered(self, technique: str) -> bool:
        """Whether a technique that was tried is one of those that were offered, however its name is written."""
        return _folded(technique) in {_folded(name) for name in self.offered}


def _folded(name: str) -> str:
    return " ".join(name.replace("_", " ").casefold().split())


_RUNS = """
WITH questions AS (SELECT run_id, count(*) AS asked, max(time) AS at FROM consultations GROUP BY run_id),
 gave AS (SELECT run_id, count(*) AS attempts, count(*) FILTER (WHERE outcome = 'faster') AS faster, max(time) AS at
    FROM evidence GROUP BY run_id),
 changed AS (SELECT run_id, count(*) AS changes, max(time) AS at FROM taught GROUP BY run_id)
SELECT run_id, coalesce(asked, 0) AS asked, coalesce(attempts, 0) AS attempts,
    coalesce(faster, 0) AS faster, coalesce(changes, 0) AS changes,
    greatest(coalesce(questions.at, 0), coalesce(gave.at, 0), coalesce(changed.at, 0)) AS last_at
FROM questions FULL JOIN gave USING (run_id) FULL JOIN changed USING (run_id)
"""


def learning_runs(db: Database, limit: int = PAGE, offset: int = 0) -> list[LearningRun]:
    """A page of the runs that asked or added something, the latest first."""
    sql = f"{_RUNS} ORDER BY last_at DESC, run_id LIMIT $limit OFFSET $offset"
    return fetch.rows(db, LearningRun, sql, {"limit": limit, "offset": offset})


def count_learning_runs(db: Database) -> int:
    """How many runs asked or added something."""
    return int(fetch.tuples(db, f"SELECT count(*) FROM ({_RUNS})")[0][0])


def count_answers(db: Database, run_id: str) -> int:
    """How often a run was told something."""
    return int(fetch.tuples(db, "SELECT count(*) FROM consultations WHERE run_id = $run", {"run": run_id})[0][0])


def answers(db: Database, run_id: str, limit: int = PAGE, offset: int = 0) -> list[AnswerRow]:
    """A page of what a run was told, the newest first."""
    sql = """
WITH asked AS (SELECT *, lead(seq) OVER (PARTITION BY candidate_id ORDER BY seq) AS next_seq
    FROM consultations WHERE run_id = $run),
 shown AS (SELECT * FROM asked ORDER BY seq DESC LIMIT $limit OFFSET $offset),
 told AS (SELECT seq, list(technique ORDER BY place) AS offered,
    list(technique ORDER BY place) FILTER (WHERE is_negative) AS negative
    FROM consulted WHERE run_id = $run AND seq IN (SELECT seq FROM shown) GROUP BY seq),
 named AS (SELECT c.seq AS made_seq, c.base_id, coalesce(e.technique, p.technique, '') AS technique,
    coalesce(e.outcome, '') AS outcome
    FROM candidates c LEFT JOIN evidence e ON e.run_id = c.run_id AND e.candidate_id = c.candidate_id
    LEFT JOIN predictions p ON p.run_id = c.run_id AND p.candidate_id = c.candidate_id
    WHERE c.run_id = $run AND c.repair = 0),
 made AS (SELECT s.seq, list(n.technique ORDER BY n.made_seq) AS tried, list(n.outcome ORDER BY n.made_seq) AS outcomes
    FROM shown s JOIN named n ON n.base_id = s.candidate_id AND n.made_seq > s.seq
        AND (s.next_seq IS NULL OR n.made_seq < s.next_seq)
    GROUP BY s.seq)
SELECT s.run_id, s.seq, s.step, s.depth, s.time AS at, s.candidate_id, n.number, s.state, s.bottleneck,
    s.state_confidence, s.why, coalesce(t.offered, []) AS offered, coalesce(t.negative, []) AS negative,
    coalesce(m.tried, []) AS tried, coalesce(m.outcomes, []) AS outcomes
FROM shown s LEFT JOIN told t ON t.seq = s.seq LEFT JOIN made m ON m.seq = s.seq
LEFT JOIN numbered n ON n.run_id = s.run_id AND n.candidate_id = s.candidate_id
ORDER BY s.seq DESC
"""
    return fetch.rows(db, AnswerRow, sql, {"run": run_id, "limit": limit, "offset": offset})
