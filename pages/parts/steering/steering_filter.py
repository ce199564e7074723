"""Which commands to show: by verb, by how far they came, by who asked, by a word in them."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from pages.parts import wording
from pages.parts.steering import command_list
from storage.queries import CommandRow
from storage.records import CommandKind

ANY = "any"


def draw(asked: list[CommandRow], has_engine: bool, effects: Mapping[str, str]) -> list[CommandRow]:
    """The filter's fields above, the commands that pass it back."""
    first, second, third, fourth = st.columns(4)
    kinds = [ANY, *sorted({c.kind for c in asked})]
    kind = first.selectbox("Command", kinds, format_func=_verb, key="filter_kind")
    state = second.selectbox("State", [ANY, *command_list.STATES], key="filter_state")
    person = third.selectbox("Sent by", [ANY, *sorted({c.asked_by for c in asked})], key="filter_person")
    words = fourth.text_input("Find", key="filter_words", placeholder="in the command or its result").strip().lower()
    return [
        c for c in asked
        if kind in (ANY, c.kind) and state in (ANY, command_list.stage(c, has_engine)) and person in (ANY, c.asked_by)
        and words in f"{c.kind} {c.argument} {c.note} {effects.get(c.command_id, '')}".lower()
    ]  # fmt: skip


def _verb(kind: str) -> str:
    return ANY if kind == ANY else wording.COMMAND_NAME[CommandKind(kind)]
