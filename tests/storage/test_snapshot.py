"""A snapshot shows the index as it stood."""

from __future__ import annotations

from pathlib import Path

from storage.index import queries
from storage.index.database import Database, Snapshot
from storage.index.ingest import Ingest
from storage.run import events as ev
from storage.run.settings import RunState
from tests.samples import write_run
from tests.storage.growth import grow


def test_a_snapshot_keeps_what_was_there_while_the_index_goes_on(db: Database, root: Path) -> None:
    write_run(root, depths=2, ending="running")
    Ingest(db, root).catch_up()
    still = Snapshot(db)
    seq, version = queries.last_seq(still, "sample"), queries.version(still, "sample")
    grow(db, root, ev.StateChanged(RunState.PAUSED, "a pause"), ev.StateChanged(RunState.RUNNING, "on again"))
    assert queries.last_seq(still, "sample") == seq
    assert queries.version(still, "sample") == version != queries.version(db, "sample")
    assert queries.count_events(db, "sample", seq) == 2
    assert queries.count_events(still, "sample", seq) == 0
    still.close()
    assert queries.last_seq(db, "sample") == seq + 2
