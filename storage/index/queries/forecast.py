"""What runs so far took, as the ground for what a new one will take."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from storage.index.database import Database
from storage.index.queries import fetch


@dataclass(frozen=True, slots=True)
class PaceRow:
    """Medians over runs of one kind, each for one step index: `engine_s`, seconds of work without the calls to the
    model; `calls`, and the seconds of those, `calls_s`. `unfinished` of the runs have not ended."""

    runs: int
    engine_s: float
    calls: float
    calls_s: float
    unfinished: int = 0
    sizes: tuple[str, ...] = ()
    """Each as JSON text."""


@dataclass(frozen=True, slots=True)
class TokensRow:
    """Means over the counted calls to a model: tokens, and seconds, of one call."""

    calls: int
    input: float
    output: float
    seconds: float


def pace(
    db: Database, toolchain: str, task: str = "", strategy: str = "", model: str = "", without: Sequence[str] = (),
    sizes: Mapping[str, float] | None = None,
) -> PaceRow | None:  # fmt: skip
    """How fast runs on a toolchain went, of those that finished a step index; None where none has.

    An empty text leaves in every run, as no `sizes` do; `without` names models whose runs are left out. So are replays
    and examples: what they tell took its time elsewhere.
    """
    sql = """WITH own AS (SELECT run_id FROM runs WHERE replay_of IS NULL AND NOT is_example AND toolchain = $toolchain
        AND ($task = '' OR task_name = $task) AND ($strategy = '' OR strategy = $strategy)
        AND ($model = '' OR model = $model) AND NOT list_contains($without::VARCHAR[], model)
        AND ($sizes = '' OR sizes = $sizes)),
     done AS (SELECT run_id, count(DISTINCT depth) AS depths FROM depths SEMI JOIN own USING (run_id) GROUP BY run_id),
     asked AS (SELECT run_id, count(*) AS calls, sum(seconds) AS seconds FROM calls
        SEMI JOIN own USING (run_id) GROUP BY run_id)
    SELECT count(*) AS runs,
        count(*) FILTER (WHERE r.state NOT IN ('finished', 'stopped', 'failed')) AS unfinished,
        median(greatest(p.engine_s - coalesce(a.seconds, 0), 0) / d.depths) AS engine_s,
        median(coalesce(a.calls, 0) / d.depths) AS calls, median(coalesce(a.seconds, 0) / d.depths) AS calls_s,
        list(DISTINCT r.sizes ORDER BY r.sizes) AS sizes
    FROM done d JOIN progress p USING (run_id) JOIN runs r USING (run_id) LEFT JOIN asked a USING (run_id)
    WHERE p.finished_steps > 0 HAVING count(*) > 0"""
    same = "" if sizes is None else json.dumps(dict(sizes), ensure_ascii=False)  # as in the index
    asked = {"toolchain": toolchain, "task": task, "strategy": strategy, "model": model, "without": list(without),
             "sizes": same}  # fmt: skip
    return fetch.one(db, PaceRow, sql, asked)


def tokens_per_call(db: Database, model: str = "", without: Sequence[str] = ()) -> TokensRow | None:
    """What a call to a model, or to any but those that `without` names, has taken; None where no call was counted."""
    sql = """SELECT count(*) AS calls, avg(input_tokens) AS "input", avg(output_tokens) AS "output",
        avg(seconds) AS seconds FROM calls WHERE input_tokens > 0 AND output_tokens > 0
        AND ($model = '' OR model = $model) AND run_id NOT IN (SELECT run_id FROM runs WHERE replay_of IS NOT NULL
            OR is_example OR list_contains($without::VARCHAR[], model))
        HAVING count(*) > 0"""
    return fetch.one(db, TokensRow, sql, {"model": model, "without": list(without)})
