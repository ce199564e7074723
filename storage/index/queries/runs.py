"""Runs as the overview shows them, one row each with the best-so-far curve, and figures over all of them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

from storage import codec
from storage.index.database import Database
from storage.index.queries import fetch
from storage.results import relative
from storage.results.hardware_limit import HardwareLimit
from storage.results.in_words import NO_DRIVER, NO_DRIVER_OF_OLD, PASTED, YOURS
from storage.results.policy import PRECISIONS, arithmetic_of
from storage.results.vocabulary import KernelClass
from storage.run.events import LimitMeasured
from storage.run.labels import Mark
from storage.run.saved_models import RECORDED
from storage.run.settings import LEFT, RunState
from storage.run.steering.command_arguments import MANUAL

OTHER_RUNS = 50  # whose limits are looked at beside a run's own


@dataclass(frozen=True, slots=True)
class RunRow:
    """One run. Times are seconds since the epoch, costs US dollars, speed-ups ratios (1.0 = as fast as the baseline).

    `model` wrote the replies: "manual" also where it went on after a beginning of recorded ones.
    `state` is what the journal says: whether the engine still lives is not known here. `depth` is the last depth begun,
    None before the first step; `completed` counts those that have ended, depth 0 too; `depths` the budget. The best
    kernel is the fastest correct one by measured speed-up, abandoned branches included; `best_looks` counts the
    findings that could change its verdict, `tied_kernels` those that it does not beat beyond the noise. `curve` has the
    speed-up of the best kernel so far after each depth, from the first timed one on.
    `replay_of` names the run that this one only tells once more; its tokens and cost were spent there.
    `engine_s` is the time that engines worked on steps, of the one in flight as far as its results tell.
    `tokens` is None once those of any call are unknown.
    `cost_usd` is None when the price of any call is unknown. `last_error` is one line. `device` is empty until it was
    measured. `has_recorded_replies`: no model is asked; `is_imported`: kernels came from elsewhere.
    `title` is the name that a person gave it, else its task's; a replay is called after the run that it plays back.
    `tags`, `note` and `is_archived` are a person's too.
    `forked_run` names the run whose kernel `forked_number` (counted from 1) this one began with; such a run is not
    imported.
    """

    run_id: str
    task_name: str
    title: str
    kernel_class: KernelClass
    toolchain: str
    language: str
    device: str
    model: str
    state: RunState
    state_reason: str
    depth: int | None
    completed: int
    depths: int
    best_speedup: float | None
    best_low: float | None
    best_high: float | None
    best_noise: float | None
    best_latency_ms: float | None
    best_candidate_id: str | None
    best_looks: int
    tied_kernels: int
    curve: list[float]
    last_event_at: float | None
    created_at: float
    started_at: float | None
    ended_at: float | None
    engine_s: float
    tokens: int | None
    cost_usd: float | None
    model_calls: int
    attempts: int
    passed: int
    failed: int
    last_error: str
    waiting_reason: str
    is_demo: bool
    is_example: bool
    replay_of: str | None
    has_recorded_replies: bool
    is_imported: bool
    forked_run: str | None
    forked_number: int | None
    strategy: str
    label: str
    tags: list[str]
    note: str
    is_archived: bool

    @property
    def best_measured(self) -> relative.Measured | None:
        """The speed-up of the best kernel; None where there is none."""
        return relative.measured(self.best_speedup, self.best_low, self.best_high, self.best_noise)

    @property
    def is_on_gpu(self) -> bool:
        """Whether its kernels run on a GPU."""
        return self.toolchain != "cpu"


# What a run's state is to people: one that was left at a prompt of a person waits, though no engine works on it.
STANDING = f"CASE WHEN state = 'stopped' AND starts_with(state_reason, '{LEFT}') THEN 'waiting' ELSE state END"
# The labels that hold, and of a row r of `runs` with its row l of them, if any, what it is called.
LABELLED = "(FROM labels QUALIFY seq = max(seq) OVER (PARTITION BY run_id))"
_TASK = f"""upper(r.task_name[1]) || replace(regexp_replace(r.task_name[2:], '{PASTED}', '{YOURS}'), '_', ' ')"""
TITLE = f"""coalesce(nullif(l.name, ''), CASE WHEN r.replay_of IS NULL THEN '' ELSE 'Replay: ' END
    || coalesce((SELECT nullif(any_value(o.name), '') FROM {LABELLED} o WHERE o.run_id = r.replay_of), {_TASK}))"""
# Who wrote the replies of a row r of `runs`: where people handed some in after recorded ones, as where they did all.
WRITER = f"""(CASE WHEN r.model = '{RECORDED}' AND r.run_id IN (SELECT run_id FROM calls WHERE model = '{MANUAL}')
    THEN '{MANUAL}' ELSE r.model END)"""
HANDED_IN = "handed in"
# The same as a list of runs tells it: replies of examples were handed in by the language model that wrote them.
LISTED_MODEL = f"CASE WHEN r.is_example AND {WRITER} = '{MANUAL}' THEN '{HANDED_IN}' ELSE {WRITER} END"
_RUNS = f"""
WITH chosen AS ({{chosen}}),
 made AS (SELECT * FROM kernels WHERE run_id IN (SELECT run_id FROM chosen)),
 judged AS (SELECT run_id, count(*) AS attempts, count(*) FILTER (WHERE verdict = 'passed') AS passed,
    count(*) FILTER (WHERE verdict <> 'passed') AS failed, count(*) FILTER (WHERE is_tied) AS tied_kernels,
    arg_max(message, judged_seq) FILTER (WHERE verdict <> 'passed') AS last_error FROM made GROUP BY run_id),
 tried AS (SELECT run_id, depth, NULL AS speedup FROM depths WHERE run_id IN (SELECT run_id FROM chosen)
    UNION ALL SELECT run_id, depth, speedup FROM made WHERE speedup IS NOT NULL),
 risen AS (SELECT run_id, depth, max(max(speedup)) OVER (PARTITION BY run_id ORDER BY depth) AS speedup FROM tried
    GROUP BY run_id, depth),
 curves AS (SELECT run_id, list(speedup ORDER BY depth) FILTER (WHERE speedup IS NOT NULL) AS curve FROM risen
    GROUP BY run_id)
