"""What was said to the model and what it said: calls, diagnoses, reviews, edits; what applied of them, and the cost."""

from __future__ import annotations

from dataclasses import dataclass, fields

from storage.index.database import Database
from storage.index.queries import fetch
from storage.run.events import (
    CallFailed,
    CallSent,
    DiagnosisWritten,
    EngineStarted,
    ModelCalled,
    QuestionAsked,
    ReviewWritten,
    RunEnded,
    StepFinished,
    ToolAnswered,
)
from storage.run.models import CallFailure


@dataclass(frozen=True, slots=True)
class ModelCallRow:
    """One paid call. None means unknown: tokens that nobody counted, a cost that is not free.

    `made_id` is the candidate that the call's step made. With `is_estimated` tokens are counted from characters.
    """

    seq: int
    at: float
    step: int
    call: int
    role: str
    depth: int
    candidate_id: str | None
    made_id: str | None
    model: str
    prompt_blob: str
    reply_blob: str | None
    input_tokens: int | None
    output_tokens: int | None
    cached_tokens: int | None
    reasoning_tokens: int | None
    cost_usd: float | None
    seconds: float
    finish_reason: str
    is_profile_exposed: bool
    is_estimated: bool


@dataclass(frozen=True, slots=True)
class DiagnosisRow:
    """The model's explanation of why `candidate_id` failed; `text_blob` is what it wrote."""

    seq: int
    at: float
    step: int
    candidate_id: str
    text_blob: str


@dataclass(frozen=True, slots=True)
class ReviewRow:
    """What a judge or a planner said of kernel `candidate_id` at a step index (`depth`); `text_blob` is a JSON object.

    `label` is the step's name. With a `problem` the reply could not be read, and `text_blob` is its text.
    """

    seq: int
    at: float
    step: int
    depth: int
    label: str
    candidate_id: str
    text_blob: str
    problem: str


@dataclass(frozen=True, slots=True)
class PatchRow:
    """One try to turn a reply into a new source: of `candidate_id` into `made_id` (None: nothing came of the step).

    `rung` is the patch format: edits, reask, search_replace or rewrite; `reason` says why it did
    not apply; `form` what the reply offered and where in it that was found.
    """

    seq: int
    at: float
    step: int
    call: int
    candidate_id: str | None
    made_id: str | None
    rung: str
    is_applied: bool
    edit_count: int
    reason: str
    edits_blob: str | None
    form: str


@dataclass(frozen=True, slots=True)
class FailedTryRow:
    """One try of a call that gave no usable reply. `attempt` counts the tries of one call from 0; `retry_in_s` is None
    where no other try followed. A charged one is among the model calls too, under its `seq`."""

    seq: int
    at: float
    step: int
    call: int
    attempt: int
    model: str
    failure: CallFailure
    reason: str
    is_charged: bool
    retry_in_s: float | None


_MADE = "SELECT step, arg_max(candidate_id, seq) AS made_id FROM kernels WHERE run_id = $run GROUP BY step"


def model_calls(
    db: Database, run_id: str, candidate_id: str | None = None, step: int | None = None
) -> list[ModelCallRow]:
    """Calls of a run, oldest first: of one step, or all that concern a candidate (about it, or leading to it)."""
    sql = f"""WITH made AS ({_MADE})
    SELECT m.* EXCLUDE (run_id, time), m.time AS at, made.made_id FROM calls m LEFT JOIN made USING (step)
    WHERE m.run_id = $run AND ($step::BIGINT IS NULL OR m.step = $step) AND
        ($candidate::VARCHAR IS NULL OR m.candidate_id = $candidate OR made.made_id = $candidate) ORDER BY m.seq"""
    return fetch.rows(db, ModelCallRow, sql, {"run": run_id, "candidate": candidate_id, "step": step})


