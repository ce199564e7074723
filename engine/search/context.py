"""What every step works with: journal, blobs, model, toolchain, task. Emits events; decides nothing."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import ParamSpec, TypeVar

from engine.errors import EngineError, ModelError
from engine.evaluator import languages
from engine.evaluator.languages import Language
from engine.evaluator.request import Evaluator
from engine.evaluator.tasks import Task
from engine.knowledge.evidence import AttemptFold
from engine.search import limits
from engine.search.daily import Ledger
from engine.search.llm import Completion, LanguageModel, Message, Purpose
from engine.search.methods import Strategy, words_of
from storage.home import home
from storage.run import events as ev
from storage.run.blobs import Blobs
from storage.run.folder import RunFolder
from storage.run.journal import Entry, Journal
from storage.run.record import Candidate, Record
from storage.run.steering.command_arguments import ModelChoice

Listener = Callable[[Entry], None]
P = ParamSpec("P")
T = TypeVar("T")
NAP_S = 0.1


def no_other_model(choice: ModelChoice) -> LanguageModel:
    """Raises ModelError: only the run's own model can be asked here."""
    raise ModelError(f"{choice.model} cannot be used in this run")


class Alone:
    """How the work of a run goes on where one step is taken after the other; `engine.search.abreast` has another way.

    `listening` are the steps whose replies are coming in.
    """

    def __init__(self) -> None:
        self.listening = set[int]()

    def emit(self, context: RunContext, event: ev.Event) -> None:
        """Journal one event, fold it and tell the listeners."""
        entry = context.journal.append(event)
        context.record.take(entry)
        for listener in context.listeners:
            listener(entry)

    def aside(self) -> AbstractContextManager[None]:
        """Inside, something outside is waited for, and others may work."""
        return nullcontext()

    def at_work(self) -> AbstractContextManager[None]:
        """Inside, nobody else works."""
        return nullcontext()

    def context_of(self, context: RunContext, index: int) -> RunContext:
        """The context of the step index."""
        return context

    def work_so_far(self, began: float) -> float:
        """Seconds that a step at work adds to the run's time of work; `began` is of the monotonic clock."""
        return time.monotonic() - began

    def count_work(self, began: float) -> float:
        """Seconds that a step that is over adds to the run's time of work."""
        return self.work_so_far(began)


