"""Choosing among runs: what is left in, what comes first, how many there are."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from storage import codec
from storage.index import queries
from storage.index.database import Database, index_file, open_database
from storage.index.ingest import Ingest
from storage.index.queries import RunFilter, RunSort
from tests import samples


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Database:
    home = tmp_path_factory.mktemp("listing")
    for seed, ending in enumerate(samples.ENDINGS):
        samples.write_run(home / "runs", f"r{seed}-{ending}", seed=seed, depths=3, ending=ending, created_at=1e9 + seed)
    opened = open_database(index_file(home))
    Ingest(opened, home / "runs").catch_up()
    return opened


def ids(db: Database, sort: RunSort = RunSort.NEWEST, **fields: Any) -> list[str]:
    return queries.listing(db, RunFilter(**fields), sort).run_ids


def test_the_newest_run_comes_first_and_pages_follow_each_other(db: Database) -> None:
    everything = ids(db)
    assert everything[0] == "r6-new"
    assert everything[-1] == "r0-finished"
    second = queries.listing(db, limit=3, offset=3)
    assert second.run_ids == everything[3:6]
    assert second.total == 7
    beyond = queries.listing(db, limit=3, offset=60)
    assert (beyond.run_ids, beyond.total) == ([], 7)


def test_a_filter_leaves_in_what_fits_all_of_it(db: Database) -> None:
    assert ids(db, state="waiting") == ["r2-waiting"]
    assert ids(db, task="softmax") == ["r4-failed", "r1-running"]
    assert ids(db, task="softmax", state="failed") == ["r4-failed"]
    assert ids(db, text="SQUARE m") == ["r6-new", "r3-stopped", "r0-finished"]
    assert ids(db, text="r3-") == ["r3-stopped"]
    assert ids(db, model="no such model") == []
    assert ids(db, text="100%") == []


def test_a_run_without_an_engine_is_found_as_lost_and_not_as_running(db: Database) -> None:
    assert queries.unfinished_runs(db) == ["r1-running", "r2-waiting", "r5-paused", "r6-new"]
    found = queries.listing(db, RunFilter(state="lost"), lost=["r1-running"])
    assert found.run_ids == ["r1-running"]
    assert queries.listing(db, RunFilter(state="running"), lost=["r1-running"]).run_ids == []


@pytest.mark.parametrize("sort", RunSort)
def test_every_order_lists_every_run_once(db: Database, sort: RunSort) -> None:
    assert sorted(ids(db, sort)) == sorted(ids(db))


def test_orders_put_the_largest_first_and_the_unknown_last(db: Database) -> None:
    best = [row.best_speedup for row in queries.of_ids(db, ids(db, RunSort.BEST))]
    known = [value for value in best if value is not None]
    assert known == sorted(known, reverse=True)
    assert best[: len(known)] == known
    rates = [row.failed / max(1, row.passed + row.failed) for row in queries.of_ids(db, ids(db, RunSort.ERRORS))]
    assert rates == sorted(rates, reverse=True)


def test_rows_come_in_the_order_asked_for_and_say_on_what_they_ran(db: Database) -> None:
    wanted = ["r3-stopped", "r0-finished", "gone", "r5-paused"]
    found = queries.of_ids(db, wanted)
    assert [row.run_id for row in found] == ["r3-stopped", "r0-finished", "r5-paused"]
    assert found[1].device
    assert queries.titles(db, wanted) == {row.run_id: row.title for row in found}


def test_there_is_a_choice_of_every_task_and_model(db: Database) -> None:
    found = queries.choices(db)
    assert found.tasks == ["softmax", "square_matmul", "swish"]
    assert found.models == ["recorded-replies"]


def test_a_run_is_found_and_grouped_by_the_model_that_the_list_tells(tmp_path: Path) -> None:
    for name in ("recorded", "handed-in", "own"):
        folder = samples.write_run(tmp_path / "runs", name, depths=1)
        text = folder.settings_file.read_text().replace('"recorded-replies"', '"recorded"')
        folder.settings_file.write_text(
            text.replace('"is_example": false', f'"is_example": {str(name != "own").lower()}')
        )
        if name != "recorded":  # a later reply was a person's, or handed in as one
            lines = folder.journal_file.read_text().splitlines(keepends=True)
            last = max(number for number, line in enumerate(lines) if '"ModelCalled"' in line)
            lines[last] = lines[last].replace('"model":"recorded-replies"', '"model":"manual"')
            folder.journal_file.write_text("".join(lines))
    with open_database(index_file(tmp_path)) as db:
        Ingest(db, tmp_path / "runs").catch_up()
        assert queries.choices(db).models == ["handed in", "manual", "recorded"]
        assert [ids(db, model=name) for name in queries.choices(db).models] == [["handed-in"], ["own"], ["recorded"]]
        assert {row.name: row.runs for row in queries.groups(db, queries.GroupBy.MODEL)} == {
            "handed in": 1, "manual": 1, "recorded": 1,
        }  # fmt: skip


def test_an_empty_index_lists_nothing(tmp_path: Path) -> None:
    with open_database(index_file(tmp_path)) as empty:
        assert queries.listing(empty).run_ids == []
        assert queries.choices(empty).tasks == []
        assert queries.unfinished_runs(empty) == []


def test_examples_come_after_own_runs_those_to_begin_with_before_those_that_show_most_and_the_others(
    tmp_path: Path,
) -> None:
    # After eight depths torch.compile is still faster than the best kernel, after sixteen it is not.
    runs = {"own": 1, "second": 1, "first": 1, "full": 16, "stopped": 16, "beaten": 8}
    for age, (name, depths) in enumerate(runs.items()):
        ending = "stopped" if name == "stopped" else "finished"
        folder = samples.write_run(tmp_path / "runs", name, depths=depths, created_at=1e9 + age, ending=ending)
        if name != "own":
            folder.settings_file.write_text(codec.dumps(replace(folder.read_settings(), is_example=True)))
    with open_database(index_file(tmp_path)) as db:
        Ingest(db, tmp_path / "runs").catch_up()
        lead = ["first", "gone", "second"]
        listed = queries.listing(db, lead=lead).run_ids
        assert listed == ["own", "first", "second", "full", "beaten", "stopped"]
        assert queries.listing(db, sort=RunSort.OLDEST, lead=lead).run_ids == list(runs)
