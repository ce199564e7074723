"""An evolving population as a decision: parents drawn by fitness, a child by mutation or crossover, the fastest kept.
Pure.

Method: the loop of evolutionary kernel search (AlphaEvolve and its kin). A step index is called birth here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from engine.errors import EngineError
from engine.search import limits
from engine.search.actions import (
    Action,
    Ask,
    Conclude,
    Consult,
    Expects,
    Finish,
    NewCandidate,
    Rank,
    Step,
    TakeSubmission,
)
from engine.search.methods import Fold, accepted_line, evaluation_again
from engine.search.methods.evolve.population import Parents, alive, draw_parents, draw_second
from engine.search.methods.evolve.prompts import Cross, Mutate
from engine.search.methods.kernel_in_work import SYNTHESISE, KernelInWork, draws_option, next_evaluation
from engine.search.methods.options import Value, option, read
from engine.search.steps.conversation import synthesise
from storage.results.vocabulary import FAILED, Verdict
from storage.run.method_words import CallWords, MethodWords
from storage.run.record import Candidate, Record
from storage.run.settings import DepthOutcome, Origin, RunState, StepKind, Switch
from storage.run.steering.command_arguments import CONSULT, RANK, Submission
from storage.run.steering.verbs import Command, CommandKind

MUTATE, CROSS = "mutate", "cross"


@dataclass(frozen=True, slots=True)
class EvolveSettings:
    """Settings of the method. The number of births is the run's own limit."""

    founders: int = option(
        4, "first kernels that are written from nothing, correct or not; more as long as none is correct",
        label="Founders", least=1,
    )  # fmt: skip
    population: int = option(8, "correct kernels at which the population is cut", label="Population", least=2)
    survivors: int = option(4, "fastest kernels that a cut leaves", label="Survivors", least=1)
    crossover: float = option(
        0.3, "share of the children that have two parents, from 0 to 1; the others are mutations of one",
        label="Share of crossovers", least=0,
    )  # fmt: skip
    seed: int | None = option(
        None, "seed of the draws: runs with the same seed and the same answers draw alike", label="Seed of the draws",
        automatic="each run its own",
    )  # fmt: skip
    draws: int = draws_option("birth")


class Evolve:
    """An evolving population: parents drawn by speed-up, children by mutation and by crossover of two."""

    name = "evolve"
    options = EvolveSettings
    independent: Mapping[str, Value] = {}
    words = MethodWords(
        "birth", "births", "kernels born, founders included",
        "A birth is one kernel: a founder, written from nothing, a mutation of one kernel of the population, or a "
        "crossover of two. It ends when the kernel is correct and timed and joins the population, or has failed.",
        collected="only where a person asks for it", shown="where the parent of a mutation has one",
        own_calls={
            MUTATE: CallWords(
                "mutate the kernel", "Ask the model to mutate", "The model is mutating {kernel}", "Mutated",
                has_rules=True, can_show_profile=True,
            ),
            CROSS: CallWords(
                "cross two kernels", "Ask the model to cross another kernel with",
                "The model is crossing {kernel} with another", "Crossed", has_rules=True,
            ),
        },
    )  # fmt: skip

    def __init__(self) -> None:
        self._fold = Fold(KernelInWork.new)

    def next(self, record: Record) -> Action:
        """What the loop does next."""
        state = self._fold.of(record)
        if record.redo is not None:
            return self.again(record, record.redo.kind, record.redo.candidate_id)
        current, most = state.current(record), _settings(record).draws
        is_being_judged = current is not None and not current.has_failed
        if (submitted := record.pending(CommandKind.SUBMIT)) and not is_being_judged:
            return _take(record, Submission.parse(submitted[0].argument).parent_id)
        if state.wants_draw(record, most):
            return self._draw(record, state)
        if (step := state.wants_order(record, most)) is not None:
            return step
        if current is None and not state.spent:
            return self._bear(record, state)
        if current is None or current.has_failed:
            return _give_up(record, current, state.spent)
        accepted = _conclude(record, DepthOutcome.ACCEPTED, current, "correct and timed")
        return next_evaluation(record, current, profiles=False) or accepted

    def _bear(self, record: Record, state: KernelInWork) -> Action:
        """The next birth, or the end."""
        if reason := limits.reason_to_stop(record, state.fruitless, "birth"):
            return Finish(RunState.FINISHED if record.best else RunState.FAILED, reason)
        return self._draw(record, state)

    def _draw(self, record: Record, state: KernelInWork) -> Step:
        """The call of the next birth, after what it has to know."""
        parents = _parents(record, state)
        if parents is None:
            return self.again(record, SYNTHESISE, None)
        if parents.second is not None:
            return self.again(record, CROSS, parents.first)
        is_advised = not record.asks_base or (record.step_index, parents.first) in record.consulted
        return self.again(record, MUTATE if is_advised else CONSULT, parents.first)

    def again(self, record: Record, label: str, about: str | None) -> Step:
        """A step to be taken once more.

        Raises:
            EngineError: the method has no such step, or the run no such kernel.
        """
        index, state = record.step_index, self._fold.of(record)
        if label == SYNTHESISE:
            makes = NewCandidate(Origin.SYNTHESIS, None, 0, "Approach", "founder")
            return Ask(SYNTHESISE, index, None, Expects.SOURCE, synthesise, makes)
        if label == StepKind.SUBMIT:
            return _take(record, about)
        if label == RANK:
            return Rank(index, tuple(state.drawn))
        if (evaluation := evaluation_again(record, label, about)) is not None:
            return evaluation
        parent = record.candidates[about or ""]
        match label:
            case "consult":
                return Consult(index, parent.candidate_id)
            case "mutate":
                return _mutate(record, state, parent)
            case "cross":
                return _cross(record, state, parent)
            case _:
                raise EngineError(f"the evolving population has no step {label!r}")

    def abandon(self, record: Record, reason: str) -> Conclude | None:
        """The birth is given up."""
        state = self._fold.of(record)
        if not state.has_begun and record.in_flight is None:
            return None
        return _conclude(record, DepthOutcome.GIVEN_UP, record.candidates.get(state.current_id or ""), reason)

    def refusal(self, record: Record, command: Command) -> str | None:
        """The method honours every verb."""
        return None

    def note(self, record: Record, command: Command) -> str | None:
        """From which birth on a choice of a parent, or of what the model is shown, holds."""
        upcoming = record.step_index + self._fold.of(record).has_begun
        words = accepted_line.note(record, command, word="birth", upcoming=upcoming, policy="drawn by speed-up")
        is_alone = words and command.kind is CommandKind.ROLL_BACK
        return f"{words}, which is the whole population then" if is_alone else words


