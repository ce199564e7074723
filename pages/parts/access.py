"""Who may look, and whether anybody may steer. Nobody is asked for a name unless a login is configured; then pages and
routes alike stay shut.

Streamlit keeps a login (OpenID Connect) in a signed cookie and tells pages who it is; routes read the same cookie.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

import streamlit as st
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocketClose
from streamlit.errors import StreamlitAuthError

from pages.parts import wording
from pages.parts.streamlit_internals import is_login_configured, user_of
from storage import access_token, read_only

USERS_VARIABLE = "TILEWRIGHT_USERS"
OURS = ("/api/", "/metrics")
UPLOADS = "/_stcore/upload_file"
READING = ("GET", "HEAD", "OPTIONS")
PORTS = {"http": 80, "https": 443, "ws": 80, "wss": 443}
# Of no other site, and of no other port of this machine: such a page could have a person click what is hidden in it.
NOT_FRAMED = [(b"content-security-policy", b"frame-ancestors 'self'"), (b"x-frame-options", b"SAMEORIGIN")]
FOR_PAGES = ("/api/pulse", "/api/stream", "/api/notices")


def is_welcome(user: Mapping[str, Any]) -> bool:
    """True for somebody who is logged in and, where TILEWRIGHT_USERS names addresses or @domains, is one of them."""
    if not user.get("is_logged_in"):
        return False
    named = [entry.strip().lower() for entry in os.environ.get(USERS_VARIABLE, "").split(",") if entry.strip()]
    address = str(user.get("email") or "").lower()
    is_proven = user.get("email_verified", True) is not False
    return not named or (
        is_proven and any(address == entry or (entry[0] == "@" and address.endswith(entry)) for entry in named)
    )


def person() -> str:
    """Who looks at this page, for the audit trail: the login's address or name; empty without a login."""
    if not is_login_configured():
        return ""
    user = st.user.to_dict()
    return str(user.get("email") or user.get("name") or user.get("sub") or "") if is_welcome(user) else ""


def may_read(request: Request) -> bool:
    """Whether a route of ours answers: with the token, or to a person who is welcome, or to all if neither is set."""
    if access_token.is_in(request.headers.get("authorization", "")):
        return True
    if is_login_configured():
        return is_welcome(user_of(request.cookies))
    # Pages cannot know the token, and what these tell is on the page already.
    return not access_token.is_set() or request.url.path in FOR_PAGES


def is_of_this_server(headers: Headers) -> bool:
    """Whether a request comes from a page of this server, port included, or of an origin that the setting
    server.corsAllowedOrigins names; a program, which names no origin, is none of a browser's pages."""
    given = headers.get("origin")
    if given is None or given in (st.get_option("server.corsAllowedOrigins") or ()):
        return True
    try:
        origin = urlsplit(given)
        host = urlsplit(f"{origin.scheme}://{headers.get('host', '')}")
        usual = PORTS.get(origin.scheme)
        return usual is not None and (origin.hostname, origin.port or usual) == (host.hostname, host.port or usual)
    except ValueError:  # no number of a port
        return False


class OwnPages:
    """Middleware: no page of elsewhere opens the WebSocket, sends anything or shows a page of ours in a frame."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on, or refuse."""
        is_asking = scope["type"] == "websocket" or (scope["type"] == "http" and scope["method"] not in READING)

        async def send_unframed(message: Message) -> None:
            if message["type"] == "http.response.start":
                kept = [header for header in message.get("headers", ()) if header[0].lower() != b"x-frame-options"]
                message = {**message, "headers": [*kept, *NOT_FRAMED]}
            await send(message)

        if not is_asking or is_of_this_server(Headers(scope=scope)):
            return await self._app(scope, receive, send_unframed)
        if scope["type"] == "websocket":
            return await WebSocketClose(1008, "another origin")(scope, receive, send)
        return await JSONResponse({"error": "sent by a page of another origin"}, 403)(scope, receive, send_unframed)


class Gate:
    """Middleware: no route of ours answers those who may not look, and nobody uploads who may not."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on, or refuse with what to do."""
        path = scope["path"] if scope["type"] == "http" else ""
        is_ours, is_upload = path.startswith(OURS), UPLOADS in path and is_login_configured()
        if not (is_ours or is_upload) or may_read(Request(scope)):
            return await self._app(scope, receive, send)
        variable = access_token.VARIABLE
        remedy = f"log in with a browser, or send the header “Authorization: Bearer” with the server's {variable}"
        refusal = {"error": "login required", "remedy": remedy}
        headers = {"WWW-Authenticate": "Bearer", "Cache-Control": "no-store"}
        return await JSONResponse(refusal, 401, headers)(scope, receive, send)


def may_steer() -> bool:
    """False when TILEWRIGHT_READ_ONLY is set."""
    return not read_only.is_on()


def why_nothing_is_saved() -> str:
    """Why models and keys are neither tried nor saved from a page; empty where they are. A program that is saved runs
    as this server's user."""
    if not may_steer():
        return "this server is read-only and calls no model"
    address = st.get_option("server.address")
    if is_login_configured() or (address and _is_of_this_machine(str(address))):
        return ""
    return (
        "this server listens beyond this machine and asks for no login: set up a login (docs/deployment.md), or write "
        "the model into models.toml"
    )


def _is_of_this_machine(address: str) -> bool:
    try:
        return address == "localhost" or ip_address(address).is_loopback
    except ValueError:
        return False


def pass_or_stop() -> None:
    """Go on for those who may look; end the page with a way to log in for everybody else."""
    if not is_login_configured():
        return
    user = st.user.to_dict()
    if is_welcome(user):
        return
    with st.container(border=True, horizontal_alignment="center"):
        st.title("Tilewright", anchor=False, text_alignment="center")
        if user.get("is_logged_in"):
            _stranger(str(user.get("email") or user.get("name") or "This login"))
        elif st.button("Log in", icon=":material/login:", type="primary", key="log_in"):
            _log_in()
    st.stop()


def _stranger(name: str) -> None:
    st.warning(
        f"**{wording.plain(name)}** has no access. Ask the server's administrator to add this address to "
        f"{USERS_VARIABLE}.",
        icon=":material/block:",
    )
    st.button("Log out", icon=":material/logout:", on_click=st.logout, key="log_out")


def _log_in() -> None:
    try:
        st.login()
    except StreamlitAuthError as error:
        st.error(wording.sentence(str(error)), icon=":material/error:")


def draw_foot() -> None:
    """Who looks, and the way out; nothing where no login is configured."""
    if is_login_configured():
        with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="right"):
            st.caption(f":material/person: {wording.plain(person())}", width="content")
            st.button("Log out", icon=":material/logout:", on_click=st.logout, type="tertiary", key="log_out")
