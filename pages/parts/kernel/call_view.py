"""One model call in full: the exact prompt by message and its parts, the exact reply, failed tries. Texts are read when
it is opened."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from pages.parts import texts, wording
from pages.parts.kernel import prompt_shares, transcript
from pages.parts.texts import Text
from pages.parts.widgets import bars
from pages.parts.widgets.bars import Bar
from storage.models import CallFailure
from storage.queries import FailedTryRow, ModelCallRow

BOX = 460
LONG = 1_500
MOST_CHARACTERS = 60_000


def draw(run_id: str, call: ModelCallRow, failed: Sequence[FailedTryRow]) -> None:
    """Facts, then prompt and reply beside each other."""
    st.caption(wording.plain(" · ".join(transcript.facts(call))))
    for one in failed:
        st.markdown(f":material/cloud_off: {wording.plain(transcript.failure(one))}")
    _ending(call)
    left, right = st.columns(2, gap="medium")
    with left:
        _prompt(run_id, call)
    with right:
        _reply(run_id, call)


def _ending(call: ModelCallRow) -> None:
    if call.finish_reason in set(CallFailure):
        name = wording.FAILURE_NAME[CallFailure(call.finish_reason)]
        st.warning(f"No usable reply: {name}.", icon=":material/cloud_off:")
    elif call.finish_reason not in ("stop", "end_turn"):
        st.warning(
            f"The reply ended early (finish reason: {wording.plain(call.finish_reason)}).",
            icon=":material/content_cut:",
        )


def _prompt(run_id: str, call: ModelCallRow) -> None:
    stored = texts.read(run_id, call.prompt_blob)
    if stored.is_gone:
        texts.say_gone(stored, "prompt")
        return
    if shares := prompt_shares.of_prompt(stored.text):
        whole = sum(shares.values()) or 1
        found = [Bar(name, n / whole, prompt_shares.percent(n, whole)) for name, n in shares.items()]
        bars.draw("Share of each part of the prompt", found, "", key=f"shares:{call.seq}")
    for number, (role, text) in enumerate(transcript.messages(stored.text)):
        _text(f"Prompt, {role}", Text(text), f"prompt-{call.seq}-{number}")


def _reply(run_id: str, call: ModelCallRow) -> None:
    if call.reply_blob is None:
        st.caption("No reply stored for this call.")
        return
    _text("Reply", texts.read(run_id, call.reply_blob), f"reply-{call.seq}")
    if call.reasoning_tokens:
        st.caption(
            f"Includes {wording.tokens(call.reasoning_tokens)} reasoning tokens, which the endpoint counts but does "
            "not return."
        )


def _text(name: str, found: Text, file: str) -> None:
    """One text with its length; a long one scrolls in its box, a very long one is cut and can be downloaded."""
    if found.is_gone:
        texts.say_gone(found, name.lower())
        return
    text = found.text
    st.markdown(f"**{wording.plain(name)}** :gray[{len(text):,} characters]")
    if len(text) > MOST_CHARACTERS:
        st.caption(f"Showing {MOST_CHARACTERS:,} of {len(text):,} characters; download it to see all.")
        st.download_button(
            "Download", text, f"{file}.txt", icon=":material/download:", on_click="ignore", key=f"download:{file}"
        )
    st.code(text[:MOST_CHARACTERS], language=None, wrap_lines=True, height=BOX if len(text) > LONG else "content")
