"""Steps tell what the loop does, in order."""

from __future__ import annotations

from pathlib import Path

from storage.index import queries
from storage.index.database import Database
from storage.run import events as ev
from storage.run.settings import DepthOutcome, RunState, StepKind
from tests.samples import write_run
from tests.storage.growth import created, grow


def test_the_step_in_flight_ends_with_the_run_and_goes_on_with_a_resume(db: Database, root: Path) -> None:
    grow(db, root, ev.EngineStarted(1, False), ev.StepStarted(1, StepKind.SYNTHESISE, 0, None))
    step = queries.current_step(db, "sample")
    assert step is not None
    assert (step.outcome, step.seconds) == (None, None)
    grow(db, root, ev.RunEnded(RunState.STOPPED, "stopped by a person", None))
    assert queries.current_step(db, "sample") is None
    assert queries.steps(db, "sample")[0].outcome == "interrupted"
    grow(db, root, ev.EngineStarted(2, True))
    assert (step := queries.current_step(db, "sample")) is not None
    assert step.started_at == 2e9
    grow(db, root, created(1, "c001"), ev.StepFinished(1, StepKind.SYNTHESISE, 4.0, "created"))
    assert queries.current_step(db, "sample") is None
    done = queries.steps(db, "sample")[0]
    assert (done.outcome, done.seconds, done.made_id, done.result.made_number) == ("created", 4.0, "c001", 1)


def test_several_steps_are_in_flight_where_several_step_indexes_are_at_work(db: Database, root: Path) -> None:
    write_run(root, ending="new", width=3)
    begun = [ev.StepStarted(number, StepKind.SYNTHESISE, number - 1, None) for number in (1, 2, 3)]
    grow(db, root, ev.EngineStarted(1, False), *begun, ev.StepFinished(2, StepKind.SYNTHESISE, 4.0, "patch_failed"))
    assert [row.step for row in queries.steps(db, "sample") if row.is_in_flight] == [3, 1]
    given_up = ev.DepthFinished(2, 1, DepthOutcome.GIVEN_UP, None, None, False, False, "the reply holds no kernel")
    grow(db, root, given_up, ev.StepStarted(4, StepKind.SYNTHESISE, 3, None))
    assert [row.step for row in queries.steps(db, "sample") if row.is_in_flight] == [4, 3, 1]
    assert (step := queries.current_step(db, "sample")) is not None
    assert step.step == 4


def test_a_resumed_run_is_running_again(db: Database, root: Path) -> None:
    grow(db, root, ev.RunEnded(RunState.FAILED, "no compiler", None), ev.EngineStarted(2, True))
    assert (run := queries.run(db, "sample")) is not None
    assert (run.state, run.ended_at) == (RunState.RUNNING, None)


def test_steps_can_be_followed_from_the_last_one_seen(sample: Database) -> None:
    everything = queries.steps(sample, "sample", newest_first=False, limit=1000)
    assert [step.step for step in everything] == list(range(1, len(everything) + 1))
    assert queries.steps(sample, "sample", everything[9].seq, 2, newest_first=False) == everything[10:12]
