"""What KernelBlaster remembers of a run: its trajectories, how far the step is, and the attempts of the round. Folded
from events."""

from __future__ import annotations

import json
import random
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from engine.knowledge import states
from engine.search.methods.kernelblaster.rewards import Attempt
from engine.search.methods.kernelblaster.settings import KernelBlasterSettings, settings_of
from engine.search.methods.steered import seed_of
from engine.search.methods.technique_in_work import FAILED_OUTCOMES, OPTIMISE, PresentTechnique, TechniqueInWork
from storage.knowledge.choice import is_frozen
from storage.knowledge.records import Advised, Bottleneck, Category
from storage.run import events as ev
from storage.run.record import Record
from storage.run.settings import DepthOutcome
from storage.run.steering.command_arguments import CONSULT
from storage.run.steering.verbs import CommandKind

JUDGE = "judge"
CLASSIFY, PLAN, ANALYSE, REVISE = "classify", "plan", "analyse", "revise"
# Steps about the kernel that a step of a trajectory starts from.
ABOUT_THE_START = (CONSULT, CLASSIFY, PLAN, OPTIMISE)
LEAST_WEIGHT = 0.001
PROPOSED_CONFIDENCE = 0.5  # that of a technique which was only just proposed
Payload = Mapping[str, Any]


def known_states(consulted: ev.Consulted) -> dict[str, Bottleneck]:
    """The states that a model may choose from: those of the base, or all that the rules know where it is empty."""
    return {state.name: state.bottleneck for state in consulted.states} or dict(states.STATES)


@dataclass(slots=True)
class Present(PresentTechnique):
    """The step index being worked on.

    `place` is what it has taken for itself where others are at work beside it: its trajectory, and from the draw on the
    technique and the kernel that it tries that on. `ruled` is the first answer of the base, by the rules; `settled`
    what a model made of its state, `plan` the relevances and new techniques that one gave. `taught` counts what was
    taught in it, `drawn` is the technique that is being written.
    """

    place: Payload = field(default_factory=dict)
    consulted: ev.Consulted | None = None
    ruled: ev.Consulted | None = None
    is_classified: bool = False
    settled: states.Settled | None = None
    is_planned: bool = False
    plan: Payload = field(default_factory=dict)
    taught: int = 0
    drawn: Advised | None = None


@dataclass(slots=True)
class Learning:
    """What was said of a round's attempts so far. `edits` are those that the model asks for."""

    is_analysed: bool = False
    is_revised: bool = False
    edits: Sequence[Payload] = ()


@dataclass(slots=True)
class Trajectory:
    """How far one has come. `tip_id` is the kernel that it goes on from."""

    tip_id: str | None
    steps: int = 0
    is_over: bool = False


