"""What a person has set in a run and what follows from each further command. Pure; a part of History."""

from __future__ import annotations

from dataclasses import dataclass, replace

from storage.command_arguments import ModelChoice
from storage.records import Command, CommandKind, Switch
from storage.verbs import RULES, Rule


@dataclass(frozen=True, slots=True)
class Redo:
    """A step of the model that is to be done again by the model chosen."""

    kind: str
    candidate_id: str | None
    choice: ModelChoice


@dataclass(frozen=True, slots=True)
class Steering:
    """What a person has set that means the same for every method. `model` None: the run's own."""

    is_paused: bool = False
    is_stopped: bool = False
    collect: Switch = Switch.AUTO
    expose: Switch = Switch.AUTO
    rules: tuple[Rule, ...] = ()
    model: ModelChoice | None = None

    def rule(self, name: str) -> Rule | None:
        """The rule of this command id or of these words; None when there is none."""
        wanted = " ".join(name.split())
        return next((rule for rule in self.rules if wanted in (rule.command_id, rule.text)), None)

    def after(self, command: Command) -> Steering:
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
            case CommandKind.SET_MODEL:
                return replace(self, model=ModelChoice.parse(argument))
            case _:
                return self._after_rule(command)

    def _after_rule(self, command: Command) -> Steering:
        if command.kind in RULES:
            text = " ".join(command.argument.split())
            return replace(self, rules=(*self.rules, Rule(command.command_id, command.kind, text)))
        if command.kind is CommandKind.LIFT:
            lifted = self.rule(command.argument)
            return replace(self, rules=tuple(rule for rule in self.rules if rule != lifted))
        return self
