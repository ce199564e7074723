"""What was said to the model and what it said: calls, diagnoses, reviews, edits."""

from __future__ import annotations

from dataclasses import dataclass

from storage.database import Database
from storage.models import CallFailure
from storage.queries import fetch


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

    `rung` is edits, reask, search_replace or rewrite; `reason` says why it did not apply; `form` what the reply offered
    and where in it that was found.
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


_MADE = "SELECT step, arg_max(candidate_id, seq) AS made_id FROM candidates WHERE run_id = $run GROUP BY step"


def model_calls(
    db: Database, run_id: str, candidate_id: str | None = None, step: int | None = None
) -> list[ModelCallRow]:
    """Calls of a run, oldest first: of one step, or all that concern a candidate (about it, or leading to it)."""
    sql = f"""WITH made AS ({_MADE})
    SELECT m.* EXCLUDE (run_id, time), m.time AS at, made.made_id FROM model_calls m LEFT JOIN made USING (step)
    WHERE m.run_id = $run AND ($step::BIGINT IS NULL OR m.step = $step) AND
        ($candidate::VARCHAR IS NULL OR m.candidate_id = $candidate OR made.made_id = $candidate) ORDER BY m.seq"""
    return fetch.rows(db, ModelCallRow, sql, {"run": run_id, "candidate": candidate_id, "step": step})


def conversation(db: Database, run_id: str, candidate_id: str) -> list[ModelCallRow]:
    """Every call behind a candidate, oldest first: about it, leading to it, and those on the way that made nothing:
    the diagnosis of its parent or the review of it, and repairs of its parent that could not be applied."""
    sql = f"""WITH made AS ({_MADE}), me AS (SELECT parent_id, min(seq) AS seq FROM candidates
        WHERE run_id = $run AND candidate_id = $candidate AND origin = 'repair' GROUP BY parent_id)
    SELECT m.* EXCLUDE (run_id, time), m.time AS at, made.made_id FROM model_calls m LEFT JOIN made USING (step)
    WHERE m.run_id = $run AND (m.candidate_id = $candidate OR made.made_id = $candidate
        OR m.step IN (SELECT step FROM reviewed WHERE run_id = $run AND made_id = $candidate)
        OR (made.made_id IS NULL AND m.role IN ('diagnose', 'repair')
            AND m.candidate_id IN (SELECT parent_id FROM me) AND m.seq < (SELECT max(seq) FROM me))) ORDER BY m.seq"""
    return fetch.rows(db, ModelCallRow, sql, {"run": run_id, "candidate": candidate_id})


def diagnoses(db: Database, run_id: str, candidate_id: str) -> list[DiagnosisRow]:
    """Diagnoses of a candidate and of its parent (the one that led to it), oldest first; tell them by candidate_id."""
    sql = """SELECT seq, time AS at, step, candidate_id, text_blob FROM diagnoses WHERE run_id = $run AND (
        candidate_id = $candidate OR candidate_id IN
        (SELECT parent_id FROM candidates WHERE run_id = $run AND candidate_id = $candidate)) ORDER BY seq"""
    return fetch.rows(db, DiagnosisRow, sql, {"run": run_id, "candidate": candidate_id})


def reviews(db: Database, run_id: str, candidate_id: str) -> list[ReviewRow]:
    """What was said of a candidate, and what was said of its parent and led to it, oldest first; tell them by
    candidate_id."""
    sql = """SELECT seq, time AS at, step, depth, label, candidate_id, text_blob, problem FROM reviews
    WHERE run_id = $run AND (candidate_id = $candidate
        OR seq IN (SELECT seq FROM reviewed WHERE run_id = $run AND made_id = $candidate)) ORDER BY seq"""
    return fetch.rows(db, ReviewRow, sql, {"run": run_id, "candidate": candidate_id})


def patches(db: Database, run_id: str, candidate_id: str) -> list[PatchRow]:
    """Tries to edit a candidate and those that led to it, oldest first; `made_id` tells them apart."""
    sql = f"""WITH made AS ({_MADE})
    SELECT p.* EXCLUDE (run_id, time), p.time AS at, made.made_id FROM patches p LEFT JOIN made USING (step)
    WHERE p.run_id = $run AND (p.candidate_id = $candidate OR made.made_id = $candidate) ORDER BY p.seq"""
    return fetch.rows(db, PatchRow, sql, {"run": run_id, "candidate": candidate_id})


def failed_tries(db: Database, run_id: str, candidate_id: str) -> list[FailedTryRow]:
    """Tries without a usable reply in the steps that concern a candidate (about it, or leading to it), oldest first."""
    sql = """SELECT seq, time AS at, step, call, attempt, model, failure, reason, is_charged, retry_in_s
        FROM call_failures WHERE run_id = $run AND step IN (
            SELECT step FROM candidates WHERE run_id = $run AND candidate_id = $candidate
            UNION SELECT step FROM steps WHERE run_id = $run AND candidate_id = $candidate) ORDER BY seq"""
    return fetch.rows(db, FailedTryRow, sql, {"run": run_id, "candidate": candidate_id})
