"""What a person has to do in a run, folded from its journal. A part of History; touches no file."""

from __future__ import annotations

from dataclasses import dataclass, field

from storage import events as ev
from storage.command_arguments import MANUAL, Answer, AskFirst, Hand, ModelChoice
from storage.records import Command, CommandKind, RunSettings


@dataclass(slots=True)
class HumanState:
    """Open questions and steps that wait for a yes. `is_approved` is the word on the step asked about, if any."""

    is_manual: bool = False
    hand: Hand = Hand.OFF
    rule: AskFirst = field(default_factory=AskFirst)
    question: ev.QuestionAsked | None = None
    asked: ev.ApprovalAsked | None = None
    is_approved: bool | None = None
    divergence: ev.Diverged | None = None
    waiting_answers: dict[str, Answer] = field(default_factory=dict)
    _commands: dict[str, Command] = field(default_factory=dict)

    @classmethod
    def of(cls, settings: RunSettings) -> HumanState:
        """As a run starts."""
        return cls(settings.model == MANUAL, rule=settings.ask_first)

    @property
    def is_by_hand(self) -> bool:
        """Whether a person answers the next call."""
        return self.is_manual or self.hand is not Hand.OFF

    def answer_to(self, step: int, call: int) -> tuple[str, Answer] | None:
        """(command id, answer) that waits for this call, the last one sent."""
        fitting = [(i, a) for i, a in self.waiting_answers.items() if (a.step, a.call) == (step, call)]
        return fitting[-1] if fitting else None

    def apply(self, event: ev.Event) -> None:
        """Take one event into account."""
        match event:
            case ev.QuestionAsked():
                self.question = event
            case ev.ModelCalled(model=model):
                self.question = None
                if model == MANUAL and self.hand is Hand.NEXT:
                    self.hand = Hand.OFF
            case ev.Diverged():
                self.divergence = event
            case ev.ApprovalAsked():
                self.asked, self.is_approved = event, None
            case ev.ApprovalSettled(is_given=is_given):
                self.is_approved = is_given
            case ev.StepFinished():
                self.question, self.asked, self.is_approved = None, None, None
            case ev.CommandAcknowledged(command=command):
                self._hear(command)
            case ev.CommandEffective(command_id=name) | ev.CommandRefused(command_id=name):
                self.waiting_answers.pop(name, None)
                if isinstance(event, ev.CommandEffective) and name in self._commands:
                    self._obey(self._commands[name])
            case _:
                pass

    def _hear(self, command: Command) -> None:
        self._commands[command.command_id] = command
        if command.kind is CommandKind.ANSWER:
            try:
                self.waiting_answers[command.command_id] = Answer.parse(command.argument)
            except ValueError:
                pass  # it is refused with this reason when it is carried out

    def _obey(self, command: Command) -> None:
        match command.kind:
            case CommandKind.TAKE_OVER:
                self.hand = Hand(command.argument)
            case CommandKind.SET_MODEL:
                self.is_manual = ModelChoice.parse(command.argument).model == MANUAL
            case CommandKind.ASK_FIRST:
                self.rule = AskFirst.parse(command.argument)
            case CommandKind.APPROVE | CommandKind.SKIP if self.asked is not None:
                self.is_approved = command.kind is CommandKind.APPROVE
            case _:
                pass
