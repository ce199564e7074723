"""What the loop did and does, step by step, each with a sentence for the feed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from storage.index.database import Database
from storage.index.queries import fetch
from storage.results.vocabulary import FAILED, Verdict
from storage.run.method_words import PLAIN, MethodWords
from storage.run.settings import StepKind
from storage.run.steering.command_arguments import BEGIN, CONSULT, RANK, REFUSE, TEACH, TUNE, is_call


@dataclass(frozen=True, slots=True)
class Move:
    """A step and all that came of it. Numbers are those of kernels, counted from 1 in the order they were made."""

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
    number: int | None
    made_id: str | None
    made_number: int | None
    summary: str | None
    predicted: float | None
    verdict: Verdict | None
    message: str | None
    max_error: float | None
    tolerance: float | None
    measured: str | None
    latency: str | None
    baseline: str | None
    bound: str | None
    failure: str | None
    patch_reason: str | None
    said: str | None
    said_problem: str | None
    is_profile_exposed: bool
    state: str | None
    techniques: int
    lesson: str | None


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
        a_kernel = "the first kernel" if not m.depth and m.number is None else "a kernel from scratch"
        of_model = words.calls[m.kind].doing if m.kind in words.calls else OTHER_STEP
        doing = _DOING.get(m.kind, of_model).format(kernel=_kernel(m.number), a_kernel=a_kernel, name=m.kind)
        return _with(doing, m.outcome)
    if m.said_problem:
        return f"Reply about {_kernel(m.number)} could not be read: {m.said_problem}"
    if m.said:
        return f"{m.kind.capitalize()} on {_kernel(m.number)}: {m.said}"
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
            return f"Kernel {m.made_number} is what torch.compile generates"
        case _ if m.kind == TUNE and m.outcome in FAILED:
            return f"Tuned {_kernel(m.number)}: as written it {FAILED[Verdict(m.outcome)]} when timed again"
        case _ if m.kind == TUNE:
            return (
                f"Tuned {_kernel(m.number)}: {'a variant is faster' if m.outcome == 'tuned' else 'no faster variant'}"
            )
        case _ if m.kind == CONSULT:
            found = f"{m.techniques} technique{'s' * (m.techniques != 1)} found"
            return f"Looked up {_kernel(m.number)} in the knowledge base: {m.state or 'state not known'}, {found}"
        case _ if m.kind == TEACH:
            return _with("Revised the knowledge base", m.lesson)
        case StepKind.DIAGNOSE:
            return _with(f"Diagnosed {_kernel(m.number)}", "" if m.outcome == "written" else m.outcome)
        case _:
            return _edited(m, words)


def _kernel(number: int | None) -> str:
    return f"kernel {number}" if number else "the kernel"


def _with(text: str, reason: str | None) -> str:
    return f"{text}: {reason}" if reason else text


def _judged(m: Move) -> str:
    kernel = _kernel(m.number).capitalize()
    if m.verdict is None:
        return f"{m.kind.capitalize()} of {_kernel(m.number)}: {m.outcome}"
    if m.verdict is Verdict.PASSED and m.kind == StepKind.COMPILE:
        return f"{kernel} compiles"
    if m.verdict is Verdict.PASSED:
        bounds = f"largest error {m.max_error:.1e}, {m.tolerance:.1e} allowed" if m.max_error and m.tolerance else ""
        return _with(f"{kernel} is correct", bounds)
    return _with(f"{kernel} {FAILED[m.verdict]}", m.message)


def _timed(m: Move) -> str:
    if m.verdict not in (None, Verdict.PASSED):
        return _judged(m)
    if m.measured is None or m.latency is None:
        return f"Timing of {_kernel(m.number)}: {m.outcome}"
    return f"{_kernel(m.number).capitalize()} takes {m.latency}, {m.measured} over {m.baseline}"


def _profiled(m: Move) -> str:
    if m.failure:
        return f"Profiling {_kernel(m.number)} failed: {m.failure}"
    return f"Profiled {_kernel(m.number)}" + (f": bound by {m.bound}" if m.bound else "")


def _edited(m: Move, words: MethodWords) -> str:
    if m.made_number is None:
        reason = m.patch_reason or m.outcome
        if m.kind == StepKind.SYNTHESISE:
            return _with("The reply holds no kernel", reason)
        if m.kind == "rewrite":
            return f"The reply holds no rewrite of {_kernel(m.number)}"
        return _with(f"No edit of {_kernel(m.number)} applied", reason)
    if m.kind == StepKind.SUBMIT:
        made_from = f", an edit of {_kernel(m.number)}" if m.number else ""
        return _with(f"Kernel {m.made_number} submitted by hand{made_from}", m.summary)
    seen = " with its profile" if m.is_profile_exposed else ""
    if m.kind == StepKind.SYNTHESISE:
        return _with(f"Wrote kernel {m.made_number}{seen}", m.summary)
    hoped = f" (predicted gain {m.predicted:.2f}×)" if m.predicted is not None else ""
    verb = words.calls[m.kind].made if m.kind in words.calls else ""
    made = f"{verb or 'Changed'} {_kernel(m.number)} into kernel {m.made_number}{seen}"
    return _with(made, m.summary) + hoped


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


_STEPS = """
WITH chosen AS (SELECT * FROM moves WHERE run_id = $run AND seq > $after ORDER BY seq {order} LIMIT $limit),
 numbers AS (SELECT candidate_id, number, step, seq, summary FROM numbered
    WHERE run_id = $run),
 made AS (SELECT step, arg_max(candidate_id, seq) AS made_id, arg_max(number, seq) AS made_number,
    arg_max(summary, seq) AS summary FROM numbers GROUP BY step),
 hoped AS (SELECT candidate_id, max(gain) AS predicted FROM predictions WHERE run_id = $run GROUP BY candidate_id),
 judged AS (SELECT step, arg_max(verdict, seq) AS verdict, arg_max(message, seq) AS message,
    arg_max(max_error, seq) AS max_error, arg_max(tolerance, seq) AS tolerance, arg_max(speedup, seq) AS speedup,
    arg_max(as_latency(latency_ms), seq) AS latency, arg_max(baseline, seq) AS baseline,
    arg_max(as_measured(speedup, noise), seq) AS measured
    FROM evaluations WHERE run_id = $run AND step IN (SELECT step FROM chosen) GROUP BY step),
 seen AS (SELECT step, arg_max(coalesce(bound, ''), seq) AS bound, arg_max(coalesce(failure, ''), seq) AS failure
    FROM profiles WHERE run_id = $run AND step IN (SELECT step FROM chosen) GROUP BY step),
 tried AS (SELECT step, arg_max(reason, seq) AS patch_reason FROM patches
    WHERE run_id = $run AND NOT is_applied AND step IN (SELECT step FROM chosen) GROUP BY step),
 said AS (SELECT step, arg_max(summary, seq) AS said, arg_max(problem, seq) AS said_problem
    FROM reviews WHERE run_id = $run AND step IN (SELECT step FROM chosen) GROUP BY step),
 looked AS (SELECT step, arg_max(state, seq) AS state FROM consultations
    WHERE run_id = $run AND step IN (SELECT step FROM chosen) GROUP BY step),
 answered AS (SELECT step, count(*) AS techniques FROM consulted
    WHERE run_id = $run AND step IN (SELECT step FROM chosen) GROUP BY step),
 lessons AS (SELECT step, arg_max(summary, seq) AS lesson FROM taught
    WHERE run_id = $run AND step IN (SELECT step FROM chosen) GROUP BY step),
 called AS (SELECT step, bool_or(is_profile_exposed) AS is_profile_exposed FROM model_calls
    WHERE run_id = $run AND step IN (SELECT step FROM chosen) GROUP BY step)
