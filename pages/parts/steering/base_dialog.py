"""The kernel that the next depth, or every next depth, starts from. The depth being worked on goes on."""

from __future__ import annotations

import streamlit as st

from pages.parts.steering import dialogs, kernel_choice, steer
from storage.queries import AttemptRow, OrdersRow, RunRow
from storage.records import CommandKind

ONCE, ALWAYS = "next depth only", "every depth until unpinned"


@st.dialog("Base kernel", width="large", icon=":material/keep:", on_dismiss=dialogs.close)
def dialog(run: RunRow, wanted: str = "") -> None:
    """Choose it, see what follows, confirm."""
    found = dialogs.hold("targets", lambda: kernel_choice.targets(run))
    if not found:
        st.info(
            "No kernel to start from yet: no depth with a correct kernel has finished.", icon=":material/hourglass_top:"
        )
        return
    chosen = kernel_choice.draw("Kernel to start from", found, "base_from", wanted)
    how = st.segmented_control("Applies to", [ONCE, ALWAYS], default=ONCE, key="base_how", required=True)
    st.info(preview(chosen, how == ALWAYS), icon=":material/visibility:")
    verb, kind = ("Pin", CommandKind.PIN) if how == ALWAYS else ("Start next from", CommandKind.SET_BASE)
    if dialogs.buttons("base", f"{verb} kernel {chosen.number}", ":material/keep:"):
        steer.send(run.run_id, kind, chosen.candidate_id)
        dialogs.leave()


def preview(chosen: AttemptRow, is_pin: bool) -> str:
    """What will happen, and what is lost."""
    what = "every later depth starts" if is_pin else "the next depth starts"
    then = "until you unpin it" if is_pin else "later depths follow the run's own rule"
    return (
        f"The current depth continues to its end; {what} from kernel {chosen.number}, {then}. "
        "All kernels stay in the run."
    )


def in_force(run: RunRow, orders: OrdersRow) -> None:
    """What a person has set about base kernels, and the way to lift it; nothing without."""
    if orders.next_base:
        name = kernel_choice.number(run, orders.next_base)
        st.caption(f":material/schedule: The next depth starts from {name}")
    if orders.pinned:
        name = kernel_choice.number(run, orders.pinned)
        with st.container(horizontal=True, vertical_alignment="center"):
            st.caption(f":material/keep: Pinned: every depth starts from {name}", width="stretch")
            steer.button("Unpin", run.run_id, CommandKind.UNPIN)
