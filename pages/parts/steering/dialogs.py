"""Dialogs over a page of which a part is drawn again whenever something happens.

What is open stands in the session; it is drawn with the whole page and never with that part. Trap: what the browser has
not been sent yet of a part is dropped when the part is drawn again, but what a dialog in it holds is a part of its own
and is sent: it then has no dialog to go into, and the page goes blank. Trap: a click in a dialog that arrives together
with news draws only the part of the page with the news. So a callback notes the click, and the page follows: `sweep`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeVar

import streamlit as st

from pages.parts import index, run_state, wording
from storage.index import queries
from storage.run.steering.verbs import CommandKind

_KEY, _NEWS, _DRAFTS = "open_dialog", "dialog_news", "dialog_drafts"
EMPTY = ("hint_text", "try_hint")
"""Fields that are empty where no draft of them is kept: a browser would show what was sent the last time."""
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
    PACKAGE = "package"
    SHIP = "ship"


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
# How the keys begin of fields whose content is kept when their dialog is closed without having been confirmed. Not of
# files, which no page can put into a field, and not of the fields that a dialog shares with *New run*.
DRAFTED: Mapping[Dialog, tuple[str, ...]] = {
    Dialog.HINT: ("hint_text",),
    Dialog.TRY_AGAIN: ("try_hint",),
    Dialog.MODEL: ("model_name", "model_options_line"),
    Dialog.LIMITS: ("more_",),
    Dialog.LABELS: ("label_", "labels_add"),
    Dialog.MARK: ("mark_kind", "mark_note"),
    Dialog.TECHNIQUE: ("technique_", "expected_", "change_why"),
    Dialog.KERNEL_STATE: ("state_", "change_why"),
    Dialog.EXPECTATION: ("expectation_state", "expected_", "change_why"),
    Dialog.RULE: ("rule_words", "change_why"),
    Dialog.SWITCH: ("change_why",),
    Dialog.REVERT: ("change_why",),
    Dialog.CAPTURE: ("network_entry", "network_name", "network_mode", "network_device", "network_keep",
                     "network_batch", "network_tokens", "network_tuned"),
    Dialog.SEARCH_KERNELS: ("search_top", "search_limit", "search_model", "search_steps"),
    Dialog.START_SUITE: ("suite_word:", "suite_more:"),
}  # fmt: skip
_YES, _NO = "_yes", "_no"


@dataclass(slots=True)
class Opened:
    """An open dialog: about which run, and which kernel to begin with; what was read when it opened.

    `subject` names what a dialog that is about no run is about. `is_over`: whether the run had no engine when the page
    was drawn last, None before it was; `read_as`: the same for the button that confirmed. `is_overtaken`: that was no
    longer so when the act was to be done, so nothing was. `begun`: what its fields held before anything was typed;
    `last`: when it was drawn last, as Streamlit forgets them where a page is left before anything of the next one runs.
    """

    dialog: Dialog
    run_id: str
    candidate_id: str
    is_confirmed: bool = False
    is_over: bool | None = None
    read_as: bool | None = None
    is_overtaken: bool = False
    subject: str = ""
    held: dict[str, Any] = field(default_factory=dict)
    begun: dict[str, Any] = field(default_factory=dict)
    last: dict[str, Any] = field(default_factory=dict)

    @property
    def place(self) -> tuple[str, ...]:
        """What a draft belongs to. A hint is of its run, whichever kernel it was begun at; a mark is of its kernel."""
        return self.dialog, self.run_id, self.subject, self.candidate_id if self.dialog is Dialog.MARK else ""

    def fields(self) -> dict[str, Any]:
        """What its fields hold now, by key, of those that are kept."""
        kept = DRAFTED.get(self.dialog, ())
        keys = [key for key in map(str, st.session_state) if key.startswith(kept) and not key.endswith((_YES, _NO))]
        return {key: st.session_state[key] for key in keys} if kept else {}


def ask(dialog: Dialog, run_id: str = "", candidate_id: str = "", subject: str = "") -> None:
    """Have it open from the next drawing on; for the callback of a button."""
    asked = Opened(dialog, run_id, candidate_id, subject=subject)
    draft: dict[str, Any] = st.session_state.get(_DRAFTS, {}).get(asked.place, {})
    for name, value in (dict.fromkeys(EMPTY, "") | draft).items():
        st.session_state[name] = value
    st.session_state[_KEY] = asked
    st.session_state[_NEWS] = True


def opened() -> Opened | None:
    """The dialog that is open, if any."""
    dialog: Opened | None = st.session_state.get(_KEY)
    return dialog


def close() -> None:
    """Forget what is open, but for what was typed."""
    if dialog := opened():
        _keep(dialog, dialog.fields())
        del st.session_state[_KEY]
        st.session_state[_NEWS] = True


def _keep(dialog: Opened, fields: Mapping[str, Any]) -> None:
    """What was typed, for the next time."""
    drafts: dict[tuple[str, ...], dict[str, Any]] = st.session_state.setdefault(_DRAFTS, {})
    before, begun = drafts.get(dialog.place, {}), dialog.begun
    # What was not touched is no draft: it would come back over what somebody else has changed meanwhile.
    drafts[dialog.place] = {
        key: value for key, value in fields.items() if key in before or key not in begun or begun[key] != value
    }


def forget() -> None:
    """Close the dialog after its act: what was typed has been used."""
    dialog = opened()
    close()
    if dialog:
        st.session_state[_DRAFTS].pop(dialog.place, None)


def name_run(title: str, run_id: str) -> None:
    """Say which run the dialog is about: first thing in it; and why it was not done with the last click."""
    st.markdown(f"**{wording.plain(title)}** :gray[{wording.plain(run_id)}]")
    if (dialog := opened()) and dialog.is_overtaken:
        turned = "been resumed" if dialog.read_as else "ended"
        st.warning(
            f"The run has {turned} while this was open. Nothing was sent: choose again.", icon=":material/warning:"
        )


def text_area(label: str, name: str, height: int, placeholder: str = "") -> str:
    """A field of `EMPTY`."""
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
        if dialog := opened():
            _keep(dialog, dialog.last)
            del st.session_state[_KEY]


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
    if dialog := opened():
        dialog.last = dialog.fields()
        dialog.begun = dialog.last | dialog.begun
    with st.container(horizontal=True, horizontal_alignment="right", key="dialog_buttons"):
        cancelled = st.button(cancel, key=f"{key}{_NO}", on_click=close)
        st.button(label, type="primary", icon=icon, key=f"{key}{_YES}", on_click=confirm, disabled=not may,
                  args=(dialog.is_over if dialog else None,))  # fmt: skip
    if cancelled:
        st.rerun()
    return take_confirmed()


def confirm(read_as: bool | None) -> None:
    """Note that the person wants done what the dialog said for a run that was over, or was not."""
    if dialog := opened():
        dialog.is_confirmed, dialog.read_as = True, read_as
        st.session_state[_NEWS] = True


def take_confirmed() -> bool:
    """Whether it was confirmed since the last look. A dialog without its buttons must look too, lest it act later.

    Where the run has ended or been resumed since the button was drawn, the page is drawn again with what holds now:
    what the person read in the dialog would not happen.
    """
    dialog = opened()
    if dialog is None or not dialog.is_confirmed:
        return False
    dialog.is_confirmed = False
    dialog.is_overtaken = _has_turned(dialog)
    if dialog.is_overtaken:
        st.rerun()
    return True


def _has_turned(dialog: Opened) -> bool:
    """Whether the run has ended, or been resumed, since the button that confirmed was drawn; to force an end tells that
    itself."""
    if (
        dialog.dialog is Dialog.END
        or dialog.read_as is None
        or (run := queries.run(index.current(), dialog.run_id)) is None
    ):
        return False
    is_over = run_state.of(run).is_over or not run_state.has_engine(run.run_id)  # its last word may not be read yet
    return is_over is not dialog.read_as


def leave() -> None:
    """Close the dialog after its act, and draw the whole page."""
    forget()
    st.rerun()
