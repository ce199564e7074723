"""What people have set holds until it is lifted or used up, and what each command led to is told from the journal."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from storage import events as ev
from storage import queries
from storage.database import Database
from storage.ingest import Ingest
from storage.records import Command, CommandKind, Origin, Role, StepKind, TimingResult
from tests.samples import write_run
from tests.storage.growth import grow


@dataclass
class Steered:
    """A run with two kernels that grows by commands and by what follows from them."""

    db: Database
    root: Path
    step: int = 100
    names: list[str] = field(default_factory=list)

    def tell(self, *events: ev.Event) -> None:
        grow(self.db, self.root, *events)

    def command(self, kind: CommandKind, argument: str = "", is_settled: bool = True) -> str:
        name = f"k{len(self.names)}"
        self.names.append(name)
        self.tell(ev.CommandAcknowledged(Command(name, kind, argument, "ada", 1.0), self.step))
        if is_settled:
            self.tell(ev.CommandEffective(name, self.step, ""))
        return name

    def optimise(self, base: str, model: str = "m", exposed: bool = False) -> None:
        self.step += 1
        self.tell(
            ev.StepStarted(self.step, StepKind.OPTIMISE, 7, base),
            ev.ModelCalled(
                self.step, 0, Role.OPTIMISE, 7, base, model, "p", "r", 1, 1, 0, 0, 0.0, 1.0, "stop", exposed
            ),
            ev.StepFinished(self.step, StepKind.OPTIMISE, 1.0, "patch_failed"),
        )

    @property
    def orders(self) -> queries.OrdersRow:
        return queries.orders(self.db, "sample")

    @property
    def effects(self) -> dict[str, str]:
        return queries.effects(self.db, "sample")


@pytest.fixture
def run(db: Database, root: Path) -> Steered:
    write_run(root, ending="new")
    Ingest(db, root).catch_up()
    steered = Steered(db, root)
    for name in ("c001", "c002"):
        created = ev.CandidateCreated(1, name, None, None, 0, 0, 0, Origin.SYNTHESIS, "b", None, 1, 0, name)
        steered.tell(created, ev.Timed(1, name, TimingResult((1.0,), (2.0,))))
    return steered


def test_a_base_holds_until_a_depth_starts_from_it_and_the_depth_is_named(run: Steered) -> None:
    name = run.command(CommandKind.SET_BASE, "c002")
    assert run.orders.next_base == "c002"
    assert name not in run.effects
    run.optimise("c002")
    assert run.orders.next_base is None
    assert run.effects[name] == "depth 7 started from kernel 2 at step 101"


def test_a_pin_holds_until_it_is_lifted_or_rolled_back_over(run: Steered) -> None:
    run.command(CommandKind.PIN, "c001")
    run.optimise("c001")
    assert run.orders.pinned == "c001"
    run.command(CommandKind.UNPIN)
    assert run.orders.pinned is None
    run.command(CommandKind.PIN, "c001")
    run.command(CommandKind.ROLL_BACK, "c002")
    assert run.orders == queries.OrdersRow()


def test_rules_are_counted_in_the_prompts_that_carried_them(run: Steered) -> None:
    ban = run.command(CommandKind.BAN, "atomics")
    run.command(CommandKind.REQUIRE, "not yet read", is_settled=False)
    run.optimise("c001")
    run.optimise("c001")
    assert [str(rule) for rule in run.orders.rules] == ["must not use: atomics"]
    run.command(CommandKind.LIFT, ban)
    run.optimise("c001")
    assert run.orders.rules == ()
    assert run.effects[ban] == "in the prompts of 2 steps, first of step 101"


def test_a_model_and_a_profile_switch_are_told_by_the_call_that_followed(run: Steered) -> None:
    model, expose = run.command(CommandKind.SET_MODEL, "other temperature=0"), run.command(CommandKind.EXPOSE, "on")
    run.optimise("c001", "other", exposed=True)
    assert run.orders.model == "other"
    assert run.effects[model] == "step 101 was answered by other"
    assert run.effects[expose] == "the prompt of step 101 showed a profile"


def test_a_kernel_by_hand_is_told_by_its_number_and_what_became_of_it(run: Steered) -> None:
    run.step = 300
    created = ev.CandidateCreated(300, "c003", "c001", None, 1, 0, 0, Origin.MANUAL, "x", None, 1, 0, "mine")
    run.tell(created)
    name = run.command(CommandKind.SUBMIT, f"c001 {'0' * 64}")
    assert run.effects[name] == "it is kernel 3: not judged yet"
