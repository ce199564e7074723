"""Suites as their folders say, read again only when a journal has grown; a text that differs whenever one is to be
drawn again."""

from __future__ import annotations

import time
from collections.abc import Collection

from pages.parts import index, wording
from storage.index import queries
from storage.index.queries.suites import models_called
from storage.run.saved_models import RECORDED
from storage.run.steering.command_arguments import MANUAL
from storage.suites import files
from storage.suites.files import SuiteError, SuiteFolder
from storage.suites.standing import Suite, fold

WATCHED = "suite:"  # what stands before a suite's name where runs are watched; alone it stands for all suites
PACE_S = 3.0
"""Seconds between two looks at a suite's runs: a page over hundreds of them must not disturb what is timed."""

_read: dict[str, tuple[tuple[int, int], Suite | None]] = {}
_runs: dict[str, tuple[tuple[int, int], frozenset[str]]] = {}
_read_before: dict[str, tuple[str, float, str]] = {}


def read(folder: SuiteFolder) -> Suite | None:
    """The suite as of now; None before it is defined, or where it has gone."""
    try:
        status = folder.journal_file.stat()
    except OSError:
        return None
    stamp, kept = (status.st_mtime_ns, status.st_size), _read.get(str(folder.path))
    if kept is None or kept[0] != stamp:
        kept = _read[str(folder.path)] = stamp, fold(files.read(folder))
    return kept[1]


def cost(suite: Suite) -> str:
    """What its replies cost, in words: the least, where some were written elsewhere and tell no price."""
    spent = suite.spent
    if spent.cost_usd == 0:
        return wording.PAID_NOTHING if spent.tokens or is_recorded(suite) else wording.UNRECORDED
    return f"{least(suite)}{wording.cost(spent.cost_usd)}"


def least(suite: Suite) -> str:
    """What stands before a sum of tokens or dollars where those of some replies, written elsewhere, are not in it."""
    return "at least " if suite.spent.cost_usd is not None and MANUAL in _called(suite) else ""


def is_recorded(suite: Suite) -> bool:
    """Whether all replies so far were recorded ones; before the first, whether those of every arm will be."""
    if called := _called(suite):
        return called == {RECORDED}
    return all(f"--model {RECORDED}" in f"{suite.defined.settings} {arm.settings}" for arm in suite.defined.arms)


def _called(suite: Suite) -> set[str]:
    return models_called(index.current(), [planned.run_id for planned in suite.planned if planned.run_id])


def of_runs(run_ids: Collection[str]) -> dict[str, str]:
    """The suite of each of these runs that is in one: the last one by name that has it."""
    suites: dict[str, str] = {}
    for folder in files.all_suites():
        if suite := read(folder):
            stamp, kept = _read[str(folder.path)][0], _runs.get(str(folder.path))
            if kept is None or kept[0] != stamp:
                ids = frozenset(cell.run_id for cell in suite.cells.values() if cell.run_id)
                kept = _runs[str(folder.path)] = stamp, ids
            suites |= dict.fromkeys(kept[1].intersection(run_ids), folder.name)
    return suites


def token(name: str) -> str:
    """The token of one suite, or of all for no name: its journals, whether its runner lives, and what its runs have."""
    return ";".join(_sign(folder) for folder in ([_named(name)] if name else files.all_suites()) if folder)


def _named(name: str) -> SuiteFolder | None:
    try:
        return files.folder_of(name)
    except SuiteError:
        return None


def _sign(folder: SuiteFolder) -> str:
    suite = read(folder)
    head = f"{folder.name}{folder.has_runner}{_journal_size(folder)}"
    kept = _read_before.get(str(folder.path))
    if suite is not None and (kept is None or kept[0] != head or time.monotonic() - kept[1] > PACE_S):
        db = index.current()
        versions = str(sum(queries.version(db, planned.run_id) for planned in suite.planned if planned.run_id))
        kept = _read_before[str(folder.path)] = head, time.monotonic(), versions
    return head + (kept[2] if kept else "")


def _journal_size(folder: SuiteFolder) -> int:
    try:
        return folder.journal_file.stat().st_size
    except OSError:
        return 0
