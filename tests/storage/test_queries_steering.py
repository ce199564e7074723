"""Commands are shown from the asking to the effect."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from storage.index import queries
from storage.index.database import Database
from storage.index.ingest import Ingest
from storage.run import events as ev
from storage.run.settings import DepthOutcome, StepKind, Switch
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


def test_a_mark_stands_behind_what_was_there_before_it_and_stays_when_the_run_goes_on(db: Database, root: Path) -> None:
    def given(name: str, kind: CommandKind, argument: str, step: int) -> None:
        command = Command(name, kind, argument, "ada", 5.0)
        grow(db, root, ev.CommandAcknowledged(command, step), ev.CommandEffective(name, step, ""))

    def ended(depth: int, name: str) -> ev.DepthFinished:
        return ev.DepthFinished(depth + 2, depth, DepthOutcome.ACCEPTED, name, None, False, True, "")

    def places() -> dict[CommandKind, float]:
        return {mark.kind: round(mark.x or 0.0, 2) for mark in queries.steering_marks(db, "sample")}

    write_run(root, ending="new")
    grow(db, root, ev.StepStarted(1, StepKind.SYNTHESISE, 0, None), created(1, "c001"), ended(0, "c001"))
    given("a", CommandKind.BAN, "atomics", 2)
    grow(db, root, ev.StepStarted(2, StepKind.OPTIMISE, 1, "c001"))
    given("b", CommandKind.COLLECT, "on", 2)
    grow(db, root, replace(created(2, "c002"), depth=1))
    given("c", CommandKind.EXPOSE, "on", 3)
    before = {CommandKind.BAN: 0.28, CommandKind.COLLECT: 0.28, CommandKind.EXPOSE: 1.1}
    assert places() == before, "a later command of the same depth has a place of its own"
    grow(db, root, ended(1, "c002"))
    given("d", CommandKind.ROLL_BACK, "c001", 3)
    assert places() == before | {CommandKind.ROLL_BACK: 1.28}
    assert queries.waiting_roll_back(db, "sample") == "c001"
    grow(db, root, ev.StepStarted(3, StepKind.OPTIMISE, 2, "c001"), replace(created(3, "c003"), depth=2))
    assert places() == before | {CommandKind.ROLL_BACK: 1.28}
    assert queries.waiting_roll_back(db, "sample") is None


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
