"""The token that programs send to what is served over HTTP: one variable for the dashboard's routes and the agents'
server."""

from __future__ import annotations

import hmac
import os

VARIABLE = "TILEWRIGHT_API_TOKEN"


def is_set() -> bool:
    """Whether a token is asked for."""
    return bool(os.environ.get(VARIABLE))


def is_in(header: str) -> bool:
    """Whether the header Authorization of a request has the token; never where none is set."""
    token, given = os.environ.get(VARIABLE, "").encode(), header.removeprefix("Bearer ").encode()
    return bool(token) and hmac.compare_digest(given, token)
