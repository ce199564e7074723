"""What a person reads where a page, or a part of one, cannot be drawn: a sentence, never a stack of calls."""

from __future__ import annotations

import streamlit as st
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from storage.index.database import DatabaseError
from storage.untrusted import UntrustedError


def tell(error: Exception) -> bool:
    """Say it in place of what is missing. True: nothing else is to be shown of it."""
    st.error(sentence(error), icon=":material/error:")
    return True


def sentence(error: Exception) -> str:
    """Our own errors say what to do; any other is ours to find."""
    if isinstance(error, (DatabaseError, UntrustedError)):
        return f"This cannot be shown. {error}"
    return (
        f"This cannot be shown because of an error in Tilewright ({type(error).__name__}); the rest goes on. The "
        "server's log says more."
    )


def answer(_request: Request, error: Exception) -> Response:
    """The answer of a route that failed, as JSON."""
    status = 503 if isinstance(error, DatabaseError) else 500
    return JSONResponse({"error": sentence(error), "remedy": "see the server's log"}, status)
