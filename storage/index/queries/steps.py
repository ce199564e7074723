"""What the loop did and does, step by step, each with a sentence for the feed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

from storage.index.database import Database
from storage.index.fold import StepResult
from storage.index.queries import fetch
from storage.results import in_words, relative
from storage.results.in_words import latency
from storage.results.vocabulary import FAILED, Verdict
from storage.run.method_words import PLAIN, MethodWords
from storage.run.settings import StepKind
from storage.run.steering.command_arguments import BEGIN, CONSULT, RANK, REFUSE, TEACH, TUNE, is_call


@dataclass(frozen=True, slots=True)
class Move:
    """A step and what came of it."""

    seq: int
    step: int
    kind: str
    depth: int
    candidate_id: str | None
    started_at: float
    ended_at: float | None
    seconds: float | None
    outcome: str | None
    is_in_flight: bool
    result: StepResult


# A step that a strategy of its own names.
OTHER_STEP = "The model is at the step {name}: {kernel}"
_DOING: Mapping[str, str] = {
    StepKind.COMPILE: "Compiling {kernel}",
    StepKind.CHECK: "Checking {kernel} against the reference",
    StepKind.TIME: "Timing {kernel}",
    StepKind.PROFILE: "Profiling {kernel}",
    StepKind.SUBMIT: "Reading a submitted kernel",
    CONSULT: "Looking up what is known for {kernel}",
    TEACH: "Writing into the knowledge base",
    RANK: "Ranking the kernels that were drawn",
    REFUSE: "Refusing {kernel}",
    TUNE: "Tuning {kernel}",
    BEGIN: "Taking what torch.compile generates as the first kernel",
}


def sentence(m: Move, words: MethodWords = PLAIN) -> str:
    """What the step does, or what came of it, in the words of the run's method."""
    if m.outcome in (None, "interrupted", "dropped", "skipped"):
        a_kernel = "the first kernel" if not m.depth and m.result.number is None else "a kernel from scratch"
        of_model = words.calls[m.kind].doing if m.kind in words.calls else OTHER_STEP
        doing = _DOING.get(m.kind, of_model).format(kernel=_kernel(m.result.number), a_kernel=a_kernel, name=m.kind)
        return _with(doing, m.outcome)
    if m.result.said_problem:
        return f"Reply about {_kernel(m.result.number)} could not be read: {m.result.said_problem}"
    if m.result.said:
        return f"{m.kind.capitalize()} on {_kernel(m.result.number)}: {m.result.said}"
    match m.kind:
        case StepKind.COMPILE | StepKind.CHECK:
            return _judged(m)
        case StepKind.TIME:
            return _timed(m)
        case StepKind.PROFILE:
            return _profiled(m)
        case _ if m.kind == REFUSE:
            return _judged(m)
        case _ if m.kind == RANK:
            return "Ranked the kernels that were drawn"
        case _ if m.kind == BEGIN:
            return f"Kernel {m.result.made_number} is what torch.compile generates"
        case _ if m.kind == TUNE and m.outcome in FAILED:
            return f"Tuned {_kernel(m.result.number)}: as written it {FAILED[Verdict(m.outcome)]} when timed again"
        case _ if m.kind == TUNE:
            came = "a variant is faster" if m.outcome == "tuned" else "no faster variant"
            return f"Tuned {_kernel(m.result.number)}: {came}"
        case _ if m.kind == CONSULT:
            techniques = f"{m.result.techniques} technique{'s' * (m.result.techniques != 1)} found"
            state = m.result.state or "state not known"
            return f"Looked up {_kernel(m.result.number)} in the knowledge base: {state}, {techniques}"
        case _ if m.kind == TEACH:
            return _with("Revised the knowledge base", m.result.lesson)
        case StepKind.DIAGNOSE:
            return _with(f"Diagnosed {_kernel(m.result.number)}", "" if m.outcome == "written" else m.outcome)
        case _:
            return _edited(m, words)


def measured_speedup(speedup: float, noise: float) -> str:
    """With no digit beyond what its noise supports."""
    return in_words.speedup(speedup, noise) if relative.is_known(noise) else "unknown speed-up"


def _kernel(number: int | None) -> str:
    return f"kernel {number}" if number else "the kernel"


def _with(text: str, reason: str | None) -> str:
    return f"{text}: {reason}" if reason else text


def _judged(m: Move) -> str:
    kernel = _kernel(m.result.number).capitalize()
    if m.result.verdict is None:
        return f"{m.kind.capitalize()} of {_kernel(m.result.number)}: {m.outcome}"
    if m.result.verdict is Verdict.PASSED and m.kind == StepKind.COMPILE:
        return f"{kernel} compiles"
    if m.result.verdict is Verdict.PASSED:
        bounds = (
            f"largest error {m.result.max_error:.1e}, {m.result.tolerance:.1e} allowed"
            if m.result.max_error and m.result.tolerance
            else ""
        )
        return _with(f"{kernel} is correct", bounds)
    return _with(f"{kernel} {FAILED[m.result.verdict]}", m.result.message)


def _timed(m: Move) -> str:
    if m.result.verdict not in (None, Verdict.PASSED):
        return _judged(m)
    figures = m.result.timed
    if figures is None:
        return f"Timing of {_kernel(m.result.number)}: {m.outcome}"
    measured = measured_speedup(figures.speedup, figures.noise)
    kernel, taken = _kernel(m.result.number).capitalize(), latency(figures.latency_ms)
    return f"{kernel} takes {taken}, {measured} over {figures.baseline}"


def _profiled(m: Move) -> str:
    if m.result.failure:
        return f"Profiling {_kernel(m.result.number)} failed: {m.result.failure}"
    return f"Profiled {_kernel(m.result.number)}" + (f": bound by {m.result.bound}" if m.result.bound else "")


