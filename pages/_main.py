"""Routes: which page is shown for which address. Runs first on every request, deep links included."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from pages.parts import access
from pages.parts.new_run import kept
from pages.parts.status import address, away, behind, menu, notices, presenting, tab_title, welcome
from pages.parts.steering import dialogs

ASSETS = Path(__file__).parent / "assets"

st.set_page_config(page_icon=str(ASSETS / "favicon.png"), layout="wide")
st.logo(str(ASSETS / "logo.png"), size="large", link=None)
access.pass_or_stop()
away.draw()  # first: a server may end before it has drawn the rest
menu.draw()
presenting.draw()
behind.banner()
pages = [
    st.Page("overview.py", title="Runs", icon=":material/monitoring:", default=True),
    st.Page("compare.py", title="Compare", icon=":material/stacked_line_chart:"),
    st.Page("benchmark.py", title="Benchmark", icon=":material/leaderboard:"),
    st.Page("networks.py", title="Networks", icon=":material/account_tree:"),
    st.Page("models.py", title="Models", icon=":material/forum:"),
    st.Page("knowledge.py", title="Knowledge", icon=":material/school:"),
    st.Page("new_run.py", title="New run", icon=":material/add_circle:"),
    st.Page("system.py", title="System", icon=":material/dns:"),
    st.Page("first.py", title="Tilewright in 40 seconds", visibility="hidden"),
    st.Page("run.py", title="Run", visibility="hidden"),
    st.Page("candidate.py", title="Kernel", visibility="hidden"),
    st.Page("edit.py", title="Edit by hand", visibility="hidden"),
    st.Page("steering.py", title="Steering", visibility="hidden"),
    st.Page("technique.py", title="Technique", visibility="hidden"),
    st.Page("kernel_state.py", title="State", visibility="hidden"),
    st.Page("learning.py", title="What a run learned", visibility="hidden"),
]
# A page of its own for an address that leads nowhere: without it Streamlit says so in its own words.
if unknown := address.unknown_page({page.url_path for page in pages}):
    pages.append(st.Page("nowhere.py", title="No such page", url_path=unknown, visibility="hidden"))
page = st.navigation(pages, position="top")
if page.url_path not in ("run", "candidate"):  # these know the name of what they show
    tab_title.say(*(st.query_params[name] for name in ("network", "suite") if name in st.query_params), page.title)
if page is not pages[0]:
    welcome.stay()
if page.url_path != "new_run":
    kept.leave()
dialogs.enter(" ".join([page.url_path, *(st.query_params.get(name, "") for name in ("run", "technique", "state"))]))
page.run()
if page.url_path != "first":  # it fits on one screen
    notices.draw()
access.draw_foot()
