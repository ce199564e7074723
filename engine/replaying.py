"""A run told once more from its journal, as if its engine were at work. Asks no model, builds and measures nothing.

The replay is a run folder of its own. Its settings name the run it tells, so that nothing counts it twice.
"""

from __future__ import annotations

import os
import secrets
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from engine.errors import EngineError
from storage.run import events as ev
from storage.run import journal
from storage.run.folder import ORIGINAL, RunFolder, runs_folder
from storage.run.journal import Entry, Journal
from storage.run.settings import RunSettings, RunState
from storage.run.steering import commands
from storage.run.steering.verbs import VERBS, Command, CommandKind

SLOWEST = 0.001  # what the settings keep of a speed
LONGEST_GAP_S = 60.0
NAP_S = 0.1
REFUSAL = "this is a replay: it takes pause, resume and stop; steer the run itself"
# What a replay says for itself, or what would make a person wait for something that is long over.
_LEFT_OUT = (
    ev.RunStarted, ev.EngineStarted, ev.StateChanged, ev.RunEnded, ev.QuestionAsked, ev.ApprovalAsked,
    ev.ApprovalSettled,
)  # fmt: skip
_SETTLING = (ev.CommandEffective, ev.CommandRefused)


@dataclass(frozen=True, slots=True)
class Beat:
    """One event to tell and how many seconds after the one before it happened, pauses cut short.

    `is_resumption`: before it the run's engine had died and another one took the run up.
    """

    after_s: float
    event: ev.Event
    is_resumption: bool = False


def beats(entries: Sequence[Entry]) -> list[Beat]:
    """What a replay tells of a journal, in order."""
    played: list[Beat] = []
    engines, is_resumed, last = 0, False, entries[0].time if entries else 0.0
    for entry in entries:
        if isinstance(entry.event, ev.EngineStarted):
            engines += 1
            is_resumed = engines > 1
        if not isinstance(entry.event, _LEFT_OUT):
            gap = min(max(entry.time - last, 0.0), LONGEST_GAP_S)
            played.append(Beat(gap, entry.event, is_resumed))
            is_resumed = False
        last = entry.time
    return played


def length_s(entries: Sequence[Entry]) -> float:
    """How long a replay at the speed of the run takes, in seconds."""
    return sum(beat.after_s for beat in beats(entries))


def settings_of(original: RunFolder, speed: float | None, within_s: float = 120.0) -> RunSettings:
    """Settings of a replay of a run that no engine works on. Without a speed it lasts `within_s` seconds.

    Raises:
        EngineError: there is nothing to tell, it is a replay itself, or the speed is no number above zero.
    """
    settings, entries = original.read_settings(), list(journal.read(original.journal_file))
    if settings.replay_of is not None:
        raise EngineError(f"{original.run_id} is itself a replay: replay {settings.replay_of} instead")
    if not beats(entries):
        raise EngineError(f"run {original.run_id} has no events yet, so there is nothing to replay")
    speed = max(length_s(entries) / within_s, 0.01) if speed is None else speed
    if not SLOWEST <= speed < float("inf"):
        raise EngineError(f"replay speed must be above 0, {SLOWEST} at least, not {speed:g}")
    return replace(
        settings,
        run_id=f"{original.run_id[:100]}-replay-{secrets.token_hex(2)}",
        replay_of=original.run_id,
        replay_speed=round(speed, 3),
        created_at=time.time(),
        is_demo=False,
    )


def prepare(settings: RunSettings, original: RunFolder) -> RunFolder:
    """Make the replay's folder. Texts are shared with the run, not copied, where the file system allows it."""
    folder = RunFolder(runs_folder() / settings.run_id)
    folder.blobs.mkdir(parents=True, exist_ok=True)
    for blob in original.blobs.iterdir() if original.blobs.is_dir() else ():
        if not blob.name.startswith("."):
            _share(blob, folder)
    shutil.copyfile(original.journal_file, folder.path / ORIGINAL)
    folder.write_settings(settings)
    return folder


def _share(blob: os.PathLike[str], folder: RunFolder) -> None:
    target = folder.blobs / os.path.basename(blob)  # noqa: PTH119
    try:
        os.link(blob, target)
    except OSError:
        shutil.copyfile(blob, target)


