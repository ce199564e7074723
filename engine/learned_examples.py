"""What the shipped examples show of techniques, for a knowledge base that has nothing of its own yet. Knows no page."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from engine import examples
from engine.errors import EngineError
from engine.knowledge import evidence
from storage import read_only
from storage.knowledge import files
from storage.knowledge.records import Evidence

ORIGIN = "examples"


def learn_from_examples() -> int:
    """Keep the attempts of the shipped examples, those that are kept already apart; returns how many were new.

    Raises:
        EngineError: this server is read-only, or an example is damaged.
        OSError: the disk is full or may not be written.
    """
    read_only.guard(EngineError, "change what is known")
    before = len(files.load().attempts)
    files.append_evidence(row for example in examples.shipped_examples() for row in _rows(example.run_id))
    return len(files.load().attempts) - before


def _rows(run_id: str) -> Iterator[Evidence]:
    contents = examples.example_files(run_id)
    record = examples.record_of(contents)
    ended_at = examples.entries_of(contents)[-1].time  # an attempt is as old as its run, not as its taking over
    told = evidence.rows(record, lambda blob: contents[f"blobs/{blob}"].decode(), ended_at, is_ending=True)
    yield from (replace(row, origin=ORIGIN) for row in told)
