"""The seam for search methods: the next action, from the record alone.

cutegen/        CuTeGen: one evolving kernel, one optimisation per depth
coder_judge/    a judge names one point from the profile, a coder rewrites: CudaForge's method
kernelblaster/  trajectories of steps, each a technique drawn from the knowledge base
best_of/        independent first kernels, of which the best counts: one-shot and repeated sampling
reward_loop/    attempts with a graded reward, each told of those before it
evolve/         a population: parents drawn by speed-up, mutation and crossover, the fastest kept
graph_search/   Monte-Carlo search on the graph of techniques: ReGraph's idea
answers.py              one JSON object of a reply, read strictly
accepted_line.py        the kernels a step index may start from, and what a person chooses among them
steered.py              what our methods have in common: how people steer one, what a kernel still lacks
kernel_in_work.py       the kernel that a step index is working on, for methods whose step index is one kernel
technique_in_work.py    the technique that a step index is working on, for methods whose step index is one technique
options.py              settings of a strategy, as a record and described for forms and help texts
loading.py              strategies by name; this imports them
catalogue.py            strategies that a person can choose; those of one's own are described by another process
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Generic, Protocol, TypeVar

from engine.errors import EngineError
from engine.search.actions import Action, Conclude, Evaluate, Step
from engine.search.methods.options import Value
from storage.knowledge.choice import OFF
from storage.run import events as ev
from storage.run.method_words import PLAIN, MethodWords
from storage.run.record import Record
from storage.run.settings import EVALUATIONS, Origin, StepKind
from storage.run.steering.verbs import Command, CommandKind


class Strategy(Protocol):
    """A search method. Pure: same record, same answers. The first line of its docstring is what people read of it.

    A class with settings names their record as `options`. It may have `refuses`, a mapping from each verb that it never
    honours to the reason: pages do not offer such a verb, and the engine refuses it with that reason. It may have
    `words`: what it calls a step index and its calls to a model, everywhere that people read of its runs. One that asks
    the knowledge base unless somebody says otherwise has `knowledge = "on"`; one that under some of its settings asks
    none says so with `consults(record)`. One whose step indexes do not build on each other has `independent`, a mapping
    of the options and values under which that is so, empty where it always is: then several can be at work at once.
    Where they do in part, it has `place(record, step)` beside that: what the step index takes with this step, in its
    own words. It is journaled before the step; the others find it in `record.beside`.
    """

    name: str

    def next(self, record: Record) -> Action:
        """What the loop does next."""
        ...

    def again(self, record: Record, label: str, about: str | None) -> Step:
        """A step of this name about this kernel, to be taken once more: after a crash, or because a person asks.

        Raises:
            EngineError: this strategy has no such step, or the run no such kernel.
        """
        ...

    def abandon(self, record: Record, reason: str) -> Conclude | None:
        """How the current step index ends when a person leaves it; None when it has nothing of its own yet."""
        ...

    def refusal(self, record: Record, command: Command) -> str | None:
        """Why a command makes no sense now, where that is for the method to say."""
        ...

    def note(self, record: Record, command: Command) -> str | None:
        """What a command changes and from where on, where that is for the method to say."""
        ...


# Each of these speaks of the one step index at work, or of the one call.
_OF_ONE_LINE = (
    CommandKind.ROLL_BACK, CommandKind.SET_BASE, CommandKind.PIN, CommandKind.UNPIN, CommandKind.SUBMIT,
    CommandKind.RETRY, CommandKind.TAKE_OVER,
)  # fmt: skip
SEVERAL = "this run works on several kernels at once: fork it, or start one of width 1, for that"


def refused_verbs(strategy: Strategy | type[Strategy], width: int = 1) -> Mapping[CommandKind, str]:
    """Verbs that a strategy never honours in a run of that width, each with the reason."""
    refused: Mapping[CommandKind, str] = getattr(strategy, "refuses", {})
    return refused_with_width(refused, width)


def refused_with_width(refused: Mapping[CommandKind, str], width: int) -> Mapping[CommandKind, str]:
    """Verbs that a run of that width refuses, of a strategy that refuses these."""
    return refused if width == 1 else {**dict.fromkeys(_OF_ONE_LINE, SEVERAL), **refused}


def independence_of(strategy: Strategy | type[Strategy]) -> Mapping[str, Value] | None:
    """The options and values under which several of its step indexes can be at work at once; None where they cannot."""
    independent: Mapping[str, Value] | None = getattr(strategy, "independent", None)
    return independent


def place_of(strategy: Strategy, record: Record, step: Step) -> str:
    """What a step index takes for itself with this step, while others are at work beside it; empty for nothing."""
    says: Callable[[Record, Step], str] = getattr(strategy, "place", lambda *_: "")
    return says(record, step)


def check_width(width: int, name: str, independent: Mapping[str, Value] | None, values: Mapping[str, Value]) -> int:
    """A width that a run of this strategy can have, with these values of its options.

    Raises:
        EngineError: it cannot.
    """
    if width < 1:
        raise EngineError(f"the width is the number of kernels at work at once, from 1 on, not {width}")
    if width > 1 and independent is None:
        raise EngineError(f"strategy {name} works on one kernel after the other: leave out the width, or set it to 1")
    needed = (
        {}
        if independent is None
        else {option: value for option, value in independent.items() if values.get(option) != value}
    )
    if width > 1 and needed:
        words = ", ".join(f"{option}={str(value).lower()}" for option, value in needed.items())
        raise EngineError(f"strategy {name} works on several kernels at once only with {words}")
    return width


def words_of(strategy: Strategy | type[Strategy]) -> MethodWords:
    """What a strategy calls its step index, and when it has profiles taken."""
    words: MethodWords = getattr(strategy, "words", PLAIN)
    return words


def usual_knowledge(strategy: Strategy | type[Strategy]) -> str:
    """The knowledge base that runs of a strategy ask unless somebody says otherwise."""
    knowledge: str = getattr(strategy, "knowledge", OFF)
    return knowledge


def consults(strategy: Strategy, record: Record) -> bool:
    """Whether a run under this strategy asks a knowledge base."""
    says: Callable[[Record], bool] = getattr(strategy, "consults", lambda _: True)
    return record.asks_base and says(record)


def evaluation_again(record: Record, label: str, about: str | None) -> Evaluate | None:
    """The evaluation of that name once more; None for a step of a method's own about a kernel.

    Raises:
        EngineError: the run has no such kernel.
    """
    if about is None or about not in record.candidates:
        raise EngineError(f"the strategy asked to {label} {about}, a kernel that this run does not have")
    return Evaluate(StepKind(label), record.step_index, about) if label in EVALUATIONS else None


class Folded(Protocol):
    """A state that takes one event after the other."""

    def apply(self, event: ev.Event) -> None:
        """Take one event into account."""
        ...


S = TypeVar("S", bound=Folded)


class Fold(Generic[S]):
    """A strategy's own state of a record. Remembers how far it has read, so that a step costs only what is new.

    What the tuner makes of a kernel is not the strategy's work: it hears of it when the step index ends with it.
    """

    def __init__(self, new: Callable[[Record], S]) -> None:
        self._new = new
        self._record: Record | None = None
        self._read = 0
        self._state: S | None = None

    def of(self, record: Record) -> S:
        """The state after all events of the record."""
        if self._state is None or self._record is not record:
            self._record, self._read, self._state = record, 0, self._new(record)
        for event in record.events[self._read :]:
            if not (isinstance(event, ev.CandidateCreated) and event.origin is Origin.TUNED):
                self._state.apply(event)
        self._read = len(record.events)
        return self._state
