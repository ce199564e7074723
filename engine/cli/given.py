"""Texts that a person hands to a command: a file, or standard input."""

from __future__ import annotations

import sys
from pathlib import Path

from engine import exporting
from engine.errors import EngineError
from storage import untrusted
from storage.results import baselines
from storage.results.baselines import OwnBaseline
from storage.untrusted import Limits, UntrustedError

STANDARD_INPUT, NAME = "-", "standard input"
MOST_BYTES = 16 << 20  # of a reply, or a kernel
LIMITS = Limits(most_bytes=MOST_BYTES)


def text(word: str) -> str:
    """The text of a file, or of standard input where the word is `-`.

    Raises:
        EngineError: it cannot be read, is too long, or is no text.
    """
    try:
        if word == STANDARD_INPUT:
            return _standard_input()
        return untrusted.read_text(Path(word), LIMITS)
    except FileNotFoundError:
        raise EngineError(f"cannot read {word}: there is no such file") from None
    except UntrustedError as error:
        raise EngineError(f"cannot read {word}: {error}") from error


def _standard_input() -> str:
    content = sys.stdin.buffer.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise UntrustedError(f"{NAME} gives more than {MOST_BYTES:,} bytes")
    return untrusted.text_of(content, NAME)


def kernel(path: str) -> str:
    """The text of a kernel file, without what an export adds to it.

    Raises:
        EngineError: it cannot be read.
    """
    return exporting.without_support(text(path))


def own_baseline(path: str) -> OwnBaseline:
    """A person's own baseline.

    Raises:
        EngineError: the file cannot be read, or defines none.
    """
    try:
        return baselines.own(Path(path).name, kernel(path))
    except ValueError as error:
        raise EngineError(str(error)) from error