SELECT r.run_id, r.task_name, {TITLE} AS title, r.kernel_class, r.toolchain, r.language, r.device,
    {WRITER} AS model, r.state, regexp_replace(r.state_reason, '{NO_DRIVER_OF_OLD}', '{NO_DRIVER}') AS state_reason,
    NULL AS depth, 0 AS completed, r.depths,
    best.speedup AS best_speedup, best.low AS best_low, best.high AS best_high,
    best.noise AS best_noise, best.latency_ms AS best_latency_ms, best.candidate_id AS best_candidate_id,
    coalesce(best.looks, 0) AS best_looks,
    coalesce(judged.tied_kernels, 0) AS tied_kernels, coalesce(curves.curve, []) AS curve, NULL AS last_event_at,
    r.created_at, r.started_at, r.ended_at, 0.0 AS engine_s,
    CASE WHEN r.uncounted_calls = 0 THEN r.tokens END AS tokens,
    r.cost_usd, r.model_calls,
    coalesce(judged.attempts, 0) AS attempts, coalesce(judged.passed, 0) AS passed,
    coalesce(judged.failed, 0) AS failed, coalesce(judged.last_error, '') AS last_error,
    CASE WHEN r.state = 'waiting' THEN r.state_reason WHEN r.state = 'stopped' AND starts_with(r.state_reason, '{LEFT}')
        THEN substr(r.state_reason, length('{LEFT}') + 1) ELSE '' END AS waiting_reason, r.is_demo, r.is_example,
    r.replay_of, r.has_recording AS has_recorded_replies, r.is_imported, r.forked_run, r.forked_number,
    r.strategy, coalesce(l.name, '') AS label, coalesce(l.tags, []) AS tags,
    coalesce(l.note, '') AS note, coalesce(l.is_archived, FALSE) AS is_archived
