"""How well the replies of each model could be read and applied."""

from __future__ import annotations

from dataclasses import dataclass

from storage.database import Database
from storage.queries import fetch


@dataclass(frozen=True, slots=True)
class PatchRateRow:
    """One model over all runs. `calls` are all its replies; the rest is about those that were to hold a patch.

    `replies` were to hold one, `parsed` of them did. A step that wants a patch counts once: under the rung of the
    ladder whose reply applied (edits at once, after a report, as SEARCH/REPLACE, as a whole file), or as `failed`.
    """

    model: str
    calls: int
    replies: int
    parsed: int
    steps: int
    first: int
    after_report: int
    search_replace: int
    rewrite: int
    failed: int


_RATES = """
WITH called AS (SELECT run_id, step, call, arg_max(model, seq) AS model, count(*) AS calls FROM model_calls
        WHERE run_id NOT IN (SELECT run_id FROM runs WHERE replay_of IS NOT NULL) GROUP BY run_id, step, call),
    tried AS (SELECT p.*, c.model FROM patches p JOIN called c USING (run_id, step, call)),
    climbed AS (SELECT run_id, step, arg_min(model, call) AS model,
        arg_max(rung, call) FILTER (WHERE is_applied) AS rung
        FROM tried GROUP BY run_id, step),
    ended AS (SELECT model, count(*) AS steps, count(*) FILTER (WHERE rung = 'edits') AS first,
        count(*) FILTER (WHERE rung = 'reask') AS after_report,
        count(*) FILTER (WHERE rung = 'search_replace') AS search_replace,
        count(*) FILTER (WHERE rung = 'rewrite') AS rewrite, count(*) FILTER (WHERE rung IS NULL) AS failed
        FROM climbed x WHERE rung IS NOT NULL OR EXISTS (SELECT 1 FROM steps s WHERE s.run_id = x.run_id
            AND s.step = x.step AND s.phase = 'finished') GROUP BY model),
    read AS (SELECT model, count(*) AS replies, count(*) FILTER (WHERE form <> '' OR is_applied) AS parsed
        FROM tried GROUP BY model)
SELECT model, sum(calls)::BIGINT AS calls, coalesce(any_value(r.replies), 0) AS replies,
    coalesce(any_value(r.parsed), 0) AS parsed, coalesce(any_value(e.steps), 0) AS steps,
    coalesce(any_value(e.first), 0) AS first, coalesce(any_value(e.after_report), 0) AS after_report,
    coalesce(any_value(e.search_replace), 0) AS search_replace, coalesce(any_value(e.rewrite), 0) AS rewrite,
    coalesce(any_value(e.failed), 0) AS failed
FROM called LEFT JOIN read r USING (model) LEFT JOIN ended e USING (model) GROUP BY model ORDER BY calls DESC, model
"""


def patch_rates(db: Database) -> list[PatchRateRow]:
    """Every model that has replied, the busiest first. What a replay tells once more is not counted twice."""
    return fetch.rows(db, PatchRateRow, _RATES)
