"""Approving steps before they begin: the form while a step waits, the rule that says which steps are asked about."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from pages.parts import access, index, method, number_field, wording
from pages.parts.steering import drafts, steer
from pages.parts.steering.verb_words import VERB_WORDS
from storage.index import queries
from storage.index.queries import ApprovalRow, RunRow
from storage.run.method_words import MethodWords
from storage.run.settings import RunState, StepKind
from storage.run.steering.command_arguments import Ask, AskFirst, Fallback
from storage.run.steering.steering_state import SteeringState
from storage.run.steering.verbs import CommandKind

EVALUATING: Mapping[str, str] = {
    StepKind.COMPILE: "Compile",
    StepKind.CHECK: "Compare with the reference:",
    StepKind.TIME: "Time",
    StepKind.PROFILE: "Profile",
    StepKind.SUBMIT: "Take over the kernel you sent, based on",
}
ASK_NAME = {Ask.OFF: "no step", Ask.CALLS: "steps that call the model", Ask.ALL: "every step"}
SILENCE_NAME = {Fallback.NEVER: "wait", Fallback.YES: "approve", Fallback.NO: "reject"}


def draw(run: RunRow, state: RunState) -> None:
    """The form while a step waits for approval; nothing at all otherwise."""
    asked = queries.open_approval(index.current(), run.run_id)
    if asked is None or state is not RunState.WAITING or not access.may_steer():
        return
    with st.container(border=True, key="approval_box"):
        words = method.words(run.run_id)
        word = words.distinct
        where = wording.plain(f"step {asked.step}, {asked.kind}, {word} {asked.depth}")
        st.markdown(f"## Approve this step? :gray[{where}]")
        st.markdown(wording.plain(_sentence(asked, words)))
        st.caption(wording.plain(_silence(asked, word)))
        key = f"draft:hint:{run.run_id}:{asked.step}"
        drafts.begin(key)
        st.text_area(
            "Hint for the next prompt", key=key, height=68, max_chars=2000, placeholder="optional",
            on_change=drafts.keep, args=(key,),
        )  # fmt: skip
        yes, no = st.columns(2)
        for column, kind in ((yes, CommandKind.APPROVE), (no, CommandKind.SKIP)):
            button = VERB_WORDS[kind]
            column.button(
                button.label, type="primary" if column is yes else "secondary", icon=button.icon,
                key=f"approval_{kind}:{run.run_id}:{asked.step}", width="stretch", on_click=_answer,
                args=(run.run_id, kind, asked.step, key),
            )  # fmt: skip


def _sentence(asked: ApprovalRow, words: MethodWords) -> str:
    about = f" kernel {asked.number} ({asked.summary})" if asked.number else ""
    of_model = words.calls[asked.kind].asked if asked.kind in words.calls else f"Ask the model: {asked.kind}"
    return f"{EVALUATING.get(asked.kind, of_model)}{about}."


def _silence(asked: ApprovalRow, word: str) -> str:
    skipped = "skips only this profile" if asked.kind == StepKind.PROFILE else f"abandons the {word}"
    if asked.fallback is Fallback.NEVER:
        return f"Rejecting {skipped}. The run waits until you decide."
    until = wording.clock(asked.at + asked.after_s)
    done = "approved" if asked.fallback is Fallback.YES else "rejected"
    return f"Rejecting {skipped}. If nobody responds, the step is {done} at about {until}."


def _answer(run_id: str, kind: CommandKind, step: int, key: str) -> None:
    hint = str(st.session_state.get(key, "")).strip()
    if kind is CommandKind.APPROVE and hint:
        steer.send(run_id, CommandKind.HINT, hint)
    steer.send(run_id, kind, str(step))
    drafts.forget(key)


def draw_settings(run: RunRow, steering: SteeringState) -> None:
    """The rule that says which steps are asked about, folded away: most runs need none."""
    words = VERB_WORDS[CommandKind.ASK_FIRST]
    with st.expander(words.label, icon=words.icon, key="approve_steps"):
        if steering.ask_first:
            st.caption(f"Now: {rule_words(steering.ask_first)}")
        with st.form(f"ask_first_form:{run.run_id}", border=False):
            rule_form("steer", [])
            st.form_submit_button("Apply", on_click=_send_rule, args=(run.run_id,))


AFTER = (1, 100_000)  # seconds


def rule_form(name: str, wrong: list[str]) -> AskFirst:
    """The fields of a rule; `name` keeps the keys of two such forms apart. What is wrong is told and added to
    `wrong`."""
    which = (
        st.selectbox("Ask for approval before", list(Ask), format_func=ASK_NAME.__getitem__, key=f"ask:{name}")
        or Ask.OFF
    )
    left, right = st.columns(2)
    fallback = left.selectbox(
        "If nobody responds", list(Fallback)[::-1], format_func=SILENCE_NAME.__getitem__, key=f"silence:{name}"
    )
    after = number_field.draw(
        right, "after (seconds)", f"after:{name}", 60, AFTER[0], wrong, AFTER[1], help="not used with “wait”"
    )  # fmt: skip
    return AskFirst(which, fallback, float(after or 60))


def rule_words(rule: AskFirst) -> str:
    """The rule in force, as its form says it."""
    after = "" if rule.fallback is Fallback.NEVER else f" after {rule.after_s:g} s"
    silence = "" if rule.which is Ask.OFF else f"; if nobody responds: {SILENCE_NAME[rule.fallback]}{after}"
    return f"approval before {ASK_NAME[rule.which]}{silence}"


def _send_rule(run_id: str) -> None:
    state = st.session_state
    if not number_field.is_within(state["after:steer"], *AFTER):
        return  # the form says what is wrong with it
    rule = AskFirst(state["ask:steer"], state["silence:steer"], float(state["after:steer"]))
    steer.send(run_id, CommandKind.ASK_FIRST, str(rule))
