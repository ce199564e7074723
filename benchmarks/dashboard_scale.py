"""The dashboard with a thousand runs, one of 20,000 iterations, sources of 3,000 lines, and four browsers that watch.

    python -m benchmarks.dashboard_scale --minutes 5

Prints a Markdown table: time to first meaningful paint (cold and warm), live ticks at one update a second (bytes over
the websocket, processor share of the server), memory of the server minute by minute. Needs /usr/bin/chromium.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import tempfile
import time
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

from benchmarks.dashboard import cpu_s
from benchmarks.scale_home import LIVE, LONG, WIDE, Growing, write_home
from tests.browser.conftest import Server, start_server, stop_server


@dataclass
class Watched:
    """An open page and what came over its websocket so far."""

    name: str
    page: Page
    received: list[int] = field(default_factory=lambda: [0, 0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--iterations", type=int, default=20_000)
    parser.add_argument("--minutes", type=int, default=5)
    parser.add_argument("--home", type=Path, help="use the runs of an earlier measurement, or make them here")
    options = parser.parse_args()
    home = options.home or Path(tempfile.mkdtemp()) / "home"
    if not home.exists():
        write_home(home, options.runs, options.iterations)
    for old in home.glob("index-*"):
        old.unlink()
    print("| what | figure |\n|---|---|", flush=True)
    with sync_playwright() as playwright:
        args = ["--no-sandbox", "--disable-dev-shm-usage"]
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=args)
        first_start(home)
        for name, (address, sign) in pages(home).items():
            paint(home, browser, name, address, sign)
        live(home, browser, options.minutes)
        browser.close()


def pages(home: Path) -> dict[str, tuple[str, str]]:
    """Address of each page and a selector of what people come for."""
    wide = re.findall(r'"candidate_id":"(c\d+)"', (home / "runs" / WIDE / "journal.jsonl").read_text())
    return {
        "overview, 1,000 runs": ("", f'tr[data-id="{LIVE}"]'),
        "run page, 20,000 iterations": (f"run?run={LONG}", '[role="img"] .main-svg'),
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
        if not newest and fetch(server, "/api/runs?limit=50")["total"] >= 50:
            newest = time.perf_counter() - began
        if fetch(server, "/api/runs?limit=1")["total"] == runs and not metric(server, "tilewright_ingest_lag_bytes"):
            break
        time.sleep(1.0)
    size = sum(path.stat().st_size for path in home.glob("runs/*/journal.jsonl")) / 1e6
    tell("first start: 50 runs in the list", newest)
    tell(f"first start: all {runs:,} journals read ({size:.0f} MB)", time.perf_counter() - began)
    print(f"| memory of the server after that | {memory(server):.0f} MB |", flush=True)
    for query in ("limit=50", "limit=50&sort=best", "limit=50&sort=last_event", "limit=50&text=softmax", "state=lost"):
        began = time.perf_counter()
        fetch(server, f"/api/runs?{query}")
        tell(f"`/api/runs?{query}`", time.perf_counter() - began)
    stop_server(server)


def paint(home: Path, browser: Browser, name: str, address: str, sign: str) -> None:
    """First request of a fresh server, then the median of three in fresh contexts."""
    server = start_server(home)
    times = []
    for _ in range(4):
        page = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
        began = time.perf_counter()
        page.goto(f"{server.url}/{address}", wait_until="domcontentloaded")
        page.locator(sign).first.wait_for(timeout=120_000)
        times.append(time.perf_counter() - began)
        page.context.close()
    tell(f"{name}: first paint, cold", times[0])
    tell(f"{name}: first paint, warm, median of 3", statistics.median(times[1:]))
    stop_server(server)


def live(home: Path, browser: Browser, minutes: int) -> None:
    """Four browsers while a line is appended once a second to two runs: bytes, processor time, memory."""
    server = start_server(home)
    engines = [Growing(home, LIVE), Growing(home, LONG)]
    known = pages(home)
    addresses = {name: known[name] for name in list(known)[:3]} | {"run page, small": (f"run?run={LIVE}", ".main-svg")}
    print(f"| memory of the server, no page open | {memory(server):.0f} MB |", flush=True)
    watched = [watch(browser, server, name, *found) for name, found in addresses.items()]
    watched[0].page.wait_for_timeout(5000)
    idle = spend(server, watched, 10, [])
    print(f"| four browsers, nothing new: processor, kB/s | {idle[0]:.1%} of a core, {idle[1]:.2f} kB/s |", flush=True)
    print(f"| memory, four browsers open | {memory(server):.0f} MB |", flush=True)
    for minute in range(minutes):
        for one in watched:
            one.received = [0, 0]
        share, total = spend(server, watched, 60, engines)
        print(f"| minute {minute + 1}: processor, kB/s, memory | "
              f"{share:.0%} of a core, {total:.0f} kB/s, {memory(server):.0f} MB |", flush=True)  # fmt: skip
    for one in watched:
        tell_bytes(one)
    for engine in engines:
        engine.close()
    stop_server(server)


def watch(browser: Browser, server: Server, name: str, address: str, sign: str) -> Watched:
    """Open a page in a context of its own, counting what its websocket receives."""
    page = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
    one = Watched(name, page)

    def count(frame: str | bytes) -> None:
        one.received[0] += len(frame)
        one.received[1] += 1

    page.on("websocket", lambda socket: socket.on("framereceived", count))
    page.goto(f"{server.url}/{address}", wait_until="domcontentloaded")
    page.locator(sign).first.wait_for(timeout=120_000)
    return one


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


def tell_bytes(one: Watched) -> None:
    received, frames = one.received
    print(f"| {one.name}: live tick | {received / 60 / 1000:.1f} kB/s in {frames / 60:.1f} frames/s |", flush=True)


def memory(server: Server) -> float:
    """Resident memory of the server, in MB."""
    found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{server.process.pid}/status").read_text())
    return int(found[1]) / 1024 if found else 0.0


def fetch(server: Server, path: str) -> dict[str, int]:
    with urllib.request.urlopen(server.url + path, timeout=60) as answer:
        found: dict[str, int] = json.load(answer)
    return found


def metric(server: Server, name: str) -> float:
    with urllib.request.urlopen(f"{server.url}/metrics", timeout=60) as answer:
        lines = answer.read().decode().splitlines()
    return float(next(line.split()[1] for line in lines if line.startswith(f"{name} ")))


def tell(what: str, seconds: float) -> None:
    print(f"| {what} | {f'{seconds:.1f} s' if seconds >= 1 else f'{1000 * seconds:.0f} ms'} |", flush=True)


if __name__ == "__main__":
    main()
