"""Everything that happened in a run as sentences, in one order: steps, depths, commands, states, calls and the rest."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from storage import command_arguments
from storage.database import Database
from storage.queries import fetch
from storage.queries.feed_news import NEWS
from storage.queries.steps import StepRow, steps
from storage.records import StepKind, Verdict
from storage.verbs import VERBS


class FeedKind(StrEnum):
    """Where a feed item comes from."""

    STEP = "step"
    DEPTH = "depth"
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
    """One item. `at` is when it began; `outcome` is the step's, the depth's, the command's phase or the state. A depth
    whose kernel is the fastest so far has the outcome "best"; a timing that worked has "timed", which does not say that
    the kernel is fast."""

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
    CASE WHEN d.outcome = 'accepted' THEN printf('Depth %d ends with kernel %d', d.depth, coalesce(n.number, 0))
        || coalesce(printf(' at %.2f×', t.speedup), '')
        || CASE WHEN r.candidate_id = d.candidate_id THEN ', the best so far'
            WHEN NOT is_faster(r.speedup, r.noise, t.speedup, t.noise) THEN ', no measurable difference from the best'
            ELSE coalesce(printf(', %.0f %% slower than the best', 100 * (1 - t.speedup / r.speedup)), '') END
    WHEN d.outcome = 'imported' THEN printf('Depth %d is %s', d.depth, d.reason)
    ELSE printf('Depth %d given up', d.depth) || CASE WHEN d.reason = '' THEN '' ELSE ': ' || d.reason END END AS text
FROM depths d LEFT JOIN timings t ON t.run_id = $run AND t.candidate_id = d.candidate_id
ASOF LEFT JOIN records r ON r.run_id = d.run_id AND d.seq >= r.seq
LEFT JOIN (SELECT candidate_id, number FROM numbered WHERE run_id = $run) n
    ON n.candidate_id = d.candidate_id
WHERE d.run_id = $run AND d.seq > $after ORDER BY d.seq DESC LIMIT $limit
"""

# An argument as people read it, as `command_arguments.readable` does it.
READABLE = "s.argument"
for _pattern, _words in command_arguments.READABLE:
    READABLE = f"regexp_replace({READABLE}, '{_pattern}', '{_words}')"
_NAMED = " ".join(f"WHEN '{kind}' THEN '{verb.name}'" for kind, verb in VERBS.items())

_COMMANDS = f"""
SELECT c.seq, c.time AS at, 'command' AS kind, c.step, NULL AS depth, NULL AS candidate_id, c.phase AS outcome,
    CASE c.phase WHEN 'acknowledged' THEN coalesce(nullif(s.asked_by, ''), 'Someone') || ' asked for: '
    WHEN 'effective' THEN 'In effect: ' ELSE 'Rejected: ' END || CASE s.kind {_NAMED} ELSE 'a command' END
    || coalesce(' ' || nullif({READABLE}, ''), '')
    || CASE WHEN coalesce(c.note, '') = '' THEN '' ELSE ' (' || c.note || ')' END AS text
FROM commands c LEFT JOIN steering s ON s.run_id = $run AND s.command_id = c.command_id
WHERE c.run_id = $run AND c.phase <> 'asked' AND c.seq > $after ORDER BY c.seq DESC LIMIT $limit
"""

_STATES = """
SELECT seq, time AS at, 'state' AS kind, NULL AS step, NULL AS depth, NULL AS candidate_id, state AS outcome,
    CASE WHEN is_start THEN 'Run created' ELSE 'Run ' || state END
    || CASE WHEN reason = '' THEN '' ELSE ': ' || reason END AS text
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


def feed(db: Database, run_id: str, after_seq: int = 0, limit: int = 200) -> list[FeedRow]:
    """The newest items after a journal line, newest first. A step's item appears when it starts and then changes."""
    parameters = {"run": run_id, "after": after_seq, "limit": limit}
    found = [
        FeedRow(s.seq, s.started_at, FeedKind.STEP, s.step, s.depth, s.made_id or s.candidate_id, _outcome(s), s.text)
        for s in steps(db, run_id, after_seq, limit)
    ]
    for sql in (_DEPTHS, _COMMANDS, _STATES, _WARNINGS, _CALLS, *NEWS):
        found += fetch.rows(db, FeedRow, sql, parameters)
    return sorted(found, key=lambda row: row.seq, reverse=True)[:limit]


def _outcome(step: StepRow) -> str | None:
    return "timed" if step.kind == StepKind.TIME and step.outcome == Verdict.PASSED else step.outcome
