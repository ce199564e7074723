"""Texts that a person hands to a command: a file, or standard input."""

from __future__ import annotations

import sys
from pathlib import Path

from engine.errors import EngineError
from storage import untrusted
from storage.untrusted import Limits, UntrustedError

STANDARD_INPUT, NAME = "-", "standard input"
LIMITS = Limits(most_bytes=16 << 20, most_s=None)  # a reply, or a kernel; a person may type it


def text(word: str) -> str:
    """The text of a file, or of standard input where the word is `-`.

    Raises:
        EngineError: it cannot be read, is too long, or is no text.
    """
    try:
        if word == STANDARD_INPUT:
            return untrusted.text_of(
                untrusted.read_stream(sys.stdin.buffer, "standard input", LIMITS), "standard input"
            )
        return untrusted.read_text(Path(word), LIMITS)
    except (FileNotFoundError, UntrustedError) as error:
        raise EngineError(f"cannot read {word}: {error}") from error