def conversation(db: Database, run_id: str, candidate_id: str) -> list[ModelCallRow]:
    """Every call behind a candidate, oldest first: about it, leading to it, and those on the way that made nothing:
    the diagnosis of its parent or the review of it, and repairs of its parent that could not be applied."""
    sql = f"""WITH made AS ({_MADE}), me AS (SELECT parent_id, seq FROM kernels
        WHERE run_id = $run AND candidate_id = $candidate AND origin = 'repair')
    SELECT m.* EXCLUDE (run_id, time), m.time AS at, made.made_id FROM calls m LEFT JOIN made USING (step)
    WHERE m.run_id = $run AND (m.candidate_id = $candidate OR made.made_id = $candidate
        OR list_contains($before::BIGINT[], m.step)
        OR (made.made_id IS NULL AND m.role IN ('diagnose', 'repair')
            AND m.candidate_id IN (SELECT parent_id FROM me) AND m.seq < (SELECT max(seq) FROM me))) ORDER BY m.seq"""
    before = [entry.event.step for entry in reviews_before(db, run_id, candidate_id)]
    return fetch.rows(db, ModelCallRow, sql, {"run": run_id, "candidate": candidate_id, "before": before})


def reviews_before(db: Database, run_id: str, candidate_id: str) -> list[fetch.RunEntry[ReviewWritten]]:
    """What was said of a kernel's parent in the same step index before the kernel came of it, oldest first."""
    return [
        entry
        for seq, _, depth, parent_id in _written(db, run_id, candidate_id)
        for entry in fetch.of_kernel(db, run_id, parent_id, ReviewWritten)
        if entry.event.depth == depth and entry.seq < seq
    ]


def unusable_replies(db: Database, run_id: str, limit: int) -> list[ModelCallRow]:
    """The newest calls, oldest first, of steps that were to bring a kernel and brought none."""
    sql = """SELECT m.* EXCLUDE (run_id, time), m.time AS at, NULL AS made_id FROM calls m
    WHERE m.run_id = $run AND m.step IN (SELECT step FROM steps WHERE run_id = $run AND outcome = 'patch_failed')
    ORDER BY m.seq DESC LIMIT $limit"""
    return fetch.rows(db, ModelCallRow, sql, {"run": run_id, "limit": limit})[::-1]


def count_unusable_replies(db: Database, run_id: str) -> int:
    """How many such calls a run has."""
    sql = """SELECT count(*) FROM calls WHERE run_id = $run
    AND step IN (SELECT step FROM steps WHERE run_id = $run AND outcome = 'patch_failed')"""
    return int(fetch.tuples(db, sql, {"run": run_id})[0][0])


def _written(db: Database, run_id: str, candidate_id: str) -> list[tuple[int, int, int, str | None]]:
    """(line, step, depth, parent) of a kernel; none where there is none of that id."""
    return fetch.tuples(db, f"SELECT seq, step, depth, parent_id {_KERNEL}", {"run": run_id, "candidate": candidate_id})


@dataclass(frozen=True, slots=True)
class PromptRow:
    """A prompt and what was counted of it; `is_open` while its reply is awaited, by a model or from a person."""

    seq: int
    step: int
    call: int
    role: str
    depth: int
    prompt_blob: str
    input_tokens: int | None
    cached_tokens: int | None
    is_estimated: bool
    is_open: bool


_PROMPT = "seq, step, call, role, depth, prompt_blob"
# A call that failed for nothing has no prompt of its own to show: the one that was sent has.
_HAS_PROMPT = "kind <> 'CallFailed' OR seq IN (SELECT seq FROM calls WHERE run_id = $run)"
_KERNEL = "FROM kernels WHERE run_id = $run AND candidate_id = $candidate"


def last_prompt(db: Database, run_id: str) -> PromptRow | None:
    """The newest prompt of a run: one that is being answered, or the last that was; None before the first."""
    kinds = (ModelCalled, CallFailed, CallSent, QuestionAsked)
    entry = next(iter(fetch.events(db, run_id, *kinds, where=_HAS_PROMPT, newest=1)), None)
    if entry is None:
        return None
    event = entry.event
    head = entry.seq, event.step, event.call, event.role, event.depth, event.prompt_blob
    if isinstance(event, ModelCalled | CallFailed):
        is_estimated = isinstance(event, CallFailed) and event.is_estimated
        return PromptRow(*head, event.input_tokens, event.cached_tokens, is_estimated, False)
    ended = fetch.events(db, run_id, CallFailed, StepFinished, EngineStarted, RunEnded, newest=1)
    return PromptRow(*head, None, None, False, not ended or ended[0].seq < entry.seq)


