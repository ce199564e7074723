"""A person's commands taking effect between steps: which make sense now, what each does and changes. Knows the command
file and the run's state, not the screen."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from engine.errors import EngineError, PersonNeeded, StopRequested
from engine.evaluator.machine import turns
from engine.search.actions import NewCandidate, TakeSubmission
from engine.search.context import RunContext
from engine.search.human import replies
from engine.search.methods import refused_verbs, words_of
from engine.search.steps.candidates import conclude, create_candidate
from storage.results.vocabulary import Verdict
from storage.run import budgets
from storage.run import events as ev
from storage.run.events import CommandEffective
from storage.run.record import Candidate, Record, named
from storage.run.settings import LEFT as LEFT
from storage.run.settings import Origin, RunState
from storage.run.steering import commands
from storage.run.steering.command_arguments import MANUAL, ModelChoice, Retry, Submission, is_call
from storage.run.steering.verbs import RULES, VERBS, Command, CommandKind, Moment, Takes


def take_submission(context: RunContext, action: TakeSubmission) -> str:
    """Make the oldest kernel handed in a candidate, once, whatever kills the engine. Returns the step's outcome."""
    waiting, created = context.record.pending(CommandKind.SUBMIT), _made(context)
    if created is None and waiting:
        given = Submission.parse(waiting[0].argument)
        makes = NewCandidate(
            Origin.MANUAL, action.base_id, action.generation, "", "edited by hand", trajectory=action.trajectory
        )
        source = context.blobs.get(given.blob)
        create_candidate(context, source, given.parent_id, makes, given.note or makes.untitled)
        created = _made(context)
    if command := next((c for c in waiting if created and _brought(c, created)), None):
        where = f"{words_of(context.strategy).distinct} {context.record.step_index}"
        note = f"taken as {created.candidate_id if created else ''} in {where}"
        context.emit(CommandEffective(command.command_id, context.step, note))
    return "created"


def submission_refusal(context: RunContext, argument: str) -> str | None:
    """Why a kernel handed in cannot be taken, or None."""
    try:
        given = Submission.parse(argument)
        source = context.blobs.get(given.blob)
    except (ValueError, FileNotFoundError) as error:
        return f"the kernel cannot be read: {error}"
    if "class ModelNew" not in source:
        return "a kernel is a whole file that defines class ModelNew"
    if given.parent_id is None:
        return None
    parent = context.record.candidates.get(given.parent_id)
    if parent is None:
        return f"this run has no kernel {given.parent_id}"
    return f"nothing was changed in {given.parent_id}" if parent.created.source_blob == given.blob else None


def _made(context: RunContext) -> Candidate | None:
    return next((a for a in context.record.candidates.values() if a.created.step == context.step), None)


def _brought(command: Command, created: Candidate) -> bool:
    given = Submission.parse(command.argument)
    return (given.parent_id, given.blob) == (created.created.parent_id, created.created.source_blob)


POLL_S = 0.1


