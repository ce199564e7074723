"""What the knowledge base had answered before a kernel was written, whether the kernel follows it, and which failure
rules its writer was told."""

from __future__ import annotations

import re
from dataclasses import dataclass

from storage.index.database import Database
from storage.index.queries import fetch
from storage.knowledge.records import Advised, ToldRule
from storage.run.events import Consulted, RulesTold


@dataclass(frozen=True, slots=True)
class RetrievalRow:
    """The last question to the knowledge base before a kernel was written, at its step index, about its parent or base,
    which is kernel `number`.

    `state` is empty where that kernel's state was not known; `why` says what decided, or why not. `technique` is what
    the kernel itself is said to do, empty where nobody named it. `followed` is the place of that technique in the
    answer, None where it is not among what was found; `is_other`: it is known from other states. `mark` is empty where
    no base was asked: then the state is by the rules alone.
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
    is_other: bool = False


def retrieval(db: Database, run_id: str, candidate_id: str) -> RetrievalRow | None:
    """None where the base was not asked before this kernel."""
    sql = "SELECT depth, step, parent_id, base_id, predictions FROM kernels WHERE run_id = ? AND candidate_id = ?"
    for depth, step, parent_id, base_id, lines in fetch.tuples(db, sql, [run_id, candidate_id]):
        about = [entry for name in {parent_id, base_id} for entry in fetch.of_kernel(db, run_id, name, Consulted)]
        asked = [entry for entry in about if entry.event.depth == depth and entry.event.step < step]
        if asked:
            return _retrieval(db, run_id, max(asked, key=lambda entry: entry.seq).event, lines)
    return None


def _retrieval(db: Database, run_id: str, asked: Consulted, lines: list[int]) -> RetrievalRow:
    sql = "SELECT technique FROM predictions WHERE run_id = ? AND list_contains(?::BIGINT[], seq) ORDER BY seq DESC"
    technique = next((name for (name,) in fetch.tuples(db, sql, [run_id, lines])), "")
    sql = "SELECT number FROM kernels WHERE run_id = ? AND candidate_id = ?"
    number = next((n for (n,) in fetch.tuples(db, sql, [run_id, asked.candidate_id])), 0)
    followed = [rank for rank, advised in enumerate(asked.found) if _folded(advised.technique) == _folded(technique)]
    return RetrievalRow(
        asked.step, number, asked.state, asked.bottleneck, asked.state_confidence, list(asked.secondary), asked.why,
        asked.mark, technique, len(asked.found), min(followed, default=None),
        not followed and _folded(technique) in map(_folded, asked.others),
    )  # fmt: skip


def _folded(name: str) -> str:
    return re.sub(r"[\s_-]+", " ", name.lower())


def retrieved(db: Database, run_id: str, step: int) -> list[Advised]:
    """The techniques that were found in a step, that which promises most first."""
    entries = fetch.events(db, run_id, Consulted, where="step = $step", parameters={"step": step})
    return [advised for entry in entries for advised in entry.event.found]


def told_rules(db: Database, run_id: str, candidate_id: str) -> list[ToldRule]:
    """The failure rules that the writer of a kernel was told, in the order of the prompt."""
    sql = """SELECT step FROM kernels WHERE run_id = ? AND candidate_id = ?
        AND origin IN ('synthesis', 'optimisation', 'repair')"""
    for (step,) in fetch.tuples(db, sql, [run_id, candidate_id]):
        entries = fetch.events(db, run_id, RulesTold, where="step <= $step", parameters={"step": step}, newest=1)
        return list(entries[0].event.rules) if entries else []
    return []
