"""Monte-Carlo search on the graph of techniques as a decision. Pure.

Idea: ReGraph (arXiv 2510.19873), whose search was not published: how an edge is chosen and what comes back along a walk
is written down in selection.py. A step index is called expansion here: index 0 is the first kernel, each later one a
walk from it along edges that this run has taken before, and one edge more, which is written, tested and measured.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from engine.errors import EngineError
from engine.search import limits
from engine.search.actions import (
    Action,
    Ask,
    Conclude,
    Consult,
    Evaluate,
    Expects,
    Finish,
    NewCandidate,
    Step,
    Teach,
    Wait,
)
from engine.search.methods.graph_search import prompts, replies
from engine.search.methods.graph_search.selection import value_of
from engine.search.methods.graph_search.settings import GraphSearchSettings
from engine.search.methods.graph_search.state import (
    OUTLINE,
    PROPOSE,
    RELABEL,
    GraphSearchState,
    Spot,
)
from engine.search.methods.options import Value
from engine.search.methods.steered import shows_profile, wants_profile
from engine.search.methods.technique_in_work import OPTIMISE, TechniquePerIndex
from storage import codec
from storage.knowledge.graph import NEW_METHOD
from storage.results.relative import Relative
from storage.run.method_words import CallWords, MethodWords
from storage.run.record import Candidate, Record
from storage.run.settings import DepthOutcome, Origin, RunState, StepKind
from storage.run.steering.command_arguments import CONSULT, TEACH, Retry
from storage.run.steering.verbs import Command, CommandKind


class GraphSearch(TechniquePerIndex[GraphSearchState]):
    """ReGraph: Monte-Carlo search on a graph of techniques that earlier runs and models have laid out."""

    name, title, policy = "graph_search", "the graph search", "walks begin at the first kernel"
    options = GraphSearchSettings
    knowledge = "on"
    independent: Mapping[str, Value] = {}
    words = MethodWords(
        "expansion", "expansions", "expansions of the graph, each one technique",
        "An expansion is a walk through the graph of techniques, from the first kernel along the edges of largest "
        "score, to one that was not taken there before: its technique is written, repaired and measured, and what it "
        "brings counts for every edge of the walk. The first kernel is expansion 0.",
        collected="for every correct kernel", shown="with every technique", names_others=True,
        own_calls={
            OUTLINE: CallWords(
                "lay out a sequence of techniques", "Ask the model for a sequence of techniques for",
                "The model is laying out techniques for {kernel}", has_rules=True, can_show_profile=True,
            ),
            RELABEL: CallWords(
                "name known techniques among those laid out", "Ask the model to name the techniques laid out for",
                "The model is naming the techniques laid out for {kernel}",
            ),
            PROPOSE: CallWords(
                "propose a technique", "Ask the model to propose a technique for",
                "The model is proposing a technique for {kernel}", has_rules=True, can_show_profile=True,
            ),
        },
    )  # fmt: skip

    repair_prompt = staticmethod(prompts.repair)

    def __init__(self) -> None:
        super().__init__(GraphSearchState.new)

    def state(self, record: Record) -> GraphSearchState:
        """What the method remembers of a run."""
        state = super().state(record)
        state.beside = [codec.read_line(Spot, place.encode()) for place in record.beside.values() if place]
        return state

    def tries(self, state: GraphSearchState) -> GraphSearchSettings:
        """As its settings say."""
        return state.settings

    def go_on(self, record: Record, state: GraphSearchState) -> Action:
        """The first kernel, a sequence of techniques, or a walk; none where the run is over."""
        reason = None if state.has_begun else _reason_to_stop(record, state)
        if record.beside and not state.has_begun and (reason or _is_alone(record, state)):
            return Wait()
        if reason:
            return Finish(RunState.FINISHED, reason)
        if state.first_id is None:
            return self.first(record, state)
        return self._outline(record, state) if state.is_outline_due else self._expand(record, state)

    def _outline(self, record: Record, state: GraphSearchState) -> Action:
        """Before the first walk: a sequence of techniques, under known names, as edges of the graph."""
        name = state.first_id or ""
        if wants_profile(record, record.candidates[name]):
            return Evaluate(StepKind.PROFILE, record.step_index, name)
        if name not in state.consulted:
            return self.again(record, CONSULT, name)
        if state.outlining.labels:
            return self.again(record, TEACH, name)
        return self.again(record, RELABEL if state.outlining.steps else OUTLINE, name)

    def _expand(self, record: Record, state: GraphSearchState) -> Action:
        """The walk's next move: profile, ask the base, go on, have a new method proposed, write."""
        spot = state.walk()
        if wants_profile(record, record.candidates[spot.kernel]):
            return Evaluate(StepKind.PROFILE, record.step_index, spot.kernel)
        if spot.kernel not in state.present.consulted:
            return self.again(record, CONSULT, spot.kernel)
        if spot.target == NEW_METHOD and not state.present.proposal:
            return self.again(record, PROPOSE, spot.kernel)
        if state.lesson() is not None:
            return self.again(record, TEACH, spot.kernel)
        return self.again(record, OPTIMISE, spot.kernel)

    def place(self, record: Record, step: Step) -> str:
        """The walk as far as it is taken."""
        state = self.state(record)
        if state.first_id is None or state.is_outline_due:
            return ""
        spot = state.walk()
        return codec.dumps(replace(spot, branch=_branch(state, spot)))

    def step(self, record: Record, state: GraphSearchState, label: str, kernel: Candidate) -> Step | None:
        """What base and model are asked about a kernel."""
        name = kernel.candidate_id
        match label:
            case "consult":
                return Consult(record.step_index, name, node=state.node_of(name))
            case "teach":
                return _teach(record, state, name)
            case "optimise":
                return _optimise(record, state, kernel)
            case _:
                return super().step(record, state, label, kernel) or _question(record, state, label, kernel)

    def base_left(self, record: Record, state: GraphSearchState) -> str | None:
        """The kernel that the walk has come to, or the first: what was left says nothing of its edges."""
        return state.present.subject_id or state.first_id

    def refusal(self, record: Record, command: Command) -> str | None:
        """Edges that are part of the graph are taken back by reverting their revision, not by asking again."""
        if command.kind is not CommandKind.RETRY:
            return None
        step, state = record.model_step(Retry.parse(command.argument).step), self.state(record)
        if step is None or step.kind != RELABEL or state.outlining.steps:
            return None
        return "this sequence is part of the graph already: revert its revision in the knowledge base instead"

    def conclude(
        self, record: Record, state: GraphSearchState, outcome: DepthOutcome, name: str | None, reason: str
    ) -> Conclude:
        """The expansion's end, with what comes back along its walk, and the edges that were weighed on it."""
        now, index, base_id = state.present, record.step_index, state.base_of(record, name)
        brought, is_evidence = state.gain(name)
        if not is_evidence or now.subject_id is None:
            return Conclude(index, outcome, name, base_id, reason)
        spot = Spot(now.subject_id, now.target, now.way)
        value, weighed = value_of(brought.speedup if brought else None), state.weighed_on_the_way_of(spot)
        reason = f"{reason}; {_walked(state, spot, brought)}, value {value:+.2f}"
        return Conclude(index, outcome, name, base_id, reason, round(value, 6), weighed)


