"""Runs in an index, and runs that grow while a test looks at them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from storage.index.database import Database, index_file, open_database
from storage.index.ingest import Ingest
from storage.run import events as ev
from storage.run.journal import Journal
from storage.run.settings import Origin
from tests.samples import write_run


@contextmanager
def index_of_run(home: Path, **run: Any) -> Iterator[Database]:
    """An index of one run, which is told as `write_run` is."""
    (home / "runs").mkdir()
    write_run(home / "runs", **run)
    with open_database(index_file(home)) as opened:
        Ingest(opened, home / "runs").catch_up()
        yield opened


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
