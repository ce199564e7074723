"""The dashboard with a thousand runs, one of 20,000 iterations, sources of 3,000 lines, and four browsers that watch.

    python -m benchmarks.dashboard_scale --minutes 5
    make scale                                      20,000 iterations, each page once; fails beyond 600 MB
    python -m benchmarks.dashboard_scale --runs 4 --iterations 20 --loads 0 --only source --watch small --lines 1 \\
        --minutes 0.02                                                              smallest

Prints a Markdown table: time to first meaningful paint (cold and warm), from a journal line to the screen, live ticks
at one update a second (bytes over the websocket, processor share of the server), memory of the server minute by minute.
Needs the development packages and a Chromium.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import statistics
import tempfile
import time
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from playwright.sync_api import Page

from benchmarks.chromium import Pages, of_new_visitors
from benchmarks.scale_home import LIVE, LONG, WIDE, Growing, write_home
from tests.browser.conftest import Server, start_server, stop_server

HELD: list[float] = []  # every figure of the server's memory so far
# The speed-up curve of a run's page, drawn.
CURVE = '[role="figure"] .main-svg'
# Looks into components' shadow roots too, at every frame: a locator's own retries are coarser than what is measured.
SHOWS = """text => {
  const shows = root => root.textContent.includes(text) ||
    [...root.querySelectorAll("*")].some(node => node.shadowRoot && shows(node.shadowRoot))
  return shows(document.body)
}"""


@dataclass
class Watched:
    """An open page and what came over its websocket so far."""

    name: str
    page: Page
    received: list[int] = field(default_factory=lambda: [0, 0])


def main(pages: Pages = of_new_visitors) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--iterations", type=int, default=20_000)
    parser.add_argument("--minutes", type=float, default=5, help="how long the browsers watch (5)")
    parser.add_argument("--loads", type=int, default=3, help="warm loads of each page (3)")
    parser.add_argument("--home", type=Path, help="use the runs of an earlier measurement, or make them here")
    parser.add_argument("--only", default="", metavar="TEXT", help="first paint of the pages whose name holds this")
    parser.add_argument("--watch", default="", metavar="TEXT", help="watch the pages whose name holds this alone")
    parser.add_argument("--lines", type=int, default=50, help="journal lines timed on their way to the screen (50)")
    parser.add_argument("--most-mb", type=float, default=math.inf, help="fail where the server ever holds more")
    options = parser.parse_args()
    home = options.home or Path(tempfile.mkdtemp()) / "home"
    if not home.exists():
        write_home(home, options.runs, options.iterations)
    for old in home.glob("index-*"):
        old.unlink()
    print("| what | figure |\n|---|---|", flush=True)
    with pages() as new_page:
        first_start(home)
        for name, (address, sign) in places(home).items():
            if options.only in name:
                paint(home, new_page, name, address, sign, options.loads)
        live(home, new_page, options.minutes, options.lines, options.watch)
    if (most := max(HELD)) > options.most_mb:
        raise SystemExit(f"the server held {most:.0f} MB of memory, more than the {options.most_mb:.0f} MB it may have")


def places(home: Path) -> dict[str, tuple[str, str]]:
    """Address of each page and a selector of what people come for."""
    runs = len(list((home / "runs").iterdir()))
    wide = re.findall(r'"candidate_id":"(c\d+)"', (home / "runs" / WIDE / "journal.jsonl").read_text())
    return {
        f"overview, {runs:,} runs": ("", f'tr[data-id="{LIVE}"]'),
        "long run's page": (f"run?run={LONG}", CURVE),
        "kernel page, 3,000 lines": (f"candidate?run={WIDE}&candidate={wide[-1]}", "table.diff td"),
        "source of 3,000 lines": (
            f"candidate?run={WIDE}&candidate={wide[-1]}&tab=Source",
            "[aria-label='Kernel source'] *",
        ),
    }


def first_start(home: Path) -> None:
    """Without an index: until the server answers, and until every journal is read."""
    began = time.perf_counter()
    server = start_server(home)
    tell("first start, no index: server answers", time.perf_counter() - began)
    runs, newest = len(list((home / "runs").iterdir())), 0.0
    while True:
        if not newest and fetch(server, "/api/runs?limit=50")["total"] >= min(50, runs):
            newest = time.perf_counter() - began
        if fetch(server, "/api/runs?limit=1")["total"] == runs and not metric(server, "tilewright_ingest_lag_bytes"):
            break
        time.sleep(0.2)
    size = sum(path.stat().st_size for path in home.glob("runs/*/journal.jsonl")) / 1e6
    tell("first start: the newest runs in the list", newest)
    tell(f"first start: all {runs:,} journals read ({size:.0f} MB)", time.perf_counter() - began)
    print(f"| memory of the server after that | {memory(server):.0f} MB |", flush=True)
    for query in ("limit=50", "limit=50&sort=best", "limit=50&sort=last_event", "limit=50&text=softmax", "state=lost"):
        began = time.perf_counter()
        fetch(server, f"/api/runs?{query}")
        tell(f"`/api/runs?{query}`", time.perf_counter() - began)
    stop_server(server)


def paint(home: Path, new_page: Callable[[], Page], name: str, address: str, sign: str, loads: int) -> None:
    """First request of a fresh server, then the median of some more, of new visitors."""
    server = start_server(home)
    times = []
    for _ in range(1 + loads):
        began = time.perf_counter()
        page = new_page()
        show(page, f"{server.url}/{address}", sign)
        times.append(time.perf_counter() - began)
        page.close()
    tell(f"{name}: first paint, cold", times[0])
    if loads:
        tell(f"{name}: first paint, warm, median of {loads}", statistics.median(times[1:]))
    stop_server(server)


def live(home: Path, new_page: Callable[[], Page], minutes: float, lines: int, which: str) -> None:
    """A browser a page while a line is appended once a second to two runs: bytes, processor time, memory, delay."""
    server = start_server(home)
    engines = [Growing(home, LIVE), Growing(home, LONG)]
    known = places(home)
    addresses = {name: known[name] for name in list(known)[:3]} | {"run page, small": (f"run?run={LIVE}", CURVE)}
    print(f"| memory of the server, no page open | {memory(server):.0f} MB |", flush=True)
    watched = [watch(new_page(), server, name, *found) for name, found in addresses.items() if which in name]
    browsers = f"{len(watched)} browser{'s' * (len(watched) > 1)}"
    seconds = max(1, round(60 * min(minutes, 1)))
    watched[0].page.wait_for_timeout(min(5, seconds) * 1000)
    idle = spend(server, watched, min(10, seconds), [])
    print(f"| {browsers}, nothing new: processor, kB/s | {idle[0]:.1%} of a core, {idle[1]:.2f} kB/s |", flush=True)
    print(f"| memory, {browsers} open | {memory(server):.0f} MB |", flush=True)
    for minute in range(math.ceil(minutes)):
        for one in watched:
            one.received = [0, 0]
        share, total = spend(server, watched, seconds, engines)
        print(f"| minute {minute + 1}: processor, kB/s, memory | "
              f"{share:.0%} of a core, {total:.0f} kB/s, {memory(server):.0f} MB |", flush=True)  # fmt: skip
    for one in watched:
        tell_bytes(one, seconds)
    line_to_screen(engines[0], watched[-1].page, lines)
    for engine in engines:
        engine.close()
    for one in watched:
        one.page.close()
    stop_server(server)


def line_to_screen(engine: Growing, page: Page, lines: int) -> None:
    """From the write of a journal line to its text on the run's page, the other pages open beside it."""
    waits = []
    if engine.is_begun:
        engine.grow()
    for number in range(lines):
        depth = 7000 + number
        engine.grow(depth)
        began = time.perf_counter()
        page.wait_for_function(SHOWS, arg=f"{depth}", polling="raf")
        waits.append(time.perf_counter() - began)
        engine.grow()
    tell(f"journal line to screen, median of {lines}", statistics.median(waits))
    tell(f"journal line to screen, worst of {lines}", max(waits))


