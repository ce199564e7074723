"""Which runs a person asked to see, in which order, and how many fit: ids only, so that 50 of 10,000 stay cheap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from storage.database import Database
from storage.queries import fetch
from storage.records import LEFT, RunState

# The last state of each run; one that was left at a prompt of a person waits, though no engine works on it.
STANDING = f"""(SELECT run_id,
    CASE WHEN state = 'stopped' AND starts_with(reason, '{LEFT}') THEN 'waiting' ELSE state END AS state
    FROM (SELECT run_id, arg_max(state, seq) AS state, arg_max(reason, seq) AS reason FROM states GROUP BY run_id))"""
UNFINISHED = tuple(str(state) for state in RunState if not state.is_finished)


class RunSort(StrEnum):
    """What comes first."""

    NEWEST = "newest"
    LAST_EVENT = "last_event"
    BEST = "best"
    COST = "cost"
    ERRORS = "errors"
    TASK = "task"


@dataclass(frozen=True, slots=True)
class RunFilter:
    """What to leave in; an empty field leaves in everything. `text` is looked for in id, task, model and device."""

    state: str = ""
    task: str = ""
    model: str = ""
    text: str = ""

    @property
    def is_empty(self) -> bool:
        """True when nothing is left out."""
        return not (self.state or self.task or self.model or self.text)


@dataclass(frozen=True, slots=True)
class Listing:
    """One page of runs by id, and how many fit in all."""

    run_ids: list[str]
    total: int


@dataclass(frozen=True, slots=True)
class Choices:
    """What there is to filter by."""

    tasks: list[str]
    models: list[str]


# Each order is worked out only when it is asked for: most of them need every event of every run.
_ORDERS = {
    RunSort.NEWEST: ("SELECT run_id, created_at AS value FROM runs", "DESC"),
    RunSort.TASK: ("SELECT run_id, task_name AS value FROM runs", "ASC"),
    RunSort.LAST_EVENT: ("SELECT run_id, max(time) AS value FROM events GROUP BY run_id", "DESC"),
    RunSort.BEST: (
        "SELECT run_id, speedup AS value FROM ranked WHERE is_best",
        "DESC",
    ),
    RunSort.COST: (
        "SELECT run_id, CASE WHEN count(*) = count(cost_usd) THEN sum(cost_usd) END AS value FROM model_calls "
        "GROUP BY run_id",
        "DESC",
    ),
    RunSort.ERRORS: (
        "SELECT run_id, avg(CASE WHEN verdict = 'passed' THEN 0 ELSE 1 END) AS value FROM verdicts "
        "WHERE verdict IS NOT NULL GROUP BY run_id",
        "DESC",
    ),
}

_LISTED = """
WITH latest AS {standing},
 known AS (SELECT r.run_id, r.created_at, r.task_name, r.model,
    CASE WHEN list_contains($lost::VARCHAR[], r.run_id) THEN 'lost' ELSE coalesce(l.state, 'starting') END AS state
    FROM runs r LEFT JOIN latest l USING (run_id)),
 fitting AS (SELECT * FROM known k WHERE ($state = '' OR state = $state) AND ($task = '' OR task_name = $task)
    AND ($model = '' OR model = $model) AND ($text = '' OR contains(lower(concat_ws(' ', run_id, task_name,
        replace(task_name, '_', ' '), model, {device})), lower($text)))),
 ordered AS ({order})
SELECT f.run_id, count(*) OVER () AS total FROM fitting f LEFT JOIN ordered o USING (run_id)
ORDER BY o.value {direction} NULLS LAST, f.created_at DESC, f.run_id DESC LIMIT $limit OFFSET $offset
"""
_DEVICE = "(SELECT arg_max(device, seq) FROM limits d WHERE d.run_id = k.run_id)"


def listing(
    db: Database,
    chosen: RunFilter | None = None,
    sort: RunSort = RunSort.NEWEST,
    lost: Sequence[str] = (),
    limit: int = 50,
    offset: int = 0,
) -> Listing:
    """A page of runs. `lost` are those that have no engine though they are not over: the index cannot know."""
    chosen = chosen or RunFilter()
    order, direction = _ORDERS[sort]
    sql = _LISTED.format(standing=STANDING, order=order, direction=direction, device=_DEVICE if chosen.text else "''")
    found = fetch.tuples(
        db,
        sql,
        {"state": chosen.state, "task": chosen.task, "model": chosen.model, "text": chosen.text.strip()}
        | {"lost": list(lost), "limit": limit, "offset": offset},
    )
    if found or not offset:
        return Listing([name for name, _ in found], found[0][1] if found else 0)
    return Listing([], listing(db, chosen, sort, lost, 1, 0).total)


def unfinished_runs(db: Database) -> list[str]:
    """Runs that are not over by their journals; only their engines tell whether they are lost."""
    sql = """SELECT r.run_id FROM runs r LEFT JOIN
        (SELECT run_id, arg_max(state, seq) AS state FROM states GROUP BY run_id) l USING (run_id)
        WHERE coalesce(l.state, 'starting') IN (SELECT unnest($open::VARCHAR[])) ORDER BY r.run_id"""
    return [name for (name,) in fetch.tuples(db, sql, {"open": list(UNFINISHED)})]


def choices(db: Database) -> Choices:
    """Every task and model that a run has."""
    tasks, models = fetch.tuples(
        db, "SELECT list(DISTINCT task_name ORDER BY task_name), list(DISTINCT model ORDER BY model) FROM runs"
    )[0]
    return Choices(tasks or [], models or [])