SELECT c.seq, c.step, c.kind, c.depth, c.candidate_id, c.started_at, c.ended_at, c.seconds, c.outcome, c.is_in_flight,
    o.number, m.made_id, m.made_number, m.summary, h.predicted, j.verdict, j.message, j.max_error, j.tolerance,
    j.measured, j.latency, j.baseline, s.bound, s.failure, t.patch_reason, a.said,
    a.said_problem,
    coalesce(k.is_profile_exposed, FALSE) AS is_profile_exposed,
    b.state, coalesce(n.techniques, 0) AS techniques, l.lesson
FROM chosen c LEFT JOIN numbers o ON o.candidate_id = c.candidate_id LEFT JOIN made m ON m.step = c.step
LEFT JOIN hoped h ON h.candidate_id = m.made_id
LEFT JOIN judged j ON j.step = c.step LEFT JOIN seen s ON s.step = c.step
LEFT JOIN tried t ON t.step = c.step LEFT JOIN called k ON k.step = c.step
LEFT JOIN said a ON a.step = c.step LEFT JOIN looked b ON b.step = c.step
LEFT JOIN answered n ON n.step = c.step LEFT JOIN lessons l ON l.step = c.step
ORDER BY c.seq {order}
"""


NEWEST = 200


def steps(
    db: Database,
    run_id: str,
    after_seq: int = 0,
    limit: int = NEWEST,
    newest_first: bool = True,
    words: MethodWords = PLAIN,
) -> list[StepRow]:
    """Steps begun after a journal line (`StepRow.seq` of the last one seen), at most `limit` of them."""
    order = "DESC" if newest_first else "ASC"
    sql = _STEPS.format(order=order)
    moves = fetch.rows(db, Move, sql, {"run": run_id, "after": after_seq, "limit": limit})
    return [_row(move, words) for move in moves]


def current_step(db: Database, run_id: str, words: MethodWords = PLAIN) -> StepRow | None:
    """The step in flight, as far as the journal tells: a lost engine leaves one behind."""
    # Among the newest, which the feed reads too: one query for both. Of several in flight the one begun last.
    return next((row for row in steps(db, run_id, words=words) if row.is_in_flight), None)


def finished_steps(db: Database, run_id: str) -> int:
    """How many steps have ended, one that was done again counted again."""
    return int(fetch.tuples(db, "SELECT count(*) FROM worked WHERE run_id = ?", [run_id])[0][0])


def typical_seconds(db: Database, run_id: str, kind: str) -> float | None:
    """How long a finished step of this kind has taken in this run: the median; None before the first one ended."""
    sql = "SELECT median(seconds) FROM steps WHERE run_id = ? AND phase = 'finished' AND kind = ?"
    found = fetch.tuples(db, sql, [run_id, str(kind)])[0][0]
    return None if found is None else float(found)


STAGES = ("model", StepKind.COMPILE, StepKind.CHECK, StepKind.TIME, StepKind.PROFILE, TUNE, "other")


@dataclass(frozen=True, slots=True)
class StageTime:
    """Seconds and number of the finished steps of one stage: `model`, an evaluation's, or `other`."""

    stage: str
    seconds: float
    steps: int