def prompt_before(db: Database, run_id: str, prompt: PromptRow | ModelCallRow) -> PromptRow | None:
    """The last answered prompt before this one in the run, of the same role if there is any; None for the first."""
    sql = f"""SELECT {_PROMPT}, input_tokens, cached_tokens, is_estimated, FALSE AS is_open FROM calls
    WHERE run_id = $run AND seq < $seq AND NOT (step = $step AND call = $call)
    ORDER BY role = $role DESC, seq DESC LIMIT 1"""
    asked = {"run": run_id, "seq": prompt.seq, "step": prompt.step, "call": prompt.call, "role": prompt.role}
    return fetch.one(db, PromptRow, sql, asked)


def diagnoses(db: Database, run_id: str, candidate_id: str) -> list[DiagnosisRow]:
    """Diagnoses of a candidate and of its parent (the one that led to it), oldest first; tell them by candidate_id."""
    parents = [parent_id for *_, parent_id in _written(db, run_id, candidate_id)]
    diagnosed = [
        entry for name in (candidate_id, *parents) for entry in fetch.of_kernel(db, run_id, name, DiagnosisWritten)
    ]
    diagnosed.sort(key=lambda entry: entry.seq)
    return [
        DiagnosisRow(entry.seq, entry.at, entry.event.step, entry.event.candidate_id, entry.event.text_blob)
        for entry in diagnosed
    ]


def reviews(db: Database, run_id: str, candidate_id: str) -> list[ReviewRow]:
    """What was said of a candidate, and what was said of its parent and led to it, oldest first; tell them by
    candidate_id."""
    about_it = fetch.of_kernel(db, run_id, candidate_id, ReviewWritten)
    reviews = sorted([*about_it, *reviews_before(db, run_id, candidate_id)], key=lambda entry: entry.seq)
    return [
        ReviewRow(entry.seq, entry.at, e.step, e.depth, e.label, e.candidate_id, e.text_blob, e.problem)
        for entry in reviews
        for e in [entry.event]
    ]


def patches(db: Database, run_id: str, candidate_id: str) -> list[PatchRow]:
    """Tries to edit a candidate and those that led to it, oldest first; `made_id` tells them apart."""
    sql = f"""WITH made AS ({_MADE})
    SELECT p.* EXCLUDE (run_id, time), p.time AS at, made.made_id FROM patches p LEFT JOIN made USING (step)
    WHERE p.run_id = $run AND (p.candidate_id = $candidate OR made.made_id = $candidate) ORDER BY p.seq"""
    return fetch.rows(db, PatchRow, sql, {"run": run_id, "candidate": candidate_id})


def failed_tries(db: Database, run_id: str, candidate_id: str) -> list[FailedTryRow]:
    """Tries without a usable reply in the steps that concern a candidate (about it, or leading to it), oldest first."""
    which = f"""step IN (SELECT step {_KERNEL}
        UNION SELECT step FROM steps WHERE run_id = $run AND candidate_id = $candidate)"""
    failed = fetch.events(db, run_id, CallFailed, where=which, parameters={"candidate": candidate_id})
    return [
        FailedTryRow(
            entry.seq, entry.at, e.step, e.call, e.attempt, e.model, e.failure, e.reason, e.is_charged, e.retry_in_s
        )
        for entry in failed
        for e in [entry.event]
    ]


@dataclass(frozen=True, slots=True)
class PatchRateRow:
    """One model over all runs. `calls` are all its replies; the rest is about those that were to hold a patch.

    `replies` were to hold one, `parsed` of them did. A step that wants a patch counts once by when it came: its `first`
    reply applied, a `later` one did, or all `failed`; and, where one applied, once by what that reply was: line
    `edits`, `search_replace` blocks, or the whole file (`rewrite`).
    """

    model: str
    calls: int
    replies: int
    parsed: int
    steps: int
    first: int
    later: int
    failed: int
    edits: int
    search_replace: int
    rewrite: int


