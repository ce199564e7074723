"""Suites as their folders say, read again only when a journal has grown; a text that differs whenever one is to be
drawn again."""

from __future__ import annotations

import time

from pages.parts import index
from storage.index import queries
from storage.suites import files
from storage.suites.files import SuiteError, SuiteFolder
from storage.suites.standing import Suite, fold

WATCHED = "suite:"  # what stands before a suite's name where runs are watched; alone it stands for all suites
PACE_S = 3.0
"""Seconds between two looks at a suite's runs: a page over hundreds of them must not disturb what is timed."""

_read: dict[str, tuple[tuple[int, int], Suite | None]] = {}
_read_before: dict[str, tuple[str, float, str]] = {}


def read(folder: SuiteFolder) -> Suite | None:
    """The suite as of now; None before it is defined, or where it has gone."""
    try:
        found = folder.journal_file.stat()
    except OSError:
        return None
    stamp, known = (found.st_mtime_ns, found.st_size), _read.get(str(folder.path))
    if known is None or known[0] != stamp:
        known = _read[str(folder.path)] = stamp, fold(files.read(folder))
    return known[1]


def token(name: str) -> str:
    """Of one suite, or of all for no name: its journals, whether its runner lives, and what its runs have."""
    return ";".join(_sign(folder) for folder in ([_named(name)] if name else files.all_suites()) if folder)


def _named(name: str) -> SuiteFolder | None:
    try:
        return files.folder_of(name)
    except SuiteError:
        return None


def _sign(folder: SuiteFolder) -> str:
    suite = read(folder)
    head = f"{folder.name}{folder.has_runner}{_journal_size(folder)}"
    known = _read_before.get(str(folder.path))
    if suite is not None and (known is None or known[0] != head or time.monotonic() - known[1] > PACE_S):
        db = index.current()
        versions = str(sum(queries.version(db, one.run_id) for one in suite.planned if one.run_id))
        known = _read_before[str(folder.path)] = head, time.monotonic(), versions
    return head + (known[2] if known else "")


def _journal_size(folder: SuiteFolder) -> int:
    try:
        return folder.journal_file.stat().st_size
    except OSError:
        return 0
