"""What it costs the server to draw a run page again: after a click, after an event, and with nothing kept.

    python -m benchmarks.redraw
    python -m benchmarks.redraw --rounds 1      smallest

Prints a Markdown table of medians in milliseconds, the three kinds taken in turn, and the queries of one redraw.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from streamlit.testing.v1 import AppTest

from pages.parts import index
from storage.index.database import SCHEMA, Database
from storage.index.memory import Memory
from tests import samples

ROOT = Path(__file__).resolve().parent.parent
RUN = "drawn"


class Counting(Memory):
    """Counts the queries that reach the database."""

    def __init__(self, schema: str) -> None:
        super().__init__(schema)
        self.reads = 0

    def _keep(self, key: Any, kept: Any, rows: int) -> None:
        self.reads += 1
        super()._keep(key, kept, rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15, help="redraws of each kind (15)")
    options = parser.parse_args()
    home = Path(tempfile.mkdtemp())
    os.environ |= {"TILEWRIGHT_HOME": str(home), "TILEWRIGHT_NO_DEMO": "1"}
    samples.write_run(home / "runs", RUN, depths=6, ending="paused")
    opened = index.open_index(home)
    db = opened.database
    opened.ingest.catch_up()
    page = AppTest.from_file(str(ROOT / "pages" / "_main.py"), default_timeout=60).run()
    page.switch_page("run.py").query_params["run"] = RUN
    page.run()
    cases: dict[str, Callable[[], object]] = {
        "after a click: nothing was written": lambda: None,
        "after a steering event": lambda: db.memory.wrote(["events", "progress", "runs"]),
        "after a step's event": lambda: db.memory.wrote(["events", "progress", "steps"]),
        "nothing kept": lambda: forget(db),
    }
    forget(db)
    found: dict[str, list[float]] = {name: [] for name in cases}
    reads = dict.fromkeys(cases, 0)
    for _ in range(options.rounds):
        for name, prepare in cases.items():
            prepare()
            before = getattr(db.memory, "reads", 0)
            began = time.perf_counter()
            page.run()
            found[name].append(1000 * (time.perf_counter() - began))
            reads[name] = getattr(db.memory, "reads", 0) - before
    index.close_index()
    print("| redraw of a run page | ms | queries |\n|---|---|---|")
    for name, times in found.items():
        print(f"| {name} | {statistics.median(times):.0f} | {reads[name]} |")


def forget(db: Database) -> None:
    """Keep nothing, and count from now on."""
    db.memory = Counting(SCHEMA)


if __name__ == "__main__":
    main()