# What a reply was; journals from before that was noted have only what it was asked to be.
_KIND = """CASE WHEN form <> '' THEN split_part(form, ' (', 1) WHEN rung = 'search_replace' THEN 'SEARCH/REPLACE'
        WHEN rung = 'reask' THEN 'edits' ELSE rung END"""
_RATES = f"""
WITH called AS (SELECT run_id, step, call, arg_max(model, seq) AS model, count(*) AS calls FROM calls
        WHERE run_id NOT IN (SELECT run_id FROM runs WHERE replay_of IS NOT NULL OR is_example)
        GROUP BY run_id, step, call),
    tried AS (SELECT p.*, c.model FROM patches p JOIN called c USING (run_id, step, call)),
    last_tried AS (SELECT run_id, step, arg_min(model, call) AS model,
        arg_max(rung, call) FILTER (WHERE is_applied) AS rung, arg_max({_KIND}, call) FILTER (WHERE is_applied) AS kind
        FROM tried GROUP BY run_id, step),
    ended AS (SELECT model, count(*) AS steps, count(*) FILTER (WHERE rung = 'edits') AS first,
        count(*) FILTER (WHERE rung <> 'edits') AS later, count(*) FILTER (WHERE rung IS NULL) AS failed,
        count(*) FILTER (WHERE kind = 'edits') AS edits, count(*) FILTER (WHERE kind = 'rewrite') AS rewrite,
        count(*) FILTER (WHERE kind = 'SEARCH/REPLACE') AS search_replace
        FROM last_tried x WHERE rung IS NOT NULL OR EXISTS (SELECT 1 FROM steps s WHERE s.run_id = x.run_id
            AND s.step = x.step AND s.ended_as IS NOT NULL) GROUP BY model),
    read AS (SELECT model, count(*) AS replies, count(*) FILTER (WHERE form <> '' OR is_applied) AS parsed
        FROM tried GROUP BY model)
SELECT model, sum(calls)::BIGINT AS calls, coalesce(any_value(r.replies), 0) AS replies,
    coalesce(any_value(r.parsed), 0) AS parsed, coalesce(any_value(e.steps), 0) AS steps,
    coalesce(any_value(e.first), 0) AS first, coalesce(any_value(e.later), 0) AS later,
    coalesce(any_value(e.failed), 0) AS failed, coalesce(any_value(e.edits), 0) AS edits,
    coalesce(any_value(e.search_replace), 0) AS search_replace, coalesce(any_value(e.rewrite), 0) AS rewrite
FROM called LEFT JOIN read r USING (model) LEFT JOIN ended e USING (model) GROUP BY model ORDER BY calls DESC, model
"""


def patch_rates(db: Database) -> list[PatchRateRow]:
    """Every model that has replied, the busiest first. What a replay tells once more is not counted twice."""
    return fetch.rows(db, PatchRateRow, _RATES)


@dataclass(frozen=True, slots=True)
class CostRow:
    """`calls` led to the kernel: those of the step that made it and of the diagnosis or review before it; None is
    unknown.

    Seconds are the engine's: in the steps that wrote the kernel, and in those that built, checked, timed and profiled
    it.
    """

    calls: int
    tokens: int | None
    cost_usd: float | None
    writing_s: float
    judging_s: float


def kernel_cost(db: Database, run_id: str, candidate_id: str) -> CostRow:
    """What a kernel has cost so far."""
    sql = f"""
    WITH wrote AS (SELECT step {_KERNEL} UNION SELECT unnest($before::BIGINT[])),
     worked AS (SELECT step, kind, candidate_id, coalesce(seconds, 0.0) AS seconds FROM steps WHERE run_id = $run),
     paid AS (SELECT * FROM calls WHERE run_id = $run AND step IN (SELECT step FROM wrote))
    SELECT (SELECT count(*) FROM paid) AS calls,
        (SELECT CASE WHEN count(*) = 0 THEN 0 WHEN count(*) = count(input_tokens)
            THEN sum(input_tokens + coalesce(output_tokens, 0))::BIGINT END
            FROM paid) AS tokens,
        (SELECT CASE WHEN count(*) = 0 THEN 0.0 WHEN count(*) = count(cost_usd) THEN sum(cost_usd) END FROM paid)
            AS cost_usd,
        coalesce((SELECT sum(seconds) FROM worked WHERE step IN (SELECT step FROM wrote)), 0.0) AS writing_s,
        coalesce((SELECT sum(seconds) FROM worked WHERE candidate_id = $candidate
            AND kind IN ('compile', 'check', 'time', 'profile')), 0.0) AS judging_s"""
    before = {entry.event.step for entry in reviews_before(db, run_id, candidate_id)}
    for _, step, _, parent_id in _written(db, run_id, candidate_id):
        diagnosed = fetch.of_kernel(db, run_id, parent_id, DiagnosisWritten)
        before |= {entry.event.step for entry in diagnosed if entry.event.step < step}
    cost = fetch.one(db, CostRow, sql, {"run": run_id, "candidate": candidate_id, "before": sorted(before)})
    assert cost is not None  # a query without FROM always gives one row
    return cost


