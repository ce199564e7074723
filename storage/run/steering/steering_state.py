"""What people have set in a run and still holds: the one fold of their commands. The engine acts on it, the pages show
it. Pure; knows no method, and neither the journal nor the tables that a command is read from.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from storage.run import events as ev
from storage.run.settings import Switch
from storage.run.steering.command_arguments import MANUAL, AskFirst, Hand, ModelChoice, is_call
from storage.run.steering.verbs import RULES, Command, CommandKind, Rule


@dataclass(frozen=True, slots=True)
class SteeringState:
    """What people have set that means the same for every method."""

    is_paused: bool = False
    is_stopped: bool = False
    collect: Switch = Switch.AUTO
    expose: Switch = Switch.AUTO
    rules: tuple[Rule, ...] = ()
    model: ModelChoice | None = None
    """None while the run's own settings hold."""
    ask_first: AskFirst | None = None
    """None while the run's own settings hold."""
    hand: Hand = Hand.OFF
    """Which calls a person answers."""
    next_base: str | None = None
    """Id of the kernel that the next step index is to start from, once."""
    pinned: str | None = None
    """Id of the kernel that every later step index is to start from."""
    _index: int = field(default=0, compare=False, repr=False)
    _asked_about: frozenset[str] = field(default=frozenset(), compare=False, repr=False)

    def rule(self, name: str) -> Rule | None:
        """The rule of this command id or of these words; None when there is none."""
        words = " ".join(name.split())
        return next((rule for rule in self.rules if words in (rule.command_id, rule.text)), None)

    def after_event(self, event: ev.Event) -> SteeringState:
        """What is set once this has happened; commands come by `after`, when they are in force."""
        match event:
            case ev.EngineStarted():
                return self.after_engine()
            case ev.StepStarted():
                return self.after_step(event.kind, event.depth, event.candidate_id)
            case ev.ModelCalled():
                return self.after_reply(event.model)
            case _:
                return self

    def after_engine(self) -> SteeringState:
        """An engine has begun: who resumes a run does not want it stopped."""
        return replace(self, is_stopped=False)

    def after_step(self, label: str, index: int, candidate_id: str | None) -> SteeringState:
        """A step has begun. The first call about the kernel set as the next base is what it was set for.

        A step index that had begun with that kernel before goes on with it: then the next one is meant.
        """
        if candidate_id is None or not is_call(label):
            return self
        asked_about = self._asked_about if index == self._index else frozenset()
        is_start = candidate_id == self.next_base and candidate_id not in asked_about
        base = None if is_start else self.next_base
        return replace(self, next_base=base, _index=index, _asked_about=asked_about | {candidate_id})

    def after_reply(self, model: str) -> SteeringState:
        """A call has been answered; a person who took over the next one has had it."""
        return replace(self, hand=Hand.OFF) if model == MANUAL and self.hand is Hand.NEXT else self

    def after(self, command: Command) -> SteeringState:
        """What is set once this command is in force."""
        argument = command.argument.strip()
        match command.kind:
            case CommandKind.PAUSE | CommandKind.RESUME:
                return replace(self, is_paused=command.kind is CommandKind.PAUSE)
            case CommandKind.STOP:
                return replace(self, is_stopped=True)
            case CommandKind.COLLECT:
                return replace(self, collect=Switch(argument))
            case CommandKind.EXPOSE:
                return replace(self, expose=Switch(argument))
            case CommandKind.SET_BASE:
                return replace(self, next_base=argument)
            case CommandKind.PIN:
                return replace(self, next_base=None, pinned=argument)
            case CommandKind.UNPIN | CommandKind.ROLL_BACK:
                return replace(self, next_base=None, pinned=None)
            case CommandKind.SET_MODEL:
                return replace(self, model=ModelChoice.parse(argument))
            case CommandKind.TAKE_OVER:
                return replace(self, hand=Hand(argument))
            case CommandKind.ASK_FIRST:
                return replace(self, ask_first=AskFirst.parse(argument))
            case CommandKind.LIFT:
                lifted = self.rule(argument)
                return replace(self, rules=tuple(rule for rule in self.rules if rule != lifted))
            case kind if kind in RULES:
                rule = Rule(command.command_id, kind, " ".join(argument.split()))
                return replace(self, rules=(*self.rules, rule))
            case _:
                return self
