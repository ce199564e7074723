"""Where something cannot be drawn a sentence stands in its place."""

from __future__ import annotations

import json

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.testclient import TestClient
from streamlit.testing.v1 import AppTest

from pages.parts.status import undrawn
from storage.index.database import QueryTooLargeError


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (QueryTooLargeError(), "This cannot be shown. What was asked of the index takes more than the 256MB of memory"),
        (KeyError("secret"), "an error in Tilewright (KeyError); the rest goes on. The server's log says more."),
    ],
)
def test_an_error_is_told_in_a_sentence_on_pages_and_routes(error: Exception, said: str) -> None:
    def page() -> None:
        import streamlit as st

        from pages.parts.status import undrawn

        st.session_state.is_told = undrawn.tell(st.session_state.error)

    app = AppTest.from_function(page)
    app.session_state.error = error
    app.run()
    assert not app.exception
    assert said in app.error[0].value
    assert app.session_state.is_told

    def fail(request: Request) -> Response:
        raise error

    routes = Starlette(routes=[Route("/", fail)], exception_handlers={Exception: undrawn.answer})
    answer = TestClient(routes, raise_server_exceptions=False).get("/")
    assert answer.status_code == (503 if isinstance(error, QueryTooLargeError) else 500)
    assert said in json.loads(answer.text)["error"]
    assert "secret" not in answer.text


def test_the_dashboard_tells_errors_so() -> None:
    import app

    assert vars(app.app)["_on_script_error"] is undrawn.tell
