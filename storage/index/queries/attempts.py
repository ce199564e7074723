"""Candidates of a run: one by one, as a family, as depths, and as a filtered list."""

from __future__ import annotations

from dataclasses import dataclass, fields

from storage.index.database import Database
from storage.index.queries import fetch
from storage.index.queries.commands import in_force
from storage.results import relative
from storage.results.vocabulary import Verdict
from storage.run.settings import DepthOutcome, Origin
from storage.run.steering.verbs import CommandKind


@dataclass(frozen=True, slots=True)
class AttemptRow:
    """One candidate. `number` counts a run's candidates from 1; `verdict` is None until it is judged.

    speedup with its 95 % interval low..high, `noise` (`TimingResult.noise`) and the latencies are None
    unless the candidate is correct and timed. `is_accepted`: its depth ended with it; `is_pending`: its depth has not
    ended yet. `message` is one line, empty unless it failed. `is_profile_exposed` says
    that the prompt which led to it showed a profile. `is_best`: the fastest of its run, abandoned branches included;
    `is_tied`: not that one, but the best is not faster beyond the noise. `trajectory` is 0 where a method has one.
    `second_parent_id` is the other parent of a crossover.
    """

    run_id: str
    seq: int
    step: int
    candidate_id: str
    number: int
    parent_id: str | None
    second_parent_id: str | None
    base_id: str | None
    depth: int
    generation: int
    repair: int
    trajectory: int
    origin: Origin
    verdict: Verdict | None
    speedup: float | None
    low: float | None
    high: float | None
    latency_ms: float | None
    baseline_latency_ms: float | None
    noise: float | None
    summary: str
    lines_added: int
    lines_removed: int
    is_accepted: bool
    is_pending: bool
    is_best: bool
    is_tied: bool
    is_profile_exposed: bool
    created_at: float
    source_blob: str
    diff_blob: str | None
    message: str

    @property
    def measured(self) -> relative.Measured | None:
        """Its speed-up; None where it has none."""
        return relative.measured(self.speedup, self.low, self.high, self.noise)


@dataclass(frozen=True, slots=True)
class CandidateRow(AttemptRow):
    """One candidate with its place among the others."""

    parent_number: int | None
    second_parent_number: int | None
    base_number: int | None
    children: list[str]
    is_profiled: bool


@dataclass(frozen=True, slots=True)
class DepthRow:
    """One depth of the loop. Outcome None: still going on.

    Speed-up and latency are those of the accepted candidate; `best_speedup` is that of the fastest correct kernel so
    far, and `is_best` says that the accepted one is it. `reward` is what the method made of it, where it has a measure.
    """

    depth: int
    outcome: DepthOutcome | None
    candidate_id: str | None
    base_id: str | None
    speedup: float | None
    low: float | None
    high: float | None
    latency_ms: float | None
    best_speedup: float | None
    best_noise: float | None
    is_best: bool
    is_profile_exposed: bool
    attempts: int
    failed: int
    started_at: float | None
    finished_at: float | None
    reason: str
    reward: float | None


_OTHERWISE = {
    "created_at": "time AS created_at",
    "is_pending": "seq > $settled AS is_pending",
}
COLUMNS = ", ".join(_OTHERWISE.get(one.name, one.name) for one in fields(AttemptRow))
"""What an AttemptRow is made of, with the parameters that `about` gives."""
_ATTEMPTS = f"SELECT {COLUMNS} FROM kernels WHERE run_id = $run"

# Kernels that were the fastest correct one of their run when they were first timed, abandoned branches included: each
# is the best until the next. Figures are those of the last timing. `{which}` chooses runs.
RISING = """(SELECT run_id, candidate_id, number, first_timed_seq AS seq, speedup, low, high, noise, latency_ms
    FROM kernels WHERE {which} AND speedup IS NOT NULL QUALIFY speedup > coalesce(max(speedup) OVER (PARTITION BY run_id
    ORDER BY first_timed_seq ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0))"""


def about(db: Database, run_id: str) -> dict[str, object]:
    """The run, and since which line of its journal kernels have not been settled. That is read by itself, so that an
    event which changes the run and no kernel leaves queries about kernels as they were."""
    (settled,) = fetch.of_run(db, run_id, "settled_seq") or (None,)
    return {"run": run_id, "settled": settled or 0}


def attempts(db: Database, run_id: str) -> list[AttemptRow]:
    """Every candidate of a run, in the order they were made."""
    return fetch.rows(db, AttemptRow, f"{_ATTEMPTS} ORDER BY seq", about(db, run_id))


