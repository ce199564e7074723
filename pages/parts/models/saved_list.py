"""The models that are saved: what they are, where their key is, a test, a run with one, and a way to remove them."""

from __future__ import annotations

import shlex

import streamlit as st

from engine import supervisor
from engine.errors import EngineError
from pages.parts import access, wording
from pages.parts.models import trial_result
from pages.parts.new_run import kept
from storage.run.saved_models import KeyPlace, ModelKind, SavedModel

KINDS = {ModelKind.ENDPOINT: "endpoint", ModelKind.COMMAND: "program", ModelKind.AGENT: "agent"}
KEYS = {KeyPlace.KEYRING: "key in this system's keyring", KeyPlace.FILE: "key in a file that only this user may read"}


def draw() -> None:
    """One line each; nothing where none is saved."""
    saved, why = supervisor.saved_models()
    if why:
        st.warning(wording.sentence(why), icon=":material/warning:")
    if saved:
        st.markdown("## Saved models")
    refusal = access.why_nothing_is_saved()
    for entry in saved:
        with st.container(border=True, key=f"saved:{entry.name}"):
            _draw(entry, refusal)


def _draw(entry: SavedModel, refusal: str) -> None:
    row = st.container(horizontal=True, vertical_alignment="center")
    row.markdown(f"**{wording.plain(entry.name)}** · {KINDS[entry.kind]} · {wording.plain(about(entry))}")
    is_asked = row.button("Test", icon=":material/network_check:", key=f"try:{entry.name}", disabled=bool(refusal),
                          help=f"off: {refusal}" if refusal else None)  # fmt: skip
    if access.may_steer() and row.button(
        "Start a run with it", icon=":material/play_arrow:", key=f"run_with:{entry.name}",
        help="opens New run with this model chosen",
    ):  # fmt: skip
        kept.choose("model", entry.name)
        st.switch_page("new_run.py")
    with row.popover("Remove", icon=":material/delete:", disabled=bool(refusal)):
        st.markdown("Its key is removed too. A run that began with it keeps its settings, not the key.")
        if st.button(f"Remove {entry.name}", key=f"remove:{entry.name}", type="primary"):
            _remove(entry.name)
    if is_asked and not refusal:
        trial_result.draw(entry)


def _remove(name: str) -> None:
    try:
        supervisor.remove_model(name)
    except EngineError as error:
        st.error(wording.sentence(str(error)), icon=":material/error:")
        return
    st.rerun()


def about(entry: SavedModel) -> str:
    """Where it is, and where its key."""
    if entry.program is not None:
        allowed = entry.program.evaluations
        return shlex.join(entry.program.command) + (f" · {allowed} evaluations a call" if allowed else "")
    assert entry.endpoint is not None
    variable = entry.endpoint.key_variable
    key = KEYS[entry.key] if entry.key else f"key in the variable {variable}" if variable else "no key"
    return f"{entry.endpoint.model} at {entry.endpoint.base_url or 'OpenAI'} · {key}"
