"""A person's commands taking effect between steps. Knows the command file and the run's state, not the screen."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from engine.context import RunContext
from engine.errors import StopRequested
from engine.human import replies
from engine.human.verbs import note, refusal
from engine.record import named
from engine.steps.concluding import conclude
from storage import budgets, commands
from storage import events as ev
from storage.command_arguments import Retry, is_call
from storage.records import Command, CommandKind, RunState

POLL_S = 0.1
_RETRYING = (
    CommandKind.RESUME, CommandKind.HINT, CommandKind.ROLL_BACK, CommandKind.EXPOSE, CommandKind.SET_CLASS,
    CommandKind.SET_BUDGET, CommandKind.ANSWER, CommandKind.TAKE_OVER, CommandKind.SET_MODEL, CommandKind.RETRY,
    CommandKind.BAN, CommandKind.REQUIRE, CommandKind.LIFT, CommandKind.SUBMIT,
)  # fmt: skip
# In effect once something has carried it: a prompt, a step, the model's reply.
_PENDING = (CommandKind.HINT, CommandKind.SUBMIT)
_BREAKING = (CommandKind.STOP, CommandKind.PAUSE, CommandKind.RETRY)


class Inbox:
    """Reads commands.jsonl, acknowledges what it reads and carries it out at a step boundary.

    Stop breaks off whatever step is in flight. Pause lets it end, except that a reply coming in is broken off and asked
    for again later. Stop outranks pause. Commands are carried out in the order asked; the last one wins. A hint is in
    effect once a prompt has carried it.
    """

    def __init__(self, context: RunContext, sleep: Callable[[float], None] = time.sleep) -> None:
        self._context = context
        self._sleep = sleep
        self._offset = 0
        self._seen_offset = 0

    def take(self) -> list[Command]:
        """Acknowledge new commands and carry out all that can be; returns those now in effect."""
        context, record = self._context, self._context.record
        asked, self._offset = commands.read_from(context.folder.commands_file, self._offset)
        replies.settle_answers(context)
        for command in asked:
            if command.command_id not in record.commands:
                context.emit(ev.CommandAcknowledged(command, self._next_step))
        open_ones = [a.command for a in record.commands.values() if a.command.command_id not in record.settled_commands]
        done = [command for command in open_ones if self._carry_out(command)]
        return done + [c for c in asked if c.kind in _PENDING and c.command_id not in record.settled_commands]

    def gate(self) -> None:
        """Take commands; while paused, wait here for resume or stop."""
        self.take()
        if not self._is_held_back():
            return
        self._context.emit(ev.StateChanged(RunState.PAUSED, "paused by a person"))
        while self._is_held_back():
            self._sleep(POLL_S)
            self.take()
        if not self._context.record.steering.is_stopped:
            self._context.emit(ev.StateChanged(RunState.RUNNING, "resumed by a person"))

    def wait(self, reason: str) -> None:
        """Tell a person that the run cannot go on by itself, and wait until a command changes that."""
        self._context.emit(ev.StateChanged(RunState.WAITING, reason))
        while not any(command.kind in (*_RETRYING, CommandKind.STOP) for command in self.take()):
            self._sleep(POLL_S)
        if not self._context.record.steering.is_stopped:
            self._context.emit(ev.StateChanged(RunState.RUNNING, "steered on by a person"))

    def refuse_old_stops(self, began: float) -> None:
        """Refuse a stop that was meant for an engine which is gone: who resumes a run does not want it stopped.

        `began`: when this engine started, in seconds since the epoch.
        """
        record = self._context.record
        asked, _ = commands.read_from(self._context.folder.commands_file)
        for command in asked:
            is_open = command.command_id not in record.settled_commands
            if command.kind is CommandKind.STOP and is_open and command.asked_at < began:
                if command.command_id not in record.commands:
                    self._context.emit(ev.CommandAcknowledged(command, self._next_step))
                reason = "sent to an earlier engine, before the run was resumed"
                self._context.emit(ev.CommandRefused(command.command_id, self._next_step, reason))

    def sleep(self) -> None:
        """Let a moment pass before the next look."""
        self._sleep(POLL_S)

    def interrupt(self) -> None:
        """Raise StopRequested when a reply must not be waited for any longer; cheap enough for every token."""
        if command := self._newly_asked(_BREAKING):
            raise StopRequested(f"{command.kind} was asked for while a reply was coming in")

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """While inside, a stop raises StopRequested, whatever is waited for: a child, a lock or an answer."""

        def look(number: int, frame: object) -> None:
            if self._newly_asked((CommandKind.STOP,)):
                signal.setitimer(signal.ITIMER_REAL, 0)  # once: what cleans up after it must not be broken off too
                raise StopRequested("stop was asked for while a kernel was being judged")

        before = signal.signal(signal.SIGALRM, look)
        signal.setitimer(signal.ITIMER_REAL, POLL_S, POLL_S)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)

    def _newly_asked(self, kinds: tuple[CommandKind, ...]) -> Command | None:
        asked, self._seen_offset = commands.read_from(self._context.folder.commands_file, self._seen_offset)
        known = self._context.record.commands
        return next((one for one in asked if one.kind in kinds and one.command_id not in known), None)

    @property
    def _next_step(self) -> int:
        return self._context.record.steps_finished + 1

    def _is_held_back(self) -> bool:
        steering = self._context.record.steering
        return steering.is_paused and not steering.is_stopped

    def _carry_out(self, command: Command) -> bool:
        context = self._context
        if command.kind is CommandKind.HINT:
            return False
        if reason := refusal(context, command):
            context.emit(ev.CommandRefused(command.command_id, self._next_step, reason))
            return False
        if command.kind is CommandKind.SUBMIT:
            self._make_room()
            return False
        if command.kind is CommandKind.ANSWER:
            return True  # it is in effect once the step has used it
        if command.kind is CommandKind.ROLL_BACK:
            self._leave_index(f"left to go back to {named(context.record, command.argument)}")
        if command.kind is CommandKind.RETRY:
            self._leave_for(Retry.parse(command.argument))
        if command.kind is CommandKind.SET_BUDGET:
            context.emit(ev.BudgetChanged(budgets.changed(context.record.budget, command.argument)))
        context.emit(ev.CommandEffective(command.command_id, self._next_step, note(context, command)))
        return True

    def _make_room(self) -> None:
        """A kernel handed in takes the place of a call that has brought nothing yet."""
        record = self._context.record
        begun = record.in_flight
        if begun and is_call(begun.kind) and not any(step == begun.step for step, _ in record.calls):
            self._drop_step()

    def _leave_for(self, retry: Retry) -> None:
        """Drop the step in flight, and the step index when the step to be done again belongs to an earlier one."""
        record = self._context.record
        step = record.model_step(retry.step)
        if step is not None and step.depth != record.step_index:
            self._leave_index(f"left to redo step {step.step}")
        elif record.in_flight is not None:
            self._drop_step()

    def _drop_step(self) -> None:
        if begun := self._context.record.in_flight:
            self._context.emit(ev.StepFinished(begun.step, begun.kind, 0.0, "dropped"))

    def _leave_index(self, reason: str) -> None:
        """Give up what the current step index has begun; what was tried is kept."""
        left = self._context.strategy.abandon(self._context.record, reason)
        self._drop_step()
        if left is not None:
            conclude(self._context, left)
