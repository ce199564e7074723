"""An evolving population as a decision: parents drawn by fitness, a child by mutation or crossover, the fastest kept.
Pure: draws are seeded by run and step index, so that a run that goes on draws as it would have.

Method: the loop of evolutionary kernel search (AlphaEvolve and its kin). A step index is called birth here.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from engine.errors import EngineError
from engine.search.actions import Ask, Consult, Expects, NewCandidate, Step
from engine.search.methods.evolve.prompts import Cross, Mutate
from engine.search.methods.kernel_in_work import KernelInWork, KernelPerIndex, draws_option
from engine.search.methods.options import Value, option, read
from engine.search.methods.steered import ask_first, seed_of, shows_profile
from storage.results.vocabulary import Verdict
from storage.run.method_words import CallWords, MethodWords
from storage.run.record import Candidate, Record
from storage.run.settings import Origin
from storage.run.steering.command_arguments import CONSULT
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


@dataclass(frozen=True, slots=True)
class Parents:
    """The parents of one child; without `second` it is a mutation of `first`."""

    first: str
    second: str | None = None


class Evolve(KernelPerIndex):
    """An evolving population: parents drawn by speed-up, children by mutation and by crossover of two."""

    name, title, policy = "evolve", "the evolving population", "drawn by speed-up"
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

    def draws(self, record: Record) -> int:
        """As its settings say."""
        return _settings(record).draws

    def draw(self, record: Record, state: KernelInWork) -> Step:
        """The call of the next birth, after what it has to know."""
        parents = _parents(record, state)
        if parents is None:
            return self.first_kernel(record, state)
        if parents.second is not None:
            return self.again(record, CROSS, parents.first)
        is_advised = not record.asks_base or (record.step_index, parents.first) in record.consulted
        return self.again(record, MUTATE if is_advised else CONSULT, parents.first)

    def first_kernel(self, record: Record, state: KernelInWork) -> Ask:
        """The call for a founder."""
        return ask_first(record, untitled="founder")

    def step(self, record: Record, state: KernelInWork, label: str, kernel: Candidate) -> Step | None:
        """What is asked about a parent."""
        match label:
            case "consult":
                return Consult(record.step_index, kernel.candidate_id)
            case "mutate":
                return _mutate(record, state, kernel)
            case "cross":
                return _cross(record, state, kernel)
            case _:
                return None

    def note(self, record: Record, command: Command) -> str | None:
        """A roll back leaves nobody else alive."""
        words = super().note(record, command)
        is_alone = words and command.kind is CommandKind.ROLL_BACK
        return f"{words}, which is the whole population then" if is_alone else words


def _settings(record: Record) -> EvolveSettings:
    return read(EvolveSettings, record.settings.strategy_options)


def _speedups(record: Record) -> dict[str, float]:
    correct = (candidate for candidate in record.candidates.values() if candidate.verdict is Verdict.PASSED)
    return {candidate.candidate_id: candidate.trusted.speedup for candidate in correct if candidate.trusted is not None}


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
        population,
        _speedups(record),
        seed=seed_of(record, settings.seed),
        index=record.step_index,
        crossover=settings.crossover,
    )


def _makes(base: str, untitled: str, second_id: str | None = None) -> NewCandidate:
    return NewCandidate(Origin.OPTIMISATION, base, 0, "Idea", untitled, second_parent_id=second_id)


def _mutate(record: Record, state: KernelInWork, parent: Candidate) -> Ask:
    name, population = parent.candidate_id, tuple(_population(record, state))
    makes, shows = _makes(name, "mutation"), shows_profile(record, parent)
    return Ask(MUTATE, record.step_index, name, Expects.SOURCE, Mutate(population), makes, shows)


def _cross(record: Record, state: KernelInWork, parent: Candidate) -> Ask:
    """The second parent follows from the first and the step index, so that a step in flight is asked for as it was.
    Where nobody else is alive, as after a roll back, it is any correct kernel of the run."""
    name, population, index = parent.candidate_id, _population(record, state), record.step_index
    speedups, seed = _speedups(record), seed_of(record, _settings(record).seed)
    second = draw_second(population, speedups, name, seed=seed, index=index)
    second = second or draw_second(list(speedups), speedups, name, seed=seed, index=index)
    if second is None:
        raise EngineError(f"this run has no other correct kernel to cross {name} with")
    prompt = Cross(tuple(population), second)
    return Ask(CROSS, index, name, Expects.SOURCE, prompt, _makes(name, "crossover", second))


def alive(line: Sequence[str], speedups: Mapping[str, float], size: int, keep: int) -> list[str]:
    """The population after these kernels were born in this order, fastest first.

    As soon as it has `size` kernels, the `keep` fastest of them stay, of equals the older ones. A kernel without a
    speed-up, such as one that was refused later, is not counted.
    """
    living = list[str]()
    for name in dict.fromkeys(line):
        if name in speedups:
            living.append(name)
        if len(living) >= size:
            living = _fastest(living, speedups)[:keep]
    return _fastest(living, speedups)


def _fastest(names: Sequence[str], speedups: Mapping[str, float]) -> list[str]:
    return sorted(names, key=lambda name: -speedups[name])


def draw_parents(
    population: Sequence[str], speedups: Mapping[str, float], *, seed: str, index: int, crossover: float
) -> Parents:
    """The parents of the child at a step index: each with a probability in proportion to its speed-up; two different
    ones with the probability `crossover`, where there are two. `population` is not empty."""
    first = _draw(population, speedups, f"{seed}:{index}:first")
    wants_two = random.Random(f"{seed}:{index}:two").random() < crossover
    second = draw_second(population, speedups, first, seed=seed, index=index) if wants_two else None
    return Parents(first, second)


def draw_second(
    population: Sequence[str], speedups: Mapping[str, float], first: str, *, seed: str, index: int
) -> str | None:
    """The other parent of a crossover; None where nobody else is alive."""
    others = [name for name in population if name != first]
    return _draw(others, speedups, f"{seed}:{index}:second") if others else None


def _draw(names: Sequence[str], speedups: Mapping[str, float], seed: str) -> str:
    return random.Random(seed).choices(names, [speedups[name] for name in names])[0]
