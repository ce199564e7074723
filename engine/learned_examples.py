"""What the shipped examples show of techniques, for a knowledge base that has nothing of its own yet. Knows no page."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import replace

from engine import examples
from engine.errors import EngineError
from engine.knowledge import evidence
from storage import codec, read_only, untrusted
from storage.knowledge import files
from storage.knowledge.records import Evidence
from storage.run import journal
from storage.run.record import Record
from storage.run.settings import RunSettings

ORIGIN = "examples"


def learn_from_examples() -> int:
    """Keep the attempts of the shipped examples, those that are kept already apart; returns how many were new.

    Raises:
        EngineError: this server is read-only, or an example is damaged.
        OSError: the disk is full or may not be written.
    """
    read_only.guard(EngineError, "change what is known")
    return files.append_evidence(row for example in examples.shipped_examples() for row in _rows(example.run_id))


def _rows(run_id: str) -> Iterator[Evidence]:
    contents = examples.example_files(run_id)
    record = _record(contents)
    told = evidence.rows(record, lambda blob: contents[f"blobs/{blob}"].decode(), time.time(), is_ending=True)
    yield from (replace(row, origin=ORIGIN) for row in told)


def _record(contents: Mapping[str, bytes]) -> Record:
    reader = journal.Reader()
    entries = [entry for line in contents["journal.jsonl"].split(b"\n") if (entry := reader.take(line)[0])]
    settings = codec.from_plain(RunSettings, untrusted.json_value(contents["run.json"], "run.json"))
    return Record.of(settings, entries)
