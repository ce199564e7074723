"""The dashboard's entry: `streamlit run app.py`. Opens the index, keeps it filled, and points at pages/_main.py."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import streamlit as st
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware

from engine import supervisor
from engine.errors import EngineError
from pages.parts import access, index, streamlit_internals
from pages.parts.api import routes
from pages.parts.client.page_style import PageStyle
from pages.parts.status import notices, undrawn
from storage import read_only
from storage.index.database import DatabaseError
from storage.run import folder, trash
from storage.run.trash import TrashError

SHUTDOWN_S = 3


@asynccontextmanager
async def lifespan(_app: st.App) -> AsyncIterator[None]:
    """Own the index while the server lives. Engines are not touched: they outlive it."""
    # While many journals are read, a page would wait 5 ms for its turn at each of a thousand small things it does.
    sys.setswitchinterval(0.0005)
    streamlit_internals.bound_shutdown(SHUTDOWN_S)
    streamlit_internals.give_components_plain_values()
    streamlit_internals.read_no_pause_without_a_library()
    streamlit_internals.draw_no_part_of_a_page_that_was_left()
    try:
        index.open_index()
    except DatabaseError as error:
        print(f"\ntilewright: {error}\n", file=sys.stderr, flush=True)
        os._exit(3)  # Trap: an exception here would bury the message under the web server's own traceback.
    with contextlib.suppress(TrashError, OSError):  # read-only, or a disk that may not be written
        trash.empty()
    start_demo()
    notices.start()
    print(f"Dashboard: {address()}", flush=True)
    try:
        yield
    finally:
        notices.stop()
        index.close_index()


def address() -> str:
    """Where a browser on this machine finds the dashboard."""
    host = st.get_option("server.address") or ""
    return f"http://{'localhost' if host in ('', '0.0.0.0', '::') else host}:{st.get_option('server.port')}"


def start_demo() -> None:
    """On the very first start show a run at work, and a finished one from a GPU, instead of an empty page."""
    if os.environ.get("TILEWRIGHT_NO_DEMO") or read_only.is_on() or any(folder.all_runs()):
        return
    try:
        supervisor.open_first_example()
    except (EngineError, OSError) as error:
        print(f"tilewright: no example: {error}", file=sys.stderr)
    try:
        supervisor.start(supervisor.demo_settings())
    except EngineError as error:
        print(f"tilewright: no demo run: {error}", file=sys.stderr)


# Trap: with the entry script beside a folder called pages/, Streamlit would serve each page file by itself.
app = st.App(
    "pages/_main.py",
    lifespan=lifespan,
    routes=routes.ROUTES,
    middleware=[
        Middleware(access.OwnPages),
        Middleware(TrustedHostMiddleware, allowed_hosts=st.get_option("server.allowedHosts") or ["*"]),
        Middleware(access.Gate),
        Middleware(PageStyle),
    ],
    on_script_error=undrawn.tell,
    exception_handlers={DatabaseError: undrawn.answer, Exception: undrawn.answer},
)
