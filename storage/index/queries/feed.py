"""Everything that happened in a run: as sentences in one order, and as states, problems and journal lines."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from storage.index.database import Database
from storage.index.queries import fetch
from storage.index.queries.steps import NEWEST, StepRow, steps
from storage.results.vocabulary import Verdict
from storage.run.journal import FaultKind
from storage.run.method_words import AS_STORED, MethodWords
from storage.run.settings import RunState, StepKind
from storage.run.steering import command_arguments
from storage.run.steering.verbs import VERBS, Result, verbs_with


class FeedKind(StrEnum):
    """Where a feed item comes from."""

    STEP = "step"
    DEPTH = "depth"
    BASE = "base"
    COMMAND = "command"
    STATE = "state"
    WARNING = "warning"
    CALL = "call"
    BASELINE = "baseline"
    LIMIT = "limit"
    CLASS = "class"
    BUDGET = "budget"
    QUESTION = "question"
    APPROVAL = "leave"
    REPLAY = "replay"
    IMPORT = "import"
    PATCH = "patch"


@dataclass(frozen=True, slots=True)
class FeedRow:
    """One item. `at` is when it came about: a step's result, its start while it has none. `outcome` is the step's, the
    depth's, the command's phase or the state. A depth whose kernel is the fastest so far has the outcome "best"; a
    timing that worked has "timed", which does not say that the kernel is fast."""

    seq: int
    at: float
    kind: FeedKind
    step: int | None
    depth: int | None
    candidate_id: str | None
    outcome: str | None
    text: str


_DEPTHS = """
SELECT d.seq, d.time AS at, 'depth' AS kind, d.step, d.depth, d.candidate_id,
    CASE WHEN d.outcome = 'accepted' AND r.candidate_id = d.candidate_id THEN 'best' ELSE d.outcome END AS outcome,
    CASE WHEN d.outcome = 'accepted' THEN printf('%s %d ends with kernel %d', $step::VARCHAR, d.depth,
            coalesce(n.number, 0))
        || coalesce(' at ' || as_measured(t.speedup, t.noise), '')
        || CASE WHEN r.candidate_id = d.candidate_id THEN ', the best so far'
            WHEN NOT is_faster(r.speedup, r.noise, t.speedup, t.noise) THEN ', no measurable difference from the best'
            ELSE coalesce(printf(', %.0f %% slower than the best', 100 * (1 - t.speedup / r.speedup)), '') END
    WHEN d.outcome = 'imported' THEN printf('%s %d is %s', $step::VARCHAR, d.depth, d.reason)
    ELSE printf('%s %d given up', $step::VARCHAR, d.depth)
        || CASE WHEN d.reason = '' THEN '' ELSE ': ' || d.reason END END AS text
FROM depths d LEFT JOIN timings t ON t.run_id = $run AND t.candidate_id = d.candidate_id
ASOF LEFT JOIN records r ON r.run_id = d.run_id AND d.seq >= r.seq
LEFT JOIN (SELECT candidate_id, number FROM numbered WHERE run_id = $run) n
    ON n.candidate_id = d.candidate_id
WHERE d.run_id = $run AND d.seq > $after ORDER BY d.seq DESC LIMIT $limit
"""

# A step index that starts from another kernel than the newest accepted one, by the run's rule, at nobody's command.
_BASES = f"""
WITH begun AS (SELECT depth, min(seq) AS seq, arg_min(time, seq) AS time, arg_min(step, seq) AS step,
        arg_min(candidate_id, seq) AS candidate_id FROM steps
    WHERE run_id = $run AND phase = 'started' AND kind = 'optimise' AND seq > $after GROUP BY depth),
 numbers AS (SELECT candidate_id, number FROM numbered WHERE run_id = $run)
SELECT b.seq, b.time AS at, 'base' AS kind, b.step, b.depth, b.candidate_id, NULL AS outcome,
    printf('%s %d starts from kernel %d again, not from kernel %d: ', $step::VARCHAR, b.depth, n.number, o.number)
    || CASE WHEN r.base_policy = 'best' THEN 'the rule of this run is to start from the best'
       ELSE printf('by the rule of this run, since %s %s in a row brought no gain beyond the noise',
            split_part(r.base_policy, '=', 2), $steps::VARCHAR) END AS text
