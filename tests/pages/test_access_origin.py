"""Which pages of a browser are of this server."""

from __future__ import annotations

import pytest
from starlette.datastructures import Headers

from pages.parts.access import is_of_this_server

HERE = "127.0.0.1:8501"
OURS = [
    (f"http://{HERE}", HERE), ("https://tiles.example.org", "tiles.example.org"), ("http://[::1]:8501", "[::1]:8501"),
    ("https://tiles.example.org", "tiles.example.org:443"), ("http://LOCALHOST:8501", "localhost:8501"),
]  # fmt: skip
FOREIGN = [
    "http://127.0.0.1:9999", "http://localhost:8501", "http://127.0.0.1", "null", "", "file://",
    "http://127.0.0.1:8501.evil.example", "http://127.0.0.1:8501@evil.example", "http://evil.example/127.0.0.1:8501",
    "http://127.0.0.1:99999999", "http://127.0.0.1:x", "http://[", "javascript:8501",
]  # fmt: skip


@pytest.mark.parametrize(("origin", "host"), OURS)
def test_a_page_of_this_server_names_host_and_port_that_it_was_asked_by(origin: str, host: str) -> None:
    assert is_of_this_server(Headers({"origin": origin, "host": host}))


@pytest.mark.parametrize("origin", FOREIGN)
def test_a_page_of_any_other_host_or_port_is_foreign(origin: str) -> None:
    assert not is_of_this_server(Headers({"origin": origin, "host": HERE}))


def test_a_program_names_no_origin() -> None:
    assert is_of_this_server(Headers({"host": HERE}))
