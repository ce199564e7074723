"""Networks as their folders say, read again only when a folder has news; a text that differs whenever one is to be
drawn again."""

from __future__ import annotations

from pathlib import Path

from pages.parts import index, run_state
from storage.index import queries
from storage.networks import files, standing
from storage.networks.files import NetworkError, NetworkFolder
from storage.networks.standing import Standing

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


def token(name: str) -> str:
    """The token of one network with its runs, or of all networks for no name."""
    if not name:
        return ";".join(f"{folder.name}{_stamp(folder)}" for folder in files.all_networks())
    try:
        folder = files.folder_of(name)
        runs = read(folder).runs.values()
    except NetworkError as error:
        return str(error)
    run_ids = [run_id for started in runs for run_id in started]
    signs = [(queries.version(index.current(), run_id), run_state.has_engine(run_id)) for run_id in run_ids]
    return f"{_stamp(folder)}{hash(tuple(signs))}"


def _stamp(folder: NetworkFolder) -> _Stamp:
    return (*_signs(folder.journal_file), *_signs(folder.network_file), folder.has_capture_at_work)


def _signs(path: Path) -> tuple[int, int]:
    try:
        status = path.stat()
    except OSError:
        return 0, 0
    return status.st_mtime_ns, status.st_size