def _walked(state: GraphSearchState, spot: Spot, brought: Relative | None) -> str:
    """A walk and what came of it, in words."""
    edges, end = state.edges_of(spot), state.technique_of(spot) or NEW_METHOD
    nodes = " → ".join([edges[0][0], *(target for _, target in edges[:-1]), end])
    return f"walk {nodes}: {f'{brought.speedup:.3g}x over its first kernel' if brought else 'failed'}"


def _reason_to_stop(record: Record, state: GraphSearchState) -> str | None:
    most = state.settings.expansions
    if most is not None and state.expansions + len(state.beside) >= most:
        return record.all_done(most, "expansion")
    return limits.reason_to_stop(record, state.fruitless, "expansion")


def _is_alone(record: Record, state: GraphSearchState) -> bool:
    """Whether what is at work is worked on alone: the first kernel, or the expansion that begins with the sequences."""
    return "" in record.beside.values() or state.is_outline_due


def _teach(record: Record, state: GraphSearchState, name: str) -> Teach:
    revision = state.lesson()
    if revision is None:
        raise EngineError("the graph search has nothing to teach")
    return Teach(record.step_index, revision, name)


def _question(record: Record, state: GraphSearchState, label: str, candidate: Candidate) -> Ask | None:
    """What the model is asked about a correct kernel."""
    index, name, shows = record.step_index, candidate.candidate_id, shows_profile(record, candidate)
    techniques = state.known(name)
    if label == OUTLINE:
        outline = prompts.Outline(state.consulted.get(name))
        return Ask(
            OUTLINE, index, name, Expects.JSON, outline, None, shows, replies.OUTLINE_FIELDS,
            replies.ReadOutline(techniques),
        )  # fmt: skip
    if label == RELABEL:
        steps = tuple((step["technique"], step["method"]) for step in state.outlining.steps)
        reads = replies.ReadLabels(tuple(name for name, _ in steps), techniques)
        prompt = prompts.Relabel(steps, techniques)
        return Ask(RELABEL, index, name, Expects.JSON, prompt, fields=replies.RELABEL_FIELDS, reads=reads)
    if label == PROPOSE:
        node = state.node_of(name)
        taken = tuple(sorted({*state.targets.get(node, {}), *state.reached.get(name, {})}))
        asked = prompts.Propose(node, state.consulted.get(name), taken)
        return Ask(
            PROPOSE, index, name, Expects.JSON, asked, None, shows, replies.PROPOSE_FIELDS,
            replies.ReadProposal(techniques, taken),
        )  # fmt: skip
    return None


def _optimise(record: Record, state: GraphSearchState, base: Candidate) -> Ask:
    name = base.candidate_id
    spot = state.walk()
    if spot.kernel != name:  # a person wants an earlier one done again
        spot = state.written(name) or Spot(name, NEW_METHOD)
    technique = state.technique_of(spot)
    advised = state.advised(name, technique)
    proposal = state.proposals.get(name, {})
    is_new = spot.target == NEW_METHOD and proposal.get("technique") == technique
    gain = float(proposal["predicted_gain"]) if is_new else advised.expected_gain if advised else None
    weighed = state.weighed(name, len(spot.way), state.statistics)  # the model is told of walks that are over
    edge = next((edge for edge in weighed if edge.target == spot.target), None)
    makes = NewCandidate(
        Origin.OPTIMISATION, name, 0, "Optimi[sz]ation", technique or "a new method", 0,
        _branch(state, spot), technique, gain,
    )  # fmt: skip
    consulted = state.consulted.get(name)
    prompt = prompts.Optimise(
        state.node_of(name), technique, advised, tuple(proposal.items()) if is_new else (), edge,
        consulted, state.settings.examples,
    )  # fmt: skip
    return Ask(OPTIMISE, record.step_index, name, Expects.PATCH, prompt, makes, shows_profile(record, base))


def _branch(state: GraphSearchState, spot: Spot) -> int:
    """The line of kernels that a walk belongs to: the one that it has taken, while it walks as it did then."""
    taken = state.present.place
    is_taken = taken is not None and taken.branch and (taken.kernel, taken.way) == (spot.kernel, spot.way)
    return taken.branch if taken is not None and is_taken else state.branch_of(spot.kernel if spot.way else "")
