"""Suites as their folders say, read again only when a journal has grown; a text that differs whenever one is to be
drawn again."""

from __future__ import annotations

import time

from pages.parts import index
from storage import queries
from storage.suites import files
from storage.suites.files import SuiteError, SuiteFolder
from storage.suites.standing import Suite, fold

WATCHED = "suite:"  # what stands before a suite's name where runs are watched; alone it stands for all suites
PACE_S = 3.0
"""Seconds between two looks at a suite's runs: a page over hundreds of them must not disturb what is timed."""

_read: dict[tuple[str, int, int], Suite | None] = {}
_told: dict[str, tuple[float, str]] = {}


def read(folder: SuiteFolder) -> Suite | None:
    """The suite as of now; None before it is defined, or where it has gone."""
    try:
        found = folder.journal_file.stat()
    except OSError:
        return None
    key = str(folder.path), found.st_mtime_ns, found.st_size
    if key not in _read:
        for old in [old for old in _read if old[0] == key[0]]:
            del _read[old]
        _read[key] = fold(files.read(folder))
    return _read[key]


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
    at, told = _told.get(head, (0.0, ""))
    if suite is not None and time.monotonic() - at > PACE_S:
        db = index.current()
        told = str(sum(queries.version(db, one.run_id) for one in suite.planned if one.run_id))
        for old in [old for old in _told if old.startswith(folder.name)]:
            del _told[old]
        _told[head] = time.monotonic(), told
    return head + told


def _journal_size(folder: SuiteFolder) -> int:
    try:
        return folder.journal_file.stat().st_size
    except OSError:
        return 0
