"""Which runs a person asked to see, in which order, and how many fit: ids only, so that 50 of 10,000 stay cheap.

The same runs in groups, and the totals over all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from storage.index.database import Database
from storage.index.queries import fetch
from storage.index.queries.runs import LABELLED, LISTED_MODEL, STANDING, WRITER
from storage.run.settings import RunState
from storage.run.steering.command_arguments import MANUAL

UNFINISHED = tuple(str(state) for state in RunState if not state.is_finished)


class RunSort(StrEnum):
    """What comes first."""

    NEWEST = "newest"
    OLDEST = "oldest"
    LAST_EVENT = "last_event"
    QUIET = "quiet"
    BEST = "best"
    SLOWEST = "slowest"
    COST = "cost"
    CHEAPEST = "cheapest"
    ERRORS = "errors"
    CORRECT = "correct"
    TASK = "task"
    TASK_BACKWARDS = "task_backwards"
    STATE = "state"
    MODEL = "model"
    DEPTH = "depth"


class Archive(StrEnum):
    """Which runs, of those in use and those put away."""

    ACTIVE = "active"
    ARCHIVED = "archived"
    ALL = "all"


class GroupBy(StrEnum):
    """What runs of a group have in common."""

    TASK = "task"
    MODEL = "model"
    STRATEGY = "strategy"
    TAG = "tag"


@dataclass(frozen=True, slots=True)
class RunFilter:
    """What to leave in; an empty field leaves in everything.

    `text` is looked for in name, id, task, model, tags, note and device. `is_example` leaves in only runs that came
    with Tilewright.
    """

    state: str = ""
    task: str = ""
    model: str = ""
    text: str = ""
    strategy: str = ""
    tag: str = ""
    archive: Archive = Archive.ALL
    is_example: bool = False

    @property
    def is_empty(self) -> bool:
        """True when nothing is left out but what is archived."""
        asked = self.state or self.task or self.model or self.text or self.strategy or self.tag or self.is_example
        return not asked


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
    strategies: list[str]
    tags: list[str]
    archived: int


@dataclass(frozen=True, slots=True)
class GroupRow:
    """Runs that have something in common.

    `solved` have a correct, timed kernel; `mean_speedup` is the geometric mean of their best speed-ups. Calls are those
    of its runs without replays. `tokens` and `cost_usd` add what is known: nobody told the tokens of `uncounted_calls`
    nor the price of `unpriced_calls`, and of `unrecorded_calls`, in runs whose replies came from elsewhere, neither.
    """

    name: str
    runs: int
    working: int
    solved: int
    accepted: int
    best_speedup: float | None
    best_low: float | None
    best_high: float | None
    best_noise: float | None
    best_run: str | None
    mean_speedup: float | None
    model_calls: int
    tokens: int
    uncounted_calls: int
    cost_usd: float
    unpriced_calls: int
    unrecorded_calls: int
    last_created_at: float


@dataclass(frozen=True, slots=True)
class RunTotals:
    """Over the runs that are not archived: kernels accepted, tokens and money of the calls since a moment, and the best
    gain. Replays and examples count for nothing: what they tell was done elsewhere. `cost_usd` adds the known costs."""

    accepted: int
    accepted_since: int
    tokens_since: int
    uncounted_since: int
    """Calls whose tokens nobody told; the sum is that of the others."""
    calls_since: int
    cost_usd_since: float
    unpriced_since: int
    unrecorded_since: int
    """Calls of runs whose replies came from elsewhere, with neither tokens nor a price."""
    best_speedup: float | None
    best_low: float | None
    best_high: float | None
    best_noise: float | None
    best_task: str | None
    best_run: str | None


_COST = "SELECT run_id, cost_usd AS value FROM runs WHERE model_calls > 0"
_WRONG = """SELECT run_id, avg(CASE WHEN verdict = 'passed' THEN 0 ELSE 1 END) AS value FROM kernels
    WHERE verdict IS NOT NULL GROUP BY run_id"""
_BEST = "SELECT run_id, speedup AS value FROM kernels WHERE is_best"
_CREATED = "SELECT run_id, created_at AS value FROM runs"
# The last started first, but examples after a user's own runs: of them those that were named to be seen first, then
# those that show most: finished, with a profile, and a best kernel that beats what a user would run instead.
_NEWEST = """SELECT run_id, row(NOT k.is_example, coalesce(-k.place, -1000000), k.is_example AND k.state = 'finished'
        AND run_id IN (SELECT run_id FROM kernels WHERE profiled_seq IS NOT NULL) AND run_id IN (SELECT run_id
            FROM kernels b JOIN runs r USING (run_id) WHERE b.is_best AND b.low > greatest(1.0, r.second_speedup)
            AND r.second_speedup IS NOT NULL), k.created_at) AS value
    FROM known k"""
_NAMED = f"""SELECT r.run_id, lower(coalesce(nullif(l.name, ''), r.task_name)) AS value FROM runs r
    LEFT JOIN {LABELLED} l USING (run_id)"""
_EVENT = "SELECT run_id, last_event_at AS value FROM progress"
# Each order is worked out only when it is asked for.
_ORDERS = {
    RunSort.NEWEST: (_NEWEST, "DESC"),
    RunSort.OLDEST: (_CREATED, "ASC"),
    RunSort.TASK: (_NAMED, "ASC"),
    RunSort.TASK_BACKWARDS: (_NAMED, "DESC"),
    RunSort.LAST_EVENT: (_EVENT, "DESC"),
    RunSort.QUIET: (_EVENT, "ASC"),
    RunSort.BEST: (_BEST, "DESC"),
    RunSort.SLOWEST: (_BEST, "ASC"),
    RunSort.COST: (_COST, "DESC"),
    RunSort.CHEAPEST: (_COST, "ASC"),
    RunSort.ERRORS: (_WRONG, "DESC"),
    RunSort.CORRECT: (_WRONG, "ASC"),
    RunSort.STATE: ("SELECT run_id, state AS value FROM known", "ASC"),
    RunSort.MODEL: ("SELECT run_id, model AS value FROM known", "ASC"),
    RunSort.DEPTH: ("SELECT run_id, completed AS value FROM progress", "DESC"),
}

_FITTING = f"""known AS (SELECT r.run_id, r.created_at, r.task_name, r.strategy, r.replay_of, r.is_example,
    {LISTED_MODEL} AS model,
    r.device, l.name, coalesce(l.tags, []) AS tags, coalesce(l.note, '') AS note,
    coalesce(l.is_archived, FALSE) AS is_archived,
    nullif(list_position($lead::VARCHAR[], r.run_id), 0) AS place,
    CASE WHEN list_contains($lost::VARCHAR[], r.run_id) THEN 'lost' ELSE {STANDING} END AS state
    FROM runs r LEFT JOIN {LABELLED} l USING (run_id)),
 fitting AS (SELECT * FROM known WHERE ($state = '' OR state = $state) AND ($task = '' OR task_name = $task)
    AND ($model = '' OR model = $model) AND ($strategy = '' OR strategy = $strategy)
    AND ($tag = '' OR list_contains(tags, $tag)) AND (NOT $is_example OR (is_example AND replay_of IS NULL))
    AND ($archive = 'all' OR is_archived = ($archive = 'archived'))
    AND ($text = '' OR contains(lower(concat_ws(' ', run_id, name, task_name, replace(task_name, '_', ' '), model,
        array_to_string(tags, ' '), note, device)), lower($text))))"""
_LISTED = f"""
WITH {_FITTING}, ordered AS ({{order}})
SELECT f.run_id, count(*) OVER () AS total FROM fitting f LEFT JOIN ordered o USING (run_id)
ORDER BY o.value {{direction}} NULLS LAST, f.created_at DESC, f.run_id DESC LIMIT $limit OFFSET $offset
"""


def listing(
    db: Database,
    chosen: RunFilter | None = None,
    sort: RunSort = RunSort.NEWEST,
    lost: Sequence[str] = (),
    limit: int = 50,
    offset: int = 0,
    lead: Sequence[str] = (),
) -> Listing:
    """A page of runs. `lost` are those that have no engine though they are not over: the index cannot know. `lead` are
    the examples that stand before the others, in this order, where the last started come first."""
    chosen = chosen or RunFilter()
    order, direction = _ORDERS[sort]
    sql = _LISTED.format(order=order, direction=direction)
    page = fetch.tuples(db, sql, _asked(chosen, lost, lead) | {"limit": limit, "offset": offset})
    if page or not offset:
        return Listing([name for name, _ in page], page[0][1] if page else 0)
    return Listing([], listing(db, chosen, sort, lost, 1, 0).total)


def _asked(chosen: RunFilter, lost: Sequence[str], lead: Sequence[str] = ()) -> dict[str, object]:
    asked = {name: getattr(chosen, name) for name in ("state", "task", "model", "strategy", "tag", "is_example")}
    return asked | {"archive": str(chosen.archive), "text": chosen.text.strip(), "lost": list(lost), "lead": list(lead)}


# Of each run what its calls since a moment came to, as far as it is told.
_PAID = f"""spent AS (SELECT run_id, count(*) AS calls,
        sum(coalesce(input_tokens, 0) + coalesce(output_tokens, 0)) AS tokens,
        count(*) - count(input_tokens + output_tokens) AS uncounted,
        coalesce(sum(cost_usd), 0.0) AS cost, count(*) - count(cost_usd) AS unpriced
        FROM calls WHERE time >= $since GROUP BY run_id),
    paid AS (SELECT s.*, CASE WHEN {WRITER} = '{MANUAL}' AND s.tokens = 0 AND s.cost = 0
        THEN s.calls - greatest(s.uncounted, s.unpriced) ELSE 0 END AS unrecorded
        FROM spent s JOIN runs r USING (run_id))"""
_GROUPS = {GroupBy.TASK: "task_name", GroupBy.MODEL: "model", GroupBy.STRATEGY: "strategy"}


def groups(db: Database, by: GroupBy, chosen: RunFilter | None = None, lost: Sequence[str] = ()) -> list[GroupRow]:
    """Aggregates of the runs that fit, the largest group first. A run with several tags is in a group of each."""
    chosen = chosen or RunFilter()
    member = "unnest(CASE WHEN len(tags) = 0 THEN [''] ELSE tags END)" if by is GroupBy.TAG else _GROUPS[by]
    sql = f"""WITH {_FITTING},
     grouped AS (SELECT run_id, replay_of, is_example, state, created_at, {member} AS name FROM fitting),
     best AS (SELECT run_id, speedup, low, high, noise FROM kernels
        WHERE is_best AND run_id IN (SELECT run_id FROM fitting)),
     kept AS (SELECT run_id, count(*) AS kernels FROM depths WHERE outcome = 'accepted' GROUP BY run_id),
     {_PAID}
    SELECT g.name, count(*) AS runs,
        count(*) FILTER (WHERE g.state IN ('running', 'starting', 'paused', 'waiting')) AS working,
        count(b.speedup) AS solved, coalesce(sum(k.kernels), 0)::BIGINT AS accepted, max(b.speedup) AS best_speedup,
        arg_max(b.low, b.speedup) AS best_low, arg_max(b.high, b.speedup) AS best_high,
        arg_max(b.noise, b.speedup) AS best_noise, arg_max(g.run_id, b.speedup) AS best_run,
        exp(avg(ln(b.speedup))) AS mean_speedup,
        coalesce(sum(p.calls), 0)::BIGINT AS model_calls,
        coalesce(sum(p.tokens), 0)::BIGINT AS tokens, coalesce(sum(p.uncounted), 0)::BIGINT AS uncounted_calls,
        coalesce(sum(p.cost), 0.0) AS cost_usd, coalesce(sum(p.unpriced), 0)::BIGINT AS unpriced_calls,
        coalesce(sum(p.unrecorded), 0)::BIGINT AS unrecorded_calls,
        max(g.created_at) AS last_created_at
    FROM grouped g LEFT JOIN best b USING (run_id) LEFT JOIN kept k USING (run_id)
        LEFT JOIN paid p ON p.run_id = g.run_id AND g.replay_of IS NULL
    GROUP BY g.name ORDER BY runs DESC, g.name"""
    return fetch.rows(db, GroupRow, sql, _asked(chosen, lost) | {"since": 0.0})


def run_totals(db: Database, since: float) -> RunTotals:
    """Kernels, calls and the best gain over all runs that are not archived; `since` in seconds since the epoch."""
    sql = f"""WITH own AS (SELECT run_id, task_name FROM runs r WHERE replay_of IS NULL AND NOT is_example
        AND run_id NOT IN (SELECT run_id FROM {LABELLED} WHERE is_archived)),
     kept AS (SELECT count(*) AS kernels, count(*) FILTER (WHERE time >= $since) AS lately FROM depths
        SEMI JOIN own USING (run_id) WHERE outcome = 'accepted'),
     {_PAID},
     day AS (SELECT coalesce(sum(tokens), 0)::BIGINT AS tokens, coalesce(sum(uncounted), 0)::BIGINT AS uncounted,
        coalesce(sum(calls), 0)::BIGINT AS calls, coalesce(sum(cost), 0.0) AS cost,
        coalesce(sum(unpriced), 0)::BIGINT AS unpriced, coalesce(sum(unrecorded), 0)::BIGINT AS unrecorded
        FROM paid SEMI JOIN own USING (run_id)),
     best AS (SELECT max(b.speedup) AS speedup, arg_max(b.low, b.speedup) AS low, arg_max(b.high, b.speedup) AS high,
        arg_max(b.noise, b.speedup) AS noise, arg_max(own.task_name, b.speedup) AS task,
        arg_max(run_id, b.speedup) AS run FROM kernels b JOIN own USING (run_id) WHERE b.is_best)
    SELECT kept.kernels AS accepted, kept.lately AS accepted_since, day.tokens AS tokens_since,
        day.uncounted AS uncounted_since, day.calls AS calls_since, day.cost AS cost_usd_since,
        day.unpriced AS unpriced_since, day.unrecorded AS unrecorded_since,
        best.speedup AS best_speedup, best.low AS best_low, best.high AS best_high, best.noise AS best_noise,
        best.task AS best_task, best.run AS best_run FROM kept, day, best"""
    return fetch.rows(db, RunTotals, sql, {"since": since})[0]


def unfinished_runs(db: Database) -> list[str]:
    """Runs that are not over by their journals; only their engines tell whether they are lost."""
    sql = "SELECT run_id FROM runs WHERE state IN (SELECT unnest($open::VARCHAR[])) ORDER BY run_id"
    return [name for (name,) in fetch.tuples(db, sql, {"open": list(UNFINISHED)})]


def choices(db: Database) -> Choices:
    """Every task, model, strategy and tag that a run has, and how many runs are archived."""
    listed = "list(DISTINCT {0} ORDER BY {0})"
    sql = f"""SELECT {", ".join(listed.format(column) for column in ("task_name", "model", "strategy"))},
        (SELECT {listed.format("tag")} FROM (SELECT unnest(tags) AS tag FROM {LABELLED})),
        (SELECT count(*) FROM {LABELLED} SEMI JOIN runs USING (run_id) WHERE is_archived)
        FROM (SELECT task_name, {LISTED_MODEL} AS model, strategy FROM runs r)"""
    tasks, models, strategies, tags, archived = fetch.tuples(db, sql)[0]
    return Choices(tasks or [], models or [], strategies or [], tags or [], archived)
