"""A person's commands taking effect between steps. Knows the command file and the run's state, not the screen."""

from __future__ import annotations

import time
from collections.abc import Callable

from engine import desk
from engine.bench import Bench
from engine.errors import StopRequested
from storage import budgets, commands
from storage import events as ev
from storage.records import Command, CommandKind, DepthOutcome, KernelClass, RunState, Switch, Verdict

POLL_S = 0.1
_RETRYING = (
    CommandKind.RESUME, CommandKind.HINT, CommandKind.ROLL_BACK, CommandKind.EXPOSE, CommandKind.SET_CLASS,
    CommandKind.SET_BUDGET, CommandKind.ANSWER, CommandKind.TAKE_OVER,
)  # fmt: skip


class Inbox:
    """Reads commands.jsonl, acknowledges what it reads and carries it out at a step boundary.

    Pause stops the start of further work; the step in flight ends normally, except that a reply coming in is broken off
    and asked for again later. Stop outranks pause. Commands are carried
    out in the order asked; the last one wins. A hint is in effect once a prompt has carried it.
    """

    def __init__(self, bench: Bench, sleep: Callable[[float], None] = time.sleep) -> None:
        self._bench = bench
        self._sleep = sleep
        self._offset = 0
        self._seen_offset = 0

    def take(self) -> list[Command]:
        """Acknowledge new commands and carry out all that can be; returns those now in effect."""
        bench, history = self._bench, self._bench.history
        asked, self._offset = commands.read_from(bench.folder.commands_file, self._offset)
        desk.settle_answers(bench)
        for command in asked:
            if command.command_id not in history.commands:
                bench.emit(ev.CommandAcknowledged(command, self._next_step))
        open_ones = [
            a.command for a in history.commands.values() if a.command.command_id not in history.settled_commands
        ]
        done = [command for command in open_ones if self._carry_out(command)]
        return done + [c for c in asked if c.kind is CommandKind.HINT]

    def gate(self) -> None:
        """Take commands; while paused, wait here for resume or stop."""
        self.take()
        if not self._is_held_back():
            return
        self._bench.emit(ev.StateChanged(RunState.PAUSED, "paused by a person"))
        while self._is_held_back():
            self._sleep(POLL_S)
            self.take()
        if not self._bench.history.steering.is_stopped:
            self._bench.emit(ev.StateChanged(RunState.RUNNING, "resumed by a person"))

    def wait(self, reason: str) -> None:
        """Tell a person that the run cannot go on by itself, and wait until a command changes that."""
        self._bench.emit(ev.StateChanged(RunState.WAITING, reason))
        while not any(command.kind in (*_RETRYING, CommandKind.STOP) for command in self.take()):
            self._sleep(POLL_S)
        if not self._bench.history.steering.is_stopped:
            self._bench.emit(ev.StateChanged(RunState.RUNNING, "steered on by a person"))

    def sleep(self) -> None:
        """Let a moment pass before the next look."""
        self._sleep(POLL_S)

    def interrupt(self) -> None:
        """Raise StopRequested when a stop or a pause was asked for and not read yet; cheap enough for every token."""
        asked, self._seen_offset = commands.read_from(self._bench.folder.commands_file, self._seen_offset)
        known = self._bench.history.commands
        for command in asked:
            if command.kind in (CommandKind.STOP, CommandKind.PAUSE) and command.command_id not in known:
                raise StopRequested(f"{command.kind} was asked for while a reply was coming in")

    @property
    def _next_step(self) -> int:
        return self._bench.history.steps_finished + 1

    def _is_held_back(self) -> bool:
        steering = self._bench.history.steering
        return steering.is_paused and not steering.is_stopped

    def _carry_out(self, command: Command) -> bool:
        bench = self._bench
        if command.kind is CommandKind.HINT:
            return False
        if reason := self._refusal(command):
            bench.emit(ev.CommandRefused(command.command_id, self._next_step, reason))
            return False
        if command.kind is CommandKind.ANSWER:
            return True  # it is in effect once the step has used it
        if command.kind is CommandKind.ROLL_BACK:
            self._leave_depth(command)
        if command.kind is CommandKind.SET_BUDGET:
            bench.emit(ev.BudgetChanged(budgets.changed(bench.history.budget, command.argument)))
        bench.emit(ev.CommandEffective(command.command_id, self._next_step, self._note(command)))
        return True

    def _refusal(self, command: Command) -> str | None:
        """Why a command cannot be obeyed. Checked here too: the file may have been written by any program."""
        history = self._bench.history
        match command.kind:
            case CommandKind.ROLL_BACK:
                target = history.attempts.get(command.argument)
                if target is None:
                    return f"this run has no kernel {command.argument}"
                if target.verdict is not Verdict.PASSED or target.timed is None:
                    return f"{command.argument} is not correct and timed; roll back to a kernel that passed"
                if command.argument not in {done.candidate_id for done in history.depths}:
                    return f"{command.argument} is still being worked on; roll back to a kernel of a finished depth"
            case CommandKind.COLLECT | CommandKind.EXPOSE if command.argument not in set(Switch):
                return f"{command.kind} takes auto, on or off, not {command.argument!r}"
            case CommandKind.SET_CLASS if command.argument not in set(KernelClass):
                return f"unknown kernel class {command.argument!r}"
            case CommandKind.SET_BUDGET:
                try:
                    budgets.changed(history.budget, command.argument)
                except ValueError as error:
                    return str(error)
            case _:
                return desk.refusal(self._bench, command)
        return None

    def _leave_depth(self, command: Command) -> None:
        """Give up what the current depth has begun, so that the next one starts from the kernel rolled back to."""
        bench, history = self._bench, self._bench.history
        has_begun = history.generations_used > 0 or history.in_flight is not None
        last, base = history.current_id, history.line[-1] if history.line else None
        if history.in_flight is not None:
            bench.emit(ev.StepFinished(history.in_flight.step, history.in_flight.kind, 0.0, "dropped"))
        if has_begun:
            reason = f"left by a roll-back to {command.argument}"
            bench.emit(
                ev.DepthFinished(
                    self._next_step, history.depth, DepthOutcome.GIVEN_UP, last, base, history.is_exposed, False, reason
                )
            )

    def _note(self, command: Command) -> str:
        history = self._bench.history
        match command.kind:
            case CommandKind.ROLL_BACK:
                return f"depth {history.depth} starts from {command.argument}"
            case CommandKind.EXPOSE:
                return f"profiles for the model: {command.argument} from depth {history.depth}"
            case CommandKind.COLLECT:
                return f"profile collection: {command.argument} from step {self._next_step}"
            case CommandKind.SET_BUDGET:
                return f"limits from step {self._next_step}: {command.argument}"
            case CommandKind.SET_CLASS:
                return f"kernel class is {command.argument} from step {self._next_step}"
            case _:
                return f"at step {self._next_step}"
