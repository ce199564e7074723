"""What was chosen and typed on *New run*, kept while another page is shown, as where a model is connected. Streamlit
forgets a field that is not drawn. An uploaded file is not kept: a browser lets no page choose one."""

from __future__ import annotations

import streamlit as st

_LIKE = "new_run_like"
FIELDS = {
    "task_source", "task", "task_path", "model", "strategy", "toolchain", "device", "preset", "width", "effort",
    "patch_form", "temperature", "model_options", "compiler_hint", "compiled_start", "tune", "weight",
    "own_baseline_source", "prompts", "knowledge_path", "knowledge_frozen", "max_calls", "max_cost", "max_tokens",
    "max_minutes", "target", "stop_at", "ask:new", "silence:new", "after:new",
}  # fmt: skip
KINDS = (
    "language:", "size:", "library:", "precision:", "dtype:", "mode:", "backward:", "compare_modules:", "depths:",
    "max_calls:", "max_cost:", "max_tokens:", "max_minutes:", "target:", "stop_at:", "option:", "knowledge:",
    "baselines:",
)  # fmt: skip
"""Keys of fields of which there are several, by how they begin."""
ELSEWHERE = "option:fork:"
"""Fields of the same look in a dialog of a run's page."""


def keep() -> None:
    """On another page: hold on to what the form has."""
    for key in _keys():
        st.session_state[key] = st.session_state[key]


def begin(like: str) -> None:
    """On the page itself, before its fields: a form that begins as another run does has nothing of the last one."""
    if st.session_state.get(_LIKE, like) != like:
        forget()
    st.session_state[_LIKE] = like


def forget() -> None:
    """Begin anew, as after a run was started."""
    for key in _keys():
        del st.session_state[key]


def _keys() -> list[str]:
    keys = map(str, st.session_state)
    return [key for key in keys if key in FIELDS or (key.startswith(KINDS) and not key.startswith(ELSEWHERE))]
