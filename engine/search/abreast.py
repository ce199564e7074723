"""The loop of a run with a width: several step indexes at work at once, each decided and done as if it were alone.

Replies of a model are waited for side by side, each in a thread of its own; where kernels run on a GPU, that thread
also builds the kernel that a reply brought, which needs no GPU. Everything else is done by the main thread, one thing
after the other. Whoever does not wait for something outside holds the turn, so that one thread at a time reads and
writes the run; the journal has one writer.
"""

from __future__ import annotations

import contextvars
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace

from engine.errors import BudgetExhausted, EngineError, ModelError, StopRequested
from engine.evaluator import languages
from engine.evaluator.toolchain_table import GPU, device_of
from engine.search.actions import Ask, Conclude, Evaluate, Finish, Step, Tune, Wait, label
from engine.search.context import Alone, RunContext
from engine.search.human.approval import Approval, await_approval, skip_step
from engine.search.human.inbox import POLL_S, Inbox
from engine.search.loop import begin_step, end, finish, next_action, prepare, take_step
from engine.search.methods import place_of
from engine.search.steps.candidates import conclude
from engine.search.steps.knowledge import keep_evidence
from engine.search.steps.ranking import keep_scores
from storage.run import events as ev
from storage.run.lanes import Lane, Lanes
from storage.run.settings import RunState, StepKind


def run(context: RunContext, inbox: Inbox) -> ev.RunEnded:
    """Work until the run ends; returns the final event, which is in the journal by then.

    Raises:
        EngineError: our own failure; the journal is whole and the run can be resumed.
    """
    crew = Crew(context, inbox)
    with context.company.at_work():
        try:
            prepare(context, inbox)
            while (ending := crew.go_on()) is None:
                pass
        finally:
            crew.dismiss()
        return end(context, ending) or finish(context, ending)


class Worker:
    """A step index at work: its context, what a thread of its own does, and why it cannot go on by itself."""

    def __init__(self, context: RunContext) -> None:
        self.context = context
        self.is_busy = False
        self.limit: Finish | None = None
        self.problem = ""
        self.beside: Future[None] | None = None

    @property
    def is_at_work(self) -> bool:
        """Whether it is busy with a step, or what came of that is not known yet."""
        return self.is_busy or (self.beside is not None and not self.beside.done())

    @property
    def is_building(self) -> bool:
        """Whether its thread is at a build."""
        begun = self.context.record.in_flight
        return self.beside is not None and self.is_busy and begun is not None and begun.kind == StepKind.COMPILE

    @property
    def is_stuck(self) -> bool:
        """Whether only a person can make it go on."""
        return self.limit is not None or bool(self.problem)


class Company(Alone):
    """How the work goes on where several step indexes are at work: who has the turn, and whose an event is."""

    def __init__(self, lanes: Lanes, workers: Mapping[int, Worker]) -> None:
        super().__init__()
        self._lanes, self._workers = lanes, workers
        self._turn = threading.Lock()
        self._counted = 0.0

    def emit(self, context: RunContext, event: ev.Event) -> None:
        """Journal one event, fold it into the run and into what each step index sees, and tell the listeners."""
        entry = context.journal.append(event)
        self._lanes.whole.take(entry)
        self._lanes.apply(event)
        for listener in context.listeners:
            listener(entry)

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Inside, nobody else works."""
        with self._turn:
            yield

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Inside, something outside is waited for, and others may work."""
        self._turn.release()
        try:
            yield
        finally:
            self._turn.acquire()

    def context_of(self, context: RunContext, index: int) -> RunContext:
        """The context of the step index; of one that has ended, of the one that looks back at it and is to begin."""
        return self._workers[index if index in self._workers else max(self._workers)].context

    def work_so_far(self, began: float) -> float:
        """Seconds since the earliest beginning of what is at work, as far as nobody has counted them: so the run's time
        of work is that in which anything was at work, however much was."""
        others = (worker.context.step_began for worker in self._workers.values() if worker.is_busy)
        return time.monotonic() - max(self._counted, min([began, *others]))

    def count_work(self, began: float) -> float:
        """The seconds of `work_so_far`, which the next call then no longer counts."""
        seconds = self.work_so_far(began)
        self._counted = time.monotonic()
        return seconds


