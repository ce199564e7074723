"""A real server on a free port over a home of its own, and a real Chromium that fails a test on any error it prints."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import (
    BrowserContext,
    Error,
    Frame,
    Locator,
    Page,
    Response,
    Route,
    ViewportSize,
    expect,
    sync_playwright,
)

from pages.parts.status import welcome
from storage.run import journal
from tests.browser import chromium, forked_server

ROOT = Path(__file__).resolve().parent.parent.parent
EXPECT_MS = 45_000
KEPT = ("TILEWRIGHT_COMPILED_BASELINE", "TILEWRIGHT_TIMING_SECONDS", "TILEWRIGHT_CHECK_SECONDS")
# A page asks for news twice a second; a little sooner, tests wait less. Much sooner, asking is a fifth of a core.
HURRY = "if (location.protocol === 'http:') sessionStorage['tilewright:refresh'] ??= 400"
READ_S = 20.0
# Trap: at a socket a listener that captures comes no sooner than others: to hold messages back, listeners are wrapped.
HOLDABLE = """(() => {
    const add = WebSocket.prototype.addEventListener
    WebSocket.prototype.addEventListener = function (type, listener, ...rest) {
        const held = event => window.hold?.(event.data, () => listener.call(this, event)) || listener.call(this, event)
        return add.call(this, type, type === "message" ? held : listener, ...rest)
    }
})()"""
# Every page is left again before what a compiler of hot loops costs has come in: a tenth of what browser tests take.
INTERPRETED = "--js-flags=--no-opt --no-maglev"
PLAIN_LOOKS = Path(__file__).parent / "plain_looks.cjs"
SIZE: ViewportSize = {"width": 1280, "height": 900}
# As the browser's way back and forth leads from page to page of one dashboard.
STEP = "address => { history.pushState(null, '', address); dispatchEvent(new PopStateEvent('popstate')) }"
# These pages keep nothing in a session but by the name of a run, and each test has runs of its own. Others do: the list
# of runs is as it was left.
STEPPED = ("run", "candidate")
NOWHERE = "candidate?run="
NUMBERS = itertools.count()
# Streamlit looks for its own endpoints relative to the address first when the first request is a deep link.
HARMLESS = ("fonts.gstatic.com", "/_stcore/")


@dataclass(frozen=True)
class Server:
    url: str
    home: Path
    process: subprocess.Popen[bytes] | forked_server.Forked

    @property
    def runs(self) -> Path:
        return self.home / "runs"


SERVERS: dict[str, Server] = {}
SHARED: list[str] = []  # the address of the server that outlives a test
# Below the ports that the system hands out by itself, and in another place for each process that runs tests.
PORTS = itertools.count(10_000 + os.getpid() * 97 % 20_000)
is_pytest = False
# Of servers that have ended: the browser keeps compiled scripts for an address, so the next server gets the same.
ENDED: list[int] = []


def start_server(home: Path, **environment: str) -> Server:
    port = ENDED.pop() if ENDED else next(port for port in PORTS if is_free(port))
    known = {k: v for k, v in os.environ.items() if k in KEPT or not k.startswith(("TILEWRIGHT_", "OPENAI_"))}
    variables = known | {"TILEWRIGHT_HOME": str(home), "TILEWRIGHT_NO_DEMO": "1"} | environment
    log = home / "server.log"
    begin = log.stat().st_size if log.exists() else 0
    process = (forked_server.start if is_pytest else start_anew)(port, log, variables)
    server = Server(f"http://127.0.0.1:{port}", home, process)
    wait_until_healthy(server, begin)
    SERVERS[server.url] = server
    return server


def start_anew(port: int, log: Path, variables: dict[str, str]) -> subprocess.Popen[bytes]:
    """For programs that measure a server, as a person starts it."""
    command = [sys.executable, "-m", "streamlit", "run", "app.py", "--server.headless=true", f"--server.port={port}"]
    with open(log, "ab") as file:
        return subprocess.Popen(command, cwd=ROOT, env=variables, stdout=file, stderr=file)


def hold(page: Page, programs: str) -> Callable[[], None]:
    """Hold these of Streamlit's programs back, as a busy machine does; the way to let them go."""
    held: list[Route] = []
    address = f"**/static/js/{{{programs}}}.*.js"
    page.route(address, lambda route: held.append(route))

    def let_go() -> None:
        assert held, f"the page has not asked for {programs}"
        for route in held:
            route.continue_()
        page.unroute(address)

    return let_go


