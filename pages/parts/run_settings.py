"""What a run was started with, read from its run.json once for as long as that file stays as it is."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from storage.run import folder
from storage.run.settings import RunSettings

OTHER_MODEL, EVALUATION_MODE = "other_model", "evaluation_mode"
"""In the address of New run: the model of the run that it is like is not to be taken again; its module is to be put
into evaluation mode."""


def of(run_id: str) -> RunSettings:
    """The settings of a run.

    Raises:
        FileNotFoundError: no such run, or the folder has the id of another.
        storage.codec.DecodeError: the file is damaged, or may not be read.
    """
    file = folder.run_at(run_id).settings_file
    try:
        status = file.stat()
    except OSError:
        return folder.find_run(run_id).read_settings()  # it says what is wrong
    return _read(run_id, file, status.st_ino, status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=64)
def _read(run_id: str, _file: Path, *_state: int) -> RunSettings:
    return folder.find_run(run_id).read_settings()
