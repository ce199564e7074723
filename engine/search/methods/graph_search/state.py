"""What a graph search remembers of a run: the graph as far as it is known, N and Q of its edges, the walk of the
expansion being worked on. Folded from events."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from engine.search.methods.graph_search.selection import Statistics, choose, kept, value_of, weigh
from engine.search.methods.graph_search.settings import GraphSearchSettings, settings_of
from engine.search.methods.steered import seed_of
from engine.search.methods.technique_in_work import FAILED_OUTCOMES, OPTIMISE, PresentTechnique, TechniqueInWork
from storage import codec
from storage.knowledge.graph import FAILED_VALUE, NEW_METHOD, START, Ends
from storage.knowledge.records import (
    Advised,
    Category,
    KnownEdge,
    Prior,
    Revision,
    Technique,
    Transition,
    WeighedEdge,
)
from storage.results.relative import Relative
from storage.run import events as ev
from storage.run.record import Record
from storage.run.settings import DepthOutcome, Origin
from storage.run.steering.command_arguments import CONSULT
from storage.run.steering.steering_state import SteeringState
from storage.run.steering.verbs import CommandKind

OUTLINE, RELABEL, PROPOSE = "outline", "relabel", "propose"
NO_METHOD = "no new method was proposed"
PROPOSED_CONFIDENCE = 0.5  # that of a technique which was only just proposed
MOST_TOLD = 8  # edges of a kernel that are journaled, beside the one that was taken
Payload = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Spot:
    """Where a walk ends: the kernel, the edge that it takes there, and the kernels and edges on the way.

    `branch` is the line of kernels that it has taken where others are at work beside it.
    """

    kernel: str
    target: str
    way: tuple[tuple[str, str], ...] = ()
    branch: int = 0

    @property
    def begin(self) -> str:
        """The kernel that it began at."""
        return self.way[0][0] if self.way else self.kernel


@dataclass(slots=True)
class Present(PresentTechnique):
    """The step index being worked on.

    `subject_id` is the kernel that its walk has come to, by `way`: (kernel, target) each; it `stays` at one that a
    person has chosen. `target` is the edge that it takes there, empty while that is open; `proposal` the new method
    where it is that edge. `place` is the walk as far as it is taken, where others are at work beside it. `consulted`
    are the kernels that the base was asked about.
    """

    place: Spot | None = None
    way: tuple[tuple[str, str], ...] = ()
    stays: bool = False
    target: str = ""
    proposal: Payload = field(default_factory=dict)
    is_taught: bool = False
    consulted: set[str] = field(default_factory=set)


@dataclass(slots=True)
class Outlining:
    """A sequence of techniques that was laid out, and the names under which the graph will keep them."""

    steps: Sequence[Payload] = ()
    labels: Sequence[str] = ()


@dataclass(slots=True)
class GraphSearchState(TechniqueInWork):
    """The fold. `root_id` is the kernel that walks begin at.

    `reached` has the kernel that a technique made of a kernel, None where it failed; `consulted` what the base said
    last of a kernel; `targets` the nodes that an edge leads to, by node: those of the base and of this run. `beside`
    has the walks whose end the expansion does not know: at work beside it, or ended since it began.
    """

    settings: GraphSearchSettings = field(default_factory=GraphSearchSettings)
    seed: str = ""
    root_id: str | None = None
    expansions: int = 0
    outlined: int = 0
    present: Present = field(default_factory=Present)
    beside: Sequence[Spot] = ()
    outlining: Outlining = field(default_factory=Outlining)
    statistics: Statistics = field(default_factory=Statistics)
    steering: SteeringState = field(default_factory=SteeringState)
    reached: dict[str, dict[str, str | None]] = field(default_factory=dict)
    consulted: dict[str, ev.Consulted] = field(default_factory=dict)
    targets: dict[str, dict[str, KnownEdge]] = field(default_factory=dict)
    proposals: dict[str, Payload] = field(default_factory=dict)
    _written: dict[str, Spot] = field(default_factory=dict)
    _technique: dict[str, str] = field(default_factory=dict)
    _branch: dict[str, int] = field(default_factory=dict)

    @classmethod
    def new(cls, record: Record) -> GraphSearchState:
        """The state at the start of a run."""
        settings = settings_of(record.settings)
        return cls(settings=settings, seed=seed_of(record, settings.seed))

    @property
    def start_id(self) -> str | None:
        """The kernel that walks begin at."""
        return self.root_id

    @property
    def has_begun(self) -> bool:
        """Whether the step index has anything of its own; a step in flight is the record's to tell."""
        return self.present.is_begun or bool(self.present.place or self.outlining.steps)

    @property
    def is_outline_due(self) -> bool:
        """Whether the model is still to lay out a sequence of techniques, which it does before a walk begins."""
        is_open = self.present.subject_id is None or bool(self.outlining.steps)
        return is_open and self.outlined < self.settings.outlines and not self.present.target

    def node_of(self, name: str) -> str:
        """The node that a kernel stands at: the technique that made it."""
        while (
            (created := self._created.get(name)) is not None and created.origin is Origin.REPAIR and created.parent_id
        ):
            name = created.parent_id
        return self._technique.get(name, START)

    def branch_of(self, name: str) -> int:
        """The line of kernels that one belongs to, from 1; the next free one for the first kernel's own."""
        taken = [*self._branch.values(), *(spot.branch for spot in self.beside)]
        return self._branch.get(name, 0) or max(taken, default=0) + 1

    def known(self, name: str) -> tuple[str, ...]:
        """The techniques that the base has named for a kernel, those of other states too."""
        consulted = self.consulted.get(name)
        return (*(advice.technique for advice in consulted.found), *consulted.others) if consulted else ()

    def advised(self, name: str, target: str) -> Advised | None:
        """What the base said of a technique for a kernel."""
        advised = self.consulted[name].found if name in self.consulted else ()
        return next((advice for advice in advised if advice.technique == target), None)

    def prior(self, name: str, target: str) -> float:
        """The log gain expected of an edge before this run took it: by the base's attempts on it and what it expects of
        the technique in the kernel's state; 0 where nothing is known, and for a new method."""
        node, consulted = self.node_of(name), self.consulted.get(name)
        for edge in consulted.edges if consulted else ():
            if (edge.source, edge.target) == (node, target):
                return math.log(edge.expected_gain)
        advised = self.advised(name, target)
        return math.log(advised.expected_gain) if advised else 0.0

    def weighed(self, name: str, length: int, counted: Statistics | None = None) -> list[WeighedEdge]:
        """The edges that a walk of this length so far can take at a kernel, the best first. Not one that failed there,
        nor one whose kernel lies at the end of the longest walk: nothing could be done with it. Nor one that a walk at
        work is taking there for the first time: its kernel is still to come."""
        reached, is_last = self.reached.get(name, {}), length + 1 >= self.settings.depth
        at_work = {spot.target for spot in self.beside if spot.kernel == name}
        open_to = [
            target
            for target in self.targets.get(self.node_of(name), {})
            if (target not in at_work if target not in reached else reached[target] is not None and not is_last)
        ]
        priors = {target: self.prior(name, target) for target in [*open_to, NEW_METHOD]}
        return weigh(name, self.node_of(name), priors, counted or self._counted(), self.settings.c)

    def _counted(self) -> Statistics:
        """N and Q with the walks at work, each of which counts as one that has failed until it ends."""
        if not self.beside:
            return self.statistics
        counted = Statistics({**self.statistics.edges}, {**self.statistics.nodes})
        for spot in self.beside:
            counted.back_up(self.edges_of(spot), FAILED_VALUE)
        return counted

    def walk(self) -> Spot:
        """On from where the walk has come to, else from the root, to the first edge that this run has not taken from
        the kernel there. It stays at a kernel that a person has chosen."""
        now = self.present
        chosen = None if now.subject_id else self.steering.next_base or self.steering.pinned
        name, way, stays = now.subject_id or chosen or self.root_id or "", now.way, now.stays or chosen is not None
        if now.target:
            return Spot(name, now.target, way)
        drawn = self.expansions + len(self.beside)
        while True:
            reached = self.reached.get(name, {})
            weighed = [edge for edge in self.weighed(name, len(way)) if not stays or edge.target not in reached]
            taken = choose(weighed, f"{self.seed}:{drawn}:{len(way)}").target
            further = reached.get(taken)
            if further is None:
                return Spot(name, taken, way)
            name, way = further, (*way, (name, taken))

    def technique_of(self, spot: Spot) -> str:
        """The technique that a walk ends with; empty where a new one was not proposed yet."""
        if spot.target != NEW_METHOD:
            return spot.target
        return str(self.present.proposal.get("technique") or self.proposals.get(spot.kernel, {}).get("technique", ""))

    def written(self, name: str) -> Spot | None:
        """Where the walk ended that last wrote a kernel from this one."""
        return self._written.get(name)

    def edges_of(self, spot: Spot) -> list[Ends]:
        """The edges of a walk."""
        return [(self.node_of(name), target) for name, target in (*spot.way, (spot.kernel, spot.target))]

    def weighed_on_the_way_of(self, spot: Spot) -> tuple[WeighedEdge, ...]:
        """What a walk weighed on its way, kernel by kernel; last, where it took the edge of a new method, the edge that
        this has become."""
        edges = list[WeighedEdge]()
        for length, (name, target) in enumerate((*spot.way, (spot.kernel, spot.target))):
            edges += kept(self.weighed(name, length), MOST_TOLD, target)
        if spot.target == NEW_METHOD and (technique := self.technique_of(spot)):
            taken = next(edge for edge in edges[::-1] if edge.is_taken)
            edges.append(
                replace(
                    taken, target=technique, visits=0, value=0.0, prior=round(self.prior(spot.kernel, technique), 6)
                )
            )
        return tuple(edges)

    def lesson(self) -> Revision | None:
        """What is to be taught next: a sequence whose names are settled, or a new method."""
        now = self.present
        if self.outlining.labels and self.first_id:
            return lesson_of_outline(self.outlining.steps, self.outlining.labels, self.known(self.first_id))
        if now.proposal and not now.is_taught and now.subject_id:
            consulted = self.consulted.get(now.subject_id)
            return lesson_of_proposal(now.proposal, self.node_of(now.subject_id), consulted.state if consulted else "")
        return None

    def gain(self, name: str | None) -> tuple[Relative | None, bool]:
        """What the walk has brought with this kernel, over the one where it began (None: it failed), and whether it
        says anything of its edges: not where a person wrote the kernel, or left the step."""
        now = self.present
        if not now.target or now.subject_id is None or self.is_by_hand(name):
            return None, False
        begin = Spot(now.subject_id, now.target, now.way).begin
        brought = self.over(name, begin)
        return brought, brought is not None or bool(now.spent) or name in self._failed

    def apply(self, event: ev.Event) -> None:
        """Take one event into account."""
        command = self.follow(event)
        if command is not None and command.kind is CommandKind.ROLL_BACK:
            self.root_id = command.argument
        if (call := self.call_of(command)) is not None:
            self._take_back(call)
        if isinstance(event, ev.StepStarted):
            self._begin_step(event)  # by the choice that its first call uses up
        self.steering = self.steering.after_event(event)
        if command is not None:
            self.steering = self.steering.after(command)
        match event:
            case ev.PlaceTaken(place=place):
                self.present.place = codec.read_line(Spot, place.encode())
            case ev.StepFinished():
                self._finish_step(event)
            case ev.Consulted(candidate_id=name):
                self.consulted[name] = event
                self.present.consulted.add(name)
                self._extend(event.edges)
            case ev.ReviewWritten(problem="") if event.payload:
                self._note_review(event, json.loads(event.payload))
            case ev.DepthFinished():
                self._finish_index(event)
            case ev.CandidateCreated(candidate_id=name):
                self.judge(event)
                self._branch[name] = event.trajectory
                if event.origin is not Origin.REPAIR:
                    self._technique[name] = event.technique or START
            case _:
                self.judge(event)

    def _extend(self, edges: Sequence[KnownEdge]) -> None:
        for edge in edges:
            self.targets.setdefault(edge.source, {})[edge.target] = edge

    def _take_back(self, call: ev.StepStarted) -> None:
        """A person wants this call done again: what came of it no longer counts."""
        now, name = self.present, call.candidate_id
        match call.kind:
            case "repair":
                now.current_id = name
            case "outline" | "relabel":
                self.outlining.labels = ()
                if call.kind == OUTLINE:
                    self.outlining, self.outlined = Outlining(), max(0, self.outlined - 1)
            case _:
                now.current_id, now.spent = None, ""
                if call.kind == PROPOSE:
                    now.proposal, now.is_taught = {}, False

    def _begin_step(self, event: ev.StepStarted) -> None:
        now, name = self.present, event.candidate_id
        if name is None or event.kind not in (CONSULT, PROPOSE, OPTIMISE) or self.is_outline_due:
            return
        # Read later, the same walk would know more than it was taken by.
        spot = now.place or self.walk()
        if spot.kernel != name:  # a person wants a call about another kernel done again
            spot = self._written.get(name, Spot(name, NEW_METHOD))
        elif now.subject_id is None and (self.steering.next_base or self.steering.pinned):
            now.stays = True
        now.subject_id, now.way = name, spot.way
        if event.kind != CONSULT:
            now.target = spot.target
            self._written[name] = spot

    def _finish_step(self, event: ev.StepFinished) -> None:
        if event.outcome == "dropped":
            return
        match event.kind, event.outcome:
            case "teach", "taught":
                self._be_taught()
            case (("outline" | "relabel"), outcome) if outcome in FAILED_OUTCOMES:
                self._close_outline()
            case "propose", outcome if outcome in FAILED_OUTCOMES:
                self.present.spent = NO_METHOD
            case _:
                self.count(event)

    def _note_review(self, event: ev.ReviewWritten, payload: Payload) -> None:
        match event.label:
            case "outline":
                techniques = set(self.known(event.candidate_id))
                names = [step["technique"] for step in payload["steps"]]
                self.outlining = Outlining(payload["steps"], names if set(names) <= techniques else ())
            case "relabel" if self.outlining.steps:
                self.outlining.labels = payload["labels"]
            case "propose":
                self.present.proposal = self.proposals[event.candidate_id] = payload
            case _:
                pass

    def _be_taught(self) -> None:
        """The lesson is part of the graph from here on."""
        lesson = self.lesson()
        for transition in lesson.transitions if lesson else ():
            self._extend([KnownEdge(transition.source, transition.target, 1.0)])
        if self.outlining.labels:
            self._close_outline()
        else:
            self.present.is_taught = True

    def _close_outline(self) -> None:
        self.outlining, self.outlined = Outlining(), self.outlined + 1

    def _finish_index(self, event: ev.DepthFinished) -> None:
        name = event.candidate_id if event.outcome is DepthOutcome.ACCEPTED else None
        if self.outlining.steps:  # a person left it
            self._close_outline()
        if name and name not in self._created and (created := self._created.get(self.present.current_id or "")):
            self._created[name] = created  # a tuned version stands where the kernel stands that it was made from
            self._technique[name], self._branch[name] = self.node_of(created.candidate_id), created.trajectory
        if self.first_id is None:
            self.first_id = self.root_id = name
        else:
            self._back_up(event.candidate_id)
        self.present = Present()

    def _back_up(self, name: str | None) -> None:
        """What the walk has brought counts for each of its edges, and its kernel can be walked on from."""
        now = self.present
        brought, is_evidence = self.gain(name)
        if not is_evidence or now.subject_id is None:
            return
        self.expansions += 1
        spot = Spot(now.subject_id, now.target, now.way)
        technique = self.technique_of(spot)
        self.statistics.back_up(self.edges_of(spot), value_of(brought.speedup if brought else None), technique)
        if technique:
            reached = self.reached.setdefault(now.subject_id, {})
            # Two at work may propose the same new method.
            reached[technique] = name if brought else reached.get(technique)
            self.targets.setdefault(self.node_of(now.subject_id), {}).setdefault(
                technique, KnownEdge(self.node_of(now.subject_id), technique, 1.0)
            )


