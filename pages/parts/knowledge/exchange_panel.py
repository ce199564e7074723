"""All that is known as one file: to take along, and to bring in, with what contradicts shown before it is settled."""

from __future__ import annotations

import dataclasses
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import streamlit as st

from pages.parts import access, wording
from pages.parts.steering import dialogs, steer
from pages.parts.steering.dialogs import Dialog
from pages.parts.widgets import table
from storage.knowledge import exported, files, merging
from storage.knowledge.exported import Exported, KnowledgeError
from storage.knowledge.merging import Conflict, Imported, Prefer

SHOWN = 30
PREFER = {"keep what is here": Prefer.MINE, "take what the file says": Prefer.THEIRS}
KIND = {"prior": "expectation"}
COLUMNS = [
    table.Column("name", "What"),
    table.Column("mine", "Here"),
    table.Column("theirs", "In the file"),
]


def draw_buttons() -> None:
    """Take it along; bring another one in, where people may change what is known."""
    with st.container(horizontal=True):
        st.download_button(
            "Export", file_text, file_name=f"knowledge-{time.strftime('%Y-%m-%d')}.jsonl", mime="application/jsonl",
            icon=":material/download:", key="export_knowledge", on_click="ignore",
            help="states, techniques, attempts and changes as one file, for another team or another machine",
        )  # fmt: skip
        if access.may_steer():
            st.button(
                "Import", icon=":material/upload:", key="import_knowledge", on_click=dialogs.ask, args=(Dialog.IMPORT,)
            )


def file_text() -> bytes:
    """The exported file of now."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "knowledge.jsonl"
        exported.write(path, files.load())
        return path.read_bytes()


@st.dialog("Import", width="large", icon=":material/upload:", on_dismiss=dialogs.close)
def bring_in() -> None:
    """Look at the file, see what it adds and contradicts, confirm."""
    uploaded = st.file_uploader("Exported file", type="jsonl", key="import_file")
    if uploaded is None:
        st.caption("A file that “Export” or `python -m engine knowledge export FILE` wrote.")
        dialogs.take_confirmed()
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "knowledge.jsonl"
        path.write_bytes(uploaded.getvalue())
        try:
            theirs = exported.read(path)
        except KnowledgeError as error:
            st.error(wording.plain(str(error).replace(str(path), uploaded.name)), icon=":material/error:")
            dialogs.take_confirmed()
            return
        conflicts = merging.conflicts(files.load(), theirs)
        prefer = _look(theirs, conflicts)
        if dialogs.buttons("import", "Import", ":material/upload:"):
            _import(path, prefer)


def _look(theirs: Exported, conflicts: Sequence[Conflict]) -> Prefer | None:
    """What it holds, and what contradicts; whose word counts there, None where nothing does."""
    holds = f"{wording.counted(len(theirs.evidence), 'attempt')} and {wording.counted(len(theirs.revisions), 'change')}"
    st.markdown(f"From **{wording.plain(theirs.origin)}**: {holds}. What is here already is not added again.")
    if not conflicts:
        st.success("Nothing in it contradicts what is known here.", icon=":material/check:")
        return None
    st.warning(
        f"{wording.counted(len(conflicts), 'thing')} in it {'differs' if len(conflicts) == 1 else 'differ'} from what "
        "is here.",
        icon=":material/compare_arrows:",
    )
    rows = [table.Row(f"{conflict.kind} {conflict.name}", cells(conflict)) for conflict in conflicts[:SHOWN]]
    table.draw("What differs", COLUMNS, rows, key="conflicts", is_cards=True)
    if len(conflicts) > SHOWN:
        st.caption(f"Showing {SHOWN} of {len(conflicts):,}")
    chosen = st.segmented_control("Where they differ", list(PREFER), default="keep what is here", required=True,
                                  key="import_prefer")  # fmt: skip
    return PREFER[str(chosen)]


def cells(conflict: Conflict) -> dict[str, table.Cell]:
    """One contradiction as cells: of both sides what differs."""
    mine, theirs = differing(conflict)
    return {
        "name": table.text(conflict.name, "strong", KIND.get(conflict.kind, conflict.kind)),
        "mine": mine,
        "theirs": theirs if conflict.theirs else table.text("does not count there", "muted"),
    }


def differing(conflict: Conflict) -> tuple[str, str]:
    """The fields that differ, as each side has them."""
    mine, theirs = _fields(conflict.mine), _fields(conflict.theirs)
    names = [name for name in mine or theirs if mine.get(name) != theirs.get(name)]
    return _differences_of(mine, names), _differences_of(theirs, names)


def _differences_of(side: Mapping[str, object], names: Sequence[str]) -> str:
    return "; ".join(f"{name.removeprefix('is_')}: {_short(side[name])}" for name in names if name in side)


def _fields(word: object) -> dict[str, object]:
    if word is None or not dataclasses.is_dataclass(word):
        return {}
    return {field.name: getattr(word, field.name) for field in dataclasses.fields(word) if field.name != "origin"}


def _short(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return wording.significant(value)
    if isinstance(value, tuple):
        rows = any(dataclasses.is_dataclass(item) for item in value)
        value = f"{len(value)} of them" if rows else ", ".join(map(str, value))
    return wording.cut(str(value), 90) or "empty"


def _import(path: Path, prefer: Prefer | None) -> None:
    try:
        with st.spinner("Importing"):
            done = merging.import_file(path, prefer)
    except (KnowledgeError, OSError) as error:
        st.error(wording.sentence(str(error)), icon=":material/error:")
        return
    steer.say(import_summary(done))
    dialogs.leave()


def import_summary(done: Imported) -> str:
    """What an import did."""
    return (
        f"Imported from {done.origin}: {wording.counted(done.attempts, 'attempt')} and "
        f"{wording.counted(done.revisions, 'change')}; {done.known:,} were here already."
    )