@dataclass(slots=True)
class KernelBlasterState(TechniqueInWork):
    """The fold. `trajectories` are those begun, by number, which counts from 1 over all rounds; `beside` has the places
    of those whose end the step index does not know.

    `is_frozen`: the knowledge base cannot be taught. `attempts` are those since it was last corrected. `judged` holds
    what the judge claims of a kernel and `evidence` its words, `expected` what the base last said by state and
    technique, `others` the techniques that it knows elsewhere, `known` its states, `brought` those techniques that
    plans of this run brought in. `tried` has the techniques by the kernel that they were tried on, `settled_of` the
    states of kernels that a model was asked about, `discovered` the new ones among them.
    """

    settings: KernelBlasterSettings = field(default_factory=KernelBlasterSettings)
    seed: str = ""
    is_frozen: bool = False
    trajectories: dict[int, Trajectory] = field(default_factory=dict)
    is_round_over: bool = False
    present: Present = field(default_factory=Present)
    beside: Sequence[Payload] = ()
    learning: Learning = field(default_factory=Learning)
    attempts: list[Attempt] = field(default_factory=list)
    judged: dict[str, tuple[str, ...]] = field(default_factory=dict)
    evidence: dict[str, str] = field(default_factory=dict)
    expected: dict[tuple[str, str], Advised] = field(default_factory=dict)
    brought: set[str] = field(default_factory=set)
    tried: dict[str, set[str]] = field(default_factory=dict)
    discovered: list[str] = field(default_factory=list)
    settled_of: dict[str, str] = field(default_factory=dict)
    others: tuple[str, ...] = ()
    known: Mapping[str, Bottleneck] = field(default_factory=lambda: states.STATES)
    _drawn: dict[str, Advised] = field(default_factory=dict)
    _started: ev.StepStarted | None = None

    @classmethod
    def new(cls, record: Record) -> KernelBlasterState:
        """The state at the start of a run."""
        settings = settings_of(record.settings)
        seed, frozen = seed_of(record, settings.seed), is_frozen(record.settings.knowledge)
        return cls(settings=settings, seed=seed, is_frozen=frozen)

    @property
    def has_begun(self) -> bool:
        """Whether the step index has anything of its own; a step in flight is the record's to tell."""
        return bool(self.present.place) or self.present.is_begun

    @property
    def is_over(self) -> bool:
        """Whether every trajectory of every round is done."""
        return self._ended >= self.settings.rounds * self.settings.trajectories

    @property
    def trajectory(self) -> int:
        """The one that the step index belongs to, or would: the first of the round that is not over and that none at
        work beside it has taken. 0 where there is none, as before the first kernel."""
        if trajectory := self.present.place.get("trajectory"):
            return int(trajectory)
        if self.first_id is None:
            return 0
        count = self.settings.trajectories
        begin, taken = self._ended - self._ended % count + 1, {place.get("trajectory") for place in self.beside}
        open_ones = (number for number in range(begin, begin + count) if not self._of(number).is_over)
        return next((number for number in open_ones if number not in taken), 0)

    @property
    def start_id(self) -> str | None:
        """The kernel that the trajectory goes on from."""
        return self._of(self.trajectory).tip_id

    @property
    def _ended(self) -> int:
        return sum(trajectory.is_over for trajectory in self.trajectories.values())

    def _of(self, number: int) -> Trajectory:
        return self.trajectories.get(number) or Trajectory(self.first_id)

    def _own(self) -> Trajectory:
        return self.trajectories.setdefault(self.trajectory, Trajectory(self.first_id))

    def proposed(self) -> list[Advised]:
        """The techniques that the plan adds to those known."""
        return [
            Advised(
                proposal["technique"], Category(proposal["category"]), proposal["about"], proposal["helps"],
                proposal["hurts"], proposal["predicted_gain"], PROPOSED_CONFIDENCE,
            )
            for proposal in self.present.plan.get("new", ())
        ]  # fmt: skip

    def drawn(self) -> Advised | None:
        """The technique of the step, drawn among those found and proposed; None while none is known. Once it is taken
        it stays: read later, the same draw would know more of what was tried. What others try on the same kernel counts
        as tried."""
        now = self.present
        if now.consulted is None:
            return None
        advised = [*now.consulted.found, *self.proposed()]
        if taken := now.place.get("technique"):
            return next((advice for advice in advised if advice.technique == taken), None)
        at_work = {place.get("technique", "") for place in self.beside if place.get("kernel") == now.subject_id}
        return draw(
            advised,
            now.plan.get("relevance", {}),
            count=self.settings.top_k,
            seed=self.seed,
            trajectory=self.trajectory,
            step=self._of(self.trajectory).steps + 1,
            tried={*self.tried.get(now.subject_id or "", ()), *at_work},
        )

    def is_known(self, technique: str) -> bool:
        """Whether the base has the technique of a plan from other states."""
        return any(
            proposal["technique"] == technique and proposal.get("is_known")
            for proposal in self.present.plan.get("new", ())
        )

    def last_drawn(self, name: str) -> Advised | None:
        """The technique that was last written for a kernel."""
        return self._drawn.get(name)

    def attempt(self, name: str | None) -> Attempt | None:
        """What the step has brought with this kernel; None where it says nothing of its technique: a person wrote the
        kernel, or left the step."""
        now = self.present
        if now.drawn is None or now.subject_id is None or self.is_by_hand(name):
            return None
        measured = self.over(name, now.subject_id)
        if measured is None and not now.spent and name not in self._failed:
            return None
        state, gain = now.consulted.state if now.consulted else "", now.drawn.expected_gain
        number = self._of(self.trajectory).steps + 1
        return Attempt(self.trajectory, number, state, now.drawn.technique, now.subject_id, name, gain, measured)

    def apply(self, event: ev.Event) -> None:
        """Take one event into account."""
        command = self.follow(event)
        if command is not None and command.kind is CommandKind.ROLL_BACK:
            self._own().tip_id = command.argument
        if (call := self.call_of(command)) is not None:
            self._take_back(call)
        match event:
            case ev.PlaceTaken(place=place):
                self.present.place = json.loads(place)
            case ev.StepStarted():
                self._begin_step(event)
            case ev.StepFinished():
                self._finish_step(event)
            case ev.Consulted():
                self.present.consulted = event
                self.present.ruled = self.present.ruled or event
                if self.present.settled is not None and event.state:  # others may have found a state of that name
                    self.settled_of[event.candidate_id] = event.state
                self.others = event.others
                self.known = known_states(event) if event.states else self.known
                self.expected |= {(event.state, advice.technique): advice for advice in event.found}
            case ev.ReviewWritten(problem=""):
                self._note_review(event, json.loads(event.payload) if event.payload else {})
            case ev.DepthFinished():
                self._finish_index(event)
            case _:
                self.judge(event)

    def _take_back(self, call: ev.StepStarted) -> None:
        """A person wants this call done again: what came of it no longer counts."""
        now, name = self.present, call.candidate_id
        match call.kind:
            case "judge":
                self.judged.pop(name or "", None)
                now.current_id = name
            case "repair":
                now.current_id = name
            case "analyse" | "revise":
                self.learning = Learning(is_analysed=call.kind == REVISE and self.learning.is_analysed)
            case _:
                now.current_id, now.spent = None, ""
                now.subject_id = name if call.kind in ABOUT_THE_START else now.subject_id
                if call.kind in (PLAN, CLASSIFY):
                    now.is_planned, now.plan = False, {}
                if call.kind == CLASSIFY:
                    now.is_classified, now.settled = False, None
                    self.settled_of.pop(name or "", None)

    def _begin_step(self, event: ev.StepStarted) -> None:
        now, name = self.present, event.candidate_id
        self._started = event
        if event.kind in ABOUT_THE_START and now.subject_id is None:
            now.subject_id = name
        if event.kind == OPTIMISE and name is not None:
            now.drawn = self.drawn() or self._drawn.get(name)
            if now.drawn is not None:
                self._drawn[name] = now.drawn

    def _finish_step(self, event: ev.StepFinished) -> None:
        started, self._started = self._started, None
        if event.outcome == "dropped":
            return
        if event.outcome in FAILED_OUTCOMES:
            self._go_without(event.kind, started.candidate_id if started else None)
        match event.kind, event.outcome:
            case "teach", "taught":
                self._be_taught()
            case "revise", _:
                self.learning.is_revised = True
                if not self.learning.edits:
                    self._close_round()
            case _:
                self.count(event)

    def _go_without(self, kind: str, name: str | None) -> None:
        """A question that brought no answer is not asked again."""
        match kind:
            case "classify":
                self.present.is_classified = True
            case "plan":
                self.present.is_planned = True
            case "judge" if name is not None:
                self.judged.setdefault(name, ())
            case "analyse":
                self.learning.is_analysed = True
            case "teach" if self.learning.is_revised:
                self._close_round()
            case _:
                pass

    def _note_review(self, event: ev.ReviewWritten, payload: Payload) -> None:
        now, name = self.present, event.candidate_id
        match event.label:
            case "classify":
                now.is_classified = True
                now.settled = self._settle(now.ruled, payload) if payload and now.ruled else None
            case "plan":
                now.is_planned, now.plan = True, payload
                self.brought |= {one["technique"] for one in payload.get("new", ()) if not one.get("is_known")}
            case "judge":
                self.judged[name], self.evidence[name] = tuple(payload.get("claims", ())), payload.get("evidence", "")
            case "analyse":
                self.learning.is_analysed = True
            case "revise":
                self.learning.edits = payload.get("edits", ())
            case _:
                pass

    def _settle(self, rules: ev.Consulted, payload: Payload) -> states.Settled:
        """The state that a model found, with the new one that it makes where it was not sure."""
        about = rules.why, rules.secondary, rules.metrics
        by_rules = states.Found(rules.state, rules.bottleneck, rules.state_confidence, *about)
        choices = known_states(rules)
        settled = states.settle(by_rules, payload, choices, [*choices, *self.discovered])
        if settled.new is not None and self.is_frozen:  # a base that learns no state: the nearest stands for it
            settled = states.Settled(replace(settled.found, state=settled.new.inherits))
        if settled.new is not None:
            self.discovered.append(settled.new.name)
        if settled.found.state and self.present.subject_id is not None:
            self.settled_of[self.present.subject_id] = settled.found.state
        return settled

    def _be_taught(self) -> None:
        if self.learning.is_revised:
            self._close_round()
        else:
            self.present.taught += 1

    def _close_round(self) -> None:
        self.attempts, self.learning, self.is_round_over = [], Learning(), False

    def _finish_index(self, event: ev.DepthFinished) -> None:
        is_accepted, name = event.outcome is DepthOutcome.ACCEPTED, event.candidate_id
        trajectory = None if self.first_id is None else self._own()
        if replace(self.present, place={}) == Present():  # a person left it before it began
            if self.learning != Learning():  # older runs looked back in one of its own
                self._close_round()
        elif trajectory is not None:
            # Where a tuned version was accepted, the technique is judged by the kernel that the model wrote.
            self._finish_attempt(trajectory, self.present.current_id if is_accepted else name)
        if is_accepted and name is not None and trajectory is not None:
            trajectory.tip_id = name
        elif is_accepted:
            self.first_id = name
        if trajectory is not None and trajectory.steps >= self.settings.steps:
            trajectory.is_over = True
            self.is_round_over = self.is_round_over or self._ended % self.settings.trajectories == 0
        self.present = Present()

    def _finish_attempt(self, trajectory: Trajectory, name: str | None) -> None:
        attempt = self.attempt(name)
        trajectory.steps += 1
        if attempt is not None:
            self.attempts.append(attempt)
            self.tried.setdefault(attempt.parent_id, set()).add(attempt.technique)
            if attempt.ends_trajectory:
                trajectory.steps = self.settings.steps


