"""A language model that replays recorded replies: the default without a key. Only its replies are canned."""

from __future__ import annotations

import time
from collections.abc import Callable

from engine.errors import OffRecordingError
from engine.llm import Completion, Message, OnText, Purpose
from engine.llm.recording import Recording

PIECES = 40


class RecordedModel:
    """Answers each (role, kernel) with the recorded replies in order, at a pace a person can follow."""

    name = "recorded"

    def __init__(self, recording: Recording, reply_seconds: float = 0.0, sleep: Callable[[float], None] = time.sleep):
        self._recording = recording
        self._reply_seconds = reply_seconds
        self._sleep = sleep

    def complete(self, messages: list[Message], purpose: Purpose, on_text: OnText) -> Completion:
        """Replay one reply. Costs nothing, so tokens are counted as none.

        Raises:
            OffRecordingError: no reply is left for this kernel.
        """
        replies = self._recording.replies.get((purpose.role, purpose.source_hash), ())
        if purpose.occurrence >= len(replies):
            raise OffRecordingError(self._explain(purpose, len(replies)))
        started, text = time.monotonic(), replies[purpose.occurrence]
        size = max(1, -(-len(text) // PIECES))
        for start in range(0, len(text), size):
            on_text(text[start : start + size])
            if self._reply_seconds:
                self._sleep(self._reply_seconds / PIECES)
        return Completion(text, self.name, "stop", time.monotonic() - started, cost_usd=0.0)

    def _explain(self, purpose: Purpose, known: int) -> str:
        about = "for this kernel" if purpose.source_hash else "for a first kernel"
        used = f"its {known} replies {about} are used up" if known else f"it holds no reply {about}"
        return (
            f"The run left the recorded path: the next call is to {purpose.role}, and {used}. "
            "Roll back to a kernel of the recording, or start a run with a live model (set OPENAI_API_KEY)."
        )