def _edited(m: Move, words: MethodWords) -> str:
    if m.result.made_number is None:
        reason = m.result.patch_reason or m.outcome
        if m.kind == StepKind.SYNTHESISE:
            return _with("The reply holds no kernel", reason)
        if m.kind == "rewrite":
            return f"The reply holds no rewrite of {_kernel(m.result.number)}"
        return _with(f"No edit of {_kernel(m.result.number)} applied", reason)
    if m.kind == StepKind.SUBMIT:
        made_from = f", an edit of {_kernel(m.result.number)}" if m.result.number else ""
        return _with(f"Kernel {m.result.made_number} submitted by hand{made_from}", m.result.summary)
    seen = " with its profile" if m.result.is_profile_exposed else ""
    if m.kind == StepKind.SYNTHESISE:
        return _with(f"Wrote kernel {m.result.made_number}{seen}", m.result.summary)
    hoped = f" (predicted gain {m.result.predicted:.2f}×)" if m.result.predicted is not None else ""
    verb = words.calls[m.kind].made if m.kind in words.calls else ""
    edited = f"{verb or 'Changed'} {_kernel(m.result.number)} into kernel {m.result.made_number}{seen}"
    return _with(edited, m.result.summary) + hoped


@dataclass(frozen=True, slots=True)
class StepRow:
    """One step. `seconds`, `ended_at` and `outcome` are None while it is in flight; a step that an engine's death cut
    short has the outcome "interrupted" and no seconds. `candidate_id` is the kernel it works on, `made_id` the one it
    made.
    """

    seq: int
    step: int
    kind: str
    depth: int
    candidate_id: str | None
    made_id: str | None
    started_at: float
    seconds: float | None
    outcome: str | None
    is_in_flight: bool
    text: str
    ended_at: float | None = None


NEWEST = 200


_COLUMNS = ", ".join(one.name for one in fields(Move))


def steps(
    db: Database,
    run_id: str,
    after_seq: int = 0,
    limit: int = NEWEST,
    newest_first: bool = True,
    words: MethodWords = PLAIN,
) -> list[StepRow]:
    """Steps begun after a journal line (`StepRow.seq` of the last one seen), at most `limit` of them."""
    sql = f"""SELECT {_COLUMNS} FROM steps WHERE run_id = $run AND seq > $after
        ORDER BY seq {"DESC" if newest_first else "ASC"} LIMIT $limit"""
    moves = fetch.rows(db, Move, sql, {"run": run_id, "after": after_seq, "limit": limit})
    return [_row(move, words) for move in moves]


def current_step(db: Database, run_id: str, words: MethodWords = PLAIN) -> StepRow | None:
    """The step in flight, as far as the journal tells: a lost engine leaves one behind."""
    # Among the newest, which the feed reads too: one query for both. Of several in flight the one begun last.
    return next((row for row in steps(db, run_id, words=words) if row.is_in_flight), None)


def finished_steps(db: Database, run_id: str) -> int:
    """How many steps have ended, one that was done again counted again."""
    rows = fetch.tuples(db, "SELECT finished_steps FROM progress WHERE run_id = ?", [run_id])
    return int(rows[0][0]) if rows else 0


def typical_seconds(db: Database, run_id: str, kind: str) -> float | None:
    """How long a finished step of this kind has taken in this run: the median; None before the first one ended."""
    sql = "SELECT median(seconds) FROM steps WHERE run_id = ? AND ended_as = ?"
    seconds = fetch.tuples(db, sql, [run_id, str(kind)])[0][0]
    return None if seconds is None else float(seconds)


STAGES = ("model", StepKind.COMPILE, StepKind.CHECK, StepKind.TIME, StepKind.PROFILE, TUNE, "other")


@dataclass(frozen=True, slots=True)
class StageTime:
    """Seconds and number of the finished steps of one stage: `model`, an evaluation's, or `other`."""

    stage: str
    seconds: float
    steps: int


def time_by_stage(db: Database, run_id: str) -> list[StageTime]:
    """Where the engine time of a run went, stages in the order of the loop; those without a step are left out."""
    sql = """SELECT ended_as, coalesce(sum(seconds), 0.0), count(*) FROM steps
        WHERE run_id = ? AND ended_as IS NOT NULL GROUP BY ended_as"""
    stages: dict[str, StageTime] = {}
    for kind, seconds, count in fetch.tuples(db, sql, [run_id]):
        stage = "model" if is_call(kind) else kind if kind in STAGES else "other"
        so_far = stages.get(stage, StageTime(stage, 0.0, 0))
        stages[stage] = StageTime(stage, so_far.seconds + seconds, so_far.steps + count)
    return [stages[stage] for stage in STAGES if stage in stages]


def count_events(db: Database, run_id: str, after_seq: int) -> int:
    """How many events a run has had after one."""
    return int(fetch.tuples(db, "SELECT count(*) FROM events WHERE run_id = ? AND seq > ?", [run_id, after_seq])[0][0])


def last_seq(db: Database, run_id: str) -> int:
    """The number of the newest event; 0 before the first."""
    rows = fetch.tuples(db, "SELECT last_seq FROM progress WHERE run_id = ?", [run_id])
    return int(rows[0][0]) if rows else 0


def _row(m: Move, words: MethodWords) -> StepRow:
    return StepRow(
        m.seq, m.step, m.kind, m.depth, m.candidate_id, m.result.made_id, m.started_at, m.seconds, m.outcome,
        m.is_in_flight, sentence(m, words), m.ended_at,
    )  # fmt: skip
