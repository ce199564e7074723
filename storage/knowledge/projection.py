"""The knowledge base's files as rows of the index: the seed as line 0, then whatever is new. Knows no database."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path

from storage import chunks, codec
from storage.chunks import Chunk, Position
from storage.knowledge import seed
from storage.knowledge.figures import log_units
from storage.knowledge.files import EVIDENCE, REVISIONS
from storage.knowledge.records import Evidence, Prior, Revision, State, Technique, Transition
from storage.projection import Rows, storable

SOURCE = "knowledge/"  # no run can have this name
SEED = "seed.toml"
FILES = (REVISIONS, EVIDENCE)


def ends(place: Path) -> dict[str, Position | None]:
    """Where the files end now. The seed is one piece: another content is another file."""
    found = {file: chunks.end_of(place / file) for file in FILES}
    return {SEED: Position(int(seed.digest(), 16), 1), **found}


def read(place: Path, file: str, start: Position) -> Iterator[Chunk]:
    """New rows of one file."""
    if file == SEED:
        yield Chunk(SOURCE, SEED, list(_rows_of_revision(0, seed.revision())), dataclasses.replace(start, offset=1), 0)
        return
    rows_of = _revision if file == REVISIONS else _evidence

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
    }
    yield "revisions", storable(head | _fields(revision) | derived)
    tables: dict[str, Sequence[State | Technique | Prior | Transition]] = {
        "kernel_states": revision.states,
        "techniques": revision.techniques,
        "priors": revision.priors,
        "transitions": revision.transitions,
    }
    for table, rows in tables.items():
        for place, row in enumerate(rows):
            yield table, storable(head | {"number": place} | _fields(row))


def _evidence(number: int, line: bytes) -> Rows:
    row: Evidence = codec.read_line(Evidence, line)
    gain = row.gain if row.outcome.is_timed else None
    derived = {
        "time": row.at,
        "gain_units": None if gain is None else log_units(gain),
        "predicted_units": None if row.predicted_gain is None else log_units(row.predicted_gain),
    }
    yield "evidence", storable({"line": number} | _fields(row) | derived)


def _fields(row: State | Technique | Prior | Transition | Evidence | Revision) -> dict[str, object]:
    return {field.name: getattr(row, field.name) for field in dataclasses.fields(row)}
