"""The browser's address: kept true to what the page shows, and plain words where it leads nowhere, or not yet.

Trap: a link from a page to the same page with other parameters draws the other content, but the browser keeps the old
address and sends the old parameters with the next rerun of a fragment.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from urllib.parse import unquote, urlsplit

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.parts import client, wording
from pages.parts.status import now, tab_title
from storage.run import damage, folder


def confirm(page: str, subject: str) -> None:
    """Tell the browser the parameters that this run of the page was asked for. `subject` is what they lead to; it is
    told only when the page showed something else before, since each word of it is a step of the browser's history."""
    key = f"address:{page}"
    last = st.session_state.get(key)
    st.session_state[key] = subject
    if last not in (None, subject):
        st.query_params.from_dict(st.query_params.to_dict())


@contextmanager
def place(page: str, subject: str) -> Iterator[None]:
    """Where the content of this page goes; emptied first where the page showed another subject before.

    Trap: the browser replaces what stands there piece by piece, from the top. Buttons of the run that is left stood
    under the name of the one that comes, and a click on them was a command to the run that is left.
    """
    key = f"drawn:{page}"
    is_other = st.session_state.get(key, subject) != subject
    if is_other:
        st.session_state[key] = None  # a drawing that is broken off leaves something of both
    with _emptied() if is_other else st.container():
        yield
    st.session_state[key] = subject


def _emptied() -> DeltaGenerator:
    """A container in whose place the browser keeps nothing. Trap: a container has what one before it held until that is
    replaced, and an `st.empty` alone may be joined with what follows it before it is sent; a block of another kind has
    nothing and is sent."""
    spot = st.empty()
    spot.expander("")
    return spot.container()


def unknown_run(run_id: str, token: str) -> None:
    """No such run in the index: unknown, or on disk and about to be read."""
    tab_title.say("Run")
    st.title("Run", anchor=False)
    now.watch([run_id] if run_id else [], is_overview=True, token=token)
    settings = damage.examine(folder.run_at(run_id), 0).settings if _is_on_disk(run_id) else ""
    if settings:
        damages = damage.Damage(settings=settings)
        sentence = f"run.json cannot be read: {settings}. {damage.advice(damages)}"
        st.error(f"**{damage.title(damages)}.** {wording.plain(sentence)}", icon=":material/broken_image:")
    elif not run_id:
        st.info("Choose a run from the list.", icon=":material/monitoring:")
    elif _is_on_disk(run_id):
        st.info("This run's journal is being read; it appears here in a moment.", icon=":material/hourglass_top:")
    elif sentence := _why_ignored(run_id):
        st.warning(wording.plain(sentence), icon=":material/folder_off:")
    else:
        st.warning(
            f"There is no run **{wording.plain(run_id)}** under `{folder.runs_folder()}`. "
            "It may have been deleted, or belong to another TILEWRIGHT_HOME.",
            icon=":material/search_off:",
        )
    st.page_link("overview.py", label="All runs", icon=":material/arrow_back:")


def unknown_kernel(run_id: str, candidate_id: str) -> None:
    """The run is known, the kernel is not."""
    tab_title.say("Kernel")
    st.title("Kernel", anchor=False)
    st.warning(
        f"This run has no kernel **{wording.plain(candidate_id) or 'without a name'}**.", icon=":material/search_off:"
    )
    st.page_link("run.py", label="Back to the run", icon=":material/arrow_back:", query_params={"run": run_id})


def unknown_page(names: Collection[str]) -> str:
    """The name of the page that the browser asks for, if there is none of that name; empty where there is, and for an
    address with several parts."""
    asked = client.page_in(unquote(urlsplit(str(st.context.url or "")).path))
    return "" if asked in names or "/" in asked else asked


def draw_unknown_page() -> None:
    """In the place of a page that there is not."""
    st.title("No such page", anchor=False)
    asked = wording.plain(unknown_page([]))
    st.warning(f"There is no page **{asked}** here. The address may be mistyped or old.", icon=":material/search_off:")
    st.page_link("overview.py", label="All runs", icon=":material/arrow_back:")


def _why_ignored(run_id: str) -> str:
    asked = folder.run_at(run_id)
    claimed = folder.claimed_id(asked)
    return folder.why_ignored(asked, claimed) if claimed else ""


def _is_on_disk(run_id: str) -> bool:
    try:
        folder.find_run(run_id)
    except FileNotFoundError:
        return False
    return True
