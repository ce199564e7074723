"""What model calls came to, and what they cost by that."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from storage.index.database import Database
from storage.index.queries import fetch
from storage.run.models import CallFailure


class CallOutcome(StrEnum):
    """What the reply to a call came to, in the words shown on screen; each call is one of them."""

    KEPT = "kernel that was kept"
    CORRECT = "correct, not kept"
    UNREADABLE = "no usable reply"
    """Nothing could be made of it: it did not parse, its edits did not apply, it was cut off, or the call failed."""
    NOT_COMPILED = "did not compile"
    """Or was refused before it was built."""
    WRONG = "wrong result or crash"
    REPAIR = "repairs"
    """Of failed kernels, whatever came of them."""
    TEXT = "diagnosis, judge, plan"
    """Replies that are no kernel."""
    OPEN = "not judged"
    """The kernel has no verdict, or the step has not ended: not yet, or the run ended before."""


@dataclass(frozen=True, slots=True)
class OutcomeRow:
    """Calls of one outcome. `tokens` are those that were counted, `uncounted` calls have none; `cost_usd` None means
    that the cost of any of them is unknown."""

    outcome: CallOutcome
    calls: int
    uncounted: int
    tokens: int
    cost_usd: float | None


_OUTCOMES = f"""
WITH missed AS (SELECT step, call FROM patches WHERE run_id = $run AND NOT is_applied),
    told AS (SELECT c.*, CASE
        WHEN d.kind = 'repair' OR k.origin = 'repair' THEN '{CallOutcome.REPAIR}'
        WHEN c.reply_blob IS NULL OR list_contains($failures::VARCHAR[], c.finish_reason)
            OR (c.step, c.call) IN (FROM missed) OR d.outcome IN ('patch_failed', 'unreadable')
            THEN '{CallOutcome.UNREADABLE}'
        WHEN d.outcome = 'written' THEN '{CallOutcome.TEXT}'
        WHEN k.verdict IS NULL THEN '{CallOutcome.OPEN}'
        WHEN k.is_accepted THEN '{CallOutcome.KEPT}'
        WHEN k.verdict = 'passed' THEN '{CallOutcome.CORRECT}'
        WHEN NOT k.is_compiled THEN '{CallOutcome.NOT_COMPILED}'
        ELSE '{CallOutcome.WRONG}' END AS came_to
        FROM calls c LEFT JOIN steps d ON d.run_id = $run AND d.step = c.step
        LEFT JOIN kernels k ON k.run_id = $run AND k.candidate_id = d.made_id WHERE c.run_id = $run)
SELECT came_to AS outcome, count(*) AS calls,
    count(*) FILTER (WHERE input_tokens IS NULL OR output_tokens IS NULL) AS uncounted,
    coalesce(sum(coalesce(input_tokens, 0) + coalesce(output_tokens, 0)), 0)::BIGINT AS tokens,
    CASE WHEN count(*) = count(cost_usd) THEN sum(cost_usd) END AS cost_usd
FROM told GROUP BY came_to"""


def call_outcomes(db: Database, run_id: str) -> list[OutcomeRow]:
    """What the calls of a run came to, each counted once, in the order of CallOutcome; outcomes of no call are left
    out."""
    rows = fetch.rows(db, OutcomeRow, _OUTCOMES, {"run": run_id, "failures": list(CallFailure)})
    return sorted(rows, key=lambda row: list(CallOutcome).index(row.outcome))
