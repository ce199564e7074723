"""What is damaged or missing of a run's files: the banner on its pages, the mark in the list."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from pages.parts import index, run_state, wording
from pages.parts.widgets import table
from storage.index import queries
from storage.index.database import Database
from storage.run import damage
from storage.run.damage import Damage
from storage.run.folder import run_at, why_ignored
from storage.run.journal import FaultKind

READ_BYTES = 1 << 23  # of a journal, and of texts: a page must not read gigabytes to say that all is well

_known: dict[str, tuple[object, Damage]] = {}


def of(run_id: str, db: Database | None = None) -> Damage:
    """What is wrong with a run's files, as they are now. While an engine works only unreadable lines are looked for."""
    folder = run_at(run_id)
    has_engine, has_faults = run_state.has_engine(run_id), bool(queries.problems(db or index.current(), run_id))
    if not has_faults and has_engine:
        return Damage()
    files = (folder.settings_file, folder.journal_file, folder.commands_file, folder.blobs)
    stamp = (has_engine, *map(_stamp, files))
    if _known.get(run_id, (None,))[0] != stamp:
        is_whole = not has_faults and damage.is_whole_at_a_glance(folder, READ_BYTES)
        _known[run_id] = stamp, Damage() if is_whole else damage.examine(folder, READ_BYTES)
    return _known[run_id][1]


def banner(run_id: str) -> None:
    """What is missing, what still works and what to do; nothing for a whole run."""
    damages = of(run_id)
    facts = " ".join((*damage.sentences(damages), damage.advice(damages))).strip()
    if damages.is_damaged:
        st.error(f"**{damage.title(damages)}.** {wording.plain(facts)}", icon=":material/broken_image:")
    elif facts:
        st.info(wording.plain(facts), icon=":material/update:")


def unreadable() -> bool:
    """Name the folders that are in no list because they have the id of another run, and the runs that are in none
    because their settings cannot be read; False when there are none of these."""
    of_settings = [problem for problem in queries.problems(index.current()) if problem.file == "run.json"]
    for problem in of_settings:
        if problem.kind is FaultKind.FOREIGN:
            sentence = why_ignored(run_at(problem.run_id), problem.message)
            st.warning(wording.plain(sentence), icon=":material/folder_off:")
    problems = [problem for problem in of_settings if problem.kind is not FaultKind.FOREIGN]
    if not problems:
        return False
    names = ", ".join(f"`{problem.run_id}`" for problem in problems)
    what = "1 run is not listed" if len(problems) == 1 else f"{len(problems):,} runs are not listed"
    st.error(
        f"**{what}.** run.json cannot be read in {names}. Restore it from a backup; nothing in the folder was changed.",
        icon=":material/broken_image:",
    )
    return True


def cells(run_id: str) -> list[table.Cell]:
    """The mark in a row of the list; nothing for a whole run."""
    damages = of(run_id)
    if not damages.is_damaged:
        return []
    title = "\n".join((f"{damage.title(damages)}.", *damage.sentences(damages)))
    return [table.pill("damaged", "red", "failed", title)]


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size
