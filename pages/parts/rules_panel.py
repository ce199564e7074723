"""What kernels must not use and must use: listed, lifted, and set, one sentence each."""

from __future__ import annotations

import streamlit as st

from pages.parts import steer, wording
from storage.queries import OrdersRow, RunRow
from storage.records import CommandKind
from storage.verbs import RULE_LENGTH, Rule

WORDS = {CommandKind.BAN: "must not use", CommandKind.REQUIRE: "must use"}


def draw(run: RunRow, orders: OrdersRow) -> None:
    """The rules in force, each with a button that lifts it, and a form for one more."""
    label = f"Rules for the model ({len(orders.rules)})" if orders.rules else "Rules for the model"
    with st.expander(label, icon=":material/rule:", expanded=bool(orders.rules), key="rules"):
        with st.container():  # always there, so that the form stays where it is
            for rule in orders.rules:
                _rule(run, rule)
        with st.form("rule_form", border=False, clear_on_submit=True):
            st.segmented_control(
                "Every kernel", list(WORDS), format_func=WORDS.__getitem__, default=CommandKind.BAN, key="rule_kind",
                required=True,
            )  # fmt: skip
            st.text_input("What", key="rule_text", max_chars=RULE_LENGTH, placeholder="e.g. atomics, or: 128-bit loads")
            st.caption("From the next prompt on it stands in every prompt that asks for a kernel, until you lift it.")
            st.form_submit_button("Set the rule", icon=":material/rule:", on_click=_send, args=(run.run_id,))


def _rule(run: RunRow, rule: Rule) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(f"**{WORDS[rule.kind]}** {wording.plain(rule.text)}", width="stretch")
        st.button(
            "Lift", key=f"lift:{rule.command_id}", help=f"lift: {rule}", on_click=steer.send,
            args=(run.run_id, CommandKind.LIFT, rule.command_id),
        )  # fmt: skip


def _send(run_id: str) -> None:
    text = " ".join(str(st.session_state.rule_text).split())
    if text:
        steer.send(run_id, CommandKind(st.session_state.rule_kind), text)
