"""What was chosen, typed and uploaded on *New run*, kept while another page is shown, as where a model is connected.
Streamlit forgets a field that is not drawn. No page can put a file into a browser's field for files: what was uploaded
stands below it by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import streamlit as st

from pages.parts import wording

_LIKE, _LEFT, _KEPT = "new_run_like", "new_run_left", "new_run_kept"
FIELDS = {
    "task_source", "task", "task_path", "model", "strategy", "toolchain", "device", "preset", "width", "effort",
    "patch_form", "temperature", "model_options", "compiler_hint", "compiled_start", "tune", "weight",
    "own_baseline_source", "prompts", "knowledge_path", "knowledge_frozen", "max_calls", "max_cost", "max_tokens",
    "max_minutes", "target", "stop_at", "ask:new", "silence:new", "after:new",
}  # fmt: skip
KINDS = (
    "language:", "size:", "library:", "precision:", "dtype:", "mode:", "backward:", "compare_modules:", "depths:",
    "max_calls:", "max_cost:", "max_tokens:", "max_minutes:", "target:", "stop_at:", "option:", "knowledge:",
    "baselines:", "uploaded:",
)  # fmt: skip
"""Keys of fields of which there are several, by how they begin."""
ELSEWHERE = "option:fork:"
"""Fields of the same look in a dialog of a run's page."""


@dataclass(frozen=True)
class Upload:
    """A file that a person uploaded."""

    name: str
    content: bytes


def uploads(label: str, key: str, endings: list[str], *, is_one: bool = False) -> list[Upload]:
    """A field for files; those that were uploaded last, oldest first, also where the field has been left meanwhile."""
    given = st.file_uploader(
        label, endings, accept_multiple_files=not is_one, key=key, max_upload_size=1, on_change=_take, args=(key,)
    )
    found: list[Upload] = st.session_state.get(f"uploaded:{key}", [])
    if found and not given:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(
                f"Uploaded before: {wording.plain(', '.join(upload.name for upload in found))}", width="content"
            )
            st.button("Remove", icon=":material/close:", key=f"remove:{key}", on_click=_take, args=(key,))
    return found


def _take(key: str) -> None:
    """What the field holds now takes the place of what was uploaded before."""
    given = st.session_state[key] or []
    files = given if isinstance(given, list) else [given]
    st.session_state[f"uploaded:{key}"] = [Upload(file.name, file.getvalue()) for file in files]


def leave() -> None:
    """Another page is drawn: what the form had is to be there again once somebody comes back."""
    st.session_state[_LEFT] = True


def begin(like: str) -> None:
    """On the page itself, before its fields: they are as they were left. A form that begins as another run does has
    nothing of the last one."""
    is_back = st.session_state.pop(_LEFT, False)
    if st.session_state.get(_LIKE, like) != like:
        forget()
    elif is_back:
        kept: dict[str, Any] = st.session_state.get(_KEPT, {})
        for key, value in kept.items():
            st.session_state.setdefault(key, value)
    st.session_state[_LIKE] = like


def choose(key: str, value: Any) -> None:
    """Have one field begin with this value once its page is shown; the others are as they were left. A form that began
    as another run does begins anew."""
    if st.session_state.get(_LIKE):
        forget()
    st.session_state[_LIKE], st.session_state[_LEFT] = "", True
    st.session_state[_KEPT] = {**st.session_state.get(_KEPT, {}), key: value}


def keep() -> None:
    """After its fields. Trap: where a page is left Streamlit forgets them before anything of the next one runs."""
    st.session_state[_KEPT] = {key: st.session_state[key] for key in _keys()}


def forget() -> None:
    """Begin anew, as after a run was started."""
    st.session_state.pop(_KEPT, None)
    for key in _keys():
        del st.session_state[key]


def _keys() -> list[str]:
    return [key for key in map(str, st.session_state) if is_kept(key)]


def is_kept(key: str) -> bool:
    """Whether what the field of this key holds comes back with the page."""
    return key in FIELDS or (key.startswith(KINDS) and not key.startswith(ELSEWHERE))
