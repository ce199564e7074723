"""Runs that grow while a test looks at them."""

from __future__ import annotations

from pathlib import Path

from storage import events as ev
from storage.database import Database
from storage.ingest import Ingest
from storage.journal import Journal
from storage.records import (
    Origin,
)
from tests.samples import write_run


def grow(db: Database, root: Path, *news: ev.Event, run_id: str = "sample") -> None:
    """Append events to a run that is there, or to one that has just begun."""
    if not (root / run_id).exists():
        write_run(root, run_id, ending="new")
    journal = Journal(root / run_id / "journal.jsonl", clock=lambda: 2e9)
    for event in news:
        journal.append(event)
    journal.close()
    Ingest(db, root).catch_up()


def created(step: int, name: str, parent: str | None = None) -> ev.CandidateCreated:
    return ev.CandidateCreated(step, name, parent, None, 0, 0, 0, Origin.SYNTHESIS, "s", None, 1, 0, "")
