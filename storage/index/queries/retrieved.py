"""What the knowledge base had answered before a kernel was written, whether the kernel follows it, and which failure
rules its writer was told."""

from __future__ import annotations

from dataclasses import dataclass

from storage.index.database import Database
from storage.index.queries import fetch
from storage.knowledge.records import ToldRule


@dataclass(frozen=True, slots=True)
class RetrievalRow:
    """The last question to the knowledge base before a kernel was written, at its step index, about its parent or base,
    which is kernel `number`.

    `state` is empty where that kernel's state was not known; `why` says what decided, or why not. `technique` is what
    the kernel itself is said to do, empty where nobody named it. `followed` is the place of that technique in the
    answer, None where it is not among what was found.
    """

    step: int
    number: int
    state: str
    bottleneck: str | None
    state_confidence: float
    secondary: list[str]
    why: str
    mark: str
    technique: str
    techniques: int
    followed: int | None


@dataclass(frozen=True, slots=True)
class RetrievedRow:
    """One technique of an answer, that which promises most at place 0."""

    place: int
    technique: str
    category: str
    about: str
    helps: str
    hurts: str
    expected_gain: float
    confidence: float
    attempts: int
    faster: int
    slower: int
    failed: int
    is_negative: bool
    inherited_from: str
    parts: list[str] | None


_SAME = " = ".join(rf"regexp_replace(lower({one}.technique), '[\s_-]+', ' ', 'g')" for one in "rn")
_RETRIEVAL = """
WITH kernel AS (SELECT * FROM candidates WHERE run_id = $run AND candidate_id = $candidate),
 asked AS (SELECT c.* FROM consultations c JOIN kernel k ON c.run_id = k.run_id AND c.depth = k.depth
    AND c.candidate_id IN (k.parent_id, k.base_id) AND c.step < k.step QUALIFY c.seq = max(c.seq) OVER ()),
 named AS (SELECT coalesce(arg_max(technique, seq), '') AS technique FROM prediction_lines
    WHERE run_id = $run AND candidate_id = $candidate),
 found AS (SELECT count(*) AS techniques, min(place) FILTER (WHERE {same}) AS followed
    FROM consulted r JOIN asked a ON r.run_id = a.run_id AND r.seq = a.seq, named n)
SELECT a.step, (SELECT number FROM numbered m WHERE m.run_id = $run AND m.candidate_id = a.candidate_id) AS number,
    a.state, a.bottleneck, a.state_confidence, a.secondary, a.why, a.mark, n.technique, f.techniques, f.followed
FROM asked a, named n, found f
""".replace("{same}", _SAME)


def retrieval(db: Database, run_id: str, candidate_id: str) -> RetrievalRow | None:
    """None where the base was not asked before this kernel."""
    if not fetch.has_rows(db, "consultations", run_id):
        return None
    return fetch.one(db, RetrievalRow, _RETRIEVAL, {"run": run_id, "candidate": candidate_id})


def retrieved(db: Database, run_id: str, step: int) -> list[RetrievedRow]:
    """The techniques that were found in a step."""
    columns = "* EXCLUDE (run_id, seq, step, candidate_id)"
    sql = f"SELECT {columns} FROM consulted WHERE run_id = $run AND step = $step ORDER BY place"
    return fetch.rows(db, RetrievedRow, sql, {"run": run_id, "step": step})


_TOLD = """
WITH last AS (SELECT t.seq FROM tellings t JOIN candidates c ON c.run_id = t.run_id AND t.step <= c.step
    WHERE c.run_id = $run AND c.candidate_id = $candidate AND c.origin IN ('synthesis', 'optimisation', 'repair')
    QUALIFY t.seq = max(t.seq) OVER ())
SELECT name, signature, words, kernels, runs FROM told_rules JOIN last USING (seq) WHERE run_id = $run ORDER BY place
"""


def told_rules(db: Database, run_id: str, candidate_id: str) -> list[ToldRule]:
    """The failure rules that the writer of a kernel was told, in the order of the prompt."""
    return fetch.rows(db, ToldRule, _TOLD, {"run": run_id, "candidate": candidate_id})