class Crew:
    """The step indexes at work. `context` is that of the run: its record becomes that of what has ended."""

    def __init__(self, context: RunContext, inbox: Inbox) -> None:
        self._context, self._inbox = context, inbox
        self._lanes = Lanes(context.record, [entry.event for entry in context.journal.entries])
        self._workers: dict[int, Worker] = {}
        self._threads = ThreadPoolExecutor(context.record.settings.width)
        self._news, self._is_dismissed = threading.Event(), False
        context.run, context.record = context.record, self._lanes.ended
        context.company = Company(self._lanes, self._workers)
        self._heeded = len(context.record.commands)

    def go_on(self) -> Finish | None:
        """Take commands, then ask every question that can be asked and do one other step. Returns how the run ends
        where nothing is left to do."""
        self._inbox.gate()
        if self._context.record.steering.is_stopped:
            return Finish(RunState.STOPPED, "stopped by a person")
        if len(self._context.record.commands) > self._heeded:
            self._free()
        ending, steps = self._begin()
        if steps:
            self._do_here(*min(steps, key=_is_slow))
        elif any(worker.is_at_work for worker in self._workers.values()):
            with self._context.company.aside():
                self._news.wait(POLL_S)
            self._news.clear()
        elif problem := next((worker.problem for worker in self._workers.values() if worker.problem), ""):
            self._inbox.wait(problem)
            self._free()
        else:
            return next((worker.limit for worker in self._workers.values() if worker.limit), ending)
        return None

    def dismiss(self) -> None:
        """Break off the replies that are coming in and what is being built, and wait until nobody is at work."""
        self._is_dismissed = True
        if any(worker.is_building for worker in self._workers.values()):
            self._context.toolchain.close()
        with self._context.company.aside():
            self._threads.shutdown()

    def _begin(self) -> tuple[Finish | None, list[tuple[Worker, Step]]]:
        """Ask and conclude wherever that is next. Returns why nothing further begins, and what else is to be done."""
        steps = list[tuple[Worker, Step]]()
        for lane in list(self._lanes.open.values()):
            self._look_at(self._worker(lane), steps)
        width = self._context.record.settings.width
        while len(self._lanes.open) < width and not self._is_held():
            lane = self._lanes.next()
            if (ending := self._look_at(self._worker(lane), steps)) is not None:
                return ending, steps
            if self._lanes.next() is lane:  # it has not begun: it waits, looks back, or begins with a step done here
                break
        return None, steps

    def _look_at(self, worker: Worker, steps: list[tuple[Worker, Step]]) -> Finish | None:
        """Do its next action if that is to ask or to conclude; another step is added to those to be done. Returns how
        the run ends where it has no action left."""
        if worker.is_at_work:
            return None
        if worker.beside is not None:
            worker.beside.result()  # raises our own failure, which ends the run
            worker.beside = None
        if worker.is_stuck or self._is_held():
            return None
        match next_action(worker.context):
            case Finish() as ending:
                if worker.context.lane in self._lanes.open:
                    worker.limit = ending
                return ending
            case Conclude() as conclusion:
                self._conclude(worker.context, conclusion)
            case Wait():
                self._check_wait(worker)
            case Ask() as ask:
                self._go_beside(worker, ask)
            case Evaluate() as build if _needs_no_device(worker.context, build):
                self._go_beside(worker, build)
            case step if isinstance(step, Step):
                steps.append((worker, step))
            case unknown:
                raise EngineError(f"the strategy asked for {unknown!r}, which is no action of the loop")
        return None

    def _check_wait(self, worker: Worker) -> None:
        """Who waits although nobody is at work beside it would wait for ever."""
        if worker.context.lane in self._lanes.open or not self._lanes.open:
            raise EngineError("the strategy waits, and nothing that it could wait for is at work")

    def _conclude(self, context: RunContext, conclusion: Conclude) -> None:
        conclude(context, conclusion)
        for path in (context.stream_file, context.arrived_file):
            with suppress(OSError):
                path.unlink()
        del self._workers[conclusion.index]
        keep_evidence(self._context)
        keep_scores(self._context)

    def _go_beside(self, worker: Worker, step: Ask | Evaluate) -> None:
        """Let a thread of its own wait for the reply, or build."""
        context = worker.context
        if step.about is not None:
            context.candidate(step.about)
        if not self._may(context, step):
            return
        begin_step(context, step)
        ear = self._inbox.ear()

        def interrupt() -> None:
            if self._is_dismissed:
                raise StopRequested("the engine ends")
            ear()

        context.interrupt, context.interruptible = interrupt, nullcontext  # signals are the main thread's
        worker.is_busy, context.step_began = True, time.monotonic()
        worker.beside = self._threads.submit(contextvars.copy_context().run, self._beside, worker, step)

    def _beside(self, worker: Worker, step: Step) -> None:
        context = worker.context
        with self._context.company.at_work():
            try:
                self._take(worker, step)
                while (build := self._build_next(worker)) is not None:
                    self._take(worker, build)
            finally:
                context.interrupt, context.interruptible = self._context.interrupt, self._context.interruptible
                worker.is_busy = False
                self._news.set()

    def _build_next(self, worker: Worker) -> Step | None:
        """The build that follows at once, if nobody has to be asked about it."""
        context = worker.context
        if self._is_dismissed or worker.is_stuck or self._is_held():
            return None
        step = next_action(context)
        if not (isinstance(step, Evaluate) and _needs_no_device(context, step)):
            return None
        is_asked_about = context.record.approval_rule.covers(label(step))
        return step if not is_asked_about and self._may(context, step) else None

    def _do_here(self, worker: Worker, step: Step) -> None:
        if self._may(worker.context, step):
            worker.is_busy, worker.context.step_began = True, time.monotonic()
            self._take(worker, step)
            worker.is_busy = False

    def _take(self, worker: Worker, step: Step) -> None:
        try:
            take_step(worker.context, step)
        except BudgetExhausted as limit:
            worker.limit = Finish(RunState.FINISHED, str(limit))
        except ModelError as problem:
            worker.problem = str(problem)
        except StopRequested:
            pass  # the gate reads the command; the step is taken again when the run goes on

    def _may(self, context: RunContext, step: Step) -> bool:
        """Whether the step may be taken now: approved where the run's rule wants that. While a person is asked nothing
        else begins."""
        place = place_of(context.strategy, context.record, step)
        if place and place != context.record.places.get(step.index):
            context.emit(ev.PlaceTaken(step.index, place))
        approval = await_approval(context, self._inbox, step)
        if approval is Approval.REFUSED:
            skip_step(context, step)
        return approval is Approval.GIVEN and not self._is_held()

    def _free(self) -> None:
        """A command may have changed what stood in the way."""
        self._heeded = len(self._context.record.commands)
        for worker in self._workers.values():
            worker.limit, worker.problem = None, ""

    def _is_held(self) -> bool:
        steering = self._context.record.steering
        return steering.is_paused or steering.is_stopped

    def _worker(self, lane: Lane) -> Worker:
        worker = self._workers.get(lane.index)
        if worker is None or worker.context.record is not lane.record:
            strategy = type(self._context.strategy)()
            context = replace(self._context, record=lane.record, strategy=strategy, lane=lane.index, attempts=None)
            worker = self._workers[lane.index] = Worker(context)
        return worker


def _needs_no_device(context: RunContext, step: Evaluate) -> bool:
    """Whether it is a build beside which a GPU can be used. On processors it would disturb what is timed there."""
    settings = context.record.settings
    if step.stage is not StepKind.COMPILE or device_of(settings.toolchain) != GPU:
        return False
    return languages.of(context.source(context.candidate(step.about)), settings.language).compiler is None


def _is_slow(todo: tuple[Worker, Step]) -> bool:
    """Judging a kernel keeps the main thread busy for long: other steps come first."""
    return isinstance(todo[1], Evaluate | Tune)