def is_free(port: int) -> bool:
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) != 0


def wait_until_healthy(server: Server, begin: int) -> None:
    """Until it says so itself, after `begin` bytes of its log, and answers: another process may have its port."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and server.process.poll() is None:
        time.sleep(0.05)
        log = server.home / "server.log"
        if not log.exists() or b"Dashboard: http" not in log.read_bytes()[begin:]:
            continue
        # It may be too busy with its first look at many runs to answer at once.
        with contextlib.suppress(OSError), urllib.request.urlopen(f"{server.url}/_stcore/health", timeout=5):
            return
    raise AssertionError((server.home / "server.log").read_text())


def wait_until_read(address: str) -> None:
    """Until the server of this address has read what stands in the journals of the runs that it names."""
    parts = urlsplit(address)
    server, asked = SERVERS.get(f"{parts.scheme}://{parts.netloc}"), parse_qs(parts.query)
    if server is None:
        return
    for name in ",".join([*asked.get("run", []), *asked.get("runs", [])]).split(","):
        file = server.runs / name / "journal.jsonl"
        last = max((entry.seq for entry in journal.read(file)), default=0) if file.exists() else 0
        query, deadline = f"{server.url}/api/pulse?runs={name}&since={last - 1}", time.monotonic() + READ_S
        while last and not _is_fresh(query) and time.monotonic() < deadline:
            time.sleep(0.02)


def _is_fresh(query: str) -> bool:
    """True too where it cannot be asked: for a page behind a login, or a server that a test has ended."""
    try:
        with urllib.request.urlopen(query, timeout=5) as answer:
            return bool(json.load(answer)["fresh"])
    except TimeoutError:
        return False
    except (OSError, KeyError):
        return True


def stop_server(server: Server) -> None:
    server.process.send_signal(signal.SIGTERM)
    server.process.wait(timeout=20)
    if (port := int(server.url.rpartition(":")[2])) not in ENDED:  # a test may have stopped its server before
        ENDED.append(port)


def new_home(path: Path, cache: Path | None = None) -> Path:
    """An empty home. What is in `cache`, tests' own, is neither estimated nor compiled once more."""
    (path / "runs").mkdir(parents=True)
    if cache:
        cache.mkdir(exist_ok=True)
        (path / "cache").symlink_to(cache)
    return path


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory, shared_cache: Path, visitor: BrowserContext) -> Iterator[Server]:
    """One server for all tests that do not need their own; each test writes runs under names of its own."""
    started = start_server(new_home(tmp_path_factory.mktemp("browser") / "home", shared_cache))
    SHARED.append(started.url)
    yield started
    forget(visitor)
    stop_server(started)


@pytest.fixture
def own_server(tmp_path: Path, shared_cache: Path) -> Iterator[Callable[..., Server]]:
    """Start a server of the test's own. Name it before `page`: the server must outlive the page that talks to it."""
    started: list[Server] = []

    def start(**environment: str) -> Server:
        home = tmp_path / "home"
        started.append(start_server(home if home.exists() else new_home(home, shared_cache), **environment))
        return started[-1]

    yield start
    for one in started:
        stop_server(one)


