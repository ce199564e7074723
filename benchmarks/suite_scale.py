"""The page of a suite of 26 tasks x 3 arms x 3 repeats, simulated, with 20,000 iterations in the index.

    python -m benchmarks.suite_scale
    python -m benchmarks.suite_scale --tasks 2 --arms 2 --repeats 1 --iterations 20 --loads 0 --only summary   smallest

Prints a Markdown table: time to first meaningful paint of each view, the first time and again, and the server's
processor time for it. Needs the development packages and a Chromium.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Page

from benchmarks.chromium import Pages, of_new_visitors
from benchmarks.dashboard_scale import cpu_s
from tests.browser.conftest import start_server, stop_server
from tests.sample_suites import NAME, write_suite

VIEWS = {
    "summary": "text=Arms compared in pairs",
    "runs": 'tr[data-id="square_matmul"] .pill',
    "curves": '[role="figure"] .main-svg',
    "scorecard": "text=Versatility",
    "paper's table": "text=geometric mean, all",
    "KernelBench's terms": "text=Ratio of mean times",
}


def main(pages: Pages = of_new_visitors) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=26)
    parser.add_argument("--arms", type=int, default=3)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--iterations", type=int, default=20_000)
    parser.add_argument("--loads", type=int, default=5, help="warm loads of each view (5)")
    parser.add_argument("--only", default="", metavar="TEXT", help="the views whose name holds this")
    parser.add_argument("--home", type=Path, help="use the runs of an earlier measurement, or make them here")
    options = parser.parse_args()
    home = options.home or Path(tempfile.mkdtemp()) / "home"
    os.environ["TILEWRIGHT_HOME"] = str(home)
    if not home.exists():
        write_suite(home, options.tasks, options.arms, options.repeats, options.iterations)
    print("| what | figure |\n|---|---|", flush=True)
    server = start_server(home)
    with pages() as new_page:
        wait_until_read(server.url, home)
        for view, sign in VIEWS.items():
            if options.only not in view:
                continue
            address = f"{server.url}/benchmark?suite={NAME}&show_suite={view.replace(' ', '+')}"
            first, before = paint(new_page, address, sign), cpu_s(server.process.pid)
            times = [paint(new_page, address, sign) for _ in range(options.loads)]
            tell(f"{view}: first paint, first time", first)
            if options.loads:
                tell(f"{view}: first paint, median of {options.loads} more", statistics.median(times))
                tell(
                    f"{view}: processor time of the server for one",
                    (cpu_s(server.process.pid) - before) / options.loads,
                )
    stop_server(server)


def wait_until_read(url: str, home: Path) -> None:
    """Until every journal is in the index."""
    runs = len(list((home / "runs").iterdir()))
    while True:
        with urllib.request.urlopen(f"{url}/api/runs?limit=1") as answer:
            is_read = json.load(answer)["total"] == runs
        with urllib.request.urlopen(f"{url}/metrics") as answer:
            is_read = is_read and b"tilewright_ingest_lag_bytes 0" in answer.read()
        if is_read:
            return
        time.sleep(0.2)


def paint(new_page: Callable[[], Page], address: str, sign: str) -> float:
    """Seconds until what people come for is drawn."""
    page = new_page()
    began = time.perf_counter()
    page.goto(address, wait_until="domcontentloaded")
    page.locator(sign).first.wait_for(timeout=120_000)
    took = time.perf_counter() - began
    page.close()
    return took


def tell(what: str, seconds: float) -> None:
    print(f"| {what} | {f'{seconds:.1f} s' if seconds >= 1 else f'{1000 * seconds:.0f} ms'} |", flush=True)


if __name__ == "__main__":
    main()
