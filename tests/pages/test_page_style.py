"""The dashboard's style stands in every page that a browser loads, and in no file that it downloads."""

from __future__ import annotations

import pytest
from starlette.applications import Starlette
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.testclient import TestClient

from pages.parts.client.page_style import PageStyle

PAGE = "<html><body><p>words</p></body></html>"
BROWSER = {"accept": "text/html,*/*", "accept-encoding": "gzip"}


def answered(response: Response, **headers: str) -> str:
    async def answer(_request: object) -> Response:
        return response

    client = TestClient(PageStyle(Starlette(routes=[Route("/", answer)])))
    found = client.get("/", headers={**BROWSER, **headers})
    assert int(found.headers["content-length"]) == len(found.content)
    return found.text


def test_a_page_has_the_style_at_its_end() -> None:
    found = answered(HTMLResponse(PAGE))
    assert found.startswith("<html><body><p>words</p><style>")
    assert found.endswith("</style></body></html>")


def test_a_tab_is_named_before_its_page_has_come() -> None:
    found = answered(HTMLResponse(PAGE.replace("<body>", "<head><title>Streamlit</title></head><body>")))
    assert "<head><title>Tilewright</title></head>" in found


@pytest.mark.parametrize(
    "response",
    [
        HTMLResponse(PAGE, headers={"content-disposition": 'attachment; filename="report.html"'}),
        PlainTextResponse(PAGE),
    ],
    ids=["a report that is downloaded", "what is no page"],
)
def test_all_else_is_passed_on_as_it_is(response: Response) -> None:
    assert answered(response) == PAGE


@pytest.mark.parametrize(("path", "status"), [("/run", 200), ("/run/", 200), ("/foo/bar", 404)])
def test_an_address_of_several_parts_has_no_page_and_a_way_back(path: str, status: int) -> None:
    shell = '<html><body><div id="root"></div></body></html>'
    routes = [Route("/{any:path}", lambda _request: HTMLResponse(shell))]
    found = TestClient(PageStyle(Starlette(routes=routes))).get(path, headers=BROWSER)
    assert found.status_code == status
    assert ('<a href="/">All runs</a>' in found.text) is (status == 404)
    assert int(found.headers["content-length"]) == len(found.content)


def test_who_asks_for_no_page_gets_what_is_there() -> None:
    assert answered(HTMLResponse(PAGE), accept="application/json") == PAGE