@dataclass(slots=True)
class RunContext:
    """One run's tools. Where several step indexes are at work at once, each has a context of its own, whose record is
    the run as it sees it."""

    folder: RunFolder
    journal: Journal
    record: Record
    task: Task
    model: LanguageModel
    toolchain: Evaluator
    blobs: Blobs
    strategy: Strategy
    interrupt: Callable[[], None] = lambda: None
    """Asked while a reply streams in; it raises StopRequested when told to stop."""
    interruptible: Callable[[], AbstractContextManager[None]] = nullcontext
    """Inside it a stop raises StopRequested by itself."""
    listeners: list[Listener] = field(default_factory=list)
    step: int = 0
    """Number of the step in flight."""
    step_began: float = field(default_factory=time.monotonic)
    """When it began, of the monotonic clock."""
    ledger: Ledger = field(default_factory=lambda: Ledger(home()))
    sleep: Callable[[float], None] = time.sleep
    chance: Callable[[], float] = random.random
    other_model: Callable[[ModelChoice], LanguageModel] = no_other_model
    knowledge: Path | None = None
    """The folder in which runs keep what they learn; None for nowhere."""
    attempts: AttemptFold | None = None
    """How far this engine has read the run for the knowledge base."""
    scored: set[str] = field(default_factory=set)
    """Kernels whose worth was written down for the knowledge base."""
    baselines_tried: set[str] = field(default_factory=set)
    """Names of second baselines that this engine has timed or tried to."""
    run: Record | None = None
    """The record of the whole run, where `record` is a view."""
    company: Alone = field(default_factory=Alone)
    """How several step indexes are at work at once."""
    lane: int | None = None
    """Names the file of the reply's stream."""

    @property
    def whole(self) -> Record:
        """The record of the whole run: what was spent, which numbers are taken, what else is in flight."""
        return self.run or self.record

    @property
    def stream_file(self) -> Path:
        """Where the reply that is coming in can be read."""
        return self.folder.stream_of(self.lane)

    @property
    def arrived_file(self) -> Path:
        """Where the reply that has come in is kept until the journal has it."""
        return self.folder.arrived_of(self.lane)

    @property
    def language(self) -> Language:
        """In which the run's kernels are written."""
        return languages.find(self.record.settings.language)

    @property
    def speaker(self) -> LanguageModel:
        """The model that answers the next call: the run's own, or the one a person has chosen."""
        choice = self.record.model_choice
        return self.model if choice is None else self.other_model(choice)

    def emit(self, event: ev.Event) -> None:
        """Journal one event, fold it and tell the listeners."""
        self.company.emit(self, event)

    def source(self, candidate: Candidate) -> str:
        """A candidate's source text."""
        return self.blobs.get(candidate.created.source_blob)

    def judge(self, act: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """What the toolchain answers; nothing is journaled meanwhile.

        Raises:
            StopRequested: a person stopped the run; what the toolchain had begun is ended when it is closed.
        """
        with self.company.aside(), self.interruptible():
            return act(*args, **kwargs)

    def candidate(self, candidate_id: str | None) -> Candidate:
        """A kernel of this run.

        Raises:
            EngineError: there is none of this name.
        """
        candidate = self.record.candidates.get(candidate_id or "")
        if candidate is None:
            raise EngineError(f"the strategy asked for {candidate_id}, a kernel that this run does not have")
        return candidate

    def listen(
        self, messages: list[Message], purpose: Purpose, on_whole: Callable[[Completion], None] = lambda reply: None
    ) -> Completion:
        """One request to the model. What arrives can be read in the stream file while it does; `on_whole` hears the
        reply before anything else is done."""
        with open(self.stream_file, "wb", buffering=0) as stream:

            def on_text(piece: str) -> None:
                if piece:
                    with suppress(OSError):  # only looked at: no reason to break off a reply that is paid for
                        stream.write(piece.encode("utf-8", "replace"))
                self.interrupt()

            speaker = self.speaker
            self.company.listening.add(self.step)
            try:
                with self.company.aside():
                    completion = speaker.complete(messages, purpose, on_text)
                    on_whole(completion)
            finally:
                self.company.listening.discard(self.step)
        self._forget_stream()
        return completion

    def heard(self) -> str:
        """What had arrived of a reply that was broken off; forgotten by asking."""
        try:
            with open(self.stream_file, encoding="utf-8", errors="replace", newline="") as stream:
                text = stream.read()
        except FileNotFoundError:
            return ""
        self._forget_stream()
        return text

    def _forget_stream(self) -> None:
        with suppress(OSError):  # the next reply empties it
            self.stream_file.write_text("")

    def rest(self, seconds: float) -> None:
        """Wait, and look up now and then whether a person wants something else."""
        waited = 0.0
        while waited < seconds:
            self.interrupt()
            nap = min(NAP_S, seconds - waited)
            with self.company.aside():
                self.sleep(nap)
            waited += nap

    def room(self, role: str, candidate_id: str | None, opening: int) -> int | None:
        """Characters a prompt may have beside `opening` others; None when nothing bounds it."""
        terms = self.speaker.terms(self.purpose(role, candidate_id))
        return None if terms is None else limits.room(self.whole, terms) - opening

    def purpose(self, role: str, candidate_id: str | None) -> Purpose:
        """What a call about a kernel is for."""
        calls, source = self.whole.calls, self._source_of(candidate_id)
        earlier = sum(
            self._is_before(c.step) and self._is_like(c.role, c.candidate_id, role, source) for c in calls.values()
        )
        for step in self.whole.open_steps.values():
            is_to_come = step.step < self.step and (step.step, 0) not in calls
            earlier += is_to_come and self._is_like(step.kind, step.candidate_id, role, source)
        given = frozenset(c.reply_blob for c in calls.values())
        task = words_of(self.strategy).task(role)
        return Purpose(role, source, earlier, self.record.index_in_flight, given, task=task)

    def _is_before(self, step: int) -> bool:
        """Whether a call of that step counts as earlier than one of this step: always, unless others are at work."""
        return self.lane is None or step <= self.step

    def _is_like(self, role: str, candidate_id: str | None, as_role: str, source: str | None) -> bool:
        return role == as_role and self._source_of(candidate_id) == source

    def tell_divergence(self, purpose: Purpose, is_bridged: bool, reason: str) -> None:
        """Journal, once per call, that a replayed run left the path of its recording."""
        with self.company.at_work():
            asking = self.company.context_of(self, purpose.depth)
            call = sum(step == asking.step for step, _ in asking.record.calls)
            begun = asking.record.in_flight
            event = ev.Diverged(
                asking.step, call, purpose.role, begun.candidate_id if begun else None, is_bridged, reason
            )
            if event != asking.record.human.divergence:
                asking.emit(event)

    def _source_of(self, candidate_id: str | None) -> str | None:
        return self.whole.candidates[candidate_id].created.source_blob if candidate_id else None
