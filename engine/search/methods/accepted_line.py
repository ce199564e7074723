"""The kernels a step index may start from, and what a person chooses among them. Shared by methods that improve one
kernel; knows nothing of how a method fills a step index."""

from __future__ import annotations

from dataclasses import dataclass, field

from storage.results.evaluation_results import TimingResult, is_improvement
from storage.run import events as ev
from storage.run.record import Record, named
from storage.run.settings import DepthOutcome
from storage.run.steering.command_arguments import Retry, is_call
from storage.run.steering.verbs import Command, CommandKind


@dataclass(slots=True)
class AcceptedLine:
    """A fold, and the part of a method's state that persons steer.

    `line` is what the next base is chosen from: kernels accepted since the start or since the last roll-back, the
    kernel rolled back to first. `fruitless` counts step indexes since the line's best kernel last became faster. What a
    person has chosen as the next base stands in the record's `steering`.
    """

    line: list[str] = field(default_factory=list)
    line_best_id: str | None = None
    fruitless: int = 0
    _timed: dict[str, TimingResult] = field(default_factory=dict)
    _commands: dict[str, Command] = field(default_factory=dict)
    _calls: dict[int, ev.StepStarted] = field(default_factory=dict)

    @property
    def fastest(self) -> str | None:
        """The kernel of the line with the largest measured speed-up, of equals the first; None for an empty line."""
        speedups = {name: self._timed[name].speedup for name in self.line if name in self._timed}
        return max(speedups, key=speedups.__getitem__, default=None)

    def follow(self, event: ev.Event) -> Command | None:
        """Take one event into account; returns the command that is in force from here on, if it is such an event."""
        match event:
            case ev.Timed(candidate_id=name, result=timed) if not timed.untrusted:
                self._timed[name] = timed
            case ev.StepStarted() if is_call(event.kind):
                self._calls[event.step] = event
            case ev.DepthFinished():
                self._conclude(event)
            case ev.CommandAcknowledged(command=command):
                self._commands[command.command_id] = command
            case ev.CommandEffective(command_id=name) if name in self._commands:
                self._obey(self._commands[name])
                return self._commands[name]
            case _:
                pass
        return None

    def call_of(self, retry: Command | None) -> ev.StepStarted | None:
        """The call that a command wants done again, the last where it names none; None for any other command."""
        if retry is None or retry.kind is not CommandKind.RETRY:
            return None
        number = Retry.parse(retry.argument).step
        return self._calls.get(max(self._calls, default=0) if number is None else number)

    def _conclude(self, event: ev.DepthFinished) -> None:
        self.fruitless += 1
        if event.outcome is DepthOutcome.ACCEPTED and event.candidate_id:
            self.line.append(event.candidate_id)
            if self._beats(event.candidate_id, self.line_best_id):
                self.line_best_id, self.fruitless = event.candidate_id, 0

    def _beats(self, candidate_id: str, other_id: str | None) -> bool:
        """True when a timed kernel is faster than another (or the first at all) beyond the noise."""
        new, old = self._timed.get(candidate_id), self._timed.get(other_id or "")
        return new is not None and (old is None or is_improvement(new, old))

    def _obey(self, command: Command) -> None:
        if command.kind is CommandKind.ROLL_BACK:
            self.line, self.line_best_id, self.fruitless = [command.argument], command.argument, 0


def note(record: Record, command: Command, *, word: str, upcoming: int, policy: str) -> str | None:
    """From which step index on a choice of the base kernel, or of what the model is shown, holds.

    `word` is what the method calls a step index, `upcoming` the first one that is not begun, `policy` how the method
    chooses by itself.
    """
    now, kernel = record.step_index, named(record, command.argument)
    match command.kind:
        case CommandKind.ROLL_BACK:
            return f"{word} {now} starts from {kernel}"
        case CommandKind.SET_BASE:
            return f"{word} {upcoming} starts from {kernel}"
        case CommandKind.PIN:
            return f"every {word} from {upcoming} on starts from {kernel}"
        case CommandKind.UNPIN:
            return f"from {word} {upcoming} on, the base policy applies again: {policy}"
        case CommandKind.EXPOSE:
            return f"show profiles to the model: {command.argument}, from {word} {now}"
        case _:
            return None