def _settings(record: Record) -> EvolveSettings:
    return read(EvolveSettings, record.settings.strategy_options)


def _seed(record: Record) -> str:
    seed = _settings(record).seed
    return record.settings.run_id if seed is None else str(seed)


def _speedups(record: Record) -> dict[str, float]:
    correct = (candidate for candidate in record.candidates.values() if candidate.verdict is Verdict.PASSED)
    return {candidate.candidate_id: candidate.timed.speedup for candidate in correct if candidate.timed is not None}


def _population(record: Record, state: KernelInWork) -> list[str]:
    settings = _settings(record)
    keep = min(settings.survivors, settings.population - 1)
    return alive(state.line, _speedups(record), settings.population, keep)


def _parents(record: Record, state: KernelInWork) -> Parents | None:
    """The parents of the next child, the first by a person's choice where there is one; None for a founder."""
    population, settings = _population(record, state), _settings(record)
    if chosen := record.steering.next_base or record.steering.pinned:
        return Parents(chosen)
    if not population or record.step_index < settings.founders:
        return None
    return draw_parents(
        population, _speedups(record), seed=_seed(record), index=record.step_index, crossover=settings.crossover
    )


def _makes(base: str, untitled: str, second_id: str | None = None) -> NewCandidate:
    return NewCandidate(Origin.OPTIMISATION, base, 0, "Idea", untitled, second_parent_id=second_id)


def _mutate(record: Record, state: KernelInWork, parent: Candidate) -> Ask:
    name, population = parent.candidate_id, tuple(_population(record, state))
    has_profile = parent.profiled is not None and not parent.profiled.disturbance
    shows = has_profile and record.steering.expose is not Switch.OFF
    makes = _makes(name, "mutation")
    return Ask(MUTATE, record.step_index, name, Expects.SOURCE, Mutate(population), makes, shows)


def _cross(record: Record, state: KernelInWork, parent: Candidate) -> Ask:
    """The second parent follows from the first and the step index, so that a step in flight is asked for as it was.
    Where nobody else is alive, as after a roll back, it is any correct kernel of the run."""
    name, population, index = parent.candidate_id, _population(record, state), record.step_index
    speedups, seed = _speedups(record), _seed(record)
    second = draw_second(population, speedups, name, seed=seed, index=index)
    second = second or draw_second(list(speedups), speedups, name, seed=seed, index=index)
    if second is None:
        raise EngineError(f"this run has no other correct kernel to cross {name} with")
    prompt = Cross(tuple(population), second)
    return Ask(CROSS, index, name, Expects.SOURCE, prompt, _makes(name, "crossover", second))


def _take(record: Record, parent_id: str | None) -> TakeSubmission:
    """A submission starts from its parent where that is correct and timed."""
    parent = record.candidates.get(parent_id or "")
    base = parent.candidate_id if parent is not None and parent.timed is not None else None
    return TakeSubmission(record.step_index, parent_id, base, 0)


def _give_up(record: Record, candidate: Candidate | None, spent: str) -> Conclude:
    verdict = candidate.verdict if candidate is not None else None
    reason = f"the kernel {FAILED[verdict]}" if verdict is not None else spent
    return _conclude(record, DepthOutcome.GIVEN_UP, candidate, reason)


def _conclude(record: Record, outcome: DepthOutcome, candidate: Candidate | None, reason: str) -> Conclude:
    name, base = (candidate.candidate_id, candidate.created.base_id) if candidate is not None else (None, None)
    return Conclude(record.step_index, outcome, name, base, reason)
