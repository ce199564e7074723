"""Making a candidate: an immutable source with a parent. Knows how one is recorded, not how it was written."""

from __future__ import annotations

import difflib

from engine.bench import Bench
from engine.evaluation.screening.structure import lost_structure
from storage.events import CandidateCreated
from storage.records import Origin


def create_candidate(
    bench: Bench, source: str, *, parent_id: str | None, base_id: str | None, origin: Origin, repair: int, summary: str
) -> None:
    """Journal a new candidate, once per step even when the step is redone after a crash."""
    history = bench.history
    if any(a.created.step == bench.step for a in history.attempts.values()):
        return
    parent = history.attempts[parent_id] if parent_id else None
    lost = lost_structure(bench.source(parent), source) if parent else None
    diff = unified_diff(bench.source(parent), source, parent.candidate_id) if parent else ""
    bench.emit(
        CandidateCreated(
            step=bench.step,
            candidate_id=f"c{len(history.attempts) + 1:03d}",
            parent_id=parent_id,
            base_id=base_id,
            depth=history.depth,
            generation=history.generations_used - (origin is Origin.REPAIR),
            repair=repair,
            origin=origin,
            source_blob=bench.blobs.put(source),
            diff_blob=bench.blobs.put(diff) if diff else None,
            lines_added=_count(diff, "+") if parent else source.count("\n"),
            lines_removed=_count(diff, "-"),
            summary=summary,
            flags=(lost,) if lost else (),
        )
    )


def unified_diff(old: str, new: str, old_name: str) -> str:
    """A unified diff with three lines of context."""
    lines = difflib.unified_diff(old.splitlines(), new.splitlines(), old_name, "candidate", lineterm="")
    return "\n".join(lines) + "\n"


def _count(diff: str, sign: str) -> int:
    return sum(line.startswith(sign) and not line.startswith(sign * 3) for line in diff.split("\n"))
