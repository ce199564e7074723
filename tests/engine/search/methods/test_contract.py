"""What every search method keeps to, whoever wrote it: each is played through runs with random outcomes."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from engine.evaluator.checks import findings
from engine.evaluator.request import Evaluator
from engine.knowledge.states import SURE
from engine.search.actions import (
    Action,
    Ask,
    Conclude,
    Consult,
    Evaluate,
    Expects,
    Finish,
    Rank,
    Refuse,
    Step,
    TakeSubmission,
    Teach,
    Tune,
    Wait,
    label,
)
from engine.search.methods import Strategy, catalogue, independence_of, place_of, refused_verbs
from engine.search.methods.graph_search.replies import ReadLabels, ReadOutline, ReadProposal
from engine.search.methods.kernelblaster.replies import CLAIMS, ReadEdits, ReadPlan, ReadState
from engine.search.methods.loading import open_strategy
from engine.search.methods.options import Value
from engine.search.steps.tune import tuned_first
from storage import codec
from storage.knowledge.records import Advised, Bottleneck, Category, KnownEdge, State, Transition
from storage.results.check_records import CheckOutcome, CheckRecord, Group
from storage.results.evaluation_results import CheckResult, CompileResult, TimingResult, Tunable
from storage.results.profile_results import ProfileResult
from storage.results.vocabulary import Verdict
from storage.run import events as ev
from storage.run.blobs import text_hash
from storage.run.journal import Entry
from storage.run.lanes import Lanes
from storage.run.owners import in_turn
from storage.run.record import Candidate, Record
from storage.run.settings import Budget, DepthOutcome, Origin, RunSettings, RunState, StepKind
from storage.run.steering.command_arguments import TUNE, Submission
from storage.run.steering.verbs import Command, CommandKind
from tests.engine.contexts import open_context
from tests.engine.story import SETTINGS
from tests.examples import LONG, PROFILE
from tests.guard.engine_side import NoToolchain

# Those of one's own that TILEWRIGHT_STRATEGIES names are played too.
NAMES = (*catalogue.names(), "tests.engine.search.methods.random_restarts:RandomRestarts")
OPTIONS: Mapping[str, Callable[[random.Random], dict[str, Value]]] = {
    "cutegen": lambda chance: {"max_repairs": chance.randint(0, 3), "max_regenerations": chance.randint(0, 2)},
    "best_of": lambda chance: {
        "samples": chance.randint(1, 6),
        "max_repairs": chance.randint(0, 2),
        "draws": chance.randint(1, 3),
    },
    "evolve": lambda chance: {
        "founders": chance.randint(1, 2),
        "population": chance.randint(2, 4),
        "survivors": chance.randint(1, 3),
        "crossover": chance.choice((0.0, 0.5, 1.0)),
        "draws": chance.randint(1, 3),
    },
    "reward_loop": lambda chance: {
        "attempts": chance.randint(1, 6),
        "shown": chance.randint(0, 3),
        "refines": chance.random() < 0.8,
        "draws": chance.randint(1, 3),
    },
    "coder_judge": lambda chance: {"max_mends": chance.randint(0, 3)},
    "kernelblaster": lambda chance: {
        "trajectories": chance.randint(1, 3),
        "steps": chance.randint(1, 3),
        "rounds": chance.randint(1, 2),
        "max_repairs": chance.randint(0, 2),
        "verifies": chance.random() < 0.7,
        "learns": chance.random() < 0.7,
    },
    "graph_search": lambda chance: {
        "expansions": chance.randint(1, 8),
        "c": chance.choice((0.0, 1.0)),
        "depth": chance.randint(1, 3),
        "outlines": chance.randint(0, 2),
        "max_repairs": chance.randint(0, 2),
    },
}
FLAG = CheckRecord(Group.CORRECTNESS, findings.VARIES, CheckOutcome.FLAGGED, "the task's answer hardly varies")
KNOWN = ("memory_bandwidth_saturated", "memory_latency_bound")
SEEDS = range(8)
MOST_ACTIONS = 600


def settings_of(name: str, seed: int) -> RunSettings:
    chance = random.Random(seed)
    limits = Budget(depths=chance.randint(1, 5), model_calls=chance.randint(3, 40))
    knowledge = "on" if seed % 2 else "off"
    return replace(
        SETTINGS,
        knowledge=knowledge,
        budget=limits,
        tune=seed % 3,
        strategy_options=OPTIONS[name](chance) if name in OPTIONS else {},
    )


class Play:
    """A run in memory: carries out what a strategy asks for with results drawn at random."""

    def __init__(self, name: str, seed: int, keep: Callable[[str], str] = text_hash) -> None:
        self.settings = settings_of(name, seed)
        self.keep = keep
        self.chance = random.Random(seed)
        self.record = Record.of(self.settings, [])

    def carry_out(self, action: Action) -> Generator[ev.Event]:
        """The events of an action, one at a time: a killed engine leaves any number of them."""
        if isinstance(action, Conclude):
            yield ev.DepthFinished(
                self.record.steps_finished, action.index, action.outcome, action.candidate_id, action.base_id, False,
                False, action.reason, action.reward,
            )  # fmt: skip
            return
        assert not isinstance(action, Finish | Wait), action
        number = self.record.next_step
        yield ev.StepStarted(number, label(action), action.index, action.about)
        outcome = yield from self._work(action, number)
        yield ev.StepFinished(number, label(action), 1.0, outcome)

    def _work(self, action: Step, number: int) -> Generator[ev.Event, None, str]:
        if isinstance(action, Evaluate):
            yield self._result(action, number)
            return "done"
        if isinstance(action, Tune):
            return (yield from self._tuned(action, number))
        if isinstance(action, Rank):
            order = self.chance.sample(action.drawn, len(action.drawn))
            yield ev.Ranked(number, action.index, action.drawn, tuple(order), (), 0, None, None, "by chance")
            return "ranked"
        if isinstance(action, Consult | Teach | Refuse):
            yield self._looked_up(action, number)
            return "taught" if isinstance(action, Teach) else "answered"
        assert isinstance(action, Ask)
        yield ev.ModelCalled(
            number, 0, action.label, action.index, action.about, "m", "p", "r", 9, 9, 0, 0, 0.0, 1.0, "stop"
        )  # fmt: skip
        if action.expects is Expects.JSON and action.about:
            problem = "no object" if self.chance.random() < 0.2 else ""
            fields, payload = dict.fromkeys(action.fields, "a point"), ""
            if action.reads is not None and not problem:
                read = action.reads(json.dumps(a_reply(action.reads, self.chance)))
                fields, payload = dict(read.fields), json.dumps(dict(read.payload))
            blob, about = self.keep(json.dumps(fields)), action.about
            yield ev.ReviewWritten(
                number, 0, action.label, action.index, about, blob, "a point", problem, payload=payload
            )
            return "unreadable" if problem else "written"
        if action.expects is Expects.TEXT and action.about:
            yield ev.DiagnosisWritten(number, action.about, self.keep("a diagnosis"))
        elif self.chance.random() < 0.25 or action.makes is None:
            return "patch_failed"
        else:
            name = f"c{len(self.record.candidates) + 1:03d}"
            makes = action.makes
            yield ev.CandidateCreated(
                number, name, action.about, makes.base_id, action.index, makes.generation, makes.repair, makes.origin,
                self.keep(f"class ModelNew: ...  # {name}\n"), None, 1, 0, name, (), makes.technique,
                makes.predicted_gain, makes.trajectory, makes.second_parent_id,
            )  # fmt: skip
        return "created"

    def _tuned(self, action: Tune, number: int) -> Generator[ev.Event, None, str]:
        """A sweep of one variant, which is kept or not; or the kernel fails when it is timed again."""
        one, name, fate = Tunable("T", 1, (1, 2)), action.about, self.chance.random()
        yield ev.SweepStarted(number, action.index, name, (one,), 1)
        yield ev.VariantCompiled(number, name, 1, {"T": 2}, CompileResult(True, 1.0))
        if fate > 0.85:
            wrong = CheckResult(Verdict.INCORRECT, 1.0, message="wrong when timed again")
            yield ev.VariantChecked(number, name, 0, wrong)
            yield ev.Checked(number, name, wrong)
            return wrong.verdict
        if fate > 0.5:
            return "unchanged"
        kernel, child = self.record.candidates[name], f"c{len(self.record.candidates) + 1:03d}"
        made, timed = kernel.created, kernel.timed
        assert timed is not None
        blob = self.keep(f"class ModelNew: ...  # {child}\n")
        yield replace(
            made, step=number, candidate_id=child, parent_id=name, origin=Origin.TUNED, source_blob=blob,
            summary="tuned: T 1 → 2", technique="", predicted_gain=None,
        )  # fmt: skip
        yield ev.Compiled(number, child, CompileResult(True, 1.0), None)
        yield ev.Checked(number, child, CheckResult(Verdict.PASSED, 1.0))
        yield ev.Timed(number, child, TimingResult((1.0,) * 9, (timed.speedup * 1.5,) * 9))
        return "tuned"

    def _looked_up(self, action: Consult | Teach | Refuse, number: int) -> ev.Event:
        match action:
            case Consult():
                name, count = action.state or self.chance.choice(("", *KNOWN)), self.chance.randint(0, 6)
                found = tuple(advised(f"technique {n}", self.chance) for n in range(count))
                sure = 1.0 if action.state else self.chance.random()
                bound = Bottleneck.MEMORY if name else None
                known = tuple(State(one, Bottleneck.MEMORY, f"{one}, by its signs") for one in KNOWN)
                told = {
                    one.technique: [Transition(action.node, one.technique, "why", "how", "a", "b")] for one in found
                }
                return ev.Consulted(
                    number, action.index, action.about, name, bound, sure, found, "mark", ("conflicts",), "by rule",
                    states=known if sure < SURE else (), others=("split-K", "of its own"),
                    examples_blob=self.keep(codec.dumps(told)) if action.node else "",
                    edges=tuple(KnownEdge(action.node, one.technique, one.expected_gain, 1, 0.1) for one in found[:3]),
                )  # fmt: skip
            case Teach():
                blob = self.keep(codec.dumps(action.revision))
                return ev.Taught(number, action.index, f"r{number}", action.revision.why[:140], blob)
            case Refuse():
                refused = CheckResult(Verdict.REFUSED, 0.0, message=action.reason)
                return ev.Checked(number, action.about, refused)

    def _result(self, action: Evaluate, number: int) -> ev.Event:
        is_good = self.chance.random() < 0.7
        match action.stage:
            case StepKind.COMPILE:
                verdict = Verdict.PASSED if is_good else Verdict.COMPILE_ERROR
                return ev.Compiled(number, action.about, CompileResult(is_good, 1.0, verdict=verdict), None)
            case StepKind.CHECK:
                verdict = Verdict.PASSED if is_good else Verdict.INCORRECT
                proofs = (FLAG,) if self.chance.random() < 0.2 else ()
                return ev.Checked(number, action.about, CheckResult(verdict, 1.0, proofs=proofs))
            case StepKind.TIME:
                speedup = self.chance.uniform(0.5, 3.0)
                return ev.Timed(number, action.about, TimingResult((1.0,) * 9, (speedup,) * 9))
            case _ if is_good:
                return ev.Profiled(number, action.about, ProfileResult("h", (), "memory", "summary"), None)
            case _:
                return ev.ProfileFailed(number, action.about, "not here")


def advised(name: str, chance: random.Random) -> Advised:
    """What a base might say of a technique."""
    words = "moves the work", "where it waits", "where it does not"
    gain, sure = chance.uniform(0.9, 2.0), chance.random()
    return Advised(name, Category.MEMORY, *words, gain, sure, 3, 1, 1, 1, is_negative=chance.random() < 0.2)


def a_reply(reader: object, chance: random.Random) -> dict[str, object]:
    """An object that a question can be answered with that is more than texts."""
    words = {"category": "memory", "about": "does it", "helps": "here", "hurts": "there"}
    match reader:
        case ReadState(known=known):
            return {"state": chance.choice(known), "confidence": chance.random(), "why": "memory busy"}
        case ReadPlan(offered=offered):
            new = {"technique": "of its own", "predicted_gain": 1.4, "relevance": chance.random()} | words
            rated = {name: chance.random() for name in offered if chance.random() < 0.8}
            if offered and not rated:
                rated = {offered[0]: 1.0}
            is_new = not offered or chance.random() < 0.4
            return {"reading": "it waits for memory", "relevance": rated, "new": [new] if is_new else []}
        case ReadEdits(states=states, techniques=techniques):
            if not states or not techniques or chance.random() < 0.3:
                return {"edits": []}
            edit = {"edit": "prediction", "state": states[0], "technique": techniques[0], "gain": 1.1, "why": "seen"}
            return {"edits": [edit]}
        case ReadOutline():
            words = {"category": "memory", "think": "it waits", "method": "does it", "before": "a;", "after": "b;"}
            return {"steps": [{"technique": f"technique {chance.randint(0, 9)}"} | words for _ in range(3)]}
        case ReadLabels(techniques=techniques, known=known):
            return {"labels": [chance.choice((*known, "new")) for _ in techniques]}
        case ReadProposal(taken=taken):
            name = next(name for number in range(99) if (name := f"technique {number}") not in taken)
            return {"technique": name, "think": "it waits", "predicted_gain": 1.3} | words
        case _:
            claims = {name: chance.random() < 0.3 for name in CLAIMS}
            return claims | {"evidence": "lines 3 to 9"}


def next_action(strategy: Strategy, record: Record) -> Action:
    """As the loop asks: a step in flight is taken once more, and an accepted kernel may be tuned first."""
    started = record.in_flight
    if started is not None and started.kind == TUNE:
        return Tune(started.depth, started.candidate_id or "")
    if started is not None:
        return strategy.again(record, started.kind, started.candidate_id)
    return tuned_first(record, strategy.next(record), declares)


def declares(kernel: Candidate) -> str:
    """The source of a kernel: two of three declare what can be tuned."""
    return "" if kernel.candidate_id.endswith(("0", "3", "6", "9")) else "T = 1  # tune: 1, 2"


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", NAMES)
def test_a_run_comes_to_its_end_and_any_journal_of_it_leads_on_as_it_did(name: str, seed: int) -> None:
    play, strategy = Play(name, seed), open_strategy(name)
    for _ in range(MOST_ACTIONS):
        action = next_action(strategy, play.record)
        assert next_action(strategy, play.record) == action, "asked twice, it says the same"
        if isinstance(action, Finish):
            return
        for event in play.carry_out(action):
            play.record.apply(event)
            again = Record.of(play.settings, [])
            for earlier in play.record.events:
                again.apply(earlier)
            assert next_action(open_strategy(name), again) == next_action(strategy, play.record)
    pytest.fail(f"no end after {MOST_ACTIONS} actions")


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", NAMES)
def test_a_step_in_flight_is_asked_for_again_as_it_was(name: str, seed: int) -> None:
    play, strategy = Play(name, seed), open_strategy(name)
    for _ in range(MOST_ACTIONS):
        action = next_action(strategy, play.record)
        if isinstance(action, Finish):
            return
        for event in play.carry_out(action):
            play.record.apply(event)
            if play.record.in_flight and isinstance(event, ev.StepStarted):
                assert next_action(strategy, play.record) == action


class SideBySide(Play):
    """The same with several step indexes at work: which of them goes on, by one event, is drawn each time."""

    def __init__(self, name: str, seed: int) -> None:
        super().__init__(name, seed)
        chance, independent = random.Random(seed), independence_of(open_strategy(name)) or {}
        own, limits = {**self.settings.strategy_options, **independent}, Budget(depths=5, model_calls=60)
        own |= {many: 6 for many in ("samples", "attempts", "expansions") if many in own}
        own |= {"trajectories": 3} if "trajectories" in own else {}
        self.name, self.settings = name, replace(self.settings, budget=limits, strategy_options=own)
        self.settings = replace(self.settings, width=chance.randint(2, 4))
        self.record = Record.of(self.settings, [])
        self.lanes, self.strategies = Lanes(self.record), dict[int, Strategy]()
        self.at_work = dict[int, Generator[ev.Event]]()

    def apply(self, event: ev.Event) -> None:
        self.record.apply(event)
        self.lanes.apply(event)

    def actions(self, lanes: Lanes) -> dict[int, Action]:
        """What comes next in every step index at work, and what would begin."""
        shown = [*lanes.open.values(), lanes.next()]
        return {one.index: next_action(open_strategy(self.name), one.record) for one in shown}

    def take(self, index: int, action: Action) -> Generator[ev.Event]:
        """The events of an action, after the place that it takes."""
        lane = self.lanes.open.get(index) or self.lanes.next()
        if not isinstance(action, Conclude | Wait | Finish):
            place = place_of(open_strategy(self.name), lane.record, action)
            if place and place != lane.place:
                yield ev.PlaceTaken(action.index, place)
        yield from self.carry_out(action)

    def go_on(self) -> bool:
        """By one event; False where nothing is left to do."""
        idle = {index: action for index, action in self.actions(self.lanes).items() if index not in self.at_work}
        assert not any(isinstance(one, Wait) for one in idle.values()) or self.lanes.open
        is_full = len(self.lanes.open) >= self.settings.width
        todo = [*self.at_work, *(n for n, one in idle.items() if not isinstance(one, Finish | Wait))]
        todo = [index for index in todo if index in self.lanes.open or index in self.at_work or not is_full]
        if not todo:
            return False
        index = self.chance.choice(todo)
        if index not in self.at_work:
            self.at_work[index] = self.take(index, idle[index])
        event = next(self.at_work[index], None)
        if event is None:
            del self.at_work[index]
        else:
            self.apply(event)
        return True


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", [name for name in NAMES if independence_of(open_strategy(name)) is not None])
def test_step_indexes_at_work_at_once_may_end_in_any_order_and_any_journal_leads_on_as_it_did(
    name: str, seed: int
) -> None:
    play, at_once = SideBySide(name, seed), 0
    share = 1.0 if PROFILE == LONG else 0.3  # of the events after which an engine is killed
    while play.go_on():
        at_once = max(at_once, len(play.lanes.open))
        if play.chance.random() < share:
            again = Record.of(play.settings, [])
            for event in play.record.events:
                again.apply(event)
            lanes = Lanes(again, play.record.events)
            assert play.actions(lanes) == play.actions(play.lanes)
            assert lanes.open.keys() == play.lanes.open.keys()
    events, ended = play.record.events, play.lanes.ended
    if has_no_first_kernel(play):
        return
    assert not play.lanes.open
    assert ended.events == in_turn(events)
    assert sorted(done.depth for done in ended.concluded) == list(range(len(ended.concluded)))
    assert (ended.best_id, ended.usage) == (play.record.best_id, play.record.usage)
    assert ended.candidates == play.record.candidates
    alone = next_action(open_strategy(name), Record.of(replace(play.settings, width=1), as_entries(in_turn(events))))
    assert isinstance(alone, Finish)
    assert at_once > 1


def has_no_first_kernel(play: SideBySide) -> bool:
    """Whether the run has failed before anything could be at work at once."""
    first = play.actions(play.lanes).get(0)
    return isinstance(first, Finish) and first.state is RunState.FAILED


def as_entries(events: Sequence[ev.Event]) -> list[Entry]:
    return [Entry(number, 0.0, event) for number, event in enumerate(events, 1)]


@pytest.mark.parametrize("name", NAMES)
def test_a_limit_of_calls_ends_every_run(name: str) -> None:
    for seed in SEEDS:
        play, strategy = Play(name, seed), open_strategy(name)
        while not isinstance(action := next_action(strategy, play.record), Finish):
            for event in play.carry_out(action):
                play.record.apply(event)
            most = play.settings.budget.model_calls or 0
            # Within a step index the calls themselves are refused; a new one does not begin.
            assert play.record.usage.model_calls <= most + 20


@pytest.mark.parametrize("seed", SEEDS[:3])
@pytest.mark.parametrize("name", NAMES)
def test_every_prompt_can_be_filled_and_that_of_a_kernel_carries_what_a_person_asks_for(
    name: str, seed: int, tmp_path: Path
) -> None:
    context, strategy = open_context(tmp_path), open_strategy(name)
    play = Play(name, seed, context.blobs.put)
    context.strategy, context.record, context.toolchain = strategy, play.record, cast(Evaluator, NoToolchain("cpu"))
    for kind, text in ((CommandKind.HINT, "mind the tail"), (CommandKind.BAN, "inline assembly")):
        play.record.apply(ev.CommandAcknowledged(Command(kind, kind, text, "someone", 0.0), 1))
    play.record.apply(ev.CommandEffective(CommandKind.BAN, 1, ""))
    asked = 0
    while not isinstance(action := next_action(strategy, play.record), Finish):
        if isinstance(action, Ask):
            asked += 1
            prompt = "\n".join(message.text for message in action.prompt(context, action))
            for kind, text in ((CommandKind.HINT, "mind the tail"), (CommandKind.BAN, "inline assembly")):
                assert text in prompt or action.makes is None or kind in refused_verbs(strategy)
        for event in play.carry_out(action):
            play.record.apply(event)
    assert asked


@pytest.mark.parametrize("name", NAMES)
def test_what_is_left_can_be_concluded_and_nothing_is_left_of_nothing(name: str) -> None:
    play, strategy = Play(name, 3), open_strategy(name)
    assert strategy.abandon(play.record, "left") is None
    for event in play.carry_out(strategy.next(play.record)):
        play.record.apply(event)
        left = strategy.abandon(play.record, "left")
        if play.record.in_flight:
            assert left is not None
            assert (left.index, left.reason) == (play.record.step_index, "left")


@pytest.mark.parametrize("kind", list(CommandKind))
@pytest.mark.parametrize("name", NAMES)
def test_every_verb_is_honoured_or_refused_with_a_reason(name: str, kind: CommandKind) -> None:
    play, strategy = Play(name, 1), open_strategy(name)
    command = Command("k1", kind, "c001", "someone", 0.0)
    assert strategy.refusal(play.record, command) != ""
    assert refused_verbs(strategy).get(kind) != ""
    assert strategy.note(play.record, command) != ""


@pytest.mark.parametrize("name", NAMES)
def test_a_kernel_of_a_person_is_taken_unless_the_method_says_that_it_never_is(name: str) -> None:
    play, strategy = Play(name, 1), open_strategy(name)
    given = Command("k1", CommandKind.SUBMIT, str(Submission(None, "a" * 64)), "someone", 0.0)
    play.record.apply(ev.CommandAcknowledged(given, 1))
    is_taken = isinstance(strategy.next(play.record), TakeSubmission)
    assert is_taken is (CommandKind.SUBMIT not in refused_verbs(strategy))


@pytest.mark.parametrize("name", NAMES)
def test_a_call_is_done_again_unless_the_method_says_that_it_never_is(name: str) -> None:
    play, strategy = Play(name, 2), open_strategy(name)
    first = strategy.next(play.record)
    assert isinstance(first, Ask)
    for event in play.carry_out(first):
        play.record.apply(event)
    again = Command("k1", CommandKind.RETRY, "another-model", "someone", 0.0)
    for event in (ev.CommandAcknowledged(again, 2), ev.CommandEffective("k1", 2, "")):
        play.record.apply(event)
    after = strategy.next(play.record)
    is_done_again = isinstance(after, Ask) and (after.label, after.about) == (first.label, first.about)
    assert is_done_again is (CommandKind.RETRY not in refused_verbs(strategy))


@pytest.mark.parametrize("name", NAMES)
def test_a_step_index_ends_with_the_tuned_version_and_the_next_prompt_tells_what_the_sweep_found(
    name: str, tmp_path: Path
) -> None:
    context = open_context(tmp_path)
    tuned, told = set[str](), 0
    for seed in range(1, 25, 2):
        play, strategy = Play(name, seed, context.blobs.put), open_strategy(name)
        play.settings = replace(play.settings, tune=1, budget=Budget(depths=6, model_calls=60))
        play.record = Record.of(play.settings, [])
        context.strategy, context.record = strategy, play.record
        context.toolchain = cast(Evaluator, NoToolchain("cpu"))
        while not isinstance(action := next_action(strategy, play.record), Finish):
            if isinstance(action, Conclude) and action.candidate_id is not None:
                parents = {one.created.parent_id for one in play.record.candidates.values() if is_tuned(one)}
                assert action.candidate_id not in parents
                has_failed = play.record.candidates[action.candidate_id].has_failed
                assert not (has_failed and action.outcome is DepthOutcome.ACCEPTED)
                tuned |= {action.candidate_id} if is_tuned(play.record.candidates[action.candidate_id]) else set()
            if isinstance(action, Ask) and action.about is not None and is_tuned(context.candidate(action.about)):
                prompt = "\n".join(message.text for message in action.prompt(context, action))
                told += "The engine tried 1 other set of numbers" in prompt
            for event in play.carry_out(action):
                play.record.apply(event)
    assert tuned
    assert told or name in ("best_of", "tests.engine.search.methods.random_restarts:RandomRestarts")


def is_tuned(kernel: Candidate) -> bool:
    return kernel.created.origin is Origin.TUNED