class Inbox:
    """Reads commands.jsonl, acknowledges what it reads and carries it out at a step boundary.

    Stop breaks off whatever step is in flight. Pause lets it end, but breaks off a reply coming in and the wait for a
    device, which are asked for again later. Stop outranks pause. Commands are carried out in the order asked; the last
    one wins. A hint is in effect once a prompt has carried it. With `is_patient` False nothing waits for a person:
    PersonNeeded is raised.
    """

    def __init__(
        self, context: RunContext, sleep: Callable[[float], None] = time.sleep, *, is_patient: bool = True
    ) -> None:
        self._context = context
        self._sleep = sleep
        self._is_patient = is_patient
        self._offset = 0
        self._seen_offset = 0
        self._unheeded: list[Command] = []  # read while something else was waited for, and not yet acted on
        self._made_room: set[str] = set()

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
        carried = [command for command in asked if VERBS[command.kind].moment is Moment.CARRIED]
        return done + [command for command in carried if command.command_id not in record.settled_commands]

    def gate(self) -> None:
        """Take commands; while paused, wait here for resume or stop."""
        self.take()
        if not self._is_held_back():
            return
        self._context.emit(ev.StateChanged(RunState.PAUSED, "paused by a person"))
        while self._is_held_back():
            self.wait_for_person("the run is paused")
            self.take()
        if not self._context.record.steering.is_stopped:
            self._context.emit(ev.StateChanged(RunState.RUNNING, "resumed by a person"))

    def wait(self, reason: str) -> None:
        """Tell a person that the run cannot go on by itself, and wait until a command changes that."""
        self._context.emit(ev.StateChanged(RunState.WAITING, reason))
        while not any(VERBS[command.kind].ends_wait for command in self.take()):
            self.wait_for_person(reason)
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
        with self._context.company.aside():
            self._sleep(POLL_S)

    def wait_for_person(self, reason: str) -> None:
        """Let a moment pass where only a person can change anything.

        Raises:
            PersonNeeded: this engine does not wait for one.
        """
        if not self._is_patient:
            raise PersonNeeded(reason)
        self.sleep()

    def ear(self) -> Callable[[], None]:
        """What breaks off a reply that begins now, as `interrupt`, for one of several that come in at once."""
        offset = self._offset

        def listen() -> None:
            nonlocal offset
            asked, offset = commands.read_from(self._context.folder.commands_file, offset)
            for command in asked:
                if VERBS[command.kind].moment in (Moment.AT_ONCE, Moment.BREAKS_REPLY):
                    raise StopRequested(f"{command.kind} was asked for while a reply was coming in")

        return listen

    def interrupt(self) -> None:
        """Raise StopRequested when a reply must not be waited for any longer; cheap enough for every token."""
        if command := self._newly_asked(Moment.AT_ONCE, Moment.BREAKS_REPLY):
            raise StopRequested(f"{command.kind} was asked for while a reply was coming in")

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """While inside, a stop raises StopRequested, whatever is waited for: a child, a lock or an answer. So does a
        pause while a device is waited for: a paused run gives its place in line back."""

        def look(number: int, frame: object) -> None:
            is_pause = turns.is_waiting() and self._newly_asked(Moment.BREAKS_REPLY, kind=CommandKind.PAUSE)
            if is_pause:
                signal.setitimer(signal.ITIMER_REAL, 0)
                raise StopRequested("pause was asked for while a device was waited for")
            if self._newly_asked(Moment.AT_ONCE):
                signal.setitimer(signal.ITIMER_REAL, 0)  # once: what cleans up after it must not be broken off too
                raise StopRequested("stop was asked for while a kernel was being judged")

        before = signal.signal(signal.SIGALRM, look)
        signal.setitimer(signal.ITIMER_REAL, POLL_S, POLL_S)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)

    def _newly_asked(self, *moments: Moment, kind: CommandKind | None = None) -> Command | None:
        """The first command of these moments, or of one kind, that is news, told once; others are kept for who asks for
        theirs."""
        asked, self._seen_offset = commands.read_from(self._context.folder.commands_file, self._seen_offset)
        journaled = self._context.record.commands
        self._unheeded = [command for command in (*self._unheeded, *asked) if command.command_id not in journaled]
        meant = (
            command
            for command in self._unheeded
            if VERBS[command.kind].moment in moments and kind in (None, command.kind)
        )
        newest = next(meant, None)
        if newest is not None:
            self._unheeded.remove(newest)
        return newest

    @property
    def _next_step(self) -> int:
        return self._context.whole.step_of_command

    def _is_held_back(self) -> bool:
        steering = self._context.record.steering
        return steering.is_paused and not steering.is_stopped

    def _carry_out(self, command: Command) -> bool:
        context = self._context
        if reason := refusal(context, command):
            context.emit(ev.CommandRefused(command.command_id, self._next_step, reason))
            return False
        if command.kind is CommandKind.HINT:
            return False
        if command.kind is CommandKind.SUBMIT:
            self._make_room(command)
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

    def _make_room(self, command: Command) -> None:
        """A kernel handed in takes the place of a call that has brought nothing yet; once, even if it is not taken."""
        record = self._context.record
        begun = None if command.command_id in self._made_room else record.in_flight
        self._made_room.add(command.command_id)
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


def refusal(context: RunContext, command: Command) -> str | None:
    """Why a command cannot be obeyed. Checked here too: the file may have been written by any program."""
    try:
        commands.check(command.kind, command.argument)
    except commands.CommandError as error:
        return str(error)
    return (
        refused_verbs(context.strategy, context.record.settings.width).get(command.kind)
        or _refusal(context, command)
        or context.strategy.refusal(context.record, command)
    )


