"""The kernel that a step index is working on, folded from events, and what comes next with it. Shared by methods whose
step index is one kernel and its repairs; knows nothing of how a method chooses what the kernel is written from."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field

from engine.search import limits
from engine.search.actions import Action, Conclude, Evaluate, Rank, Step, TakeSubmission
from engine.search.methods.accepted_line import AcceptedLine
from engine.search.methods.options import option
from engine.search.methods.steered import (
    CORRECT,
    REPAIR,
    Steered,
    end_with,
    failed,
    finish,
    next_evaluation,
    submission,
)
from storage.run import events as ev
from storage.run.record import Candidate, Record
from storage.run.settings import DepthOutcome, Origin, StepKind
from storage.run.steering.command_arguments import RANK
from storage.run.steering.verbs import CommandKind

NO_KERNEL = "the reply holds no kernel"


@dataclass(slots=True)
class KernelInWork(AcceptedLine):
    """The fold. `current_id` is the newest kernel of the present step index, `spent` why no further one can come of
    it, `repairs` how many of them are repairs. `latest_id` is the newest kernel of the run, whatever became of it, or
    the one that a person went back to since; of kernels drawn together it is the one that was evaluated.

    Where a method draws several kernels for one step index, `drawn` are those so far, `draws` how many replies were
    asked for, `order` in which they are evaluated, empty until they are ranked, and `before_id` the latest kernel
    before them."""

    current_id: str | None = None
    latest_id: str | None = None
    spent: str = ""
    repairs: int = 0
    drawn: list[str] = field(default_factory=list)
    draws: int = 0
    order: tuple[str, ...] = ()
    before_id: str | None = None

    @classmethod
    def new(cls, record: Record) -> KernelInWork:
        """The state at the start of a run."""
        return cls()

    @property
    def has_begun(self) -> bool:
        """Whether the present step index has anything of its own; a step in flight is the record's to tell."""
        return bool(self.current_id or self.spent)

    def apply(self, event: ev.Event) -> None:
        """Take one event into account."""
        command = self.follow(event)
        if command is not None and command.kind is CommandKind.ROLL_BACK:
            self.latest_id = self.before_id = command.argument
        if (call := self.call_of(command)) is not None:
            self.current_id, self.spent = (call.candidate_id if call.kind == REPAIR else None), ""
            self._draw_anew()
        match event:
            case ev.CandidateCreated(candidate_id=name, origin=origin):
                self.current_id, self.latest_id, self.spent = name, name, ""
                self.repairs += origin is Origin.REPAIR
                self._count_drawn(event)
            case ev.StepFinished(outcome="patch_failed", kind=kind):
                self.spent = NO_KERNEL
                self.draws += kind != REPAIR
            case ev.Ranked(order=order):
                self.order, self.current_id, self.spent = order, order[0], ""
            case ev.DepthFinished(candidate_id=judged, outcome=outcome):
                if judged and (self.order or outcome is DepthOutcome.ACCEPTED):
                    self.latest_id = judged
                self.current_id, self.spent, self.repairs, self.before_id = None, "", 0, self.latest_id
                self._draw_anew()
            case _:
                pass

    def _draw_anew(self) -> None:
        self.drawn, self.draws, self.order = [], 0, ()

    def _count_drawn(self, created: ev.CandidateCreated) -> None:
        if created.origin is Origin.MANUAL:
            self.drawn, self.order = [created.candidate_id], (created.candidate_id,)
        elif not created.repair:
            self.drawn.append(created.candidate_id)
            self.draws += 1

    def subject_id(self) -> str | None:
        """The kernel that the present step index starts from where nothing else says so, the same for all its draws."""
        return self.before_id if self.draws else self.latest_id

    def current(self, record: Record) -> Candidate | None:
        """The kernel to go on with: the newest, or of ranked ones the first that has not failed."""
        newest = record.candidates.get(self.current_id or "")
        if newest is None or not newest.has_failed:
            return newest
        others = (record.candidates[name] for name in self.order)
        return next((kernel for kernel in others if not kernel.has_failed), newest)

    def wants_draw(self, record: Record, most: int) -> bool:
        """Whether one more kernel is drawn, of so many, before any is evaluated. The first one is the method's own
        matter, and limits that are used up end the drawing."""
        if most <= 1 or not self.draws or self.order:
            return False
        return self.draws < most and not (self.drawn and limits.exhausted(record))

    def wants_order(self, record: Record, most: int) -> Evaluate | Rank | None:
        """What drawn kernels lack before they are evaluated: to be compiled, which costs no device time, and ranked."""
        if most <= 1 or self.order or len(self.drawn) < 2:
            return None
        for name in self.drawn:
            if record.candidates[name].compiled is None:
                return Evaluate(StepKind.COMPILE, record.step_index, name)
        return Rank(record.step_index, tuple(self.drawn))


