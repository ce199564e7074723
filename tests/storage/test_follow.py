"""A started ingest follows the run folders by itself."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from storage.index import queries
from storage.index.database import Database
from storage.index.ingest import Ingest
from storage.run.events import BudgetWarned
from storage.run.journal import Journal
from storage.run.steering import commands
from storage.run.steering.verbs import CommandKind
from tests.samples import write_run

PATIENCE_S = 20.0


@pytest.fixture(params=["events", "poll"])
def ingest(
    request: pytest.FixtureRequest, db: Database, home: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Ingest]:
    monkeypatch.setenv("TILEWRIGHT_WATCH", request.param)
    following = Ingest(db)
    yield following
    following.stop()


def test_what_was_there_before_the_start_is_read(db: Database, root: Path, ingest: Ingest) -> None:
    write_run(root, depths=2)
    ingest.start()
    assert db.wait_until(lambda: queries.count_runs(db) == 1 and bool(queries.attempts(db, "sample")), PATIENCE_S)


def test_lines_runs_and_commands_are_seen_as_they_come(db: Database, home: Path, ingest: Ingest) -> None:
    ingest.start()
    run = write_run(home / "runs", "late", depths=2, ending="running")
    assert db.wait_until(lambda: queries.current_step(db, "late") is not None, PATIENCE_S)
    journal = Journal(run.journal_file)
    journal.append(BudgetWarned("tokens", 1.0, 2.0))
    journal.close()
    assert db.wait_until(
        lambda: any(isinstance(row.what, BudgetWarned) for row in queries.feed(db, "late")), PATIENCE_S
    )
    sent = commands.send(run.commands_file, CommandKind.PAUSE)
    assert db.wait_until(lambda: sent.command_id in [c.command_id for c in queries.commands(db, "late")], PATIENCE_S)


def test_a_deleted_run_goes_away(db: Database, root: Path, ingest: Ingest) -> None:
    write_run(root, depths=1)
    ingest.start()
    assert db.wait_until(lambda: queries.count_runs(db) == 1, PATIENCE_S)
    shutil.rmtree(root / "sample")
    assert db.wait_until(lambda: queries.count_runs(db) == 0, PATIENCE_S)


def test_a_stopped_ingest_can_be_started_again(db: Database, root: Path, ingest: Ingest) -> None:
    ingest.start()
    ingest.stop()
    write_run(root, depths=1)
    ingest.start()
    assert db.wait_until(lambda: queries.count_runs(db) == 1, PATIENCE_S)


def test_stopping_does_not_wait_for_the_next_look(
    db: Database, root: Path, ingest: Ingest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("storage.index.ingest._pause", lambda cost_s: 120.0)
    write_run(root, depths=1)
    ingest.start()
    assert db.wait_until(lambda: queries.count_runs(db) == 1, PATIENCE_S)
    started = time.monotonic()
    ingest.stop()
    assert time.monotonic() - started < 30


def test_an_idle_ingest_does_not_change_versions(db: Database, root: Path, ingest: Ingest) -> None:
    write_run(root, depths=1)
    ingest.start()
    assert db.wait_until(lambda: queries.count_runs(db) == 1, PATIENCE_S)
    ingest.catch_up()
    version = db.version
    assert not db.wait_until(lambda: db.version != version, 1.5)
