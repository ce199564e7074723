"""A text that differs whenever a page would look different: what the index holds of its runs, which engines live."""

from __future__ import annotations

import time
from collections.abc import Sequence

from pages.parts import index, network_folders, preparing, run_state, suite_folders
from storage.index import queries
from storage.run import remeasurements
from storage.run.folder import run_at

CLOCK = "clock:"  # in place of a run: the part is drawn again once a second


def of(run_ids: Sequence[str], is_overview: bool, has_measurements: bool = False) -> str:
    """The token of a page over these runs. Costs no query while nothing is new.

    `has_measurements` is for a page that also shows how far the re-measurements of these runs are.
    """
    if list(run_ids) == [CLOCK]:
        return str(int(time.time()))
    db = index.current()
    if is_overview:
        return f"{queries.overview_version(db)}{engines(run_ids)}{behind()}"
    suites = [name for name in run_ids if name.startswith(suite_folders.WATCHED)]
    if suites:
        return "".join(suite_folders.token(name.removeprefix(suite_folders.WATCHED)) for name in suites)
    networks = [name for name in run_ids if name.startswith(network_folders.WATCHED)]
    if networks:
        return "".join(network_folders.token(name.removeprefix(network_folders.WATCHED)) for name in networks)
    late = [run_state.is_overdue(run_state.pending_stop(name)) for name in run_ids]
    early = "".join(preparing.sign(name) for name in run_ids)
    shown = f"{[queries.version(db, name) for name in run_ids]}{engines(run_ids)}{early}{late}{behind()}"
    return shown + _measured(run_ids) if has_measurements else shown


def behind() -> str:
    """A sign that changes with which runs the index cannot follow, and why; empty while it follows all."""
    failures = index.ingest().failures
    return f"!{hash(frozenset(failures.items()))}" if failures else ""


def engines(run_ids: Sequence[str]) -> str:
    """One sign per run: has it an engine, or is the end of what that has written read, and has it been silent for
    long, or so long that a device is idle?"""
    return "".join(_sign(name) for name in run_ids)


def _sign(run_id: str) -> str:
    if not run_state.has_engine(run_id):
        return "-" if index.is_read(run_id) else "?"
    try:
        silent_s = time.time() - run_at(run_id).journal_file.stat().st_mtime
    except OSError:
        return "+"
    return "!" if silent_s > run_state.SILENT_S else "~" if silent_s > run_state.IDLE_S else "+"


def _measured(run_ids: Sequence[str]) -> str:
    """How far every re-measurement of these runs is."""
    return str(
        [
            (remeasurement.request.remeasure_id, remeasurement.progress)
            for remeasurement in remeasurements.concerning(run_ids)
        ]
    )
