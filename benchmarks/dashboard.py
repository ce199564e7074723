"""Time the dashboard in a real browser: journal line to screen, first paint of large pages, cost of a live tick.

    python -m benchmarks.dashboard

Needs the development packages and /usr/bin/chromium. Prints one line a figure.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

from storage import events as ev
from storage.records import StepKind
from tests import samples
from tests.browser.conftest import Server, new_home, start_server, stop_server
from tests.browser.play import PretendEngine, finished_depth

LINES = 50
# Looks into components' shadow roots too, at every frame: a locator's own retries are coarser than what is measured.
SHOWS = """text => {
  const shows = root => root.textContent.includes(text) ||
    [...root.querySelectorAll("*")].some(node => node.shadowRoot && shows(node.shadowRoot))
  return shows(document.body)
}"""


def main() -> None:
    home = new_home(Path(tempfile.mkdtemp()) / "home")
    server = start_server(home)
    try:
        with sync_playwright() as playwright:
            args = ["--no-sandbox", "--disable-dev-shm-usage"]
            browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=args)
            line_to_screen(server, browser)
            many_runs(server, browser)
            long_run(server, browser)
            browser.close()
    finally:
        stop_server(server)


def line_to_screen(server: Server, browser: Browser) -> None:
    """Median and worst time from the write of a journal line to its text in the page."""
    engine = PretendEngine(server.runs, "latency", depths=6)
    engine.play_until(finished_depth, times=3)
    page = open_page(browser, f"{server.url}/run?run=latency", "kernel 4")
    waits = []
    for number in range(LINES):
        step = 1000 + number
        engine.emit(ev.StepStarted(step, StepKind.CHECK, 7000 + number, "c001"))
        started = time.perf_counter()
        page.wait_for_function(SHOWS, arg=f"{7000 + number}", polling="raf")
        waits.append(time.perf_counter() - started)
        engine.emit(ev.StepFinished(step, StepKind.CHECK, 0.1, "passed"))
    tell("journal line to screen, median of 50", statistics.median(waits))
    tell("journal line to screen, worst of 50", max(waits))
    page.context.close()
    engine.die()


def many_runs(server: Server, browser: Browser) -> None:
    """The overview with 200 runs."""
    for number in range(200):
        ending = samples.ENDINGS[number % len(samples.ENDINGS)]
        samples.write_run(server.runs, f"many-{number:03d}", seed=number, depths=6, ending=ending)
    page = open_page(browser, server.url, "many-")
    page.get_by_text("of 201").first.wait_for()
    page.context.close()
    paint(browser, "overview with 201 runs", server.url, "many-")
    page = open_page(browser, server.url, "many-")
    tick(server, page, "overview with 201 runs")
    page.context.close()


def long_run(server: Server, browser: Browser) -> None:
    """A run of 5,000 iterations, quiet and growing."""
    samples.write_run(server.runs, "long", depths=2600)
    address = f"{server.url}/run?run=long"
    open_page(browser, address, "kernel 48").context.close()
    paint(browser, "run of 5,000 iterations", address, "kernel 48")
    page = open_page(browser, address, "kernel 48")
    tick(server, page, "run of 5,000 iterations")
    page.context.close()


def open_page(browser: Browser, address: str, text: str) -> Page:
    page = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
    page.goto(address, wait_until="domcontentloaded")
    page.get_by_text(text).first.wait_for(timeout=120_000)
    return page


def paint(browser: Browser, what: str, address: str, text: str) -> None:
    """Three loads in fresh contexts; the median time until the content stands."""
    loads = []
    for _ in range(3):
        started = time.perf_counter()
        open_page(browser, address, text).context.close()
        loads.append(time.perf_counter() - started)
    tell(f"{what}: open to content, median of 3", statistics.median(loads))


def tick(server: Server, page: Page, what: str, seconds: float = 10.0) -> None:
    """Server processor time and bytes per second while a page is open and nothing changes."""
    received = [0]

    def count(frame: str | bytes) -> None:
        received[0] += len(frame)

    page.on("websocket", lambda socket: socket.on("framereceived", count))
    page.reload()
    page.wait_for_timeout(4000)
    received[0], before = 0, cpu_s(server.process.pid)
    page.wait_for_timeout(seconds * 1000)
    share = (cpu_s(server.process.pid) - before) / seconds
    print(f"{what}: live tick, nothing new: {share:.1%} of a core, {received[0] / seconds / 1000:.2f} kB/s")


def cpu_s(pid: int) -> float:
    """Processor seconds of one process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def tell(what: str, seconds: float) -> None:
    print(f"{what}: {seconds * 1000:.0f} ms", flush=True)


if __name__ == "__main__":
    main()
