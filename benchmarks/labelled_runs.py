"""A home of many runs that a team has named, tagged and annotated: how long the list takes, and what a delete and its
undo leave on disk. Prints a figure a line: `python -m benchmarks.labelled_runs --runs 1000`.
"""

from __future__ import annotations

import argparse
import functools
import hashlib
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from streamlit.testing.v1 import AppTest

from pages.parts import index
from storage.index.database import Database
from storage.index.ingest import Ingest
from storage.index.queries import RunFilter, listing, of_ids
from storage.run import labels, trash
from storage.run.folder import RunFolder
from tests import samples

ROOT = Path(__file__).resolve().parent.parent
TAGS = ("baseline", "h200", "paper", "broken", "weekly")
TIMES = 5


def main() -> None:
    """Make the home, or take one that is there, and measure."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.labelled_runs", description=(__doc__ or "").strip())
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--deleted", type=int, default=50, help="so many runs are deleted at once")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        os.environ |= {"TILEWRIGHT_HOME": folder, "TILEWRIGHT_NO_DEMO": "1"}
        write_home(home, options.runs)
        opened = index.open_index(home)
        try:
            tell(f"{options.runs} runs read into an empty index", seconds_of(opened.ingest.catch_up))
            tell_lists(opened.database, options.runs)
            tell_undo(opened.database, opened.ingest, home, options.deleted)
        finally:
            index.close_index()


def write_home(home: Path, runs: int) -> None:
    """Short runs, each with a name, two tags and a note."""
    now = time.time()
    for number in range(runs):
        name = f"run-{number:04d}"
        folder = samples.write_run(
            home / "runs", name, seed=number % 20, depths=2, created_at=now - 60.0 * (runs - number), has_blobs=False
        )
        tags = (TAGS[number % len(TAGS)], f"week-{number % 50}")
        note = f"note {number}: compared with the run of the week before, see the table there"
        noted = labels.Labels(name=f"try {number}", tags=tags, note=note)
        labels.change(folder, functools.partial(_as_noted, noted))


def _as_noted(noted: labels.Labels, _before: labels.Labels) -> labels.Labels:
    return noted


def tell_lists(db: Database, runs: int) -> None:
    """The first page of the list, all of it and by a tag, as a page asks for it after something has changed."""
    for what, chosen in (("first page", RunFilter()), ("first page of a tag", RunFilter(tag="paper"))):

        def look(chosen: RunFilter = chosen) -> None:
            db.memory.wrote(["runs", "labels"])  # as after any change: nothing that was kept may be shown
            assert of_ids(db, listing(db, chosen).run_ids)

        tell(
            f"list of {runs} runs with tags and notes, {what}",
            statistics.median(seconds_of(look) for _ in range(TIMES)),
        )
    page = AppTest.from_file(str(ROOT / "pages" / "_main.py"), default_timeout=60).run()

    def draw() -> None:
        db.memory.wrote(["runs", "labels"])
        assert not page.run().exception

    tell(
        f"the whole page of {runs} runs, drawn again on the server",
        statistics.median(seconds_of(draw) for _ in range(TIMES)),
    )


def tell_undo(db: Database, ingest: Ingest, home: Path, count: int) -> None:
    """Delete runs as the page does, look whether every byte is still on disk, and undo it."""
    names = [f"run-{number:04d}" for number in range(count)]
    before = {name: digest(home / "runs" / name) for name in names}

    def delete() -> None:
        for name in names:
            trash.delete(name)
        ingest.look_at(names)

    def undo() -> None:
        for name in names:
            trash.restore(name)
        ingest.look_at(names)

    tell(f"delete {count} runs", seconds_of(delete))
    assert not of_ids(db, names)
    assert trash.empty() == []
    kept = sum(digest(trash.trash_folder() / name, ("deleted.json",)) == before[name] for name in names)
    print(f"of {count} deleted runs whole on disk before the undo time is over: {kept}")
    tell(f"undo {count} runs", seconds_of(undo))
    whole = sum(digest(RunFolder(home / "runs" / name).path) == before[name] for name in names)
    shown = [row.tags for row in of_ids(db, names)]
    print(f"of {count} restored runs byte for byte as before: {whole}; in the list with tags: {sum(map(bool, shown))}")
    assert kept == whole == len(shown) == count


def digest(folder: Path, leave_out: tuple[str, ...] = ()) -> str:
    """Of the names and bytes of every file in a run's folder; the lock that an engine takes is none of its contents."""
    found = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.name not in (*leave_out, "engine.lock"):
            found.update(f"{path.relative_to(folder)}\0".encode() + path.read_bytes())
    return found.hexdigest()


def seconds_of(act: Callable[[], object]) -> float:
    """How long it takes."""
    began = time.perf_counter()
    act()
    return time.perf_counter() - began


def tell(what: str, seconds: float) -> None:
    """A figure."""
    print(f"{what}: {1e3 * seconds:.0f} ms", flush=True)


if __name__ == "__main__":
    main()