FROM chosen r LEFT JOIN judged USING (run_id) LEFT JOIN made best ON best.run_id = r.run_id AND best.is_best
LEFT JOIN curves ON curves.run_id = r.run_id LEFT JOIN {LABELLED} l ON l.run_id = r.run_id
ORDER BY r.created_at DESC, r.run_id DESC
"""


def overview(db: Database, limit: int = 200, offset: int = 0) -> list[RunRow]:
    """Runs, newest first."""
    chosen = "SELECT * FROM runs ORDER BY created_at DESC, run_id DESC LIMIT ? OFFSET ?"
    return _rows(db, chosen, [limit, offset])


def of_ids(db: Database, run_ids: Sequence[str]) -> list[RunRow]:
    """These runs, in this order; one that has gone is left out."""
    chosen = "SELECT * FROM runs WHERE run_id IN (SELECT unnest(?::VARCHAR[]))"
    rows = {row.run_id: row for row in _rows(db, chosen, [list(run_ids)])}
    return [rows[name] for name in run_ids if name in rows]


def titles(db: Database, run_ids: Collection[str]) -> dict[str, str]:
    """What these runs are called, by id; one that has gone is left out."""
    sql = f"""SELECT run_id, {TITLE} FROM runs r LEFT JOIN {LABELLED} l USING (run_id)
        WHERE list_contains(?::VARCHAR[], run_id)"""
    return dict(fetch.tuples(db, sql, [sorted(run_ids)]))


def count_runs(db: Database) -> int:
    """How many runs there are in all."""
    return int(fetch.tuples(db, "SELECT count(*) FROM runs")[0][0])


def count_own_runs(db: Database) -> int:
    """How many runs people have started: without demos and examples, and without replays of them."""
    sql = """SELECT count(*) FROM runs WHERE NOT is_demo AND NOT is_example
        AND coalesce(replay_of, '') NOT IN (SELECT run_id FROM runs WHERE is_demo)"""
    return int(fetch.tuples(db, sql)[0][0])


def count_examples(db: Database) -> int:
    """How many runs came with Tilewright and were opened here; a replay of one is none."""
    return int(fetch.tuples(db, "SELECT count(*) FROM runs WHERE is_example AND replay_of IS NULL")[0][0])


def count_replays(db: Database) -> int:
    """How many runs only play another one back."""
    return int(fetch.tuples(db, "SELECT count(*) FROM runs WHERE replay_of IS NOT NULL")[0][0])


@dataclass(frozen=True, slots=True)
class LowestLatency:
    """The correct kernel of a run with the lowest latency, which need not have the best speed-up."""

    number: int
    speedup: float
    latency_ms: float


def lowest_latency(db: Database, run_id: str) -> LowestLatency | None:
    """None before the first kernel was timed."""
    # To sort them takes longer.
    sql = """SELECT unnest(arg_min({number: number, speedup: speedup, latency_ms: latency_ms}, (latency_ms, timed_seq)))
        FROM kernels WHERE run_id = ? AND speedup IS NOT NULL HAVING count(*) > 0"""
    return fetch.one(db, LowestLatency, sql, [run_id])


def first_example(db: Database) -> str | None:
    """The example to be seen first, which has the tag, or else the one that was made first; None where none is open."""
    sql = f"""SELECT r.run_id FROM runs r LEFT JOIN {LABELLED} l USING (run_id)
        WHERE r.is_example AND r.replay_of IS NULL
        ORDER BY list_contains(l.tags, 'first') DESC NULLS LAST, r.created_at LIMIT 1"""
    rows = fetch.tuples(db, sql)
    return rows[0][0] if rows else None


def demo_run(db: Database) -> str | None:
    """The newest demo run; None where there is none."""
    rows = fetch.tuples(db, "SELECT arg_max(run_id, created_at) FROM runs WHERE is_demo AND replay_of IS NULL")
    return rows[0][0] if rows else None


def run(db: Database, run_id: str) -> RunRow | None:
    """One run, or None when it is not (yet) in the index."""
    return next(iter(of_ids(db, [run_id])), None)


def _rows(db: Database, chosen: str, parameters: Sequence[object]) -> list[RunRow]:
    rows = fetch.rows(db, RunRow, _RUNS.format(chosen=chosen), parameters)
    # By itself: it changes with almost every event, and the rest far less often.
    now = _progress(db, [row.run_id for row in rows])
    return [_with(row, *now.get(row.run_id, (None, None, 0, 0.0))) for row in rows]


def _with(row: RunRow, last_event_at: float | None, depth: int | None, completed: int, engine_s: float) -> RunRow:
    return replace(row, last_event_at=last_event_at, depth=depth, completed=completed, engine_s=engine_s)


def last_events(db: Database, run_ids: Sequence[str]) -> dict[str, float]:
    """When each run's newest event was."""
    return {run_id: at for run_id, (at, *_) in _progress(db, run_ids).items() if at is not None}


def _progress(db: Database, run_ids: Sequence[str]) -> dict[str, tuple[Any, ...]]:
    """When each run's newest event was, its last depth, how many have ended, and how long engines have worked on it."""
    return fetch.of_runs(db, run_ids, "last_event_at", "depth", "completed", "engine_s", table="progress")


def limit(db: Database, run_id: str) -> HardwareLimit | None:
    """The task's speed of light. Measured once; again only after a kernel beat it, and then the later one holds."""
    stored = fetch.of_run(db, run_id, "hardware_limit")
    return fetch.record(HardwareLimit, stored[0]) if stored else None


def limit_measured_at(db: Database, run_id: str) -> float | None:
    """When the limit that holds was measured; None before it was."""
    measured = fetch.events(db, run_id, LimitMeasured)
    return measured[-1].at if measured else None


def limits_of_others(db: Database, run_id: str) -> list[float]:
    """The known limits, in ms, of other runs of the same work on the same model of device, newest runs first."""
    sql = f"""SELECT o.hardware_limit FROM runs r JOIN runs o ON o.task_name = r.task_name AND o.sizes = r.sizes
        AND o.device_model = r.device_model AND o.precision = r.precision AND o.run_id <> r.run_id
        WHERE r.run_id = ? AND o.hardware_limit IS NOT NULL AND o.replay_of IS NULL
        ORDER BY o.created_at DESC, o.run_id LIMIT {OTHER_RUNS}"""
    limits = [fetch.record(HardwareLimit, text) for (text,) in fetch.tuples(db, sql, [run_id])]
    return [limit.limit_ms for limit in limits if limit and limit.is_known and limit.limit_ms > 0]


