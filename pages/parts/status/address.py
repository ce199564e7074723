"""Keeps the browser's address true to what the page shows.

Trap: a link from a page to the same page with other parameters draws the other content, but the browser keeps the old
address and sends the old parameters with the next rerun of a fragment.
"""

from __future__ import annotations

import streamlit as st


def confirm(page: str, subject: str) -> None:
    """Tell the browser the parameters that this run of the page was asked for. `subject` is what they lead to; it is
    told only when the page showed something else before, since each word of it is a step of the browser's history."""
    key = f"address:{page}"
    last = st.session_state.get(key)
    st.session_state[key] = subject
    if last not in (None, subject):
        st.query_params.from_dict(st.query_params.to_dict())
