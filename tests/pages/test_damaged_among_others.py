"""One run whose files are damaged in any way is shown as damaged, and all others as ever."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from pages.parts import index
from pages.parts.api import api_answers
from pages.parts.status import damaged
from storage.index import queries
from storage.index.ingest import Ingest
from storage.index.queries import RunFilter, RunSort
from tests.damaged_runs import DAMAGE, HARMLESS
from tests.pages.conftest import Open, words
from tests.samples import write_run

PAGES = ("overview", "compare", "system", "models")


@pytest.fixture
def followed(home: Path) -> Iterator[Ingest]:
    """The index of the home, read when a test says so."""
    yield index.open_index().ingest
    index.close_index()


def listed() -> dict[str, list[str]]:
    """The damage of each run that the API lists."""
    return {row["run"]: row["damage"] for row in api_answers.listed(RunFilter(), RunSort.NEWEST, 50, 0)[0]}


@pytest.mark.parametrize("kind", DAMAGE)
def test_one_damaged_run_hides_no_other(kind: str, home: Path, followed: Ingest) -> None:
    for number in range(2):
        write_run(home / "runs", f"whole-{number}", seed=number, depths=2)
    DAMAGE[kind](write_run(home / "runs", "broken", seed=3, depths=6))
    followed.catch_up()
    shown = listed()
    assert shown["whole-0"] == shown["whole-1"] == []
    if "broken" in shown:
        assert bool(shown["broken"]) == (kind not in HARMLESS)
        assert damaged.of("broken").is_damaged == (kind not in HARMLESS)
    else:
        assert [one.run_id for one in queries.problems(index.current()) if one.file == "run.json"] == ["broken"]
    write_run(home / "runs", "later", depths=2)
    followed.catch_up()
    assert queries.run(index.current(), "later") is not None


def test_pages_over_all_runs_are_drawn_beside_every_kind_of_damage(home: Path, open_page: Open) -> None:
    write_run(home / "runs", "whole", depths=2)
    for number, spoil in enumerate(DAMAGE.values()):
        spoil(write_run(home / "runs", f"broken-{number}", seed=3, depths=6))
    for page in PAGES:
        app = open_page(page)
        assert not app.exception, page
    for number in range(0, len(DAMAGE), 3):
        app = open_page("run", run=f"broken-{number}")
        assert not app.exception, number
        assert "cannot be read" in words(app) or list(DAMAGE)[number] in HARMLESS
    assert listed()["whole"] == []
    assert api_answers.prometheus_text()


def test_a_thread_that_reads_run_folders_and_ends_is_told_on_every_page_and_to_machines(
    home: Path, open_page: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_run(home / "runs", "whole", depths=2)
    open_page()
    ended = threading.Thread(target=lambda: None)
    ended.start()
    ended.join()
    monkeypatch.setattr(index.ingest(), "_thread", ended)
    for page in PAGES:
        assert "**What is shown here is not up to date.**" in words(open_page(page))
    assert b"tilewright_ingest_failing 1.0" in api_answers.prometheus_text()