FROM begun b ASOF JOIN (SELECT seq, candidate_id FROM depths WHERE run_id = $run AND outcome = 'accepted') d
    ON b.seq > d.seq
JOIN runs r ON r.run_id = $run AND (r.base_policy = 'best' OR r.base_policy LIKE 'patience=%')
JOIN numbers n ON n.candidate_id = b.candidate_id JOIN numbers o ON o.candidate_id = d.candidate_id
WHERE b.candidate_id <> d.candidate_id AND NOT EXISTS (SELECT 1 FROM steering s WHERE s.run_id = $run
    AND s.kind IN ({", ".join(f"'{kind}'" for kind in verbs_with(Result.DEPTH))})
    AND trim(s.argument) = b.candidate_id AND s.effective_seq < b.seq)
ORDER BY b.seq DESC LIMIT $limit
"""

# An argument as people read it, as `command_arguments.readable` does it.
READABLE = "s.argument"
for _pattern, _words in command_arguments.READABLE:
    READABLE = f"regexp_replace({READABLE}, '{_pattern}', '{_words}')"
_NAMED = " ".join(f"WHEN '{kind}' THEN '{verb.name}'" for kind, verb in VERBS.items())

_COMMANDS = f"""
SELECT c.seq, CASE c.phase WHEN 'acknowledged' THEN coalesce(s.asked_at, c.time) ELSE c.time END AS at,
    'command' AS kind, c.step, NULL AS depth, NULL AS candidate_id, c.phase AS outcome,
    CASE c.phase WHEN 'acknowledged' THEN coalesce(nullif(s.asked_by, ''), 'Someone') || ' asked for: '
    WHEN 'effective' THEN 'In effect: ' ELSE 'Rejected: ' END || CASE s.kind {_NAMED} ELSE 'a command' END
    || coalesce(' ' || nullif({READABLE}, ''), '')
    || CASE WHEN coalesce(c.note, '') = '' THEN '' ELSE ' (' || c.note || ')' END AS text
FROM commands c LEFT JOIN steering s ON s.run_id = $run AND s.command_id = c.command_id
WHERE c.run_id = $run AND c.phase <> 'asked' AND c.seq > $after ORDER BY c.seq DESC LIMIT $limit
"""

_STATES = """
SELECT seq, time AS at, 'state' AS kind, NULL AS step, NULL AS depth, NULL AS candidate_id, state AS outcome,
    CASE WHEN reason LIKE 'Run %' THEN reason ELSE
        CASE WHEN is_start THEN 'Run created' ELSE 'Run ' || state END
        || CASE WHEN reason = '' THEN '' ELSE ': ' || reason END END AS text
FROM states WHERE run_id = $run AND seq > $after ORDER BY seq DESC LIMIT $limit
"""

_WARNINGS = """
SELECT seq, time AS at, 'warning' AS kind, NULL AS step, NULL AS depth, NULL AS candidate_id, budget AS outcome,
    printf('80 %% of the limit on %s used: %s of %s', replace(budget, '_', ' '),
        CASE WHEN used BETWEEN 1e5 AND 1e15 THEN format('{:,}', TRY_CAST(used AS BIGINT)) ELSE printf('%.6g', used) END,
        CASE WHEN allowed BETWEEN 1e5 AND 1e15 THEN format('{:,}', TRY_CAST(allowed AS BIGINT))
        ELSE printf('%.6g', allowed) END) AS text
FROM warnings WHERE run_id = $run AND seq > $after ORDER BY seq DESC LIMIT $limit
"""


_CALLS = """
SELECT seq, time AS at, 'call' AS kind, step, NULL AS depth, NULL AS candidate_id, failure AS outcome,
    printf('Model call failed (try %d): %s', attempt + 1, reason)
    || CASE WHEN retry_in_s IS NULL THEN '' ELSE printf('; retrying in %.0f s', ceil(retry_in_s)) END AS text
