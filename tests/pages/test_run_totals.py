"""The figures above the list of runs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from pages.parts import index
from storage.index import queries
from storage.run import events as ev
from storage.run.folder import RunFolder
from storage.run.journal import Journal
from tests.pages.conftest import Open, everything
from tests.samples import write_run
from tests.storage.test_queries import timed


def add(run: RunFolder, events: list[ev.Event]) -> None:
    journal = Journal(run.journal_file)
    for event in events:
        journal.append(event)
    journal.close()


def test_the_best_of_all_runs_is_that_of_their_rows_while_kernels_are_timed(
    home: Path, open_page: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = write_run(home / "runs", "sample", ending="new")
    add(run, timed(1, "c001", 1.25))
    list_runs, news = queries.listing, [timed(2, "c002", 1.75)]

    def while_timed(*given: Any) -> queries.Listing:
        if news:
            add(run, news.pop())
            index.ingest().catch_up()
        return list_runs(*given)

    monkeypatch.setattr(queries, "listing", while_timed)
    said = everything(open_page("overview"))
    assert {best for best, _ in re.findall(r"(1\.[27]5)(×|\\+u00d7)", said)} == {"1.75"}
