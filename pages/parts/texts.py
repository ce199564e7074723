"""Long texts of a run by their hash: sources, prompts, replies, logs. Read only when somebody opens them; one that is
missing or damaged is said to be so. And how many lines of two sources differ, as that was counted once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import streamlit as st

from storage.index.queries import AttemptRow
from storage.run.blobs import Blobs, DamagedBlobError
from storage.run.folder import run_at

LOST = "(this text is missing or damaged in the run folder)"


@dataclass(frozen=True, slots=True)
class Text:
    """A text, or the file that it should be in: `gone` is empty unless that file is missing or damaged."""

    text: str
    gone: str = ""
    is_damaged: bool = False

    @property
    def is_gone(self) -> bool:
        """True when the run folder has lost it."""
        return bool(self.gone)


def read(run_id: str, blob: str | None) -> Text:
    """A text of a run, empty for no hash."""
    if blob is None:
        return Text("")
    blobs = Blobs(run_at(run_id).blobs)
    try:
        return Text(blobs.get(blob))
    except OSError as error:
        return Text(LOST, str(blobs.folder / blob), isinstance(error, DamagedBlobError))


def source(run_id: str, blob: str | None) -> str:
    """A text, or a plain word where it is gone."""
    return read(run_id, blob).text


def say_gone(text: Text, what: str) -> None:
    """Which file it is, and what can be done about it. `what` names the text: "source", "prompt"."""
    name = Path(text.gone).name
    is_what = "is damaged" if text.is_damaged else "is missing from the run folder"
    st.error(
        f"**The {what} {is_what}.** Restore `blobs/{name[:12]}…` from a backup. Results and all other texts are "
        "unaffected.",
        icon=":material/folder_off:",
    )
    st.caption("File to restore", help=f"`{text.gone}`")


def counts(old: AttemptRow, new: AttemptRow) -> tuple[int, int] | None:
    """Lines added and removed from one to the other, as they were counted when a kernel was made of its parent: of the
    many ways to count, all pages tell this. None where neither is the other's parent."""
    if old.run_id != new.run_id:
        return None
    if new.parent_id == old.candidate_id and new.lines_added is not None:
        return new.lines_added, new.lines_removed
    if old.parent_id == new.candidate_id and old.lines_added is not None:
        return old.lines_removed, old.lines_added
    return None
