"""How fast journals become rows, and how long a line takes until it can be queried.

python -m benchmarks.ingest
python -m benchmarks.ingest --runs 1 --depths 3 --lines 2 --restart 3      smallest
"""

from __future__ import annotations

import argparse
import resource
import statistics
import tempfile
import time
from pathlib import Path

from storage.index import queries
from storage.index.database import Database, index_file, open_database
from storage.index.ingest import Ingest
from storage.run.events import StepFinished
from storage.run.journal import Journal
from storage.run.settings import StepKind
from tests.samples import write_run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=4, help="runs read into an empty index (4)")
    parser.add_argument("--depths", type=int, default=500, help="depths of each (500)")
    parser.add_argument("--lines", type=int, default=50, help="lines timed one by one (50)")
    parser.add_argument(
        "--restart", type=int, default=0, metavar="DEPTHS", help="a live run beside which a server starts"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        measure_bulk(Path(name) / "bulk", options.runs, options.depths)
        measure_latency(Path(name) / "live", options.lines)
        if options.restart:
            measure_restart(Path(name) / "restart", options.restart)


def measure_bulk(home: Path, runs: int, depths: int) -> None:
    """Rows of whole journals, read into an empty index."""
    folders = [write_run(home / "runs", f"bulk-{seed}", seed=seed, depths=depths) for seed in range(runs)]
    with open_database(index_file(home)) as db:
        started = time.perf_counter()
        Ingest(db, home / "runs").catch_up()
        seconds = time.perf_counter() - started
        events = sum(folder.journal_file.read_bytes().count(b"\n") for folder in folders)
        print(f"bulk: {events} events of {runs} runs in {seconds:.2f} s: {events / seconds:,.0f} events/s")
        for name in ("attempts", "depths", "steps", "feed", "run"):
            started = time.perf_counter()
            getattr(queries, name)(db, "bulk-0")
            print(f"query {name}: {1e3 * (time.perf_counter() - started):.1f} ms at {depths} depths")
        started = time.perf_counter()
        queries.overview(db)
        print(f"query overview: {1e3 * (time.perf_counter() - started):.1f} ms")


def measure_restart(home: Path, depths: int) -> None:
    """From opening the index of a long run that goes on to its next line being there."""
    folder = write_run(home / "runs", "live", depths=depths, ending="running", has_blobs=False)
    with open_database(index_file(home)) as db:
        Ingest(db, home / "runs").catch_up()
        events, memory = count(db), peak_bytes()
    journal = Journal(folder.journal_file)
    journal.append(StepFinished(1, StepKind.CHECK, 0.1, "passed"))
    journal.close()
    started = time.perf_counter()
    with open_database(index_file(home)) as db:
        Ingest(db, home / "runs").catch_up()
        seconds = time.perf_counter() - started
        assert count(db) == events + 1
    size = index_file(home).stat().st_size
    print(f"restart beside a run of {events} events: {seconds:.2f} s; {memory >> 20} MB, index of {size >> 20} MB")


def peak_bytes() -> int:
    """The most memory that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def measure_latency(home: Path, lines: int) -> None:
    """From the journal's write to the row being there, one line at a time."""
    folder = write_run(home / "runs", "live", depths=4, ending="running")
    with open_database(index_file(home)) as db:
        ingest = Ingest(db, home / "runs")
        ingest.start()
        journal = Journal(folder.journal_file)
        db.wait_until(lambda: count(db) == len(journal.entries), 10.0)
        waits = [one_line(db, journal) for _ in range(lines)]
        journal.close()
        ingest.stop()
    median, worst = statistics.median(waits), max(waits)
    print(f"latency over {lines} lines: median {1e3 * median:.0f} ms, worst {1e3 * worst:.0f} ms")


def one_line(db: Database, journal: Journal) -> float:
    """Seconds until one more event can be queried."""
    started = time.perf_counter()
    journal.append(StepFinished(1, StepKind.CHECK, 0.1, "passed"))
    if not db.wait_until(lambda: count(db) == len(journal.entries), 10.0):
        raise TimeoutError("the line never came")
    return time.perf_counter() - started


def count(db: Database) -> int:
    """Events of the live run in the index."""
    with db.reader() as cursor:
        return int(cursor.execute("SELECT count(*) FROM events WHERE run_id = 'live'").fetchall()[0][0])


if __name__ == "__main__":
    main()
