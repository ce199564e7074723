"""What people have set holds until it is lifted or used up, and what each command led to is told from the journal."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from storage.index import queries
from storage.index.database import Database, index_file, open_database
from storage.index.ingest import Ingest
from storage.index.queries.steering import CallAnswered, DepthBegun, Effect, KernelMade, ProfileAsked, RuleCarried
from storage.results.evaluation_results import TimingResult
from storage.run import events as ev
from storage.run import journal
from storage.run.folder import RunFolder
from storage.run.record import Record
from storage.run.settings import Origin, StepKind
from storage.run.steering.command_arguments import ModelChoice
from storage.run.steering.steering_state import SteeringState
from storage.run.steering.verbs import Command, CommandKind
from tests.guard.saved import unpack
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

    def optimise(self, base: str, model: str = "m", exposed: bool = False, depth: int = 7) -> None:
        self.step += 1
        self.tell(
            ev.StepStarted(self.step, StepKind.OPTIMISE, depth, base),
            ev.ModelCalled(
                self.step, 0, StepKind.OPTIMISE, depth, base, model, "p", "r", 1, 1, 0, 0, 0.0, 1.0, "stop", exposed
            ),
            ev.StepFinished(self.step, StepKind.OPTIMISE, 1.0, "patch_failed"),
        )

    @property
    def state(self) -> SteeringState:
        return queries.steering_state(self.db, "sample")

    @property
    def effects(self) -> dict[str, Effect]:
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
    assert run.state.next_base == "c002"
    assert name not in run.effects
    run.optimise("c002")
    assert run.state.next_base is None
    assert run.effects[name] == DepthBegun(7, 2, 101)


def test_a_base_set_while_a_depth_tries_again_from_that_kernel_is_meant_for_the_next_depth(run: Steered) -> None:
    run.optimise("c002")
    run.command(CommandKind.SET_BASE, "c002")
    run.optimise("c002")
    assert run.state.next_base == "c002"
    run.tell(ev.StepStarted(200, StepKind.OPTIMISE, 8, "c002"))
    assert run.state.next_base is None


def test_a_pin_holds_until_it_is_lifted_or_rolled_back_over(run: Steered) -> None:
    run.command(CommandKind.PIN, "c001")
    run.optimise("c001")
    assert run.state.pinned == "c001"
    run.command(CommandKind.UNPIN)
    assert run.state.pinned is None
    run.command(CommandKind.PIN, "c001")
    run.command(CommandKind.ROLL_BACK, "c002")
    assert run.state == SteeringState()


def test_rules_are_counted_in_the_prompts_that_carried_them(run: Steered) -> None:
    ban = run.command(CommandKind.BAN, "atomics")
    run.command(CommandKind.REQUIRE, "not yet read", is_settled=False)
    run.optimise("c001")
    run.optimise("c001")
    assert [str(rule) for rule in run.state.rules] == ["must not use: atomics"]
    run.command(CommandKind.LIFT, ban)
    run.optimise("c001")
    assert run.state.rules == ()
    assert run.effects[ban] == RuleCarried(2, 101)


def test_a_model_and_a_profile_switch_are_told_by_the_call_that_followed(run: Steered) -> None:
    model, expose = run.command(CommandKind.SET_MODEL, "other temperature=0"), run.command(CommandKind.EXPOSE, "on")
    run.optimise("c001", "other", exposed=True)
    assert run.state.model == ModelChoice.parse("other temperature=0")
    assert run.effects[model] == CallAnswered(101, "other")
    assert run.effects[expose] == ProfileAsked(101, is_shown=True)


def test_a_kernel_by_hand_is_told_by_its_number_and_what_became_of_it(run: Steered) -> None:
    run.step = 300
    created = ev.CandidateCreated(300, "c003", "c001", None, 1, 0, 0, Origin.MANUAL, "x", None, 1, 0, "mine")
    run.tell(created)
    name = run.command(CommandKind.SUBMIT, f"c001 {'0' * 64}")
    assert run.effects[name] == KernelMade(3, None, None)


ARGUMENTS = {
    CommandKind.COLLECT: ("auto", "on", "off"), CommandKind.EXPOSE: ("auto", "on", "off"),
    CommandKind.ROLL_BACK: ("c001", "c002"), CommandKind.SET_BASE: ("c001", "c002"), CommandKind.PIN: ("c001", "c002"),
    CommandKind.BAN: ("atomics", "shared  memory"), CommandKind.REQUIRE: ("128-bit loads",),
    CommandKind.LIFT: ("atomics", "128-bit loads", "nothing"),
    CommandKind.SET_MODEL: ("other", "manual", "m temperature=1"),
    CommandKind.TAKE_OVER: ("next", "all", "off"), CommandKind.ASK_FIRST: ("all no 60", "off"),
}  # fmt: skip


@pytest.mark.parametrize("seed", [1, 2])
def test_the_pages_show_what_the_engine_acts_on_after_every_event(run: Steered, seed: int) -> None:
    draw = random.Random(seed)
    folder = RunFolder(run.root / "sample")
    for number in range(30):
        what = draw.choice(["command", "command", "call", "engine", "pause"])
        if what == "command":
            kind = draw.choice(list(ARGUMENTS))
            run.command(kind, draw.choice(ARGUMENTS[kind]))
        elif what == "pause":
            run.command(draw.choice([CommandKind.PAUSE, CommandKind.RESUME, CommandKind.STOP, CommandKind.UNPIN]))
        elif what == "call":
            run.optimise(draw.choice(["c001", "c002"]), draw.choice(["m", "manual"]), depth=7 + number // 10)
        else:
            run.tell(ev.EngineStarted(1, True))
        record = Record.of(folder.read_settings(), list(journal.read(folder.journal_file)))
        assert run.state == record.steering


@pytest.mark.parametrize("name", ["rolled_back", "by_hand"])
def test_of_saved_runs_too(name: str, home: Path) -> None:
    folder = RunFolder(unpack(name, home / "runs"))
    with open_database(index_file(home)) as db:
        Ingest(db, home / "runs").catch_up()
        entries = list(journal.read(folder.journal_file))
        assert queries.steering_state(db, folder.run_id) == Record.of(folder.read_settings(), entries).steering
