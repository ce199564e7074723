"""Long texts of a run by their hash: sources, prompts, replies, logs. Read only when somebody opens them."""

from __future__ import annotations

from storage.blobs import Blobs
from storage.folder import RunFolder, runs_folder

LOST = "(this text is missing from the run folder)"


def source(run_id: str, blob: str | None) -> str:
    """A text, or a plain word where it is gone."""
    if blob is None:
        return ""
    try:
        return Blobs(RunFolder(runs_folder() / run_id).blobs).get(blob)
    except FileNotFoundError:
        return LOST