def candidate(db: Database, run_id: str, candidate_id: str) -> CandidateRow | None:
    """One candidate, or None when there is none of that id."""
    sql = f"""
    WITH a AS (SELECT {COLUMNS}, profiled_seq IS NOT NULL AS is_profiled FROM kernels
            WHERE run_id = $run AND candidate_id = $candidate),
        n AS (SELECT candidate_id, number, seq, parent_id, second_parent_id FROM kernels WHERE run_id = $run)
    SELECT a.*, min(n.number) FILTER (WHERE n.candidate_id = a.parent_id) AS parent_number,
        min(n.number) FILTER (WHERE n.candidate_id = a.second_parent_id) AS second_parent_number,
        min(n.number) FILTER (WHERE n.candidate_id = a.base_id) AS base_number,
        coalesce(list(n.candidate_id ORDER BY n.seq) FILTER (WHERE $candidate IN (n.parent_id, n.second_parent_id)), [])
            AS children
    FROM a, n GROUP BY ALL"""
    return fetch.one(db, CandidateRow, sql, about(db, run_id) | {"candidate": candidate_id})


def depths(db: Database, run_id: str) -> list[DepthRow]:
    """Every depth begun, in order; a depth done again after a roll back keeps its last outcome."""
    sql = f"""
    WITH begun AS (SELECT depth, min(first_time) AS started_at FROM steps WHERE run_id = $run GROUP BY depth),
        ended AS (SELECT * FROM depths WHERE run_id = $run
            QUALIFY row_number() OVER (PARTITION BY depth ORDER BY seq DESC) = 1),
        tried AS (SELECT depth, count(*) AS attempts, count(*) FILTER (WHERE verdict <> 'passed') AS failed,
            max(speedup) AS fastest, arg_max(noise, speedup) AS noise FROM kernels WHERE run_id = $run GROUP BY depth)
    SELECT depth, e.outcome, e.candidate_id, e.base_id, t.speedup, t.low, t.high,
        t.latency_ms, max(tried.fastest) OVER (ORDER BY depth) AS best_speedup,
        arg_max(tried.noise, tried.fastest) OVER (ORDER BY depth) AS best_noise,
        r.seq IS NOT NULL AS is_best, coalesce(e.is_profile_exposed, FALSE) AS is_profile_exposed,
        coalesce(tried.attempts, 0) AS attempts, coalesce(tried.failed, 0) AS failed, begun.started_at,
        e.time AS finished_at, coalesce(e.reason, '') AS reason, e.reward
    FROM begun FULL JOIN ended e USING (depth) LEFT JOIN tried USING (depth)
    LEFT JOIN kernels t ON t.run_id = $run AND t.candidate_id = e.candidate_id AND e.outcome = 'accepted'
        AND t.speedup IS NOT NULL
    LEFT JOIN {RISING.format(which="run_id = $run")} r ON r.candidate_id = t.candidate_id
    ORDER BY depth"""
    return fetch.rows(db, DepthRow, sql, {"run": run_id})


NEWEST = 200


@dataclass(frozen=True, slots=True)
class FamilyRow:
    """One node of the family tree; `parent_id` None for a kernel written from nothing. A crossover has two parents.
    `summary` says what changed."""

    candidate_id: str
    number: int
    parent_id: str | None
    second_parent_id: str | None
    base_id: str | None
    depth: int
    generation: int
    repair: int
    origin: Origin
    verdict: Verdict | None
    speedup: float | None
    is_accepted: bool
    is_pending: bool
    is_best: bool
    is_tied: bool
    summary: str
    low: float | None = None
    high: float | None = None
    noise: float | None = None
    latency_ms: float | None = None


@dataclass(frozen=True, slots=True)
class RollBackRow:
    """A person sent the run back: kernels from number `from_number` on were made after it."""

    from_number: int
    candidate_id: str


def family(db: Database, run_id: str, newest: int = NEWEST) -> list[FamilyRow]:
    """The newest kernels and, where it is older, the best one before them; parents before children."""
    columns = ", ".join(_OTHERWISE.get(field.name, field.name) for field in fields(FamilyRow))
    sql = f"""SELECT {columns} FROM kernels WHERE run_id = $run
        QUALIFY row_number() OVER (ORDER BY seq DESC) <= $newest OR is_best ORDER BY seq"""
    return fetch.rows(db, FamilyRow, sql, about(db, run_id) | {"newest": newest})


def roll_backs(db: Database, run_id: str) -> list[RollBackRow]:
    """Roll-backs in force, by the first kernel made after each; those that no kernel has followed yet are left out."""
    sql = "SELECT min(number) FROM kernels WHERE run_id = $run AND seq > $seq"
    rows = []
    for command in in_force(db, run_id, CommandKind.ROLL_BACK):
        ((number,),) = fetch.tuples(db, sql, {"run": run_id, "seq": command.effective_seq})
        rows += [] if number is None else [RollBackRow(number, command.argument)]
    return rows


