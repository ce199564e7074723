"""What a person calls runs: name, tags, note, archive; and deleting them, with the way back. For one run or several."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import streamlit as st

from pages.parts import access, index, wording
from pages.parts.steering import dialogs, steer
from pages.parts.steering.dialogs import Dialog
from storage import locks
from storage.index import queries
from storage.index.queries import RunRow
from storage.run import folder, labels, liveness, trash
from storage.run.labels import Change, LabelError
from storage.run.trash import TrashError

_DELETED = "deleted_now"
UNDO_DAYS = round(trash.UNDO_S / 86_400)


def ask(run_ids: Sequence[str]) -> None:
    """Open the dialog over these runs."""
    dialogs.ask(Dialog.LABELS, subject=",".join(run_ids))


def draw() -> None:
    """Draw it, if it is open; for the page itself, after its live part."""
    asked = dialogs.opened()
    if asked is None or asked.dialog is not Dialog.LABELS or not access.may_steer():
        return
    runs = queries.of_ids(index.current(), asked.subject.split(","))
    if not runs:
        dialogs.close()
    elif len(runs) == 1:
        _one(runs[0])
    else:
        _several(runs)


@st.dialog("Name, tags, note", icon=":material/label:", on_dismiss=dialogs.close)
def _one(run: RunRow) -> None:
    st.caption(wording.plain(f"{wording.task(run.task_name)} · {run.run_id}"))
    name = st.text_input("Name", run.label, key="label_name", placeholder=wording.task(run.task_name))
    tags = _tags("Tags", run.tags, "label_tags")
    note = st.text_area("Note", run.note, key="label_note", height=110)
    is_archived = st.toggle(
        "Archived", run.is_archived, key="label_archived", help="An archived run is left out of the usual list."
    )
    _delete_button([run])
    if dialogs.buttons("labels", "Save", ":material/check:"):
        _change([run], _edit(name, tuple(tags), note, is_archived), f"Saved {run.run_id}.")


def _edit(name: str, tags: tuple[str, ...], note: str, is_archived: bool) -> Change:
    return lambda old: replace(old, name=name, tags=tags, note=note, is_archived=is_archived)


@st.dialog("Several runs", icon=":material/label:", on_dismiss=dialogs.close)
def _several(runs: Sequence[RunRow]) -> None:
    st.caption(wording.plain(f"{len(runs)} runs: {', '.join(sorted({run.title for run in runs}))}"))
    add = _tags("Add tags", [], "labels_add")
    present = sorted({tag for run in runs for tag in run.tags})
    remove = st.multiselect("Remove tags", present, key="labels_remove", placeholder="none") if present else []
    moves = {"leave as it is": None, "archive": True, "take out of the archive": False}
    move = st.segmented_control("Archive", list(moves), default="leave as it is", required=True, key="labels_archive")
    _delete_button(runs)
    if dialogs.buttons("labels", "Save", ":material/check:"):
        _change(runs, _changes(add, remove, moves[str(move)]), f"Saved {len(runs)} runs.")


def _changes(add: Sequence[str], remove: Sequence[str], is_archived: bool | None) -> Change:
    tagged = labels.with_tags(tuple(add), tuple(remove))
    return tagged if is_archived is None else lambda old: labels.archived(is_archived)(tagged(old))


def _tags(label: str, chosen: Sequence[str], key: str) -> list[str]:
    tags = sorted({*queries.choices(index.current()).tags, *chosen})
    return list(
        st.multiselect(
            label, tags, chosen, key=key, accept_new_options=True, placeholder="type a tag and press Enter",
            max_selections=labels.MOST_TAGS,
        )
    )  # fmt: skip


def _change(runs: Sequence[RunRow], how: Change, message: str) -> None:
    """Write it and close; what cannot be kept is told, and the dialog stays."""
    try:
        for run in runs:
            labels.change(folder.find_run(run.run_id), how, access.person())
    except (LabelError, OSError) as error:
        st.error(wording.sentence(str(error)), icon=":material/error:")
        return
    finally:
        index.ingest().look_at(run.run_id for run in runs)
    steer.say(message)
    dialogs.leave()


def _delete_button(runs: Sequence[RunRow]) -> None:
    held = [run.run_id for run in runs if liveness.is_held(folder.run_at(run.run_id))]
    what = "this run" if len(runs) == 1 else f"these {len(runs)} runs"
    clicked = st.button(
        f"Delete {what}", icon=":material/delete:", key="labels_delete", on_click=_delete,
        args=([run.run_id for run in runs],), disabled=bool(held),
        help=f"Still running: {', '.join(held)}. Stop it first." if held
        else f"Kept in the trash for {UNDO_DAYS} days; until then it can be undone.",
    )  # fmt: skip
    if clicked:
        st.rerun()


def _delete(run_ids: Sequence[str]) -> None:
    gone, failed = [], ""
    for run_id in run_ids:
        try:
            gone.append(trash.delete(run_id, access.person()).run_id)
        except (TrashError, OSError, locks.AlreadyRunningError) as error:
            failed = str(error)
    index.ingest().look_at(gone)
    st.session_state[_DELETED] = gone
    if failed:
        steer.say(failed, is_error=True)
    dialogs.close()


def _restore(run_ids: Sequence[str]) -> None:
    back, failed = [], ""
    for run_id in run_ids:
        try:
            back.append(trash.restore(run_id).run_id)
        except (TrashError, OSError) as error:
            failed = str(error)
    index.ingest().look_at(back)
    st.session_state[_DELETED] = [run_id for run_id in st.session_state.get(_DELETED, []) if run_id not in back]
    steer.say(failed or f"Restored {', '.join(back)}.", is_error=bool(failed))


def draw_undo() -> None:
    """What was deleted just now, and the way back; where nothing was, nothing."""
    there = {run.run_id for run in trash.deleted_runs()} if st.session_state.get(_DELETED) else set()
    gone = [run_id for run_id in st.session_state.get(_DELETED, []) if run_id in there]
    if not gone or not access.may_steer():
        return
    with st.container(horizontal=True, vertical_alignment="center", border=True, key="undo_delete"):
        name = wording.plain(gone[0]) if len(gone) == 1 else f"{len(gone)} runs"
        st.markdown(f"Deleted {name}. It can be undone for {UNDO_DAYS} days.", width="content")
        st.button("Undo", icon=":material/undo:", key="undo_delete_now", on_click=_restore, args=(gone,))


def draw_trash() -> None:
    """Every run that can be restored, folded away."""
    if not access.may_steer() or not (deleted := trash.deleted_runs()):
        return
    fold = st.expander(f"Deleted runs ({len(deleted)})", icon=":material/delete:", key="trash", on_change="rerun")
    if fold.open:
        with fold:
            for run in deleted[:50]:
                with st.container(horizontal=True, vertical_alignment="center"):
                    by = f" by {run.deleted_by}" if run.deleted_by else ""
                    sentence = f"{run.run_id}: deleted {wording.moment(run.deleted_at)}{by}, final on "
                    st.markdown(wording.plain(f"{sentence}{wording.moment(run.final_at)}"), width="content")
                    st.button("Restore", key=f"restore:{run.run_id}", on_click=_restore, args=([run.run_id],))
            if len(deleted) > 50:
                st.caption(f"Showing 50 of {len(deleted)}; all of them are in `{trash.trash_folder()}`.")