def watch(page: Page, server: Server, name: str, address: str, sign: str) -> Watched:
    """Lead a page there, counting what its websocket receives."""
    one = Watched(name, page)

    def count(frame: str | bytes) -> None:
        one.received[0] += len(frame)
        one.received[1] += 1

    page.on("websocket", lambda socket: socket.on("framereceived", count))
    show(page, f"{server.url}/{address}", sign)
    return one


def show(page: Page, address: str, sign: str) -> None:
    """Until what people come for is drawn."""
    page.goto(address, wait_until="domcontentloaded")
    page.locator(sign).first.wait_for(timeout=120_000)


def spend(server: Server, watched: list[Watched], seconds: int, engines: list[Growing]) -> tuple[float, float]:
    """Let time go by, with an update a second of every engine: the server's processor share, kB/s to all pages."""
    cpu, began = cpu_s(server.process.pid), time.perf_counter()
    sent = sum(one.received[0] for one in watched)
    for second in range(seconds):
        for engine in engines:
            engine.grow()
        left = began + second + 1 - time.perf_counter()
        watched[0].page.wait_for_timeout(max(1.0, 1000 * left))
    took = time.perf_counter() - began
    return (cpu_s(server.process.pid) - cpu) / took, (sum(one.received[0] for one in watched) - sent) / took / 1000


def tell_bytes(one: Watched, seconds: int) -> None:
    kilobytes, frames = one.received[0] / seconds / 1000, one.received[1] / seconds
    print(f"| {one.name}: live tick | {kilobytes:.1f} kB/s in {frames:.1f} frames/s |", flush=True)


def cpu_s(pid: int) -> float:
    """Processor seconds of one process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def fetch(server: Server, path: str) -> dict[str, Any]:
    """What a route of the server answers."""
    with urllib.request.urlopen(server.url + path, timeout=60) as answer:
        found: dict[str, Any] = json.load(answer)
    return found


def memory(server: Server) -> float:
    """Resident memory of the server, in MB."""
    found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{server.process.pid}/status").read_text())
    HELD.append(int(found[1]) / 1024 if found else 0.0)
    return HELD[-1]


def metric(server: Server, name: str) -> float:
    with urllib.request.urlopen(f"{server.url}/metrics", timeout=60) as answer:
        lines = answer.read().decode().splitlines()
    return float(next(line.split()[1] for line in lines if line.startswith(f"{name} ")))


def tell(what: str, seconds: float) -> None:
    print(f"| {what} | {f'{seconds:.1f} s' if seconds >= 1 else f'{1000 * seconds:.0f} ms'} |", flush=True)


if __name__ == "__main__":
    main()