@dataclass(frozen=True, slots=True)
class SpendingRow:
    """Calls of one role to one model. `cost_usd` None means that the cost of any of them is unknown.

    `uncounted` calls have no figures of tokens; `estimated` ones have figures counted from characters.
    """

    role: str
    model: str
    calls: int
    uncounted: int
    estimated: int
    input_tokens: int
    cached_tokens: int
    output_tokens: int
    reasoning_tokens: int
    cost_usd: float | None


@dataclass(frozen=True, slots=True)
class AllowanceRow:
    """The limits in force; None is no limit. `spent_s` is the engine time in steps."""

    depths: int
    max_model_calls: int | None
    max_tokens: int | None
    max_cost_usd: float | None
    max_wall_s: float | None
    target_speedup: float | None
    spent_s: float


_ALLOWED = [field.name for field in fields(AllowanceRow) if field.name != "spent_s"]


def spending(db: Database, run_id: str) -> list[SpendingRow]:
    """One row per role and model, the dearest first."""
    sql = """SELECT role, model, count(*) AS calls, count(*) FILTER (WHERE input_tokens IS NULL) AS uncounted,
        count(*) FILTER (WHERE is_estimated) AS estimated,
        coalesce(sum(input_tokens), 0)::BIGINT AS input_tokens,
        coalesce(sum(cached_tokens), 0)::BIGINT AS cached_tokens,
        coalesce(sum(output_tokens), 0)::BIGINT AS output_tokens,
        coalesce(sum(reasoning_tokens), 0)::BIGINT AS reasoning_tokens,
        CASE WHEN count(*) = count(cost_usd) THEN sum(cost_usd) END AS cost_usd
        FROM calls WHERE run_id = ? GROUP BY role, model ORDER BY cost_usd DESC NULLS FIRST, calls DESC, role"""
    return fetch.rows(db, SpendingRow, sql, [run_id])


def allowance(db: Database, run_id: str) -> AllowanceRow | None:
    """The limits of a run, or None when it is not in the index."""
    asked = fetch.of_run(db, run_id, *_ALLOWED)
    spent = fetch.of_run(db, run_id, "engine_s", table="progress")
    return AllowanceRow(*asked, *spent) if asked and spent else None


@dataclass(frozen=True, slots=True)
class ToolCallRow:
    """A kernel of its own that the model had compiled, checked or profiled in the turn that brought a kernel, answered
    `at`. `outcome` is a verdict, or unreadable, or done where nothing was carried out."""

    call: int
    number: int
    tool: str
    outcome: str
    summary: str
    source_blob: str
    text_blob: str
    seconds: float
    at: float


def tool_calls(db: Database, run_id: str, candidate_id: str) -> list[ToolCallRow]:
    """In the order in which the model made them."""
    answered = fetch.events(
        db, run_id, ToolAnswered, where=f"step IN (SELECT step {_KERNEL})", parameters={"candidate": candidate_id}
    )
    last = {(entry.event.call, entry.event.number): entry for entry in answered}
    return [
        ToolCallRow(e.call, e.number, e.tool, e.outcome, e.summary, e.source_blob, e.text_blob, e.seconds, last[key].at)
        for key in sorted(last)
        for e in (last[key].event,)
    ]
