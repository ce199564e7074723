"""A report from a shell: `python -m pages.report RUN --output run.html`. Several runs make a comparison.

Needs no server and touches no index: it reads the journals of these runs into a temporary one.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from pages.parts.compare import compared_runs
from pages.parts.report.report_comparison import comparison_report
from pages.parts.report.report_run import run_report
from storage import files
from storage.index.database import Database, index_file, open_database
from storage.index.ingest import Ingest
from storage.run.folder import RunFolder, find_run


def main(argv: Sequence[str] | None = None) -> int:
    """Write one file; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m pages.report", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("runs", nargs="+", metavar="RUN")
    parser.add_argument("-o", "--output", metavar="FILE", help="where to write it (default: standard output)")
    options = parser.parse_args(argv)
    names = list(dict.fromkeys(options.runs))
    try:
        if len(names) > compared_runs.AT_MOST:
            raise ValueError(f"at most {compared_runs.AT_MOST} runs can be compared")
        text = report_of([find_run(name) for name in names])
        if options.output:
            files.hand_over(Path(options.output), text.encode("utf-8", "replace"))
        else:
            sys.stdout.write(text)
    except (OSError, ValueError, LookupError) as error:
        print(f"tilewright: {files.explained(error) if isinstance(error, OSError) else error}", file=sys.stderr)
        return 2
    return 0


def report_of(folders: Sequence[RunFolder]) -> str:
    """The report of one run, or of several compared."""
    with temporary_index(folders) as db:
        if len(folders) == 1:
            return run_report(db, folders[0].run_id)
        return comparison_report(compared_runs.gather(db, [folder.run_id for folder in folders]))


@contextmanager
def temporary_index(folders: Sequence[RunFolder]) -> Iterator[Database]:
    """An index of these runs and nothing else, gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="tilewright.") as name:
        root = Path(name) / "runs"
        root.mkdir()
        for folder in folders:
            (root / folder.run_id).symlink_to(folder.path)
        with open_database(index_file(Path(name))) as db:
            Ingest(db, root).catch_up()
            yield db


if __name__ == "__main__":
    sys.exit(main())
