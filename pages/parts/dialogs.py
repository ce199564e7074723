"""Dialogs over a page that is drawn again whenever something happens.

Trap: a page drawn again without its open dialog forgets it, and a click in it that is on its way is lost. So what is
open stands in the session, every drawing puts it again, and a callback notes the click. Trap: where that click arrives
together with news, only the part of the page with the news is drawn, and the browser keeps the dialog for ever: see
`sweep`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeVar

import streamlit as st

_KEY, _LEFT = "open_dialog", "dialog_left"
T = TypeVar("T")


class Dialog(StrEnum):
    """Every dialog there is; at most one is open at a time."""

    STOP = "stop"
    END = "end"
    TRY_AGAIN = "try_again"
    BASE = "base"
    MODEL = "model"
    CLASS = "class"
    HINT = "hint"
    RECORDING = "recording"


@dataclass(slots=True)
class Opened:
    """An open dialog: about which run, and which kernel to begin with; what was read when it opened."""

    dialog: Dialog
    run_id: str
    wanted: str
    is_confirmed: bool = False
    held: dict[str, Any] = field(default_factory=dict)


def ask(dialog: Dialog, run_id: str, wanted: str = "") -> None:
    """Have it open from the next drawing on; for the callback of a button."""
    st.session_state[_KEY] = Opened(dialog, run_id, wanted)


def opened(dialog: Dialog, run_id: str = "") -> Opened | None:
    """The dialog if it is open, about this run or about any."""
    found: Opened | None = st.session_state.get(_KEY)
    return found if found and found.dialog is dialog and run_id in ("", found.run_id) else None


def close() -> None:
    """Forget what is open."""
    if st.session_state.pop(_KEY, None):
        st.session_state[_LEFT] = True


def sweep() -> None:
    """Draw the whole page where a dialog was closed and only a part is being drawn. First thing of every live part."""
    if st.session_state.get(_LEFT):
        st.rerun()


def enter(place: str) -> None:
    """The whole page is drawn. Close what was opened at another place: a page, and the run that it shows."""
    st.session_state.pop(_LEFT, None)
    if st.session_state.get("place") != place:
        st.session_state["place"] = place
        st.session_state.pop(_KEY, None)


def hold(name: str, read: Callable[[], T]) -> T:
    """What `read` returned when the dialog opened: a choice must not change between a look and a click."""
    found: Opened | None = st.session_state.get(_KEY)
    if found is None:
        return read()
    if name not in found.held:
        found.held[name] = read()
    value: T = found.held[name]
    return value


def buttons(key: str, label: str, icon: str, cancel: str = "Cancel") -> bool:
    """Both ways out; True once the act was confirmed: then act, and `leave`.

    Trap: what a callback is given was bound when its button was drawn, before the last word was typed. So the callback
    only notes the click, and the act is done where everything that was typed is known.
    """
    with st.container(horizontal=True, horizontal_alignment="right"):
        cancelled = st.button(cancel, key=f"{key}_no", on_click=close)
        st.button(label, type="primary", icon=icon, key=f"{key}_yes", on_click=confirm)
    if cancelled:
        st.rerun()
    return take_confirmed()


def confirm() -> None:
    """Note that the person wants it done."""
    found: Opened | None = st.session_state.get(_KEY)
    if found:
        found.is_confirmed = True


def take_confirmed() -> bool:
    """Whether it was confirmed since the last look. A dialog without its buttons must look too, lest it act later."""
    found: Opened | None = st.session_state.get(_KEY)
    was = found is not None and found.is_confirmed
    if found:
        found.is_confirmed = False
    return was


def leave() -> None:
    """Close the dialog and draw the whole page."""
    close()
    st.rerun()
