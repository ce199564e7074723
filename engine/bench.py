"""What every step works with: journal, blobs, model, toolchain, task. Emits events; decides nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from engine import limits
from engine.errors import BudgetExhausted
from engine.history import Attempt, History
from engine.llm import Completion, LanguageModel, Message, Purpose
from engine.tasks import Task
from engine.toolchains import Toolchain
from storage import codec
from storage import events as ev
from storage.blobs import Blobs
from storage.folder import RunFolder
from storage.journal import Entry, Journal
from storage.records import Role

Listener = Callable[[Entry], None]


@dataclass(slots=True)
class Bench:
    """One run's tools. `interrupt` is asked while a reply streams in; it raises StopRequested when told to stop."""

    folder: RunFolder
    journal: Journal
    history: History
    task: Task
    model: LanguageModel
    toolchain: Toolchain
    blobs: Blobs
    interrupt: Callable[[], None] = lambda: None
    listeners: list[Listener] = field(default_factory=list)
    step: int = 0

    def emit(self, event: ev.Event) -> None:
        """Journal one event, fold it and tell the listeners."""
        entry = self.journal.append(event)
        self.history.apply(event)
        for listener in self.listeners:
            listener(entry)

    def source(self, attempt: Attempt) -> str:
        """A candidate's source text."""
        return self.blobs.get(attempt.created.source_blob)

    def ask(
        self, call: int, role: Role, messages: list[Message], candidate_id: str | None, *, exposed: bool
    ) -> Completion:
        """The reply to call number `call` of the step in flight; one that was paid for before is read, not bought.

        Raises:
            BudgetExhausted: this call would exceed a limit of the run.
        """
        paid = self.history.calls.get((self.step, call))
        if paid is not None:
            reply = self.blobs.get(paid.reply_blob)
            return Completion(
                reply, paid.model, paid.finish_reason, paid.seconds, paid.input_tokens, paid.output_tokens
            )
        if reason := limits.exhausted(self.history):
            raise BudgetExhausted(reason)
        prompt = self.blobs.put(codec.dumps([{"role": m.role, "text": m.text} for m in messages]))
        completion = self._buy(messages, self._purpose(role, candidate_id))
        self.emit(
            ev.ModelCalled(
                step=self.step,
                call=call,
                role=role,
                depth=self.history.depth,
                candidate_id=candidate_id,
                model=completion.model,
                prompt_blob=prompt,
                reply_blob=self.blobs.put(completion.text),
                input_tokens=completion.input_tokens,
                output_tokens=completion.output_tokens,
                cached_tokens=completion.cached_tokens,
                reasoning_tokens=completion.reasoning_tokens,
                cost_usd=completion.cost_usd,
                seconds=completion.seconds,
                finish_reason=completion.finish_reason,
                is_profile_exposed=exposed,
            )
        )
        for name, used, allowed in list(limits.warnings(self.history)):
            self.emit(ev.BudgetWarned(name, used, allowed))
        return completion

    def _buy(self, messages: list[Message], purpose: Purpose) -> Completion:
        with open(self.folder.stream_file, "w", encoding="utf-8", errors="replace") as stream:

            def on_text(piece: str) -> None:
                stream.write(piece)
                stream.flush()
                self.interrupt()

            completion = self.model.complete(messages, purpose, on_text)
        self.folder.stream_file.write_text("")
        return completion

    def _purpose(self, role: Role, candidate_id: str | None) -> Purpose:
        source = self.history.attempts[candidate_id].created.source_blob if candidate_id else None
        earlier = [c for c in self.history.calls.values() if c.role is role and self._source_of(c) == source]
        return Purpose(role, source, len(earlier))

    def _source_of(self, call: ev.ModelCalled) -> str | None:
        return self.history.attempts[call.candidate_id].created.source_blob if call.candidate_id else None