FROM call_failures WHERE run_id = $run AND seq > $after ORDER BY seq DESC LIMIT $limit
"""


def feed(
    db: Database, run_id: str, after_seq: int = 0, limit: int = 200, words: MethodWords = AS_STORED
) -> list[FeedRow]:
    """The newest items after a journal line, newest first. A step's item appears when it starts, and moves to the time
    of its result."""
    parameters = {"run": run_id, "after": after_seq, "limit": limit}
    found = [
        FeedRow(
            s.seq,
            s.ended_at or s.started_at,
            FeedKind.STEP,
            s.step,
            s.depth,
            s.made_id or s.candidate_id,
            _outcome(s),
            s.text,
        )
        for s in steps(db, run_id, after_seq, max(limit, NEWEST), words=words)
    ]
    named = {"steps": words.steps, "step": words.title}
    for sql in (_DEPTHS, _BASES, _STATES, *(sql for table, sql in NEWS.items() if fetch.has_rows(db, table, run_id))):
        own = {name: word for name, word in named.items() if f"${name}::" in sql}
        found += fetch.rows(db, FeedRow, sql, parameters | own)
    return sorted(found, key=lambda row: (row.at, row.seq), reverse=True)[:limit]


def _outcome(step: StepRow) -> str | None:
    return "timed" if step.kind == StepKind.TIME and step.outcome == Verdict.PASSED else step.outcome


BASELINES = """
SELECT seq, time AS at, 'baseline' AS kind, NULL AS step, NULL AS depth, NULL AS candidate_id,
    CASE WHEN speedup IS NULL THEN 'failed' ELSE 'measured' END AS outcome,
    CASE WHEN speedup IS NULL
        THEN printf('Baseline %s not measured: %s', name, coalesce(nullif(failure, ''), 'no reason was recorded'))
    ELSE printf('Baseline %s measured: %.2f× over eager, %s', name, speedup, as_latency(latency_ms)) END AS text
FROM baselines WHERE run_id = $run AND seq > $after ORDER BY seq DESC LIMIT $limit
"""

LIMITS = """
SELECT seq, time AS at, 'limit' AS kind, NULL AS step, NULL AS depth, NULL AS candidate_id, 'measured' AS outcome,
    CASE WHEN seq > (SELECT min(l.seq) FROM limits l WHERE l.run_id = $run)
        THEN 'Hardware limit measured again, since a kernel was faster: ' ELSE 'Hardware limit measured: ' END
        || concat_ws(', ', device, as_rate(bandwidth_gb_s, 'B/s'), as_rate(peak_gflop_s, 'FLOP/s')) AS text
FROM limits WHERE run_id = $run AND seq > $after ORDER BY seq DESC LIMIT $limit
"""

CLASSES = """
SELECT seq, time AS at, 'class' AS kind, NULL AS step, NULL AS depth, NULL AS candidate_id, kernel_class AS outcome,
    'Kernel class, named in the first reply: ' || kernel_class AS text
FROM classes WHERE run_id = $run AND seq > $after ORDER BY seq DESC LIMIT $limit
"""

BUDGETS = """
SELECT seq, time AS at, 'budget' AS kind, NULL AS step, NULL AS depth, NULL AS candidate_id, 'changed' AS outcome,
    'Limits changed: ' || concat_ws(', ', printf('%d %s', depths, $steps::VARCHAR),
        format('{:,} model calls', max_model_calls), format('{:,} tokens', max_tokens),
        printf('$%.2f', max_cost_usd), printf('%.0f s', max_wall_s), printf('target %.2f×', target_speedup),
        printf('stop after %d %s without gain', stagnation_depths, $steps::VARCHAR)) AS text
FROM budgets WHERE run_id = $run AND seq > $after ORDER BY seq DESC LIMIT $limit
"""

QUESTIONS = """
SELECT seq, time AS at, 'question' AS kind, step, depth, candidate_id, 'asked' AS outcome,
    'Waiting for a reply by hand: ' || role AS text
FROM questions WHERE run_id = $run AND seq > $after ORDER BY seq DESC LIMIT $limit
"""

APPROVALS = """
SELECT seq, time AS at, 'leave' AS kind, step, depth, candidate_id,
    CASE WHEN kind IS NOT NULL THEN 'asked' WHEN is_given THEN 'given' ELSE 'refused' END AS outcome,
    CASE WHEN kind IS NULL
        THEN CASE WHEN is_given THEN 'Step approved: ' ELSE 'Step skipped: ' END || reason
    ELSE 'Waiting for approval of the step: ' || kind
        || CASE fallback WHEN 'never' THEN '' ELSE printf('; %s after %.0f s without an answer', fallback, after_s) END
    END AS text
