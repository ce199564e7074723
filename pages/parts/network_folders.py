"""Networks as their folders say, read again only when a folder has news; the suite that searches their kernels; a text
that differs whenever one is to be drawn again."""

from __future__ import annotations

from pathlib import Path

from engine.networks import starting
from pages.parts import index, run_state, suite_folders
from storage.index import queries
from storage.networks import files, standing
from storage.networks.files import NetworkError, NetworkFolder
from storage.networks.standing import Standing
from storage.suites import files as suites
from storage.suites.files import SuiteError, SuiteFolder
from storage.suites.standing import Suite

WATCHED = "network:"  # what stands before a network's name where runs are watched; alone it stands for all networks
MOST_KEPT = 32
"""Of what was read; a network of a thousand modules takes a few megabytes."""

_Stamp = tuple[object, ...]
_read: dict[str, tuple[_Stamp, Standing | NetworkError]] = {}


def read(folder: NetworkFolder) -> Standing:
    """Where the network stands now.

    Raises:
        NetworkError: what was captured is damaged.
    """
    key, stamp = str(folder.path), _stamp(folder)
    kept = _read.pop(key, None)
    if kept is None or kept[0] != stamp:
        kept = stamp, _anew(folder)
    _read[key] = kept  # last, as the one that was asked for last
    while len(_read) > MOST_KEPT:
        del _read[next(iter(_read))]
    if isinstance(kept[1], NetworkError):
        raise kept[1].with_traceback(None)
    return kept[1]


def _anew(folder: NetworkFolder) -> Standing | NetworkError:
    try:
        return standing.standing(folder)
    except NetworkError as error:
        return error


def suite_folder(stands: Standing) -> SuiteFolder | None:
    """Of the suite that searched kernels last."""
    try:
        return suites.folder_of(stands.suite) if stands.suite else None
    except SuiteError:
        return None


def suite_of(stands: Standing) -> Suite | None:
    """The suite that searched kernels last; None where none did, or where it has gone."""
    folder = suite_folder(stands)
    return suite_folders.read(folder) if folder else None


def runs_by_region(stands: Standing) -> dict[str, list[str]]:
    """Runs that were started for regions: one by one, and as cells of the suite that searched last."""
    runs = {region: list(run_ids) for region, run_ids in stands.runs.items()}
    suite = suite_of(stands)
    for cell, cell_standing in suite.cells.items() if suite else ():
        of_region = runs.setdefault(cell.task, [])
        if cell_standing.run_id and cell_standing.run_id not in of_region:
            of_region.append(cell_standing.run_id)
    return runs


def token(name: str) -> str:
    """The token of one network with its runs, or of all networks for no name."""
    if not name:
        return ";".join(f"{folder.name}{_stamp(folder)}" for folder in files.all_networks())
    try:
        folder = files.folder_of(name)
        stands = read(folder)
    except NetworkError as error:
        return str(error)
    run_ids = [run_id for started in runs_by_region(stands).values() for run_id in started]
    signs = [(queries.version(index.current(), run_id), run_state.has_engine(run_id)) for run_id in run_ids]
    searched = suite_folders.token(stands.suite) if stands.suite else ""
    return f"{_stamp(folder)}{hash(tuple(signs))}{searched}{starting.is_at_work(name)}"


def _stamp(folder: NetworkFolder) -> _Stamp:
    at_work = folder.has_capture_at_work, folder.has_proof_at_work
    return (*_signs(folder.journal_file), *_signs(folder.network_file), *at_work)


def _signs(path: Path) -> tuple[int, int]:
    try:
        status = path.stat()
    except OSError:
        return 0, 0
    return status.st_mtime_ns, status.st_size