@pytest.fixture(scope="session")
def browser_program(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A Chromium. Where there is none, what needs it is not run, unless a person named one."""
    folder = tmp_path_factory.getbasetemp()
    try:
        return chromium.find(folder.parent if os.environ.get("PYTEST_XDIST_WORKER") else folder)
    except chromium.NoChromium as error:
        if chromium.is_demanded():
            raise
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def visitor(tmp_path_factory: pytest.TempPathFactory, browser_program: str) -> Iterator[BrowserContext]:
    """One visitor for all tests: a new one would compile a page's scripts anew, which takes longer than most tests."""
    os.environ["NODE_OPTIONS"] = f'--require "{PLAIN_LOOKS}"'
    with sync_playwright() as playwright:
        del os.environ["NODE_OPTIONS"]  # for the process that has just been started, and for no other
        context = playwright.chromium.launch_persistent_context(
            tmp_path_factory.mktemp("visitor"),
            executable_path=browser_program,
            args=["--no-sandbox", "--disable-dev-shm-usage", INTERPRETED],
            viewport=SIZE,
            reduced_motion="reduce",
        )
        context.add_init_script(HURRY)
        context.add_init_script(HOLDABLE)
        has_been_here(context)
        context.set_default_timeout(EXPECT_MS)
        yield context
        context.close()


@pytest.fixture(scope="session")
def problems(visitor: BrowserContext) -> list[str]:
    return watch(visitor)


@pytest.fixture
def page(visitor: BrowserContext, problems: list[str], request: pytest.FixtureRequest) -> Iterator[Page]:
    """The same tab for all tests: a new one would compile and draw the first page half as slowly again.

    Nor is the dashboard that tests share loaded again for each: that is half of what a page costs."""
    seen: set[str] = set()

    def note(frame: Frame) -> None:
        seen.add(frame.url.partition("?")[0])

    with watched(visitor, problems, request) as opened:
        opened.on("framenavigated", note)
        yield opened
        opened.remove_listener("framenavigated", note)
    leave(visitor, seen)
    assert not problems, "; ".join(problems)  # whole: an assertion cuts long texts


@pytest.fixture
def open_page(visitor: BrowserContext, problems: list[str], request: pytest.FixtureRequest) -> Iterator[Page]:
    """The tab as the test before left it, with its page: for files whose tests only look, and go from page to page."""
    with watched(visitor, problems, request) as opened:
        yield opened
    assert not problems, "; ".join(problems)  # whole: an assertion cuts long texts


@contextlib.contextmanager
def watched(visitor: BrowserContext, problems: list[str], request: pytest.FixtureRequest) -> Iterator[Page]:
    """The tab for one test, and a picture of it if the test fails."""
    expect.set_options(timeout=EXPECT_MS)
    problems.clear()
    opened = visitor.pages[0]
    goto = opened.goto

    def goto_when_read(address: str, **how: Any) -> Response | None:
        wait_until_read(address)  # a page that catches up with what a test has written moves under its pointer
        if address == "about:blank":
            empty_stores(opened)
        if f"{NOWHERE}nothing-" in opened.url and address.partition("?")[0] in stepped():
            opened.evaluate(STEP, address)
            return None
        return goto(address, **how)

    opened.goto = goto_when_read  # type: ignore[method-assign, assignment]
    yield opened
    opened.goto = goto  # type: ignore[method-assign]
    if request.node.stash.get(FAILED, False):
        folder = ROOT / "test-results"
        folder.mkdir(exist_ok=True)
        opened.screenshot(path=folder / f"{request.node.name}.png", full_page=True)
        visitor.new_page()
        opened.close()


def becomes(look: Callable[[], Any], wanted: Any, patience_ms: float = EXPECT_MS) -> None:
    """Look until what is wanted is there, as `expect` does for what it knows."""
    deadline = time.monotonic() + patience_ms / 1000
    while (found := look()) != wanted and time.monotonic() < deadline:
        time.sleep(0.05)
    assert found == wanted


def width_of_what_is_drawn(page: Page) -> int:
    return int(page.evaluate("() => document.documentElement.scrollWidth"))


def drawn(page: Page) -> Page:
    """The page once all of it is drawn: what has just been drawn may still move under the pointer."""
    expect(page.get_by_test_id("stApp")).to_have_attribute("data-test-script-state", "notRunning")
    return page


def at_rest(thing: Locator) -> Locator:
    """The thing once it stands still: what has just been unfolded slides, and a click takes longer than a frame."""

    def stands() -> bool:
        before = thing.bounding_box()
        thing.page.wait_for_timeout(150)
        return before is not None and thing.bounding_box() == before

    becomes(stands, True)
    return thing


HOLD = """words => {
    const send = WebSocket.prototype.send, held = []
    const hold = (data, deliver) => {
        const told = new TextDecoder().decode(data)
        if (held.length || words.every(word => told.includes(word))) return held.push(deliver)
    }
    WebSocket.prototype.send = function (...all) {
        WebSocket.prototype.send = send
        window.hold = hold
        return send.apply(this, all)
    }
    window.drawTheRest = () => {
        window.hold = null
        held.forEach(deliver => deliver())
    }
}"""


@contextlib.contextmanager
def half_drawn(page: Page, *words: str) -> Iterator[None]:
    """Of what the server sends for what the page asks next, all from the first message on that has these words in it is
    kept from the page."""
    page.evaluate(HOLD, words)
    yield
    page.evaluate("drawTheRest()")


def look_seldom(page: Page) -> None:
    """Ask for news every two seconds from here on, for a test that waits for a real engine: whatever an engine has
    written draws the page once more, which costs half a second of processor time."""
    page.evaluate("sessionStorage['tilewright:refresh'] = 2000")


def stepped() -> set[str]:
    return {f"{url}/{page}" for url in SHARED for page in STEPPED}


def leave(visitor: BrowserContext, seen: set[str]) -> None:
    """As `forget`, but the dashboard that tests share stays in the tab, on a page that has nothing of the test."""
    page, nothing = visitor.pages[0], f"nothing-{next(NUMBERS)}"
    is_shared = bool(seen) and seen <= stepped()
    try:
        if is_shared:
            page.evaluate(STEP, f"/{NOWHERE}{nothing}")
            page.get_by_text(f"There is no run {nothing}").wait_for(timeout=20_000)
            drawn(page).mouse.move(0, 0)
    except Error:  # a test that has failed may leave anything behind
        is_shared = False
    forget(visitor, stays=is_shared)


def forget(visitor: BrowserContext, *, stays: bool = False) -> None:
    """The next test meets a visitor who has never been here, but for the welcome, which is dismissed."""
    page, *others = visitor.pages
    for one in others:
        one.close()
    empty_stores(page)
    if stays:
        page.evaluate(HURRY)
    else:
        page.goto("about:blank")
    page.set_viewport_size(SIZE)
    page.emulate_media(color_scheme="null")
    visitor.clear_cookies()
    has_been_here(visitor)
    visitor.set_offline(False)


def has_been_here(visitor: BrowserContext) -> None:
    """Demo runs are everywhere in tests; one test meets what a first visitor is shown."""
    for host in ("127.0.0.1", "localhost"):
        visitor.add_cookies([{"name": welcome.COOKIE, "value": "dismissed", "url": f"http://{host}"}])


def empty_stores(page: Page) -> None:
    """What the page's server keeps in the browser; the next server has the same address."""
    if page.url.startswith("http"):
        page.evaluate("[localStorage, sessionStorage].forEach(store => store.clear())")


def watch(visitor: BrowserContext) -> list[str]:
    """Collect everything a browser complains about."""
    problems: list[str] = []
    visitor.on("weberror", lambda error: problems.append(f"page error: {error.error}"))
    visitor.on(
        "console",
        lambda message: (
            problems.append(f"console: {message.text} {message.location}")
            if message.type == "error" and not any(part in str(message.location) for part in HARMLESS)
            else None
        ),
    )
    visitor.on(
        "requestfailed",
        lambda request: (
            problems.append(f"failed: {request.url} {request.failure}")
            if not any(part in request.url for part in HARMLESS) and request.failure != "net::ERR_ABORTED"
            else None
        ),
    )
    return problems


FAILED = pytest.StashKey[bool]()


def pytest_collection_modifyitems() -> None:
    global is_pytest
    is_pytest = True


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    outcome = yield
    report = outcome.get_result()  # type: ignore[attr-defined]
    if report.when == "call":
        item.stash[FAILED] = report.failed
