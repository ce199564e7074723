"""What a person has to do in a run, folded from its journal. A part of the record; touches no file."""

from __future__ import annotations

from dataclasses import dataclass, field

from storage.run import events as ev
from storage.run.settings import RunState
from storage.run.steering.command_arguments import Answer
from storage.run.steering.verbs import Command, CommandKind

_GOES_ON = (ev.StateChanged, ev.EngineStarted, ev.RunEnded, ev.StepStarted, ev.StepFinished)


@dataclass(slots=True)
class HumanState:
    """Open questions and steps that wait for a yes. `is_approved` is the word on the step asked about, if any;
    `is_waiting`: the run has not gone on in any other way since it was asked.

    `is_steered`: a person has steered the run since it last concluded a step index, and may wait for what comes of it.
    A reply in the place of a model steers nothing.
    """

    question: ev.QuestionAsked | None = None
    asked: ev.ApprovalAsked | None = None
    is_approved: bool | None = None
    is_waiting: bool = False
    divergence: ev.Diverged | None = None
    is_steered: bool = False
    waiting_answers: dict[str, Answer] = field(default_factory=dict)

    def answer_to(self, step: int, call: int) -> tuple[str, Answer] | None:
        """(command id, answer) that waits for this call, the last one sent."""
        fitting = [(i, a) for i, a in self.waiting_answers.items() if (a.step, a.call) == (step, call)]
        return fitting[-1] if fitting else None

    @property
    def open_approval(self) -> ev.ApprovalAsked | None:
        """The step that a person can say yes or no to now."""
        return self.asked if self.is_waiting and self.is_approved is None else None

    def apply(self, event: ev.Event) -> None:
        """Take one event into account; commands in force come by `obey`."""
        if isinstance(event, _GOES_ON) and not (isinstance(event, ev.StateChanged) and event.state is RunState.WAITING):
            self.is_waiting = False
        match event:
            case ev.QuestionAsked():
                self.question = event
            case ev.ModelCalled() if self.question is not None and self.question.step == event.step:
                self.question = None
            case ev.Diverged():
                self.divergence = event
            case ev.ApprovalAsked():
                self.asked, self.is_approved, self.is_waiting = event, None, True
            case ev.ApprovalSettled(is_given=is_given):
                self.is_approved = is_given
            case ev.StepFinished(step=step):
                self._forget(step)
            case ev.DepthFinished():
                self.is_steered = False
            case ev.CommandAcknowledged(command=command) if command.kind is CommandKind.ANSWER:
                self._keep_answer(command)
            case ev.CommandEffective(command_id=name) | ev.CommandRefused(command_id=name):
                self.waiting_answers.pop(name, None)
            case _:
                pass

    def _forget(self, step: int) -> None:
        """What a person was asked of a step that is over; others may be at work beside it."""
        if self.question is not None and self.question.step == step:
            self.question = None
        if self.asked is not None and self.asked.step == step:
            self.asked, self.is_approved = None, None

    def _keep_answer(self, command: Command) -> None:
        try:
            self.waiting_answers[command.command_id] = Answer.parse(command.argument)
        except ValueError:
            pass  # it is refused with this reason when it is carried out

    def obey(self, command: Command) -> None:
        """Take a command in force into account."""
        if command.kind not in (CommandKind.PAUSE, CommandKind.STOP, CommandKind.ANSWER):
            self.is_steered = True
        if command.kind in (CommandKind.APPROVE, CommandKind.SKIP) and self.asked is not None:
            self.is_approved = command.kind is CommandKind.APPROVE
