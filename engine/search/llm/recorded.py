"""A language model that replays recorded replies: the default without a key. Only its replies are canned."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from pathlib import Path

from engine.errors import ModelError, OffRecordingError
from engine.search.llm import Completion, Message, OnText, Purpose, Terms
from engine.search.llm.recording import Line, Recording, read_recording
from storage.run.saved_models import RECORDED

PIECES = 40
NAP_S = 0.2
OnDivergence = Callable[[Purpose, bool, str], None]


class RecordedModel:
    """Answers each (role, kernel) with the recorded replies in order, at a pace a person can follow.

    A kernel that the recording does not know has left its path. The rule then: the first reply of that role at that
    depth which this run has not had; where there is none, the call fails and the run waits for a person. Either way
    `on_divergence` is told (purpose, whether a reply was found, why).
    """

    name = RECORDED

    def __init__(
        self,
        recording: Recording,
        reply_seconds: float = 0.0,
        sleep: Callable[[float], None] = time.sleep,
        unread: str = "",
    ):
        """`unread` says why the recording is empty: its file is gone or damaged."""
        self._recording = recording
        self._unread = unread
        self._reply_seconds = reply_seconds
        self._sleep = sleep
        self.on_divergence: OnDivergence = lambda purpose, is_bridged, reason: None

    def terms(self, purpose: Purpose) -> Terms | None:
        """Replaying costs nothing."""
        return None

    def complete(self, messages: list[Message], purpose: Purpose, on_text: OnText) -> Completion:
        """Replay one reply. Costs nothing, so tokens are counted as none.

        Raises:
            OffRecordingError: no reply is left for this kernel, nor for this role at this depth.
        """
        started, line = time.monotonic(), self._choose(purpose)
        size = max(1, -(-len(line.reply) // PIECES))
        for start in range(0, len(line.reply), size):
            on_text(line.reply[start : start + size])
            self._pause(on_text)
        return Completion(line.reply, self.name, line.finish, time.monotonic() - started, cost_usd=0.0)

    def _pause(self, on_text: OnText) -> None:
        """The time between two pieces, in naps after which the caller may break off."""
        naps = math.ceil(self._reply_seconds / PIECES / NAP_S)
        for _ in range(naps):
            self._sleep(self._reply_seconds / PIECES / naps)
            on_text("")

    def _choose(self, purpose: Purpose) -> Line:
        lines = self._recording.lines_for(purpose.role, purpose.source_hash)
        if purpose.occurrence < len(lines):
            return lines[purpose.occurrence]
        reason = self._explain(purpose, len(lines))
        spare = self._recording.spare(purpose.role, purpose.depth, purpose.given)
        if spare is None:
            self.on_divergence(
                purpose, False, f"{reason} No other reply of that role is left for search step {purpose.depth}."
            )
            raise OffRecordingError(
                f"{reason} Write the reply yourself, roll back to a kernel of the recording, or start a run with a "
                "live model (set OPENAI_API_KEY)."
            )
        self.on_divergence(
            purpose, True, f"{reason} The next reply of that role at search step {purpose.depth} is used instead."
        )
        return spare

    def _explain(self, purpose: Purpose, count: int) -> str:
        if self._unread:
            return f"The next call is {purpose.role}, and {self._unread}."
        about = "for this kernel" if purpose.source_hash else "for a first kernel"
        used = f"its {count} replies {about} are used up" if count else f"it holds no reply {about}"
        verdict = self._recording.verdicts.get(purpose.source_hash or "")
        there = f" When it was recorded this kernel was judged: {verdict}." if verdict else ""
        return f"The run no longer follows the recording: the next call is {purpose.role}, and {used}.{there}"


def open_recorded(path: Path, reply_seconds: float = 0.0) -> RecordedModel:
    """The replies of a file. Where it is gone or damaged that is told by the first call: the run may have been given
    another model since, and needs no reply of it then."""
    try:
        return RecordedModel(read_recording(path), reply_seconds)
    except ModelError as error:
        return RecordedModel(Recording(path, {}, (), {}), reply_seconds, unread=f"{error}")