FROM leaves WHERE run_id = $run AND seq > $after ORDER BY seq DESC LIMIT $limit
"""

DIVERGENCES = """
SELECT seq, time AS at, 'replay' AS kind, step, NULL AS depth, candidate_id,
    CASE WHEN is_bridged THEN 'bridged' ELSE 'lost' END AS outcome,
    'Replies differ from the recording: ' || reason || CASE WHEN is_bridged THEN '' ELSE '; no reply found' END AS text
FROM divergences WHERE run_id = $run AND seq > $after ORDER BY seq DESC LIMIT $limit
"""

IMPORTS = """
SELECT i.seq, i.time AS at, 'import' AS kind, NULL AS step, NULL AS depth, i.candidate_id, i.status AS outcome,
    printf('Kernel %d imported from %s', coalesce(n.number, 0), i.file)
    || CASE WHEN i.status = '' THEN '' ELSE ', status there: ' || i.status END AS text
FROM imports i LEFT JOIN (SELECT candidate_id, number FROM numbered
    WHERE run_id = $run) n ON n.candidate_id = i.candidate_id
WHERE i.run_id = $run AND i.seq > $after ORDER BY i.seq DESC LIMIT $limit
"""

PATCHES = """
SELECT p.seq, p.time AS at, 'patch' AS kind, p.step, NULL AS depth, p.candidate_id, 'patch_failed' AS outcome,
    printf('The reply''s %s did not apply to kernel %d', CASE WHEN p.form LIKE 'rewrite%' THEN 'whole file'
        WHEN p.form LIKE 'SEARCH/REPLACE%' THEN 'SEARCH/REPLACE blocks' WHEN p.form = '' THEN 'patch'
        ELSE 'line edits' END, coalesce(n.number, 0))
    || CASE WHEN p.reason = '' THEN '' ELSE ': ' || p.reason END AS text
FROM patches p LEFT JOIN (SELECT candidate_id, number FROM numbered
    WHERE run_id = $run) n ON n.candidate_id = p.candidate_id
WHERE p.run_id = $run AND NOT p.is_applied AND p.seq > $after ORDER BY p.seq DESC LIMIT $limit
"""

# What many runs have nothing of, by its table.
NEWS = {
    "commands": _COMMANDS, "warnings": _WARNINGS, "call_failures": _CALLS, "baselines": BASELINES, "limits": LIMITS,
    "classes": CLASSES, "budgets": BUDGETS, "questions": QUESTIONS, "leaves": APPROVALS, "divergences": DIVERGENCES,
    "imports": IMPORTS, "patches": PATCHES,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class StateRow:
    """The run moved to a state; `reason` is written for people. `error_blob` has the traceback of a failed engine."""

    seq: int
    at: float
    state: RunState
    reason: str
    is_final: bool
    error_blob: str | None


@dataclass(frozen=True, slots=True)
class ProblemRow:
    """A line that could not be read and was left out, or events missing before it. `position` is its byte offset."""

    run_id: str
    file: str
    position: int
    kind: FaultKind
    message: str


@dataclass(frozen=True, slots=True)
class EventRow:
    """One journal line as it was written."""

    seq: int
    at: float
    kind: str
    json: str


def states(db: Database, run_id: str) -> list[StateRow]:
    """Every change of state, oldest first."""
    sql = "SELECT seq, time AS at, state, reason, is_final, error_blob FROM states WHERE run_id = ? ORDER BY seq"
    return fetch.rows(db, StateRow, sql, [run_id])


def problems(db: Database, run_id: str | None = None) -> list[ProblemRow]:
    """What is wrong with the files of one run, or of all."""
    # One query for all runs of a page: there are few such lines, mostly none.
    sql = "SELECT run_id, file, position, kind, message FROM problems ORDER BY run_id, file, position"
    return [row for row in fetch.rows(db, ProblemRow, sql) if run_id in (None, row.run_id)]


def events(db: Database, run_id: str, after_seq: int = 0, limit: int = 500) -> list[EventRow]:
    """Raw journal lines after one, oldest first."""
    sql = "SELECT seq, time AS at, kind, json FROM events WHERE run_id = ? AND seq > ? ORDER BY seq LIMIT ?"
    return fetch.rows(db, EventRow, sql, [run_id, after_seq, limit])