def _transitions(steps: Sequence[Mapping[str, Any]], labels: Sequence[str]) -> tuple[Transition, ...]:
    """The edges of a sequence, from the first kernel on, each with its example."""
    return tuple(
        Transition(source, target, step["think"], step["method"], step["before"], step["after"])
        for source, target, step in zip([START, *labels], labels, steps, strict=False)
    )


def lesson_of_outline(
    steps: Sequence[Mapping[str, Any]], labels: Sequence[str], techniques: Collection[str]
) -> Revision:
    """The edges of an outline, and the techniques among them that nobody has defined."""
    new = {
        name: Technique(name, Category(step["category"]), step["method"], f"As a model argued: {step['think']}")
        for name, step in zip(labels, steps, strict=True)
        if name not in techniques
    }
    why = f"a model laid out {' → '.join(labels)}"
    return Revision("new", 0.0, "a run", why, techniques=tuple(new.values()), transitions=_transitions(steps, labels))


def lesson_of_proposal(proposal: Mapping[str, Any], node: str, state: str) -> Revision:
    """A new method at a node: the edge, and what is expected of the technique in the kernel's state."""
    name = proposal["technique"]
    words = proposal["about"], proposal["helps"], proposal["hurts"]
    techniques = () if proposal["is_known"] else (Technique(name, Category(proposal["category"]), *words),)
    priors = (
        ()
        if proposal["is_known"] or not state
        else (Prior(state, name, proposal["predicted_gain"], PROPOSED_CONFIDENCE),)
    )
    edge = Transition(node, name, proposal["think"], proposal["about"])
    why = f"a model proposed {name} after {node}: {proposal['think']}"
    return Revision("new", 0.0, "a run", why, techniques=techniques, priors=priors, transitions=(edge,))