def top(advised: Sequence[Advised], count: int, tried: Collection[str] = ()) -> list[Advised]:
    """The techniques of largest predicted gain; those tried on this very kernel only where nothing else is left."""
    ranked = sorted(advised, key=lambda advice: (-advice.expected_gain, advice.technique))
    return ([advice for advice in ranked if advice.technique not in tried] or ranked)[:count]


def weights(chosen: Sequence[Advised], advised: Sequence[Advised], relevance: Mapping[str, float]) -> list[float]:
    """The weight of each of the chosen, by the plan's relevance.

    Without one it is the predicted gain x confidence, scaled by the largest among all of the state (`advised`).
    """
    largest = max((advice.expected_gain * advice.confidence for advice in advised), default=0.0)
    scaled = {
        advice.technique: advice.expected_gain * advice.confidence / largest if largest > 0 else 0.0
        for advice in chosen
    }
    return [max(relevance.get(advice.technique, scaled[advice.technique]) ** 3, LEAST_WEIGHT) for advice in chosen]


def draw(
    advised: Sequence[Advised],
    relevance: Mapping[str, float],
    *,
    count: int,
    seed: str,
    trajectory: int,
    step: int,
    tried: Collection[str] = (),
) -> Advised | None:
    """The technique of a step; None where none is known.

    Method: KernelBlaster's weighted selection (arXiv 2602.14293, its code: weight max(relevance³, 0.001)). The draw is
    seeded by run, trajectory and step, so that a run that goes on draws as it would have.
    """
    chosen = top(advised, count, tried)
    if not chosen:
        return None
    chance = random.Random(f"{seed}:{trajectory}:{step}").random()
    weighed = weights(chosen, advised, relevance)
    left = chance * sum(weighed)
    for advice, weight in zip(chosen, weighed, strict=True):
        left -= weight
        if left < 0:
            return advice
    return chosen[-1]