def arithmetic(db: Database, run_id: str) -> str:
    """The class of arithmetic of a run's task, one of PRECISIONS."""
    stored = fetch.of_run(db, run_id, "precision")
    return arithmetic_of(stored[0]) if stored and stored[0] else PRECISIONS[0]


def limit_speedup(db: Database, run_id: str) -> float | None:
    """The hardware limit as a speed-up over eager, for the best kernel; None before there is one and where the limit is
    not known.

    Every session times eager anew beside its kernel. The session of the best kernel counts, so that its speed-up over
    this one is its share of the limit, and both follow from the latencies that are shown with it.
    """
    sql = "SELECT speedup, latency_ms FROM kernels WHERE run_id = ? AND is_best"
    best, hardware_limit = fetch.tuples(db, sql, [run_id]), limit(db, run_id)
    eager_ms = relative.baseline_ms(*best[0]) if best else None
    limit_ms = hardware_limit.known_ms if hardware_limit else None
    return eager_ms / limit_ms if eager_ms and limit_ms else None


def version(db: Database, run_id: str) -> int:
    """A number that changes when anything shown of this run may have changed; costs no query."""
    return db.run_version(run_id)


def overview_version(db: Database) -> int:
    """A number that changes when anything shown of any run may have changed; costs no query."""
    return db.version


@dataclass(frozen=True, slots=True)
class Totals:
    """Sums over every run in the index; what a replay tells once more is spent only once.

    `cost_usd` adds the known costs; `unpriced_calls` have none.
    """

    events: int
    input_tokens: int
    output_tokens: int
    cost_usd: float
    model_calls: int
    unpriced_calls: int
    problems: int


@dataclass(frozen=True, slots=True)
class StateCount:
    """How many runs are in a state by their journals."""

    state: RunState
    runs: int


@dataclass(frozen=True, slots=True)
class RunSpeedup:
    """The best speed-up of a run that is not over."""

    run_id: str
    task_name: str
    speedup: float


def totals(db: Database) -> Totals:
    """Sums over every run."""
    sql = """SELECT (SELECT count(*) FROM events) AS events, coalesce(sum(input_tokens), 0)::BIGINT AS input_tokens,
        coalesce(sum(output_tokens), 0)::BIGINT AS output_tokens, coalesce(sum(cost_usd), 0.0) AS cost_usd,
        count(*) AS model_calls, count(*) FILTER (WHERE cost_usd IS NULL) AS unpriced_calls,
        (SELECT count(*) FROM problems) AS problems
        FROM calls WHERE run_id NOT IN (SELECT run_id FROM runs WHERE replay_of IS NOT NULL OR is_example)"""
    return fetch.rows(db, Totals, sql)[0]


def state_counts(db: Database, lost: Sequence[str] = ()) -> list[StateCount]:
    """Runs by state, without those archived and examples. `lost` are not over and have no engine: not in the index."""
    sql = f"""SELECT CASE WHEN list_contains(?::VARCHAR[], run_id) THEN 'lost' ELSE {STANDING} END AS state,
        count(*) AS runs FROM runs WHERE NOT is_example
        AND run_id NOT IN (SELECT run_id FROM {LABELLED} WHERE is_archived) GROUP BY 1 ORDER BY 1"""
    return fetch.rows(db, StateCount, sql, [list(lost)])


def best_speedups(db: Database, run_ids: list[str]) -> list[RunSpeedup]:
    """The best speed-up of these runs; those without a correct kernel are left out."""
    sql = """SELECT r.run_id, r.task_name, b.speedup FROM runs r JOIN kernels b USING (run_id)
        WHERE b.is_best AND r.run_id IN (SELECT unnest(?::VARCHAR[])) ORDER BY r.run_id"""
    return fetch.rows(db, RunSpeedup, sql, [run_ids])


def marks(db: Database, run_ids: Sequence[str]) -> dict[str, dict[str, Mark]]:
    """What people found of kernels, by run and kernel; a run without marks is left out."""
    sql = """SELECT run_id, arg_max(marks, seq) AS marks FROM labels
        WHERE run_id IN (SELECT unnest($ids::VARCHAR[])) GROUP BY run_id HAVING len(arg_max(marks, seq)) > 0"""
    rows = fetch.tuples(db, sql, {"ids": list(run_ids)})
    read = {run_id: [codec.read_line(Mark, text.encode()) for text in texts] for run_id, texts in rows}
    return {run_id: {mark.candidate_id: mark for mark in found} for run_id, found in read.items()}