@dataclass(frozen=True, slots=True)
class KernelRow(AttemptRow):
    """One kernel with the number of its parent, None for one written from nothing."""

    parent_number: int | None


@dataclass(frozen=True, slots=True)
class KernelFilter:
    """Which kernels: of one verdict (None: any), and with these words in summary, message or id (any case).

    A text that is a number finds the kernel of that number alone.
    """

    verdict: Verdict | None = None
    text: str = ""


@dataclass(frozen=True, slots=True)
class NeighbourRow:
    """A kernel's place among all of its run, and those made before and after it."""

    number: int
    previous_id: str | None
    next_id: str | None


@dataclass(frozen=True, slots=True)
class SharedRow:
    """Another run whose first `kernels` kernels have the sources of this run's. `is_one_run`: they were made at the
    same moments, so that one run's folder was copied and both went on from there."""

    run_id: str
    kernels: int
    is_one_run: bool


def same_first_kernels(db: Database, run_id: str) -> SharedRow | None:
    """The run of the same work, made no later, that most of a run's first kernels are in; None where the first is in
    none. Forks and replays, which say whose kernels they have, are left out."""
    sql = """WITH here AS (SELECT * FROM runs WHERE run_id = $run AND replay_of IS NULL AND forked_run IS NULL),
        pairs AS (SELECT o.run_id, o.created_at, k.number, k.source_blob = m.source_blob AS is_same,
                k.time = m.time AS is_at_once
            FROM here h JOIN runs o USING (task_name, sizes, toolchain, language) JOIN kernels k ON k.run_id = o.run_id
            JOIN kernels m ON m.run_id = h.run_id AND m.number = k.number
            WHERE o.run_id <> h.run_id AND o.created_at <= h.created_at AND o.replay_of IS NULL
            AND o.forked_run IS NULL),
        shared AS (FROM pairs QUALIFY bool_and(is_same) OVER (PARTITION BY run_id ORDER BY number))
    SELECT run_id, count(*) AS kernels, bool_and(is_at_once) AS is_one_run FROM shared GROUP BY run_id, created_at
    ORDER BY kernels DESC, created_at, run_id LIMIT 1"""
    return fetch.one(db, SharedRow, sql, {"run": run_id})


_CHOSEN = f"""
WITH chosen AS ({_ATTEMPTS} AND ($verdict::VARCHAR IS NULL OR verdict = $verdict)
    AND ($text = '' OR number = TRY_CAST($text AS BIGINT) OR TRY_CAST($text AS BIGINT) IS NULL AND contains(
        lower(concat_ws(' ', summary, message, candidate_id, replace(origin, '_', ' '))), lower($text))))
"""


def kernels(db: Database, run_id: str, kernel_filter: KernelFilter, limit: int, offset: int = 0) -> list[KernelRow]:
    """One page, newest first."""
    sql = f"""{_CHOSEN}
    SELECT c.*, p.number AS parent_number FROM (SELECT * FROM chosen ORDER BY seq DESC LIMIT $limit OFFSET $offset) c
    LEFT JOIN kernels p ON p.run_id = $run AND p.candidate_id = c.parent_id
    ORDER BY c.seq DESC"""
    return fetch.rows(db, KernelRow, sql, _parameters(db, run_id, kernel_filter) | {"limit": limit, "offset": offset})


def count_kernels(db: Database, run_id: str, kernel_filter: KernelFilter) -> int:
    """How many the filter lets through."""
    if kernel_filter == KernelFilter():
        return int(fetch.tuples(db, "SELECT count(*) FROM kernels WHERE run_id = ?", [run_id])[0][0])
    return int(fetch.tuples(db, f"{_CHOSEN} SELECT count(*) FROM chosen", _parameters(db, run_id, kernel_filter))[0][0])


def neighbours(db: Database, run_id: str, candidate_id: str) -> NeighbourRow | None:
    """None when there is no kernel of that id."""
    sql = """SELECT number, previous_id, next_id FROM (SELECT candidate_id, number,
        lag(candidate_id) OVER inorder AS previous_id, lead(candidate_id) OVER inorder AS next_id FROM kernels
        WHERE run_id = ? WINDOW inorder AS (ORDER BY seq)) WHERE candidate_id = ?"""
    return fetch.one(db, NeighbourRow, sql, [run_id, candidate_id])


def _parameters(db: Database, run_id: str, kernel_filter: KernelFilter) -> dict[str, object]:
    verdict = str(kernel_filter.verdict) if kernel_filter.verdict else None
    return about(db, run_id) | {"verdict": verdict, "text": " ".join(kernel_filter.text.split())}
