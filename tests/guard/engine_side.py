"""What the engine does after the first k events of a run: its next move, and every prompt that it would send.

Told in plain values, so that a comparison outlives the names of classes and fields.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from engine.errors import EngineError
from engine.evaluator import tasks
from engine.evaluator.request import Evaluator
from engine.search.actions import Action, Ask, Conclude, Finish, Wait, label
from engine.search.context import RunContext
from engine.search.llm import Completion, LanguageModel, Message, OnText, Purpose, Terms
from engine.search.loop import next_action, take_step
from engine.search.methods.cutegen.strategy import CuteGen
from storage.run import events as ev
from storage.run import journal
from storage.run.blobs import Blobs
from storage.run.folder import RunFolder
from storage.run.journal import Entry, Journal
from storage.run.record import Record

# The saved prompts were fitted to 6,000; system messages and guides have grown by about 1,200 since.
SMALL_WINDOW = 7200
LISTED = re.compile(r"^ *\d+ \| .*$", re.MULTILINE)


class Captured(Exception):
    """Raised instead of a reply."""


@dataclass
class CapturingModel:
    """Keeps what it is asked and never answers. `window` in tokens; None for a model without limits."""

    window: int | None
    asked: list[Any] = field(default_factory=list)
    name: str = "capturing"

    def terms(self, purpose: Purpose) -> Terms | None:
        return None if self.window is None else Terms(self.name, self.window, reply_room=1000)

    def complete(self, messages: list[Message], purpose: Purpose, on_text: OnText) -> Completion:
        about = [str(purpose.role), purpose.source_hash, purpose.occurrence, purpose.wants_edits]
        self.asked.append([about, [[m.role, m.text] for m in messages]])
        raise Captured


class MemoryJournal:
    """Takes events and writes nothing."""

    def __init__(self, entries: list[Entry]) -> None:
        self.entries, self.lost_events = entries, 0

    def append(self, event: ev.Event) -> Entry:
        entry = Entry(len(self.entries) + 1, 0.0, event)
        self.entries.append(entry)
        return entry


@dataclass
class NoToolchain:
    """Prompts name the toolchain; nothing here is built."""

    name: str


def moments(folder: Path) -> Iterator[tuple[Any, list[Any]]]:
    """The next move and the prompts after each number of events, none of them first."""
    entries = list(journal.read(RunFolder(folder).journal_file))
    for count in range(len(entries) + 1):
        move = next_move(folder, entries[:count])
        yield move, [prompts(folder, entries[:count], window) for window in (None, SMALL_WINDOW)]


def next_move(folder: Path, entries: list[Entry]) -> Any:
    """In plain values."""
    context = _context(folder, entries, CapturingModel(None))
    if context.record.steering.is_stopped:
        return ["stopped"]
    return _plain(next_action(context))


def prompts(folder: Path, entries: list[Entry], window: int | None) -> Any:
    """What would be sent in the next step, None where it asks nobody; an error stands for itself."""
    model = CapturingModel(window)
    context = _context(folder, list(entries), cast(LanguageModel, model))
    move = None if context.record.steering.is_stopped else next_action(context)
    if not isinstance(move, Ask):
        return None
    try:
        with suppress(Captured):
            take_step(context, move)
    except EngineError as error:
        return model.asked or _asked_of_a_person(context) or f"{type(error).__name__}: {error}"
    return model.asked


def lasting(asked: Any) -> Any:
    """What no rewording of prompts changes in them: whom is asked about what, who speaks, and the listed kernels."""
    if not isinstance(asked, list):
        return asked
    if asked and isinstance(asked[0], dict):
        return [[one["role"], LISTED.findall(one["text"])] for one in asked]
    return [[about, [[role, LISTED.findall(text)] for role, text, *_ in messages]] for about, messages in asked]


def _asked_of_a_person(context: RunContext) -> Any:
    for entry in reversed(context.journal.entries):
        if isinstance(entry.event, ev.QuestionAsked):
            return json.loads(context.blobs.get(entry.event.prompt_blob))
    return None


def _plain(action: Action) -> Any:
    match action:
        case Conclude():
            end = [action.candidate_id, action.base_id, action.reason]
            return ["settle", action.index, str(action.outcome), *end]
        case Finish():
            return ["finish", str(action.state), action.reason]
        case Wait():
            return ["wait"]
        case _:
            return ["step", label(action), action.index, action.about]


def _context(folder: Path, entries: list[Entry], model: LanguageModel) -> RunContext:
    run = RunFolder(folder)
    settings = run.read_settings()
    record = Record.of(settings, entries)
    task = tasks.Task(
        settings.task_name, settings.task_source, settings.sizes, record.kernel_class, policy=settings.policy
    )
    context = RunContext(
        run, cast(Journal, MemoryJournal(entries)), record, task, model,
        cast(Evaluator, NoToolchain(settings.toolchain)), Blobs(run.blobs), CuteGen(),
    )  # fmt: skip
    context.other_model = lambda choice: model
    return context


def digest(value: Any) -> str:
    """A short hash of plain values."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, ensure_ascii=False).encode()).hexdigest()[:16]


def copy_of(folder: Path, root: Path) -> Path:
    """A copy that may be written to."""
    return Path(shutil.copytree(folder, root / folder.name))
