"""The one guard in front of everything a dashboard can write: on a read-only server nothing is written or started."""

from __future__ import annotations

import os

VARIABLE = "TILEWRIGHT_READ_ONLY"


def is_on() -> bool:
    """True when this process only shows runs."""
    return bool(os.environ.get(VARIABLE))


def guard(error: type[Exception], what: str) -> None:
    """Refuse to do `what` ("steer runs") on a read-only server, as an error of the caller's own kind.

    Raises:
        error: the server is read-only; the message says how it is not.
    """
    if is_on():
        raise error(f"this server is read-only: start it without {VARIABLE} to {what}")