def _refusal(context: RunContext, command: Command) -> str | None:
    record, argument = context.record, command.argument
    match command.kind:
        case kind if VERBS[kind].takes is Takes.KERNEL:
            return _refused_kernel(record, command, words_of(context.strategy).distinct)
        case CommandKind.UNPIN if record.steering.pinned is None:
            return "no kernel is pinned"
        case CommandKind.SET_BUDGET:
            return _refused_limits(record, argument)
        case CommandKind.BAN | CommandKind.REQUIRE:
            text = " ".join(argument.split())
            return "this rule exists already" if any(rule.text == text for rule in record.steering.rules) else None
        case CommandKind.LIFT if record.steering.rule(argument) is None:
            return "no such rule; it may have been removed already"
        case CommandKind.SUBMIT:
            return submission_refusal(context, argument)
        case CommandKind.SET_MODEL | CommandKind.RETRY:
            return _refused_model(context, command)
        case _:
            return replies.refusal(context, command)


def _refused_kernel(record: Record, command: Command, step: str) -> str | None:
    target, verb = record.candidates.get(command.argument), command.kind.replace("_", " ")
    if target is None:
        return f"this run has no {named(record, command.argument)}"
    if target.verdict is not Verdict.PASSED or target.timed is None:
        return f"{named(record, command.argument)} is not correct and timed; {verb} needs a kernel that passed"
    ended = {done.candidate_id for done in record.concluded}
    tuned_from = {record.candidates[name].created.parent_id for name in ended if name in record.candidates}
    if command.argument not in ended | (tuned_from & record.swept):
        return (
            f"{named(record, command.argument)} belongs to an unfinished {step}; {verb} needs one of a finished {step}"
        )
    if command.kind is CommandKind.PIN and record.steering.pinned == command.argument:
        return f"{named(record, command.argument)} is already pinned"
    return None


def _refused_limits(record: Record, argument: str) -> str | None:
    try:
        budgets.changed(record.budget, argument)
    except ValueError as error:
        return str(error)
    return None


def _refused_model(context: RunContext, command: Command) -> str | None:
    record, is_retry = context.record, command.kind is CommandKind.RETRY
    try:
        retry = Retry.parse(command.argument) if is_retry else None
        choice = retry.choice if retry else ModelChoice.parse(command.argument)
        if retry and record.model_step(retry.step) is None:
            return f"step {retry.step} did not call a model" if retry.step else "no model has been called yet"
        if choice.model == MANUAL and record.settings.width > 1:
            return "a person answers one call after the other, and this run works on several kernels at once"
        if retry and choice.model == MANUAL:
            return "to write the reply yourself use take_over; retry needs a model"
        if choice != ModelChoice(record.settings.model) and choice.model != MANUAL:
            return _unaffordable(context, choice)
    except (ValueError, EngineError) as error:
        return str(error)
    return None


def _unaffordable(context: RunContext, choice: ModelChoice) -> str | None:
    """Raises ModelError where that model cannot be asked at all."""
    terms = context.other_model(choice).terms(context.purpose("optimise", None))
    if context.record.budget.cost_usd is not None and terms is not None and terms.cost(1, 1) is None:
        return f"the price of {choice.model} is unknown, so the cost limit cannot be enforced: add it to prices.toml"
    return None


def note(context: RunContext, command: Command) -> str:
    """What a command that is in force from now on changes, and from where on."""
    record, argument = context.record, command.argument
    step = context.whole.step_of_command
    if words := context.strategy.note(record, command):
        return words
    match command.kind:
        case CommandKind.COLLECT:
            return f"collect profiles: {argument}, from step {step}"
        case CommandKind.SET_BUDGET:
            return f"limits from step {step}: {argument}"
        case CommandKind.SET_CLASS:
            return f"kernel class is {argument} from step {step}"
        case CommandKind.LIFT:
            return f"removed from step {step} on: {record.steering.rule(argument) or argument}"
        case CommandKind.SET_MODEL:
            return f"{ModelChoice.parse(argument).model} gets the calls from step {step} on"
        case CommandKind.RETRY:
            return f"{Retry.parse(argument).choice.model} gets the call of step {step}"
        case _:
            return f"in every prompt from step {step}" if command.kind in RULES else f"at step {step}"
