"""What the loop did and does, step by step, and what came of each step."""

from __future__ import annotations

from dataclasses import dataclass, field, fields

from storage.index.database import Database
from storage.index.fold import StepResult
from storage.index.queries import fetch
from storage.run.settings import StepKind
from storage.run.steering.command_arguments import TUNE, is_call


@dataclass(frozen=True, slots=True)
class StepRow:
    """One step and what came of it. `seconds`, `ended_at` and `outcome` are None while it is in flight; a step that an
    engine's end cut short has the outcome "interrupted" and no seconds. `cut_off_s` is what is known beside `seconds`
    to have gone into it: before an engine's end, or so far. `candidate_id` is the kernel it works on.
    """

    seq: int
    step: int
    kind: str
    depth: int
    candidate_id: str | None
    started_at: float
    seconds: float | None
    outcome: str | None
    is_in_flight: bool
    ended_at: float | None = None
    cut_off_s: float = 0.0
    result: StepResult = field(default_factory=StepResult)

    @property
    def made_id(self) -> str | None:
        """The kernel that it made."""
        return self.result.made_id


NEWEST = 200


_COLUMNS = ", ".join(column.name for column in fields(StepRow))


def steps(
    db: Database, run_id: str, after_seq: int = 0, limit: int = NEWEST, newest_first: bool = True
) -> list[StepRow]:
    """Steps begun after a journal line (`StepRow.seq` of the last one seen), at most `limit` of them."""
    sql = f"""SELECT {_COLUMNS} FROM steps WHERE run_id = $run AND seq > $after
        ORDER BY seq {"DESC" if newest_first else "ASC"} LIMIT $limit"""
    return fetch.rows(db, StepRow, sql, {"run": run_id, "after": after_seq, "limit": limit})


def current_step(db: Database, run_id: str) -> StepRow | None:
    """The step in flight, as far as the journal tells: a lost engine leaves one behind."""
    # Among the newest, which the feed reads too: one query for both. Of several in flight the one begun last.
    return next((row for row in steps(db, run_id) if row.is_in_flight), None)


def counted_until(db: Database, run_id: str) -> float | None:
    """Until when the time of the step in flight is part of the run's engine time; None where nothing of it is."""
    stored = fetch.of_run(db, run_id, "counted_until", table="progress")
    return stored[0] if stored else None


def finished_steps(db: Database, run_id: str) -> int:
    """How many steps have ended, one that was done again counted again."""
    stored = fetch.of_run(db, run_id, "finished_steps", table="progress")
    return int(stored[0]) if stored else 0


def typical_seconds(db: Database, run_id: str, kind: str) -> float | None:
    """How long a finished step of this kind has taken in this run: the median; None before the first one ended."""
    sql = "SELECT median(seconds) FROM steps WHERE run_id = ? AND ended_as = ?"
    seconds = fetch.tuples(db, sql, [run_id, str(kind)])[0][0]
    return None if seconds is None else float(seconds)


STAGES = ("model", StepKind.COMPILE, StepKind.CHECK, StepKind.TIME, StepKind.PROFILE, TUNE, "other")


@dataclass(frozen=True, slots=True)
class StageTime:
    """Seconds and number of the steps of one stage: `model`, an evaluation's, or `other`. `unended` of them have not
    ended: their time is what is known of it."""

    stage: str
    seconds: float
    steps: int
    unended: int


def time_by_stage(db: Database, run_id: str) -> list[StageTime]:
    """Where the engine time of a run went, stages in the order of the loop; those without a step are left out."""
    sql = """SELECT coalesce(ended_as, kind) AS of_kind, sum(coalesce(seconds, 0.0) + cut_off_s), count(*),
        count(*) FILTER (WHERE ended_as IS NULL) FROM steps
        WHERE run_id = ? AND (ended_as IS NOT NULL OR cut_off_s > 0) GROUP BY of_kind"""
    stages: dict[str, StageTime] = {}
    for kind, seconds, count, unended in fetch.tuples(db, sql, [run_id]):
        stage = "model" if is_call(kind) else kind if kind in STAGES else "other"
        so_far = stages.get(stage, StageTime(stage, 0.0, 0, 0))
        stages[stage] = StageTime(stage, so_far.seconds + seconds, so_far.steps + count, so_far.unended + unended)
    return [stages[stage] for stage in STAGES if stage in stages]


def count_events(db: Database, run_id: str, after_seq: int) -> int:
    """How many events a run has had after one."""
    return int(fetch.tuples(db, "SELECT count(*) FROM events WHERE run_id = ? AND seq > ?", [run_id, after_seq])[0][0])


def last_seq(db: Database, run_id: str) -> int:
    """The number of the newest event; 0 before the first."""
    stored = fetch.of_run(db, run_id, "last_seq", table="progress")
    return int(stored[0]) if stored else 0