def time_by_stage(db: Database, run_id: str) -> list[StageTime]:
    """Where the engine time of a run went, stages in the order of the loop; those without a step are left out."""
    sql = """SELECT kind, coalesce(sum(seconds), 0.0), count(*) FROM steps WHERE run_id = ? AND phase = 'finished'
        GROUP BY kind"""
    found: dict[str, StageTime] = {}
    for kind, seconds, count in fetch.tuples(db, sql, [run_id]):
        stage = "model" if is_call(kind) else kind if kind in STAGES else "other"
        so_far = found.get(stage, StageTime(stage, 0.0, 0))
        found[stage] = StageTime(stage, so_far.seconds + seconds, so_far.steps + count)
    return [found[stage] for stage in STAGES if stage in found]


def count_events(db: Database, run_id: str, after_seq: int) -> int:
    """How many events a run has had after one."""
    return int(fetch.tuples(db, "SELECT count(*) FROM events WHERE run_id = ? AND seq > ?", [run_id, after_seq])[0][0])


def last_seq(db: Database, run_id: str) -> int:
    """The number of the newest event; 0 before the first."""
    return int(fetch.tuples(db, "SELECT coalesce(max(seq), 0) FROM events WHERE run_id = ?", [run_id])[0][0])


def _row(m: Move, words: MethodWords) -> StepRow:
    return StepRow(
        m.seq, m.step, m.kind, m.depth, m.candidate_id, m.made_id, m.started_at, m.seconds, m.outcome, m.is_in_flight,
        sentence(m, words), m.ended_at,
    )  # fmt: skip
