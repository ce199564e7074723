"""The page in front of all others where a login is configured."""

from __future__ import annotations

import streamlit as st
from streamlit.errors import StreamlitAuthError

from pages.parts import access, wording


def pass_or_stop() -> None:
    """Go on for those who may look; end the page with a way to log in for everybody else."""
    if not access.is_login_wanted():
        return
    user = st.user.to_dict()
    if access.is_welcome(user):
        return
    with st.container(border=True, horizontal_alignment="center"):
        st.title("Tilewright", anchor=False, text_alignment="center")
        if user.get("is_logged_in"):
            _stranger(str(user.get("email") or user.get("name") or "This login"))
        elif st.button("Log in", icon=":material/login:", type="primary", key="log_in"):
            _log_in()
    st.stop()


def _stranger(name: str) -> None:
    st.warning(
        f"**{wording.plain(name)}** has no access. Ask the server's administrator to add this address to "
        f"{access.USERS_VARIABLE}.",
        icon=":material/block:",
    )
    st.button("Log out", icon=":material/logout:", on_click=st.logout, key="log_out")


def _log_in() -> None:
    try:
        st.login()
    except StreamlitAuthError as error:
        st.error(wording.plain(str(error)), icon=":material/error:")


def foot() -> None:
    """Who looks, and the way out; nothing where no login is configured."""
    if access.is_login_wanted():
        with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="right"):
            st.caption(f":material/person: {wording.plain(access.person())}", width="content")
            st.button("Log out", icon=":material/logout:", on_click=st.logout, type="tertiary", key="log_out")
