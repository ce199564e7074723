"""How often a model's kernels pass: each kernel, and each step that brought none, is a try."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from storage.index.database import Database
from storage.index.queries import fetch
from storage.run.events import Ranked
from storage.run.record import WRITTEN


@dataclass(frozen=True, slots=True)
class TryRow:
    """One try of a run: a kernel that the model has written and that was judged, or a step that brought none.

    `speedup` is None unless it is correct and timed. `prompt_blob` is the hash of the prompt that led to it.
    """

    run_id: str
    step: int
    is_passed: bool
    speedup: float | None
    prompt_blob: str | None
    is_compiled: bool = False


def tries(db: Database, run_ids: Sequence[str]) -> list[TryRow]:
    """The tries of these runs in the order they were made. A kernel that a person brought is none."""
    sql = """
    WITH chosen AS (SELECT unnest($ids::VARCHAR[]) AS run_id),
    asked AS (SELECT run_id, step, arg_min(prompt_blob, seq) AS prompt_blob FROM calls JOIN chosen USING (run_id)
        GROUP BY run_id, step),
    tried AS (SELECT run_id, step, seq, is_compiled, verdict = 'passed' AS is_passed, speedup
            FROM kernels JOIN chosen USING (run_id) WHERE is_try
        UNION ALL SELECT run_id, step, seq, FALSE, FALSE, NULL FROM steps JOIN chosen USING (run_id) WHERE is_try)
    SELECT run_id, step, is_compiled, is_passed, speedup, prompt_blob FROM tried LEFT JOIN asked USING (run_id, step)
    ORDER BY run_id, seq"""
    return fetch.rows(db, TryRow, sql, {"ids": list(run_ids)})


def unjudged(db: Database, run_ids: Sequence[str]) -> dict[str, int]:
    """Kernels that the model has written and that have no verdict, by run: in work, not evaluated, or broken off."""
    sql = """SELECT run_id, count(*) FROM kernels JOIN (SELECT unnest($ids::VARCHAR[]) AS run_id) USING (run_id)
        WHERE verdict IS NULL AND list_contains($written::VARCHAR[], origin) GROUP BY run_id"""
    return dict(fetch.tuples(db, sql, {"ids": list(run_ids), "written": [str(origin) for origin in WRITTEN]}))


@dataclass(frozen=True, slots=True)
class RankingRow:
    """Kernels drawn for one step index, ranked before they were evaluated. `is_used`: by the reward model, else in the
    order of arrival; `correlation` is its rank correlation with the rewards of `kernels` earlier kernels, `arrival`
    that of their order of arrival."""

    depth: int
    drawn: int
    is_used: bool
    kernels: int
    correlation: float | None
    arrival: float | None
    why: str


def rankings(db: Database, run_id: str) -> list[RankingRow]:
    """Every ranking of a run, oldest first."""
    last = {entry.event.depth: entry.event for entry in fetch.events(db, run_id, Ranked)}
    return [
        RankingRow(depth, len(e.candidates), bool(e.scores), e.kernels, e.correlation, e.arrival, e.why)
        for depth, e in sorted(last.items())
    ]
