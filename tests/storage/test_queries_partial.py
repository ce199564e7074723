"""Questions have answers when there is nothing, half of something, or very much."""

from __future__ import annotations

from pathlib import Path

import pytest

from storage.index import queries
from storage.index.database import SCHEMA, Database
from storage.index.ingest import Ingest
from storage.index.memory import Memory
from storage.results.vocabulary import KernelClass
from storage.run import liveness
from storage.run.events import StateChanged, StepFinished, StepStarted
from storage.run.journal import Journal
from storage.run.settings import RunState, StepKind
from storage.run.steering.steering_state import SteeringState
from tests.samples import write_run
from tests.storage.growth import grow
from tests.storage.questions import ask_everything


def test_an_empty_index_answers_everything(db: Database) -> None:
    assert queries.overview(db) == []
    assert queries.count_runs(db) == 0
    assert queries.overview_version(db) == 0
    answers = ask_everything(db, "nothing")
    assert answers.pop("steering_state") == SteeringState()
    assert not any(answers.values())


def test_a_run_that_has_just_begun_is_starting_with_nothing_yet(db: Database, root: Path) -> None:
    write_run(root, ending="new")
    Ingest(db, root).catch_up()
    run = queries.run(db, "sample")
    assert run is not None
    assert (run.state, run.kernel_class, run.depth, run.depths) == (RunState.STARTING, KernelClass.MATMUL, None, 8)
    assert (run.best_speedup, run.curve, run.cost_usd, run.tokens) == (None, [], 0.0, 0)
    assert (run.attempts, run.passed, run.failed, run.last_error) == (0, 0, 0, "")
    assert run.ended_at is None


ASKED_EVERY = 23  # a prime to the pattern of a depth's events; asking after each takes long


def test_a_journal_cut_after_many_a_line_answers_everything_and_remembers_nothing_old(db: Database, root: Path) -> None:
    run = write_run(root, depths=2)
    lines = run.journal_file.read_bytes().splitlines(keepends=True)
    run.journal_file.write_bytes(b"")
    ingest = Ingest(db, root)
    best: list[float] = []
    for number, line in enumerate(lines, 1):
        with open(run.journal_file, "ab") as file:
            file.write(line)
        if number % ASKED_EVERY and number < len(lines):
            continue
        ingest.catch_up()
        kept = db.memory
        answers = ask_everything(db, "sample")
        db.memory = Memory(SCHEMA)
        assert ask_everything(db, "sample") == answers
        db.memory = kept
        row = answers["run"]
        assert row.curve == sorted(row.curve)
        assert row.curve[: len(best)] == best
        best = row.curve
    assert len(best) == 2


@pytest.mark.parametrize("ending", ["finished", "stopped", "failed", "waiting", "paused", "running"])
def test_every_state_answers_everything(db: Database, root: Path, ending: str) -> None:
    write_run(root, ending=ending)
    Ingest(db, root).catch_up()
    run = ask_everything(db, "sample")["run"]
    assert run.state == ending
    assert (run.ended_at is not None) == run.state.is_finished
    assert bool(run.waiting_reason) == (ending == "waiting")


def test_a_lost_run_still_says_running_and_its_lock_is_free(db: Database, root: Path) -> None:
    folder = write_run(root, ending="running")
    Ingest(db, root).catch_up()
    run, step = queries.run(db, "sample"), queries.current_step(db, "sample")
    assert run is not None
    assert run.state is RunState.RUNNING
    assert step is not None
    assert not liveness.is_held(folder)


def test_fifteen_hundred_iterations_are_all_there(db: Database, root: Path) -> None:
    write_run(root, depths=820, has_blobs=False)
    write_run(root, "small", depths=2)
    Ingest(db, root).catch_up()
    attempts, run = queries.attempts(db, "sample"), queries.run(db, "sample")
    assert run is not None
    assert len(attempts) == run.attempts > 1500
    assert [attempt.number for attempt in attempts] == list(range(1, len(attempts) + 1))
    assert run.passed + run.failed == len(attempts)
    assert len(queries.depths(db, "sample")) == run.depths == 820
    steps = queries.steps(db, "sample", limit=1_000_000)
    with db.reader() as cursor:
        begun = cursor.execute("SELECT count(*) FROM steps WHERE run_id = 'sample'").fetchone()
    assert begun == (len(steps),)
    assert len({step.step for step in steps}) == len(steps)
    assert len(queries.attempts(db, "small")) == 4
    assert queries.steps(db, "sample", limit=3) == steps[:3]


def test_runs_are_shown_newest_first_and_in_pages(db: Database, root: Path) -> None:
    for number in range(5):
        write_run(root, f"run-{number}", ending="new", created_at=1e9 + number)
    Ingest(db, root).catch_up()
    names = [run.run_id for run in queries.overview(db)]
    assert names == ["run-4", "run-3", "run-2", "run-1", "run-0"]
    assert [run.run_id for run in queries.overview(db, limit=2, offset=2)] == names[2:4]
    assert queries.count_runs(db) == 5


def test_kernels_keep_their_numbers_where_the_line_of_an_earlier_one_is_lost(db: Database, root: Path) -> None:
    run = write_run(root, depths=4)
    lines = run.journal_file.read_bytes().splitlines(keepends=True)
    at = next(i for i, line in enumerate(lines) if b'"kind":"CandidateCreated"' in line)
    run.journal_file.write_bytes(b"".join([*lines[:at], b"?\n", *lines[at + 1 :]]))
    Ingest(db, root).catch_up()
    attempts = queries.attempts(db, "sample")
    assert [a.number for a in attempts] == list(range(2, len(attempts) + 2))
    assert [a.candidate_id for a in attempts] == [f"c{a.number:03d}" for a in attempts]
    assert 2 in [step.result.number for step in queries.steps(db, "sample", limit=500)]
    ask_everything(db, "sample")


def test_engine_time_is_one_figure_and_leaves_out_pauses_waits_and_dead_time(db: Database, root: Path) -> None:
    grow(
        db, root, StepStarted(1, StepKind.COMPILE, 0, None), StepFinished(1, StepKind.COMPILE, 7.5, "passed"),
        StateChanged(RunState.PAUSED, ""), StateChanged(RunState.RUNNING, ""), StepStarted(2, StepKind.CHECK, 0, None),
    )  # fmt: skip
    book = Journal(root / "sample" / "journal.jsonl", clock=lambda: 2e9 + 3600)
    book.append(StateChanged(RunState.WAITING, "no model"))
    book.append(StateChanged(RunState.RUNNING, ""))
    book.close()
    Ingest(db, root).catch_up()
    step, run, allowed = queries.current_step(db, "sample"), queries.run(db, "sample"), queries.allowance(db, "sample")
    assert step is not None
    assert step.started_at == 2e9 + 3600, "the clock of a step starts again when a person has been waited for"
    assert run is not None
    assert allowed is not None
    (known,) = queries.conditions(db, ["sample"])
    assert run.engine_s == allowed.spent_s == known.engine_s == 7.5
