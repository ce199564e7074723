"""Takes secrets out of texts, also out of texts that arrive in pieces. Knows the secrets, not where they are used."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import quote

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
