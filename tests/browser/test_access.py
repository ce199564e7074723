"""Who may look and who may steer: a read-only server, and one with a login, in a real browser."""

from __future__ import annotations

import http.client
import json
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page, expect
from streamlit.web.server.starlette.starlette_app_utils import create_signed_value

from tests import samples
from tests.browser import provider
from tests.browser.conftest import Server, drawn
from tests.browser.play import PretendEngine, finished_depth, model_step
from tests.pages.test_pages import WRITES

pytestmark = pytest.mark.browser

SECRET = "a secret of this test that signs cookies"
COOKIE = "_streamlit_user"


def test_no_page_of_a_read_only_server_offers_what_it_would_refuse(
    own_server: Callable[..., Server], page: Page
) -> None:
    server = own_server(TILEWRIGHT_READ_ONLY="1")
    samples.write_run(server.runs, "over", depths=3)
    engine = PretendEngine(server.runs, "works", depths=4)
    engine.play_until(finished_depth, times=2)
    engine.play_until(model_step)
    before = {path: path.stat().st_mtime_ns for path in server.home.rglob("*.json*")}
    # Pages whose buttons are all Streamlit's are looked at in tests/pages/test_pages.py.
    signs = {"": "Runs", "run?run=over": "Kernels", "run?run=works": "Kernels"}
    signs |= {"candidate?run=over&candidate=c004": "Kernel 4", "edit?run=works": "takes no kernels"}
    for address, sign in signs.items():
        page.goto(f"{server.url}/{address}")
        expect(page.get_by_text(sign).first).to_be_visible()
        drawn(page)
        names = page.get_by_role("button").evaluate_all(
            "all => all.filter(one => !one.disabled).map(one => (one.innerText ?? one.textContent).trim())"
        )
        offered = [name for name in names if name.split("\n")[-1].startswith(WRITES)]
        assert offered == [], address
        expect(page.get_by_role("textbox", name="Hint")).to_have_count(0)
    assert {path: path.stat().st_mtime_ns for path in server.home.rglob("*.json*")} == before
    engine.die()


def with_login(
    own_server: Callable[..., Server], tmp_path: Path, address: str = "http://127.0.0.1:1", **more: str
) -> Server:
    """A server with a login configured; nobody can complete it unless a provider listens at the address."""
    settings = tmp_path / "user" / ".streamlit"
    settings.mkdir(parents=True)
    fields = {
        "redirect_uri": "http://127.0.0.1:{port}/oauth2callback",
        "cookie_secret": SECRET,
        "client_id": provider.CLIENT,
        "client_secret": provider.SECRET,
        "server_metadata_url": f"{address}/.well-known/openid-configuration",
    }
    (settings / "secrets.toml").write_text("[auth]\n" + "".join(f'{k} = "{v}"\n' for k, v in fields.items()))
    return own_server(HOME=str(tmp_path / "user"), **more)


def log_in(page: Page, server: Server, secret: str = SECRET, **user: object) -> None:
    """What the provider's answer leads to: the signed cookie."""
    said = {"is_logged_in": True, "origin": server.url, "email": "ada@example.org"} | user
    value = create_signed_value(secret, COOKIE, json.dumps(said)).decode()
    page.context.add_cookies([{"name": COOKIE, "value": value, "url": server.url}])


def status(server: Server, path: str, method: str = "GET", **headers: str) -> int:
    asked = urllib.request.Request(server.url + path, headers=headers, method=method)
    try:
        with urllib.request.urlopen(asked, timeout=20) as found:
            assert found.headers["Content-Security-Policy"] == "frame-ancestors 'self'"
            return int(found.status)
    except urllib.error.HTTPError as error:
        return error.code


def opened(server: Server, origin: str) -> int:
    """What the server says to a page of that origin that opens its WebSocket."""
    words = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13", "Origin": origin}
    words |= {"Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==", "Sec-WebSocket-Protocol": "streamlit"}
    line = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=20)
    try:
        line.request("GET", "/_stcore/stream", headers=words)
        return line.getresponse().status
    finally:
        line.close()


def test_a_login_opens_pages_and_routes_and_without_one_or_with_a_forged_one_there_is_but_the_way_in(
    own_server: Callable[..., Server], page: Page, tmp_path: Path
) -> None:
    users = "@example.org, bob@elsewhere.org"
    server = with_login(own_server, tmp_path, TILEWRIGHT_API_TOKEN="long and random", TILEWRIGHT_USERS=users)
    samples.write_run(server.runs, "hidden", seed=1, depths=3)
    for address in ("", "run?run=hidden", "candidate?run=hidden&candidate=c001", "new_run", "system"):
        page.goto(f"{server.url}/{address}")
        expect(page.get_by_role("button", name="Log in")).to_be_visible()
        shown = page.locator("body").inner_text()
        assert "hidden" not in shown
        assert "softmax" not in shown.lower()
        expect(page.get_by_role("link", name="New run")).to_have_count(0)
    for path in ("/api/runs", "/api/runs/hidden", "/api/runs/hidden/best", "/api/pulse?overview", "/metrics"):
        assert status(server, path) == 401
        assert status(server, path, Authorization="Bearer long and random") in (200, 404)
    assert status(server, "/api/stream?run=hidden") == 401
    assert status(server, "/_stcore/upload_file/session/file", "PUT") == 401
    assert status(server, "/_stcore/upload_file/session/file", "PUT", Origin="http://127.0.0.1:9") == 403

    for forged in ({"secret": "another"}, {"origin": "http://evil.example"}, {"is_logged_in": False}):
        page.context.clear_cookies()
        log_in(page, server, **forged)
        assert page.request.get(f"{server.url}/api/runs").status == 401
        page.goto(server.url)
        expect(page.get_by_role("button", name="Log in")).to_be_visible()
    page.context.clear_cookies()
    log_in(page, server, email="eve@notexample.org")
    page.goto(server.url)
    expect(page.get_by_text("has no access")).to_be_visible()
    assert page.request.get(f"{server.url}/api/runs").status == 401
    page.context.clear_cookies()
    log_in(page, server)
    page.goto(server.url)
    expect(page.locator('tr[data-id="hidden"]')).to_be_visible()
    assert page.request.get(f"{server.url}/api/runs").json()["total"] == 1
    assert page.request.put(f"{server.url}/_stcore/upload_file/session/file").status not in (401, 200, 204)
    assert [opened(server, one) for one in (server.url, "http://127.0.0.1:9", "null")] == [101, 403, 403]


def test_a_person_logs_in_through_a_provider_and_out_again(
    own_server: Callable[..., Server], page: Page, tmp_path: Path
) -> None:
    with provider.running() as address:
        server = with_login(own_server, tmp_path, address)
        samples.write_run(server.runs, "for-ada", depths=3)
        page.goto(f"{server.url}/run?run=for-ada")
        page.get_by_role("button", name="Log in").click()
        expect(page.get_by_text("ada@example.org")).to_be_visible()
        page.goto(f"{server.url}/run?run=for-ada")
        expect(page.get_by_role("heading", level=1)).to_have_text("Square matmul")
        assert page.request.get(f"{server.url}/api/runs/for-ada").status == 200
        with page.expect_response("**/auth/logout"):  # the page asks for a login before the cookie is gone
            page.get_by_role("button", name="Log out").click()
        expect(page.get_by_role("button", name="Log in")).to_be_visible()
        assert page.request.get(f"{server.url}/api/runs/for-ada").status == 401
