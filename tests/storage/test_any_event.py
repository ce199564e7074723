"""Whatever an event may hold, it can be indexed and every page's question can be answered."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from storage.index import queries
from storage.index.database import Database
from storage.index.ingest import Ingest
from storage.run.journal import Entry
from tests.examples import examples
from tests.samples import as_line, sample_settings, write_run
from tests.storage.event_strategies import KINDS, any_event
from tests.storage.questions import ask_everything


@pytest.mark.parametrize("part", range(4))
@settings(max_examples=examples(5), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_event_a_record_allows_is_indexed(db: Database, root: Path, part: int, data: st.DataObject) -> None:
    """Several kinds in one journal: asking everything takes longer than to draw them."""
    if not (root / "any").exists():
        write_run(root, "any", ending="new")
    kinds = KINDS[part::4] * 2
    lines = [as_line(Entry(number, 1.5, data.draw(any_event(kind)))) for number, kind in enumerate(kinds, 1)]
    (root / "draft").write_bytes(b"".join(lines))
    (root / "draft").replace(root / "any" / "journal.jsonl")
    Ingest(db, root).catch_up()
    assert queries.problems(db) == []
    assert len(queries.events(db, "any")) == len(kinds)
    assert ask_everything(db, "any")["run"].task_name == sample_settings("any").task_name
