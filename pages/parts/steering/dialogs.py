"""Dialogs over a page of which a part is drawn again whenever something happens.

What is open stands in the session; it is drawn with the whole page and never with that part. Trap: what the browser has
not been sent yet of a part is dropped when the part is drawn again, but what a dialog in it holds is a part of its own
and is sent: it then has no dialog to go into, and the page goes blank. Trap: a click in a dialog that arrives together
with news draws only the part of the page with the news. So a callback notes the click, and the page follows: `sweep`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeVar

import streamlit as st

from storage.run.steering.verbs import CommandKind

_KEY, _NEWS, _DRAFTS = "open_dialog", "dialog_news", "dialog_drafts"
DRAFTED = ("hint_text", "try_hint")
"""Fields whose text is kept when their dialog is closed without having been confirmed."""
T = TypeVar("T")


class Dialog(StrEnum):
    """Every dialog there is; at most one is open at a time. NEEDS_ENGINE are of use while an engine works."""

    STOP = "stop"
    END = "end"
    TRY_AGAIN = "try_again"
    BASE = "base"
    MODEL = "model"
    CLASS = "class"
    HINT = "hint"
    LIMITS = "limits"
    RECORDING = "recording"
    TECHNIQUE = "technique"
    KERNEL_STATE = "kernel_state"
    EXPECTATION = "expectation"
    SWITCH = "switch"
    RULE = "rule"
    REVERT = "revert"
    IMPORT = "import"
    LABELS = "labels"
    MARK = "mark"
    CAPTURE = "capture"
    DELETE_NETWORK = "delete_network"
    START_REGIONS = "start_regions"
    SEARCH_KERNELS = "search_kernels"
    START_SUITE = "start_suite"
    STOP_SUITE = "stop_suite"


# Where a person is asked once more, by verb. To go back is of use without an engine too, as a new run; and a run that
# is over goes on with other limits.
OF_VERB = {
    CommandKind.STOP: Dialog.STOP,
    CommandKind.ROLL_BACK: Dialog.TRY_AGAIN,
    CommandKind.SET_BASE: Dialog.BASE,
    CommandKind.PIN: Dialog.BASE,
    CommandKind.SET_MODEL: Dialog.MODEL,
    CommandKind.RETRY: Dialog.MODEL,
    CommandKind.SET_CLASS: Dialog.CLASS,
    CommandKind.HINT: Dialog.HINT,
    CommandKind.SET_BUDGET: Dialog.LIMITS,
}
NEEDS_ENGINE = {*OF_VERB.values()} - {Dialog.TRY_AGAIN, Dialog.LIMITS}


@dataclass(slots=True)
class Opened:
    """An open dialog: about which run, and which kernel to begin with; what was read when it opened.

    `subject` names what a dialog that is about no run is about. `is_over`: whether the run had no engine when the page
    was drawn last, None before it was.
    """

    dialog: Dialog
    run_id: str
    candidate_id: str
    is_confirmed: bool = False
    is_over: bool | None = None
    subject: str = ""
    held: dict[str, Any] = field(default_factory=dict)


def ask(dialog: Dialog, run_id: str = "", candidate_id: str = "", subject: str = "") -> None:
    """Have it open from the next drawing on; for the callback of a button."""
    drafts = st.session_state.get(_DRAFTS, {})
    for name in DRAFTED:  # set, not left to the field: a browser would show what was sent the last time
        st.session_state[name] = drafts.get((run_id, name), "")
    st.session_state[_KEY] = Opened(dialog, run_id, candidate_id, subject=subject)
    st.session_state[_NEWS] = True


def opened() -> Opened | None:
    """The dialog that is open, if any."""
    dialog: Opened | None = st.session_state.get(_KEY)
    return dialog


def close() -> None:
    """Forget what is open, but for what was typed."""
    if dialog := opened():
        drafts = st.session_state.setdefault(_DRAFTS, {})
        drafts |= {(dialog.run_id, name): st.session_state[name] for name in DRAFTED if name in st.session_state}
    if st.session_state.pop(_KEY, None):
        st.session_state[_NEWS] = True


def text_area(label: str, name: str, height: int, placeholder: str = "") -> str:
    """A field of `DRAFTED`."""
    return str(st.text_area(label, key=name, height=height, max_chars=2000, placeholder=placeholder) or "")


def sweep() -> None:
    """Draw the whole page where something became of a dialog and only a part is being drawn."""
    if st.session_state.get(_NEWS):
        st.rerun()


def enter(place: str) -> None:
    """The whole page is drawn. Close what was opened at another place: a page, and the run that it shows."""
    st.session_state.pop(_NEWS, None)
    if st.session_state.get("place") != place:
        st.session_state["place"] = place
        st.session_state.pop(_KEY, None)


def hold(name: str, read: Callable[[], T]) -> T:
    """What `read` returned when the dialog opened: a choice must not change between a look and a click."""
    dialog = opened()
    if dialog is None:
        return read()
    if name not in dialog.held:
        dialog.held[name] = read()
    value: T = dialog.held[name]
    return value


def buttons(key: str, label: str, icon: str, cancel: str = "Cancel", may: bool = True) -> bool:
    """Both ways out; True once the act was confirmed: then act, and `leave`. Without `may` it cannot be yet.

    Trap: what a callback is given was bound when its button was drawn, before the last word was typed. So the callback
    only notes the click, and the act is done where everything that was typed is known.
    """
    with st.container(horizontal=True, horizontal_alignment="right", key="dialog_buttons"):
        cancelled = st.button(cancel, key=f"{key}_no", on_click=close)
        st.button(label, type="primary", icon=icon, key=f"{key}_yes", on_click=confirm, disabled=not may)
    if cancelled:
        st.rerun()
    return take_confirmed()


def confirm() -> None:
    """Note that the person wants it done."""
    if dialog := opened():
        dialog.is_confirmed = True
        st.session_state[_NEWS] = True


def take_confirmed() -> bool:
    """Whether it was confirmed since the last look. A dialog without its buttons must look too, lest it act later."""
    dialog = opened()
    was = dialog is not None and dialog.is_confirmed
    if dialog:
        dialog.is_confirmed = False
    return was


def leave() -> None:
    """Close the dialog after its act, and draw the whole page."""
    close()
    st.session_state.pop(_DRAFTS, None)
    st.rerun()
