"""A box for code with line numbers that tells what is typed while it is typed. Knows no run."""

from __future__ import annotations

import streamlit as st

from pages.parts import client

_editor = st.components.v2.component(
    "tilewright_editor",
    html='<div class="editor"><pre class="numbers" aria-hidden="true"></pre>\n'
    '<textarea spellcheck="false" autocapitalize="off" wrap="off"></textarea></div>',
    css=client.read("widgets/editor.css"),
    js=client.read("widgets/editor.js"),
)


def draw(name: str, text: str, placeholder: str, key: str) -> str:
    """The box, beginning with `text`; what stands in it. `name` is what a reader hears."""
    shown = {"name": name, "text": text, "placeholder": placeholder}
    state = _editor(data=shown, key=client.key(key), default={"text": text}, on_text_change=lambda: None)
    return str(state.text or "")
