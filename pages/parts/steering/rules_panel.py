"""What kernels must not use and must use: listed, lifted, and set, one sentence each."""

from __future__ import annotations

import streamlit as st

from pages.parts import wording
from pages.parts.steering import steer
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
        with st.form(f"rule_form:{run.run_id}", border=False, clear_on_submit=True):
            st.segmented_control(
                "Every kernel", list(WORDS), format_func=WORDS.__getitem__, default=CommandKind.BAN, key="rule_kind",
                required=True,
            )  # fmt: skip
            st.text_input("What", key="rule_text", max_chars=RULE_LENGTH, placeholder="e.g. atomics, or: 128-bit loads")
            st.caption("Added to every prompt that asks for a kernel, from the next one on, until you remove it.")
            st.form_submit_button("Add rule", icon=":material/rule:", on_click=_send, args=(run.run_id,))


def _rule(run: RunRow, rule: Rule) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(f"**{WORDS[rule.kind]}** {wording.plain(rule.text)}", width="stretch")
        steer.button("Remove", run.run_id, CommandKind.LIFT, rule.command_id, help=f"remove: {rule}")


def _send(run_id: str) -> None:
    if text := " ".join(str(st.session_state.rule_text).split()):
        steer.send(run_id, CommandKind(st.session_state.rule_kind), text)
    else:
        steer.say("Rule not added: it is empty.", is_error=True)
