"""A home as large as people will ever have: many runs, one of them very long, one with very long sources."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

from storage.run import events as ev
from storage.run import liveness
from storage.run.blobs import text_hash
from storage.run.folder import RunFolder
from storage.run.journal import Entry
from storage.run.settings import StepKind
from tests import samples

LONG, WIDE, LIVE = "long-run", "wide-run", "live-run"
LINES = 3000
ITERATIONS_PER_DEPTH = 1.95


def write_home(home: Path, runs: int, iterations: int) -> None:
    """`runs` runs in all. The large ones are the newest, so that they stand on the first page."""
    root, now = home / "runs", time.time()
    root.mkdir(parents=True)
    for number in range(runs - 3):
        ending = samples.ENDINGS[number % len(samples.ENDINGS)] if number % 10 == 0 else "finished"
        started = now - 600.0 * (runs - number)
        samples.write_run(
            root, f"run-{number:04d}", seed=number, depths=8, ending=ending, created_at=started, has_blobs=False
        )
    depths = int(iterations / ITERATIONS_PER_DEPTH)
    samples.write_run(root, LONG, seed=3, depths=2 * depths, ending="running", created_at=now - 90, has_blobs=False)
    lengthen(samples.write_run(root, WIDE, seed=3, depths=8, created_at=now - 60))
    samples.write_run(root, LIVE, seed=6, depths=40, ending="running", created_at=now - 30)
    os.sync()


def lengthen(folder: RunFolder) -> None:
    """Give every kernel of a run a source of 3,000 lines that differs from its parent's in a few places."""
    lines = [json.loads(line) for line in folder.journal_file.read_text().splitlines()]
    for number, line in enumerate(lines):
        if line["kind"] != "CandidateCreated":
            continue
        source = (folder.blobs / line["event"]["source_blob"]).read_text()
        padding = [f"// line {n}: staged copy, tile {n % 7}" for n in range(LINES - source.count("\n"))]
        for place in range(number % 50, len(padding), 400):
            padding[place] = f"    float value_{place} = tile[{number}][{place}];  // kernel {number}"
        text = source + "\n".join(padding) + "\n"
        line["event"]["source_blob"] = text_hash(text)
        (folder.blobs / text_hash(text)).write_text(text)
    folder.journal_file.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines))


class Growing:
    """Holds a run's lock as an engine would, and appends one event at a time."""

    def __init__(self, home: Path, run_id: str) -> None:
        self.folder = RunFolder(home / "runs" / run_id)
        self.lock = liveness.hold(self.folder)
        with open(self.folder.journal_file, "rb") as journal:
            self.seq = sum(1 for _ in journal)
        self.step, self.is_begun = 1_000_000 + self.seq, False

    def grow(self, depth: int = 3) -> None:
        """Begin a step at this depth, or end the one that was begun."""
        self.seq += 1
        event: ev.Event = ev.StepStarted(self.step, StepKind.CHECK, depth, "c001")
        if self.is_begun:
            event = ev.StepFinished(self.step, StepKind.CHECK, 1.0, "passed")
            self.step += 1
        self.is_begun = not self.is_begun
        with open(self.folder.journal_file, "ab") as journal:
            journal.write(samples.as_line(Entry(self.seq, time.time(), event)))

    def close(self) -> None:
        os.close(self.lock)