class Replay:
    """Tells one run once more. Holds back while paused; goes on after the last event told when it is resumed."""

    def __init__(
        self,
        folder: RunFolder,
        book: Journal,
        listen: Callable[[Entry], None] = lambda entry: None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._folder, self._book, self._listen, self._sleep = folder, book, listen, sleep
        self._settings = folder.read_settings()
        self._original = list(journal.read(folder.path / ORIGINAL))
        self._offset = 0
        self._is_paused = self._is_stopped = False

    def play(self) -> ev.RunEnded:
        """Tell everything that has not been told yet; returns the last word."""
        is_first = not self._book.entries
        if is_first:
            self._emit(ev.RunStarted(self._folder.run_id, self._settings.task_name))
        already = self._already_replayed()
        self._emit(ev.EngineStarted(os.getpid(), not is_first))
        for beat in beats(self._original)[already:]:
            self._wait(beat.after_s / self._settings.replay_speed, self._reply(beat.event))
            if self._is_stopped:
                return self._end(RunState.STOPPED, "a person stopped the replay")
            if beat.is_resumption:
                self._emit(ev.EngineStarted(os.getpid(), True))
            self._emit(beat.event)
        return self._end(RunState.FINISHED, f"the replay is over; {_last_word(self._original)}")

    def _emit(self, event: ev.Event) -> None:
        self._listen(self._book.append(event))

    def _already_replayed(self) -> int:
        """How many events of the run stand in the replay's journal already."""
        command_ids = {command.command_id for command in commands.read_from(self._folder.commands_file)[0]}
        return sum(
            not isinstance(entry.event, _LEFT_OUT) and _command_id(entry.event) not in command_ids
            for entry in self._book.entries
        )

    def _end(self, state: RunState, reason: str) -> ev.RunEnded:
        self._folder.stream_file.write_text("")
        best = next((e.event.best_id for e in reversed(self._original) if isinstance(e.event, ev.RunEnded)), None)
        ended = ev.RunEnded(state, reason, best if state is RunState.FINISHED else None)
        self._emit(ended)
        return ended

    def _reply(self, event: ev.Event) -> str:
        """The text that came in before an event, empty for all but a model's reply."""
        if not isinstance(event, ev.ModelCalled):
            return ""
        try:
            return (self._folder.blobs / event.reply_blob).read_bytes().decode("utf-8", "replace")
        except OSError:
            return ""

    def _wait(self, seconds: float, reply: str) -> None:
        """Let the time of an event come, with the reply being written meanwhile, and do as a person asks."""
        waited, written = 0.0, 0
        if reply:
            self._folder.stream_file.write_text("")
        self._obey()
        while not self._is_stopped and (waited < seconds or self._is_paused):
            nap = NAP_S if self._is_paused else min(NAP_S, seconds - waited)
            self._sleep(nap)
            if not self._is_paused:
                waited += nap
                until = int(len(reply) * min(1.0, waited / seconds))
                self._write(reply[written:until])
                written = until
            self._obey()
        if reply:
            self._folder.stream_file.write_text("")

    def _write(self, piece: str) -> None:
        if piece:
            with open(self._folder.stream_file, "a", encoding="utf-8", errors="replace", newline="") as stream:
                stream.write(piece)

    def _obey(self) -> None:
        command_ids = {_command_id(entry.event) for entry in self._book.entries} if not self._offset else set()
        asked, self._offset = commands.read_from(self._folder.commands_file, self._offset)
        for command in asked:
            if command.command_id not in command_ids:
                self._answer(command)

    def _answer(self, command: Command) -> None:
        step = sum(isinstance(entry.event, ev.StepFinished) for entry in self._book.entries) + 1
        self._emit(ev.CommandAcknowledged(command, step))
        if not VERBS[command.kind].in_replay:
            self._emit(ev.CommandRefused(command.command_id, step, REFUSAL))
            return
        self._emit(ev.CommandEffective(command.command_id, step, "the replay obeys; the run itself is not touched"))
        self._is_stopped = self._is_stopped or command.kind is CommandKind.STOP
        if command.kind is CommandKind.PAUSE and not self._is_paused:
            self._emit(ev.StateChanged(RunState.PAUSED, "the replay is paused"))
        if command.kind is CommandKind.RESUME and self._is_paused:
            self._emit(ev.StateChanged(RunState.RUNNING, "the replay goes on"))
        if command.kind is not CommandKind.STOP:
            self._is_paused = command.kind is CommandKind.PAUSE


def _command_id(event: ev.Event) -> str:
    if isinstance(event, ev.CommandAcknowledged):
        return event.command.command_id
    return event.command_id if isinstance(event, _SETTLING) else ""


def _last_word(entries: Sequence[Entry]) -> str:
    last = next((entry.event for entry in reversed(entries) if isinstance(entry.event, ev.RunEnded)), None)
    if last is None:
        return "the run itself crashed before it ended"
    return f"the run itself ended as {last.state}" + (f": {last.reason}" if last.reason else "")
