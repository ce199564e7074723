"""The technique that a step index is working on, folded from events, and what comes next with its kernel. Shared by
methods whose step index writes one technique and its repairs, after a first kernel; knows nothing of how a method
chooses technique and kernel."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from engine.search.actions import Action, Ask, Conclude, Expects, Finish, PromptWriter, Step, TakeSubmission
from engine.search.methods.accepted_line import AcceptedLine
from engine.search.methods.steered import (
    CORRECT,
    REPAIR,
    Steered,
    ask_first,
    ask_repair,
    failed,
    next_evaluation,
    none_correct,
    submission,
)
from storage.results.relative import Relative, between_sessions
from storage.results.vocabulary import Verdict
from storage.run import events as ev
from storage.run.record import Candidate, Record
from storage.run.settings import DepthOutcome, Origin, RunState

OPTIMISE = "optimise"
NO_EDIT = "the reply's edits could not be used"
FAILED_OUTCOMES = ("unreadable", "skipped")


class Tries(Protocol):
    """Settings that such a method has beside its own."""

    @property
    def max_repairs(self) -> int:
        """Patches per generated kernel."""
        ...

    @property
    def first_tries(self) -> int:
        """First kernels that are written from nothing until one is correct."""
        ...


@dataclass(slots=True)
class PresentTechnique:
    """The step index being worked on: the kernel that it starts from, None before it has begun, the kernel that came
    of it, and why none can come."""

    subject_id: str | None = None
    current_id: str | None = None
    generations: int = 0
    repairs: int = 0
    spent: str = ""

    @property
    def is_begun(self) -> bool:
        """Whether anything has come of it."""
        return bool(self.subject_id or self.current_id or self.spent or self.generations)


@dataclass(slots=True)
class TechniqueInWork(AcceptedLine, ABC):
    """The fold. `first_id` is the first kernel, None until one is correct."""

    first_id: str | None = None
    present: PresentTechnique = field(default_factory=PresentTechnique)
    _created: dict[str, ev.CandidateCreated] = field(default_factory=dict)
    _failed: set[str] = field(default_factory=set)

    @property
    def current_id(self) -> str | None:
        """The kernel that came of the present step index."""
        return self.present.current_id

    @property
    def start_id(self) -> str | None:
        """The kernel that the step index starts from where it has not begun."""
        return self.first_id

    @property
    def trajectory(self) -> int:
        """The line of kernels that the step index belongs to; 0 where a method has one."""
        return 0

    @property
    def has_begun(self) -> bool:
        """Whether the step index has anything of its own; a step in flight is the record's to tell."""
        return self.present.is_begun

    @abstractmethod
    def apply(self, event: ev.Event) -> None:
        """Take one event into account."""

    def judge(self, event: ev.Event) -> None:
        """Take into account what was written and what became of it."""
        match event:
            case ev.CandidateCreated(candidate_id=name):
                self._created[name], self.present.current_id = event, name
                if event.origin is not Origin.REPAIR:
                    self.present.repairs = 0
            case ev.Compiled(candidate_id=name, result=compiled) if not compiled.is_ok:
                self._failed.add(name)
            case ev.Checked(candidate_id=name, result=checked) if checked.verdict is not Verdict.PASSED:
                self._failed.add(name)
            case _:
                pass

    def count(self, event: ev.StepFinished) -> None:
        """Take into account how a call that brings a kernel ended."""
        now = self.present
        match event.kind, event.outcome:
            case "synthesise", outcome:
                now.generations += 1
                now.current_id = None if outcome == "patch_failed" else now.current_id
            case "repair", _:
                now.repairs += 1
            case "optimise", "patch_failed":
                now.spent = NO_EDIT
            case _:
                pass

    def over(self, name: str | None, parent_id: str) -> Relative | None:
        """How much faster a kernel is than another; None where it failed or nothing is measured yet."""
        new, old = self._timed.get(name or ""), self._timed.get(parent_id)
        if new is None or old is None or name in self._failed:
            return None
        return between_sessions(new.speedup, new.noise, old.speedup, old.noise)

    def is_by_hand(self, name: str | None) -> bool:
        """Whether a person wrote the kernel, or what it was repaired from, so that it says nothing of a technique."""
        while (created := self._created.get(name or "")) is not None and created.origin is Origin.REPAIR:
            name = created.parent_id
        return created is not None and created.origin is not Origin.OPTIMISATION

    def base_of(self, record: Record, name: str | None) -> str | None:
        """The base that the step index ends with, where this kernel came of it."""
        return self.present.subject_id or (record.candidates[name].created.base_id if name else self.start_id)


T = TypeVar("T", bound=TechniqueInWork)


class TechniquePerIndex(Steered[T]):
    """A method whose step index is one technique, written and repaired."""

    repair_prompt: PromptWriter

    @abstractmethod
    def tries(self, state: T) -> Tries:
        """How often it writes and repairs."""

    @abstractmethod
    def go_on(self, record: Record, state: T) -> Action:
        """What comes next where the step index has no kernel yet, and can have one."""

    @abstractmethod
    def conclude(self, record: Record, state: T, outcome: DepthOutcome, name: str | None, reason: str) -> Conclude:
        """How a step index ends."""

    def decide(self, record: Record, state: T, current: Candidate | None) -> Action:
        """The kernel of the step index is mended or evaluated; without one the method goes on."""
        if current is not None and current.has_failed:
            return self._mend(record, state, current)
        if current is not None:
            return self.evaluate(record, state, current)
        if state.present.spent:
            return self.conclude(record, state, DepthOutcome.GIVEN_UP, None, state.present.spent)
        return self.go_on(record, state)

    def _mend(self, record: Record, state: T, kernel: Candidate) -> Action:
        if state.present.repairs < self.tries(state).max_repairs:
            return self.again(record, REPAIR, kernel.candidate_id)
        if state.first_id is None:
            return self.first(record, state)
        return self.conclude(record, state, DepthOutcome.GIVEN_UP, kernel.candidate_id, failed(kernel))

    def evaluate(self, record: Record, state: T, kernel: Candidate) -> Action:
        """Compile, check, time, profile; then the step index ends."""
        evaluation = next_evaluation(record, kernel, profiles=True)
        return evaluation or self.conclude(record, state, DepthOutcome.ACCEPTED, kernel.candidate_id, CORRECT)

    def first(self, record: Record, state: T) -> Action:
        """A first kernel, unless too many have failed."""
        tries = state.present.generations
        if tries >= self.tries(state).first_tries:
            return Finish(RunState.FAILED, none_correct(record))
        return self.first_kernel(record, state)

    def first_kernel(self, record: Record, state: T) -> Ask:
        """The call for a first kernel."""
        return ask_first(record, generation=state.present.generations)

    def step(self, record: Record, state: T, label: str, kernel: Candidate) -> Step | None:
        """The repair, which all such methods have."""
        if label != REPAIR:
            return None
        return ask_repair(record, kernel, Expects.PATCH, self.repair_prompt, kernel.created.generation)

    def take(self, record: Record, state: T, parent_id: str | None) -> TakeSubmission:
        """A person's kernel; it starts from where the step index would, where its parent is not timed."""
        now = state.present
        base_id, has_base = now.subject_id or state.start_id, now.subject_id is not None
        return submission(
            record, parent_id, base_id, has_base=has_base, generation=now.generations, trajectory=state.trajectory
        )

    def base_left(self, record: Record, state: T) -> str | None:
        """What the step index started from, or would have."""
        return state.present.subject_id or state.start_id
