"""Several runs side by side: what each had reached after how much work."""

from __future__ import annotations

from pathlib import Path

import pytest

from storage.index import queries
from storage.index.database import Database
from storage.index.ingest import Ingest
from storage.run import events as ev
from storage.run.journal import read
from tests.samples import write_run


@pytest.fixture
def filled(db: Database, home: Path) -> Database:
    for name, seed in (("one", 1), ("two", 4)):
        write_run(home / "runs", name, seed=seed)
    write_run(home / "runs", "new", ending="new")
    Ingest(db, home / "runs").catch_up()
    return db


def test_each_depth_knows_the_best_so_far_and_what_was_spent_until_then(filled: Database, home: Path) -> None:
    rows = [row for row in queries.reached(filled, ["one", "two"]) if row.run_id == "one"]
    run = queries.run(filled, "one")
    assert run is not None
    bests = [row.best_speedup for row in rows if row.best_speedup is not None]
    assert bests == sorted(bests)
    assert bests[-1] == run.best_speedup
    spans = [row.engine_s for row in rows]
    assert spans == sorted(spans)
    calls = [e.event for e in read(home / "runs" / "one" / "journal.jsonl") if isinstance(e.event, ev.ModelCalled)]
    last = rows[-1]
    assert (last.calls, last.tokens) == (len(calls), sum((c.input_tokens or 0) + (c.output_tokens or 0) for c in calls))
    assert last.cost_usd == pytest.approx(0.012 * len(calls))


def test_every_timed_kernel_is_there_with_its_number(filled: Database) -> None:
    rows = queries.timed_kernels(filled, ["two"])
    attempts = {a.candidate_id: a for a in queries.attempts(filled, "two") if a.speedup is not None}
    assert {row.candidate_id: (row.number, row.speedup) for row in rows} == {
        name: (a.number, a.speedup) for name, a in attempts.items()
    }


def test_an_unknown_price_makes_the_cost_unknown_and_not_zero(db: Database, home: Path) -> None:
    folder = write_run(home / "runs", "unpriced")
    text = folder.journal_file.read_text().replace('"cost_usd":0.012', '"cost_usd":null')
    folder.journal_file.write_text(text)
    Ingest(db, home / "runs").catch_up()
    assert {row.cost_usd for row in queries.reached(db, ["unpriced"])} == {None}
    assert queries.conditions(db, ["unpriced"])[0].cost_usd is None
    assert queries.reached(db, ["unpriced"])[-1].tokens


def test_conditions_tell_device_precision_and_when_profiles_were_shown(filled: Database) -> None:
    found = {row.run_id: row for row in queries.conditions(filled, ["one", "two", "new"])}
    one, two, new = found["one"], found["two"], found["new"]
    assert (one.device, one.baseline, one.exposed_at) == ("sample device", "eager", 3)
    assert two.engine_s > 0
    assert (new.device, new.exposed_at, new.engine_s, new.cost_usd) == ("", None, 0.0, 0.0)


def test_nothing_chosen_gives_nothing(filled: Database) -> None:
    assert (queries.reached(filled, []), queries.timed_kernels(filled, []), queries.conditions(filled, ["no"])) == (
        [],
        [],
        [],
    )
    assert [choice.run_id for choice in queries.comparable_runs(filled)]


def test_every_kernel_of_the_model_that_was_judged_and_every_step_without_one_is_a_try(
    filled: Database, home: Path
) -> None:
    events = [entry.event for entry in read(home / "runs" / "one" / "journal.jsonl")]
    useless = [e for e in events if isinstance(e, ev.StepFinished) and e.outcome == "patch_failed"]
    made = [row for row in queries.attempts(filled, "one") if row.verdict is not None and row.origin != "manual"]
    rows = queries.tries(filled, ["one", "new"])
    assert {row.run_id for row in rows} == {"one"}
    assert sorted(row.step for row in rows) == sorted([e.step for e in useless] + [row.step for row in made])
    assert sum(row.is_passed for row in rows) == sum(row.verdict == "passed" for row in made)
    assert all(row.prompt_blob for row in rows)
