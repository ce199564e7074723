"""Commands are shown from the asking to the effect."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from storage.index import queries
from storage.index.database import Database
from storage.index.ingest import Ingest
from storage.run import events as ev
from storage.run.settings import StepKind, Switch
from storage.run.steering.verbs import Command, CommandKind
from tests.samples import write_run
from tests.storage.growth import created, grow


def test_a_command_is_followed_from_the_asking_to_the_effect(db: Database, root: Path) -> None:
    folder = write_run(root, ending="new")
    command = Command("a1", CommandKind.EXPOSE, "on", "ada", 5.0)
    folder.commands_file.write_text(
        '{"command_id":"a1","kind":"expose","argument":"on","asked_by":"ada","asked_at":5.0}\n'
    )
    Ingest(db, root).catch_up()
    assert queries.commands(db, "sample") == [
        queries.CommandRow("a1", CommandKind.EXPOSE, "on", "ada", 5.0, None, None, None, None, "")
    ]
    assert queries.steering_state(db, "sample").expose is Switch.AUTO
    grow(db, root, ev.CommandAcknowledged(command, 1), ev.StepStarted(1, StepKind.SYNTHESISE, 3, None))
    assert queries.commands(db, "sample")[0].acknowledged_at == 2e9
    assert queries.steering_marks(db, "sample") == []
    grow(db, root, ev.CommandEffective("a1", 1, "from depth 3"))
    row = queries.commands(db, "sample")[0]
    assert (row.effective_at, row.effective_step, row.note) == (2e9, 1, "from depth 3")
    assert queries.steering_state(db, "sample").expose is Switch.ON
    assert [(mark.depth, mark.kind) for mark in queries.steering_marks(db, "sample")] == [(3, CommandKind.EXPOSE)]


def test_a_stop_stands_right_of_all_that_came_before_it_also_once_the_run_goes_on(db: Database, root: Path) -> None:
    write_run(root, ending="new")
    grow(db, root, ev.StepStarted(1, StepKind.SYNTHESISE, 0, None))
    grow(db, root, created(1, "c001"), *(replace(created(n, f"c00{n}"), depth=1) for n in (2, 3)))
    stop = Command("s", CommandKind.STOP, "", "ada", 5.0)
    grow(db, root, ev.CommandAcknowledged(stop, 4), ev.CommandEffective("s", 4, ""))
    (mark,) = queries.steering_marks(db, "sample")
    assert mark.x is not None
    assert 1 < mark.x < 1.3
    grow(db, root, ev.StepStarted(4, StepKind.OPTIMISE, 2, "c003"), replace(created(4, "c004"), depth=2))
    assert queries.steering_marks(db, "sample") == [replace(mark, depth=2)]


def test_a_refused_command_says_why_and_changes_nothing(db: Database, root: Path) -> None:
    write_run(root, ending="waiting")
    Ingest(db, root).catch_up()
    refused = next(row for row in queries.commands(db, "sample") if row.refused_at)
    assert (refused.kind, refused.note) == (CommandKind.ROLL_BACK, "this run has no kernel c999")
    assert all(mark.kind is not CommandKind.ROLL_BACK for mark in queries.steering_marks(db, "sample"))


def test_a_hint_waits_until_a_prompt_has_carried_it(db: Database, root: Path) -> None:
    hint = Command("h", CommandKind.HINT, "use swizzles", "ada", 5.0)
    grow(db, root, ev.CommandAcknowledged(hint, 1))
    assert queries.pending_hints(db, "sample") == ("use swizzles",)
    grow(db, root, ev.CommandEffective("h", 2, "in the prompt of step 2"))
    assert queries.pending_hints(db, "sample") == ()
