"""A reply being put together from pieces, without secrets. Knows its own length, not the protocol it comes by."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import quote

from engine.errors import CallError
from engine.llm import OnText
from storage.models import CallFailure, TokenUsage

MARK = "[key removed]"
SHORTEST = 6


class Scrubber:
    """Replaces every secret in a text by a mark. Shorter secrets than six characters are left: they hide nothing."""

    def __init__(self, secrets: Iterable[str]) -> None:
        given = [secret for secret in secrets if len(secret) >= SHORTEST]
        self._secrets = sorted({form for secret in given for form in (secret, quote(secret, safe=""))}, key=len)[::-1]
        self._held = ""

    def whole(self, text: str) -> str:
        """A whole text without secrets."""
        for secret in self._secrets:
            text = text.replace(secret, MARK)
        return text

    def feed(self, piece: str) -> str:
        """What of the text so far is certain to hold no secret and was not given out before."""
        text = self.whole(self._held + piece)
        kept = max((_overlap(text, secret) for secret in self._secrets), default=0)
        self._held = text[len(text) - kept :]
        return text[: len(text) - kept]

    def rest(self) -> str:
        """What was held back: it turned out to be no secret."""
        held, self._held = self._held, ""
        return held


def _overlap(text: str, secret: str) -> int:
    """Length of the longest end of the text with which the secret begins, the whole secret excluded."""
    for length in range(min(len(secret) - 1, len(text)), 0, -1):
        if text.endswith(secret[:length]):
            return length
    return 0


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
        self._half = ""

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
        """The whole reply without secrets: what was passed on, joined."""
        if self._tool is not None:
            self._pass_on(self._scrubber.feed("\n```\n"))
            self._tool = None
        self._pass_on(self._scrubber.rest(), is_last=True)
        return "".join(self._pieces)

    def _pass_on(self, text: str, *, is_last: bool = False) -> None:
        """The first half of a character waits for the second one; a half alone becomes U+FFFD."""
        text, self._half = self._half + text, ""
        if "\ud800" <= text[-1:] <= "\udbff" and not is_last:
            text, self._half = text[:-1], text[-1]
        if text:
            whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
            self._pieces.append(whole)
            self._on_text(whole)
