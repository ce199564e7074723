"""What every step works with: journal, blobs, model, toolchain, task. Emits events; decides nothing."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import ParamSpec, TypeVar

from engine import languages, limits
from engine.daily import Ledger
from engine.errors import EngineError, ModelError
from engine.knowledge.evidence import AttemptFold
from engine.languages import Language
from engine.llm import Completion, LanguageModel, Message, Purpose
from engine.record import Candidate, Record
from engine.strategies import Strategy
from engine.tasks import Task
from engine.toolchains import Toolchain
from storage import events as ev
from storage.blobs import Blobs
from storage.command_arguments import ModelChoice
from storage.folder import RunFolder, home
from storage.journal import Entry, Journal

Listener = Callable[[Entry], None]
P = ParamSpec("P")
T = TypeVar("T")
NAP_S = 0.1


def no_other_model(choice: ModelChoice) -> LanguageModel:
    """Raises ModelError: only the run's own model can be asked here."""
    raise ModelError(f"{choice.model} cannot be used in this run")


@dataclass(slots=True)
class RunContext:
    """One run's tools. `interrupt` is asked while a reply streams in; it raises StopRequested when told to stop.

    Inside `interruptible` a stop raises StopRequested by itself. `knowledge` is the folder in which runs keep what they
    learn, None for nowhere; `attempts` remembers how far this engine has read the run for it, `scored` which kernels'
    worth it has written down.
    """

    folder: RunFolder
    journal: Journal
    record: Record
    task: Task
    model: LanguageModel
    toolchain: Toolchain
    blobs: Blobs
    strategy: Strategy
    interrupt: Callable[[], None] = lambda: None
    interruptible: Callable[[], AbstractContextManager[None]] = nullcontext
    listeners: list[Listener] = field(default_factory=list)
    step: int = 0
    step_began: float = field(default_factory=time.monotonic)
    ledger: Ledger = field(default_factory=lambda: Ledger(home()))
    sleep: Callable[[float], None] = time.sleep
    chance: Callable[[], float] = random.random
    other_model: Callable[[ModelChoice], LanguageModel] = no_other_model
    knowledge: Path | None = None
    attempts: AttemptFold | None = None
    scored: set[str] = field(default_factory=set)

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
        entry = self.journal.append(event)
        self.record.apply(event)
        for listener in self.listeners:
            listener(entry)

    def source(self, candidate: Candidate) -> str:
        """A candidate's source text."""
        return self.blobs.get(candidate.created.source_blob)

    def judge(self, act: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """What the toolchain answers; nothing is journaled meanwhile.

        Raises:
            StopRequested: a person stopped the run; what the toolchain had begun is ended when it is closed.
        """
        with self.interruptible():
            return act(*args, **kwargs)

    def candidate(self, candidate_id: str | None) -> Candidate:
        """A kernel of this run.

        Raises:
            EngineError: there is none of this name.
        """
        found = self.record.candidates.get(candidate_id or "")
        if found is None:
            raise EngineError(f"the strategy asked for {candidate_id}, a kernel that this run does not have")
        return found

    def listen(self, messages: list[Message], purpose: Purpose) -> Completion:
        """One request to the model. What arrives can be read in the stream file while it does."""
        with open(self.folder.stream_file, "w", encoding="utf-8", errors="replace", newline="") as stream:

            def on_text(piece: str) -> None:
                if piece:
                    stream.write(piece)
                    stream.flush()
                self.interrupt()

            completion = self.speaker.complete(messages, purpose, on_text)
        self.folder.stream_file.write_text("")
        return completion

    def heard(self) -> str:
        """What had arrived of a reply that was broken off; forgotten by asking."""
        try:
            with open(self.folder.stream_file, encoding="utf-8", errors="replace", newline="") as stream:
                text = stream.read()
        except FileNotFoundError:
            return ""
        self.folder.stream_file.write_text("")
        return text

    def rest(self, seconds: float) -> None:
        """Wait, and look up now and then whether a person wants something else."""
        waited = 0.0
        while waited < seconds:
            self.interrupt()
            nap = min(NAP_S, seconds - waited)
            self.sleep(nap)
            waited += nap

    def room(self, role: str, candidate_id: str | None, opening: int) -> int | None:
        """Characters a prompt may have beside `opening` others; None when nothing bounds it."""
        terms = self.speaker.terms(self.purpose(role, candidate_id))
        return None if terms is None else limits.room(self.record, terms) - opening

    def purpose(self, role: str, candidate_id: str | None) -> Purpose:
        """What a call about a kernel is for."""
        source = self.record.candidates[candidate_id].created.source_blob if candidate_id else None
        earlier = [c for c in self.record.calls.values() if c.role == role and self._source_of(c) == source]
        given = frozenset(c.reply_blob for c in self.record.calls.values())
        return Purpose(role, source, len(earlier), self.record.index_in_flight, given)

    def tell_divergence(self, purpose: Purpose, is_bridged: bool, reason: str) -> None:
        """Journal, once per call, that a replayed run left the path of its recording."""
        call = sum(step == self.step for step, _ in self.record.calls)
        current = self.record.in_flight.candidate_id if self.record.in_flight else None
        event = ev.Diverged(self.step, call, purpose.role, current, is_bridged, reason)
        if event != self.record.human.divergence:
            self.emit(event)

    def _source_of(self, call: ev.ModelCalled) -> str | None:
        return self.record.candidates[call.candidate_id].created.source_blob if call.candidate_id else None
