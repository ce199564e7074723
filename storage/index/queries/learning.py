"""What runs asked of the knowledge base, what they were told, whether they followed it, and what they added to it."""

from __future__ import annotations

from dataclasses import dataclass

from storage.index.database import Database
from storage.index.queries import fetch
from storage.knowledge.records import Bottleneck
from storage.run.events import Consulted

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
WITH questions AS (SELECT run_id, count(*) AS asked, max(time) AS at FROM events
    WHERE kind = 'Consulted' GROUP BY run_id),
 gave AS (SELECT run_id, count(*) AS attempts, count(*) FILTER (WHERE outcome = 'faster') AS faster, max(time) AS at
    FROM evidence GROUP BY run_id),
 changed AS (SELECT run_id, count(*) AS changes, max(time) AS at FROM events
    WHERE kind = 'Taught' GROUP BY run_id)
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
    return int(fetch.tuples(db, "SELECT count(*) FROM events WHERE kind = 'Consulted' AND run_id = ?", [run_id])[0][0])


def answers(db: Database, run_id: str, limit: int = PAGE, offset: int = 0) -> list[AnswerRow]:
    """A page of what a run was told, the newest first."""
    asked = fetch.events(db, run_id, Consulted)
    first = max(0, len(asked) - offset - limit)
    later: dict[str, int] = {}
    found = []
    for told in reversed(asked):
        name, until = told.event.candidate_id, later.get(told.event.candidate_id)
        later[name] = told.seq
        found.append((told, until))
    shown = found[offset : len(asked) - first]
    return [_answer(db, run_id, told, until) for told, until in shown]


_TRIED = """
SELECT coalesce(e.technique, k.technique, ''), coalesce(e.outcome, '') FROM kernels k
LEFT JOIN evidence e ON e.run_id = k.run_id AND e.candidate_id = k.candidate_id
WHERE k.run_id = $run AND k.repair = 0 AND k.base_id = $candidate AND k.seq > $since
    AND ($until::BIGINT IS NULL OR k.seq < $until) ORDER BY k.seq
"""


def _answer(db: Database, run_id: str, told: fetch.Told[Consulted], until: int | None) -> AnswerRow:
    event = told.event
    given = {"run": run_id, "candidate": event.candidate_id, "since": told.seq, "until": until}
    tried = fetch.tuples(db, _TRIED, given)
    sql = "SELECT number FROM kernels WHERE run_id = ? AND candidate_id = ?"
    number = next((n for (n,) in fetch.tuples(db, sql, [run_id, event.candidate_id])), None)
    return AnswerRow(
        run_id, told.seq, event.step, event.depth, told.at, event.candidate_id, number, event.state, event.bottleneck,
        event.state_confidence, event.why, [one.technique for one in event.found],
        [one.technique for one in event.found if one.is_negative], [name for name, _ in tried],
        [outcome for _, outcome in tried],
    )  # fmt: skip
