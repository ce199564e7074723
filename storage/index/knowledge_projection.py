"""The knowledge base's files as rows of the index: the seed as line 0, then whatever is new. Knows no database."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path

from storage import codec
from storage.index import chunks
from storage.index.chunks import Chunk, Position, Rows
from storage.index.rows import fields_of, storable
from storage.knowledge import seed
from storage.knowledge.failures import rule_id
from storage.knowledge.figures import log_units
from storage.knowledge.files import EVIDENCE, FAILURES, REVISIONS
from storage.knowledge.records import Evidence, FailureCase, Prior, Revision, RuleWords, State, Technique, Transition

SOURCE = "knowledge/"  # no run can have this name
SEED = "seed.toml"
FILES = (REVISIONS, EVIDENCE, FAILURES)


def ends(place: Path) -> dict[str, Position | None]:
    """Where the files end now. The seed is one piece: another content is another file."""
    found = {file: chunks.end_of(place / file) for file in FILES}
    return {SEED: Position(int(seed.digest(), 16), 1), **found}


def read(place: Path, file: str, start: Position) -> Iterator[Chunk]:
    """New rows of one file."""
    if file == SEED:
        yield Chunk(SOURCE, SEED, list(_rows_of_revision(0, seed.revision())), dataclasses.replace(start, offset=1), 0)
        return
    rows_of = {REVISIONS: _revision, EVIDENCE: _evidence, FAILURES: _case}[file]

    def rows(at: Position, line: bytes) -> Rows:
        try:
            yield from list(rows_of(at.lines, line)) if line else ()
        except codec.DecodeError as error:
            problem = {"file": file, "position": at.offset, "message": f"{error}"[:500]}
            yield "knowledge_problems", storable(problem)

    yield from chunks.read(SOURCE, place / file, start, rows)


def _revision(number: int, line: bytes) -> Rows:
    revision: Revision = codec.read_line(Revision, line)
    if revision.revision_id != seed.SEED:
        yield from _rows_of_revision(number, revision)


def _rows_of_revision(number: int, revision: Revision) -> Rows:
    head = {"line": number}
    derived = {
        "time": revision.at,
        "made_by": revision.by,
        "state_count": len(revision.states),
        "technique_count": len(revision.techniques),
        "prior_count": len(revision.priors),
        "transition_count": len(revision.transitions),
        "rule_count": len(revision.rules),
    }
    yield "revisions", storable(head | fields_of(revision) | derived)
    tables: dict[str, Sequence[State | Technique | Prior | Transition | RuleWords]] = {
        "kernel_states": revision.states,
        "techniques": revision.techniques,
        "priors": revision.priors,
        "transitions": revision.transitions,
        "rule_words": revision.rules,
    }
    for table, rows in tables.items():
        for place, row in enumerate(rows):
            yield table, storable(head | {"number": place} | fields_of(row))


def _evidence(number: int, line: bytes) -> Rows:
    row: Evidence = codec.read_line(Evidence, line)
    gain = row.gain if row.outcome.is_timed else None
    derived = {
        "time": row.at,
        "gain_units": None if gain is None else log_units(gain),
        "predicted_units": None if row.predicted_gain is None else log_units(row.predicted_gain),
    }
    yield "evidence", storable({"line": number} | fields_of(row) | derived)


def _case(number: int, line: bytes) -> Rows:
    row: FailureCase = codec.read_line(FailureCase, line)
    own = rule_id(row.language, row.toolchain, row.signature) if row.signature else ""
    yield "failures", storable({"line": number} | fields_of(row) | {"time": row.at, "rule": own})
