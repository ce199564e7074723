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
    TakeSubmission,
    Teach,
    Wait,
)
from engine.search.methods import Fold, accepted_line, evaluation_again
from engine.search.methods.graph_search import prompts, replies
from engine.search.methods.graph_search.selection import value_of
from engine.search.methods.graph_search.settings import GraphSearchSettings
from engine.search.methods.graph_search.state import (
    OPTIMISE,
    OUTLINE,
    PROPOSE,
    RELABEL,
    REPAIR,
    SYNTHESISE,
    GraphSearchState,
    Spot,
)
from engine.search.methods.options import Value
from engine.search.steps.conversation import synthesise
from storage import codec
from storage.knowledge.graph import NEW_METHOD
from storage.results.vocabulary import FAILED
from storage.run.method_words import CallWords, MethodWords
from storage.run.record import Candidate, Record
from storage.run.settings import DepthOutcome, Origin, RunState, StepKind, Switch
from storage.run.steering.command_arguments import CONSULT, TEACH, Retry, Submission
from storage.run.steering.verbs import Command, CommandKind


class GraphSearch:
    """ReGraph: Monte-Carlo search on a graph of techniques that earlier runs and models have laid out."""

    name = "graph_search"
    options = GraphSearchSettings
    knowledge = "on"
    independent: Mapping[str, Value] = {}
    words = MethodWords(
        "expansion", "expansions", "expansions of the graph, each one technique",
        "An expansion is a walk through the graph of techniques, from the first kernel along the edges of largest "
        "score, to one that was not taken there before: its technique is written, repaired and measured, and what it "
        "brings counts for every edge of the walk. The first kernel is expansion 0.",
        collected="for every correct kernel", shown="with every technique",
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

    def __init__(self) -> None:
        self._fold = Fold(GraphSearchState.new)

    def state(self, record: Record) -> GraphSearchState:
        """What the method remembers of a run."""
        state = self._fold.of(record)
        state.beside = [codec.read_line(Spot, place.encode()) for place in record.beside.values() if place]
        return state

    def next(self, record: Record) -> Action:
        """What the loop does next."""
        state = self.state(record)
        if record.redo is not None:
            return self.again(record, record.redo.kind, record.redo.candidate_id)
        current = record.candidates.get(state.present.current_id or "")
        is_being_judged = current is not None and not current.has_failed
        if (submitted := record.pending(CommandKind.SUBMIT)) and not is_being_judged:
            return _take(record, state, Submission.parse(submitted[0].argument).parent_id)
        if current is not None and current.has_failed:
            return self._mend(record, state, current)
        if current is not None:
            return _evaluate(record, state, current)
        if state.present.spent:
            return _conclude(record, state, DepthOutcome.GIVEN_UP, None, state.present.spent)
        reason = None if state.has_begun else _reason_to_stop(record, state)
        if record.beside and not state.has_begun and (reason or _is_alone(record, state)):
            return Wait()
        if reason:
            return Finish(RunState.FINISHED, reason)
        if state.first_id is None:
            return _first(record, state)
        return self._outline(record, state) if state.is_outline_due else self._expand(record, state)

    def _outline(self, record: Record, state: GraphSearchState) -> Action:
        """Before the first walk: a sequence of techniques, under known names, as edges of the graph."""
        name = state.first_id or ""
        if _wants_profile(record, record.candidates[name]):
            return Evaluate(StepKind.PROFILE, record.step_index, name)
        if name not in state.consulted:
            return self.again(record, CONSULT, name)
        if state.outlining.labels:
            return self.again(record, TEACH, name)
        return self.again(record, RELABEL if state.outlining.steps else OUTLINE, name)

    def _expand(self, record: Record, state: GraphSearchState) -> Action:
        """The walk's next move: profile, ask the base, go on, have a new method proposed, write."""
        spot = state.walk()
        if _wants_profile(record, record.candidates[spot.kernel]):
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

    def _mend(self, record: Record, state: GraphSearchState, candidate: Candidate) -> Action:
        if state.present.repairs < state.settings.max_repairs:
            return self.again(record, REPAIR, candidate.candidate_id)
        if state.first_id is None:
            return _first(record, state)
        failed = FAILED[candidate.verdict] if candidate.verdict else "failed"
        return _conclude(record, state, DepthOutcome.GIVEN_UP, candidate.candidate_id, f"the kernel {failed}")

    def again(self, record: Record, label: str, about: str | None) -> Step:
        """A step to be taken once more.

        Raises:
            EngineError: the graph search has no such step, or the run no such kernel.
        """
        state = self.state(record)
        if label == SYNTHESISE:
            return _synthesise(record, state)
        if label == StepKind.SUBMIT:
            return _take(record, state, about)
        if (evaluated := evaluation_again(record, label, about)) is not None:
            return evaluated
        candidate = record.candidates[about or ""]
        name, index = candidate.candidate_id, record.step_index
        match label:
            case "consult":
                return Consult(index, name, node=state.node_of(name))
            case "teach":
                return _teach(record, state, name)
            case "repair":
                return _repair(record, candidate)
            case "optimise":
                return _optimise(record, state, candidate)
            case _:
                return _question(record, state, label, candidate)

    def abandon(self, record: Record, reason: str) -> Conclude | None:
        """The expansion is given up; what it has tried stays, and says nothing of its edges unless it has failed."""
        state = self.state(record)
        if not state.has_begun and record.in_flight is None:
            return None
        base = state.present.subject_id or state.first_id
        return Conclude(record.step_index, DepthOutcome.GIVEN_UP, state.present.current_id, base, reason)

    def refusal(self, record: Record, command: Command) -> str | None:
        """Edges that are part of the graph are taken back by reverting their revision, not by asking again."""
        if command.kind is not CommandKind.RETRY:
            return None
        step, state = record.model_step(Retry.parse(command.argument).step), self.state(record)
        if step is None or step.kind != RELABEL or state.outlining.steps:
            return None
        return "this sequence is part of the graph already: revert its revision in the knowledge base instead"

    def note(self, record: Record, command: Command) -> str | None:
        """From which expansion on a choice of the kernel where walks begin, or of what the model is shown, holds."""
        upcoming = record.step_index + self.state(record).has_begun
        return accepted_line.note(
            record, command, word="expansion", upcoming=upcoming, policy="walks begin at the first kernel"
        )


def _reason_to_stop(record: Record, state: GraphSearchState) -> str | None:
    most = state.settings.expansions
    if most is not None and state.expansions + len(state.beside) >= most:
        return f"all {most} expansions are done" if most > 1 else "the expansion is done"
    return limits.reason_to_stop(record, state.fruitless, "expansion")


def _is_alone(record: Record, state: GraphSearchState) -> bool:
    """Whether what is at work is worked on alone: the first kernel, or the expansion that begins with the sequences."""
    return "" in record.beside.values() or state.is_outline_due


def _teach(record: Record, state: GraphSearchState, name: str) -> Teach:
    revision = state.lesson()
    if revision is None:
        raise EngineError("the graph search has nothing to teach")
    return Teach(record.step_index, revision, name)


def _question(record: Record, state: GraphSearchState, label: str, candidate: Candidate) -> Ask:
    """What the model is asked about a correct kernel."""
    index, name, shows = record.step_index, candidate.candidate_id, _shows(record, candidate)
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
    raise EngineError(f"the graph search has no step {label!r}")


def _shows(record: Record, candidate: Candidate) -> bool:
    """Whether a prompt about a kernel carries its profile."""
    has_profile = candidate.profiled is not None and not candidate.profiled.disturbance
    return has_profile and record.steering.expose is not Switch.OFF


def _wants_profile(record: Record, candidate: Candidate) -> bool:
    return record.steering.collect is not Switch.OFF and not candidate.is_profile_tried


def _first(record: Record, state: GraphSearchState) -> Action:
    """A first kernel, unless too many have failed."""
    tries = state.present.generations
    if tries >= state.settings.first_tries:
        return Finish(RunState.FAILED, f"no correct first kernel after {tries} with their repairs")
    return _synthesise(record, state)


def _synthesise(record: Record, state: GraphSearchState) -> Ask:
    makes = NewCandidate(Origin.SYNTHESIS, None, state.present.generations, "Approach", "first kernel")
    return Ask(SYNTHESISE, record.step_index, None, Expects.SOURCE, synthesise, makes)


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
    return Ask(OPTIMISE, record.step_index, name, Expects.PATCH, prompt, makes, _shows(record, base))


def _branch(state: GraphSearchState, spot: Spot) -> int:
    """The line of kernels that a walk belongs to: the one that it has taken, while it walks as it did then."""
    taken = state.present.place
    is_taken = taken is not None and taken.branch and (taken.kernel, taken.way) == (spot.kernel, spot.way)
    return taken.branch if taken is not None and is_taken else state.branch_of(spot.kernel if spot.way else "")


def _repair(record: Record, candidate: Candidate) -> Ask:
    created = candidate.created
    makes = NewCandidate(
        Origin.REPAIR, created.base_id, created.generation, "Fix", "repair", created.repair + 1, created.trajectory
    )
    return Ask(REPAIR, record.step_index, candidate.candidate_id, Expects.PATCH, prompts.repair, makes)


def _take(record: Record, state: GraphSearchState, parent_id: str | None) -> TakeSubmission:
    """A submission starts from its parent where that is correct and timed, else from where the walk has come to."""
    parent, base = record.candidates.get(parent_id or ""), state.present.subject_id or state.root_id
    if state.present.subject_id is None and parent is not None and parent.timed is not None:
        base = parent.candidate_id
    return TakeSubmission(record.step_index, parent_id, base, state.present.generations)


def _evaluate(record: Record, state: GraphSearchState, candidate: Candidate) -> Action:
    """Compile, check, time, profile."""
    name, index, stage = candidate.candidate_id, record.step_index, candidate.next_stage
    if stage is None and _wants_profile(record, candidate):
        stage = StepKind.PROFILE
    if stage is not None:
        return Evaluate(stage, index, name)
    return _conclude(record, state, DepthOutcome.ACCEPTED, name, "correct and timed")


def _conclude(
    record: Record, state: GraphSearchState, outcome: DepthOutcome, name: str | None, reason: str
) -> Conclude:
    """The expansion's end, with what comes back along its walk, and the edges that were weighed on it."""
    now = state.present
    base = now.subject_id or (record.candidates[name].created.base_id if name else state.root_id)
    brought, is_evidence = state.gain(name)
    if not is_evidence or now.subject_id is None:
        return Conclude(record.step_index, outcome, name, base, reason)
    spot = Spot(now.subject_id, now.target, now.way)
    edges = state.edges_of(spot)
    value = value_of(brought.speedup if brought else None)
    ends = state.technique_of(spot) or NEW_METHOD
    reason_given = f"{reason}; walk {' → '.join([edges[0][0], *(target for _, target in edges[:-1]), ends])}: "
    reason_given += f"{brought.speedup:.3g}x over its first kernel, " if brought else "failed, "
    return Conclude(
        record.step_index,
        outcome,
        name,
        base,
        f"{reason_given}value {value:+.2f}",
        round(value, 6),
        state.weighed_on_the_way_of(spot),
    )
