"""What our methods have in common: how people steer one, what a kernel still lacks, how a step index is left. Knows no
method: each decides by itself what comes next. A method from elsewhere needs none of this."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Generic, Protocol, TypeVar

from engine.errors import EngineError
from engine.search.actions import (
    Action,
    Ask,
    Conclude,
    Evaluate,
    Expects,
    Finish,
    NewCandidate,
    PromptWriter,
    Step,
    TakeSubmission,
)
from engine.search.methods import Fold, Folded, accepted_line, evaluation_again
from engine.search.steps.conversation import synthesise
from storage.results.vocabulary import FAILED
from storage.run.events import StepFinished
from storage.run.method_words import MethodWords
from storage.run.record import Candidate, Record
from storage.run.settings import DepthOutcome, Origin, RunState, StepKind, Switch
from storage.run.steering.command_arguments import Submission
from storage.run.steering.verbs import Command, CommandKind

SYNTHESISE, REPAIR = "synthesise", "repair"
CORRECT = "correct and timed"


class State(Folded, Protocol):
    """What such a method remembers."""

    @property
    def has_begun(self) -> bool:
        """Whether the present step index has anything of its own; a step in flight is the record's to tell."""
        ...

    @property
    def current_id(self) -> str | None:
        """The newest kernel of the present step index."""
        ...


S = TypeVar("S", bound=State)


class Steered(ABC, Generic[S]):
    """A method that honours what people ask for, before it goes on by itself."""

    words: MethodWords
    title = ""
    """What errors call the method."""
    policy = ""
    """How it chooses by itself what a step index starts from."""

    refuses: Mapping[CommandKind, str] = {}

    def __init__(self, new: Callable[[Record], S]) -> None:
        self._fold = Fold(new)

    def state(self, record: Record) -> S:
        """What the method remembers of a run."""
        return self._fold.of(record)

    def next(self, record: Record) -> Action:
        """What the loop does next: a call that a person wants once more, a person's kernel as soon as none is being
        judged, else what the method decides."""
        if record.redo is not None:
            return self.again(record, record.redo.kind, record.redo.candidate_id)
        state = self.state(record)
        current, submitted = self.current(record, state), record.pending(CommandKind.SUBMIT)
        is_free = current is None or current.has_failed
        if submitted and is_free and CommandKind.SUBMIT not in self.refuses:
            return self.take(record, state, Submission.parse(submitted[0].argument).parent_id)
        return self.decide(record, state, current)

    def current(self, record: Record, state: S) -> Candidate | None:
        """The kernel that the present step index goes on with."""
        return record.candidates.get(state.current_id or "")

    @abstractmethod
    def decide(self, record: Record, state: S, current: Candidate | None) -> Action:
        """What comes next where nobody has asked for anything. `current` is the kernel in work."""

    def again(self, record: Record, label: str, about: str | None) -> Step:
        """A step to be taken once more.

        Raises:
            EngineError: the method has no such step, or the run no such kernel.
        """
        state = self.state(record)
        if label == SYNTHESISE:
            return self.first_kernel(record, state)
        if label == StepKind.SUBMIT:
            return self.take(record, state, about)
        if (evaluation := evaluation_again(record, label, about)) is not None:
            return evaluation
        step = self.step(record, state, label, record.candidates[about or ""])
        if step is None:
            raise EngineError(f"{self.title} has no step {label!r}")
        return step

    def first_kernel(self, record: Record, state: S) -> Ask:
        """The call for a kernel that is written from nothing."""
        return ask_first(record)

    @abstractmethod
    def take(self, record: Record, state: S, parent_id: str | None) -> TakeSubmission:
        """A person's kernel, made from that one."""

    @abstractmethod
    def step(self, record: Record, state: S, label: str, kernel: Candidate) -> Step | None:
        """The method's own step of this name about a kernel; None where it has none."""

    def abandon(self, record: Record, reason: str) -> Conclude | None:
        """The step index is given up; what it has tried stays. A step of one that has ended, such as a look back, is
        nothing of this one's."""
        state, step = self.state(record), record.in_flight
        if not state.has_begun and (step is None or step.depth != record.step_index):
            return None
        base_id = self.base_left(record, state)
        return Conclude(record.step_index, DepthOutcome.GIVEN_UP, state.current_id, base_id, reason)

    def base_left(self, record: Record, state: S) -> str | None:
        """The kernel that stays the base where a step index is left: what its own kernel was made from."""
        return base_of(record.candidates.get(state.current_id or ""))

    def refusal(self, record: Record, command: Command) -> str | None:
        """Every verb makes sense at any time; those that never do stand in `refuses`."""
        return None

    def note(self, record: Record, command: Command) -> str | None:
        """From which step index on a choice of the kernel to start from, or of what the model is shown, holds."""
        upcoming = record.step_index + self.state(record).has_begun
        return accepted_line.note(record, command, word=self.words.step, upcoming=upcoming, policy=self.policy)


