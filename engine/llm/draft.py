"""A reply being put together from pieces. Knows its own length, not the protocol it comes by."""

from __future__ import annotations

from engine.errors import CallError
from engine.llm import OnText
from engine.llm.scrubbing import Scrubber
from storage.models import CallFailure, TokenUsage

LONGEST = 2_000_000


class Draft:
    """Collects a reply, passes each piece on without secrets, and breaks off a reply that does not end.

    `finish` stays empty until the endpoint says why the reply ended; `refusal` is what it said instead of answering.
    """

    def __init__(self, on_text: OnText, scrubber: Scrubber) -> None:
        self.finish = ""
        self.refusal = ""
        self.usage: TokenUsage | None = None
        self._on_text = on_text
        self._scrubber = scrubber
        self._pieces: list[str] = []
        self._length = 0
        self._tool: int | None = None

    @property
    def is_empty(self) -> bool:
        """True while nothing has arrived."""
        return not self._length and not self.refusal

    def add(self, piece: str) -> None:
        """Take the next piece.

        Raises:
            CallError: the reply is longer than any useful one.
        """
        self._length += len(piece)
        self._pass_on(self._scrubber.feed(piece))
        if self._length > LONGEST:
            raise CallError(
                CallFailure.ENDLESS,
                f"the reply was cancelled: it is longer than {LONGEST:,} characters",
                is_charged=True,
            )

    def arguments(self, number: int, text: str) -> str:
        """A piece of a tool call's arguments as a piece of the reply: all calls in one fenced block, one a line."""
        opening = "" if number == self._tool else "\n```json\n" if self._tool is None else "\n"
        self._tool = number
        return opening + text

    def close(self) -> str:
        """The whole reply without secrets. Halves of characters that came in two pieces are joined."""
        if self._tool is not None:
            self._pass_on("\n```\n")
            self._tool = None
        self._pass_on(self._scrubber.rest())
        return "".join(self._pieces).encode("utf-16", "surrogatepass").decode("utf-16", "replace")

    def _pass_on(self, text: str) -> None:
        if text:
            self._pieces.append(text)
            self._on_text(text)
