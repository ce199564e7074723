"""Networks: the list, and what one of them takes where, and which of its regions are worth a kernel. `?network=` names
it, `?region=` one region of it."""

from __future__ import annotations

import streamlit as st

from pages.parts import change_token, wording
from pages.parts.network import networks_list
from pages.parts.network_folders import WATCHED
from pages.parts.status import address, now


@st.fragment
def live(name: str) -> None:
    """The page; drawn again when a network has news."""
    watched = [f"{WATCHED}{name}"]
    now.watch(watched, is_overview=False, token=change_token.of(watched, is_overview=False))
    if opened := networks_list.draw():
        st.switch_page("networks.py", query_params={"network": opened})


asked = st.query_params.get("network", "")
address.confirm("networks", asked)
with st.container(horizontal=True, vertical_alignment="center"):
    st.title(wording.plain(asked) or "Networks", anchor=False, width="content")
live(asked)