def ask_first(
    record: Record, prompt: PromptWriter = synthesise, *, generation: int = 0, untitled: str = "first kernel",
    tools: int = 0,
) -> Ask:  # fmt: skip
    """The call for a kernel that is written from nothing; `untitled` is its summary where the reply has none."""
    makes = NewCandidate(Origin.SYNTHESIS, None, generation, "Approach", untitled)
    return Ask(SYNTHESISE, record.step_index, None, Expects.SOURCE, prompt, makes, tools=tools)


def ask_repair(record: Record, kernel: Candidate, expects: Expects, prompt: PromptWriter, generation: int) -> Ask:
    """The call for a failed kernel's repair, which starts from the same base."""
    created = kernel.created
    makes = NewCandidate(
        Origin.REPAIR, created.base_id, generation, "Fix", "repair", created.repair + 1, created.trajectory
    )
    return Ask(REPAIR, record.step_index, kernel.candidate_id, expects, prompt, makes)


def submission(
    record: Record, parent_id: str | None, base_id: str | None, *, has_base: bool = False, generation: int = 0,
    trajectory: int = 0,
) -> TakeSubmission:  # fmt: skip
    """A submission starts from its parent where that is correct and timed, else from `base_id`; always from that in a
    step index that has its base already."""
    parent = record.candidates.get(parent_id or "")
    if not has_base and parent is not None and parent.timed is not None:
        base_id = parent.candidate_id
    return TakeSubmission(record.step_index, parent_id, base_id, generation, trajectory)


def end_with(record: Record, outcome: DepthOutcome, kernel: Candidate | None, reason: str) -> Conclude:
    """The step index's end with this kernel, or without any."""
    name = kernel.candidate_id if kernel is not None else None
    return Conclude(record.step_index, outcome, name, base_of(kernel), reason)


def base_of(kernel: Candidate | None) -> str | None:
    """The kernel that the step index of this one started from."""
    return kernel.created.base_id if kernel is not None else None


def has_profile(kernel: Candidate) -> bool:
    """Whether a model can be shown a profile of it."""
    return kernel.profiled is not None and not kernel.profiled.disturbance


def shows_profile(record: Record, kernel: Candidate) -> bool:
    """Whether a prompt about a kernel carries its profile, in a method that shows each one."""
    return has_profile(kernel) and record.steering.expose is not Switch.OFF


def wants_profile(record: Record, kernel: Candidate) -> bool:
    """Whether a profile of a kernel is taken first, in a method that has each one profiled."""
    return record.steering.collect is not Switch.OFF and not kernel.is_profile_tried


def next_evaluation(record: Record, candidate: Candidate, *, profiles: bool) -> Evaluate | None:
    """What a kernel that has not failed still lacks: compile, check, time, and a profile where `profiles` says so or a
    person asks for one. None when it has everything."""
    stage, wish = candidate.next_stage, record.steering.collect
    is_wanted = wish is Switch.ON or (profiles and wish is not Switch.OFF)
    if stage is None and is_wanted and not candidate.is_profile_tried:
        stage = StepKind.PROFILE
    return Evaluate(stage, record.step_index, candidate.candidate_id) if stage is not None else None


def failed(kernel: Candidate) -> str:
    """Why a step index ends without the kernel, where it has failed."""
    return f"the kernel {FAILED[kernel.verdict]}" if kernel.verdict else "the kernel failed"


def seed_of(record: Record, seed: int | None) -> str:
    """The seed of a run's draws: the one that is set, else the run's own."""
    return record.settings.run_id if seed is None else str(seed)


def finish(record: Record, reason: str) -> Finish:
    """The run's end: it has failed where it has no correct kernel, and then says what its calls came to."""
    if record.best:
        return Finish(RunState.FINISHED, reason)
    return Finish(RunState.FAILED, f"{reason}; {none_correct(record)}")


def none_correct(record: Record) -> str:
    """Why a run has no correct kernel: which kernels failed, and how many replies held none."""
    failures = [kernel for kernel in record.candidates.values() if kernel.has_failed]
    repairs = sum(kernel.created.origin is Origin.REPAIR for kernel in failures)
    if not failures:
        return f"the model gave no kernel in {_counted(record.usage.model_calls, 'call')}"
    said = f"no correct kernel: {_counted(len(failures), 'kernel')} failed"
    said += f", {_counted(repairs, 'repair')} among them" if repairs else ""
    missed = {e.step for e in record.events if isinstance(e, StepFinished) and e.outcome == "patch_failed"}
    useless = sum(step in missed for step, _ in record.calls)
    return said + (f"; {_counted(useless, 'reply', 'replies')} could not be used" if useless else "")


def _counted(count: int, one: str, several: str = "") -> str:
    return f"{count} {one if count == 1 else several or f'{one}s'}"