def draws_option(word: str) -> int:
    """The option of a method that may draw several kernels for one step index."""
    about = (
        f"kernels drawn for each {word}: all are compiled, ranked by a small reward model where that beats the order "
        "of arrival, and evaluated in this order until one is correct"
    )
    draws: int = option(1, about, label="Kernels drawn", least=1)
    return draws


class KernelPerIndex(Steered[KernelInWork]):
    """A method whose step index is one kernel: drawn, of several ranked and the first that does not fail, evaluated."""

    def __init__(self) -> None:
        super().__init__(KernelInWork.new)

    @abstractmethod
    def draws(self, record: Record) -> int:
        """How many kernels are drawn for a step index."""

    @abstractmethod
    def draw(self, record: Record, state: KernelInWork) -> Step:
        """The call of a kernel, after what it has to know."""

    def reason_to_stop(self, record: Record, state: KernelInWork) -> str | None:
        """Why no further step index begins."""
        return limits.reason_to_stop(record, state.fruitless, self.words.step)

    def mend(self, record: Record, state: KernelInWork, kernel: Candidate) -> Step | None:
        """What is done about a kernel that has failed; None: nothing, its step index ends."""
        return None

    def profiles(self, record: Record) -> bool:
        """Whether each correct kernel is profiled."""
        return False

    def conclude(self, record: Record, outcome: DepthOutcome, kernel: Candidate | None, reason: str) -> Conclude:
        """How a step index ends."""
        return end_with(record, outcome, kernel, reason)

    def current(self, record: Record, state: KernelInWork) -> Candidate | None:
        """The newest kernel, or of ranked ones the first that has not failed."""
        return state.current(record)

    def decide(self, record: Record, state: KernelInWork, current: Candidate | None) -> Action:
        """A kernel is drawn, or more of them and ranked, then evaluated; its step index ends with it."""
        most = self.draws(record)
        if state.wants_draw(record, most):
            return self.draw(record, state)
        if (step := state.wants_order(record, most)) is not None:
            return step
        if current is None and state.spent:
            return self.conclude(record, DepthOutcome.GIVEN_UP, None, state.spent)
        if current is None:
            reason = self.reason_to_stop(record, state)
            return finish(record, reason) if reason else self.draw(record, state)
        if current.has_failed:
            mending = self.mend(record, state, current)
            return mending or self.conclude(record, DepthOutcome.GIVEN_UP, current, failed(current))
        evaluation = next_evaluation(record, current, profiles=self.profiles(record))
        return evaluation or self.conclude(record, DepthOutcome.ACCEPTED, current, CORRECT)

    def again(self, record: Record, label: str, about: str | None) -> Step:
        """A step to be taken once more.

        Raises:
            EngineError: the method has no such step, or the run no such kernel.
        """
        if label == RANK:
            return Rank(record.step_index, tuple(self.state(record).drawn))
        return super().again(record, label, about)

    def take(self, record: Record, state: KernelInWork, parent_id: str | None) -> TakeSubmission:
        """A person's kernel, made from that one; it starts from nothing where that is not timed."""
        return submission(record, parent_id, None)


def all_done(record: Record, most: int, word: str) -> str | None:
    """Why no further kernel is begun by a method that writes at most so many, one a step index from 0 on; None while
    there is one left. `word` is what the method calls one."""
    count = record.step_index
    if count < min(most, record.budget.depths + 1):
        return None
    return record.all_done(count, word)
