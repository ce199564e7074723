"""Every model call about a kernel: the exact prompt, the exact reply, what it cost."""

from __future__ import annotations

import json

import streamlit as st

from pages.parts import index, prompt_shares, texts, wording
from storage import queries
from storage.models import CallFailure
from storage.queries import CandidateRow, ModelCallRow

BOX = 460


def draw(run_id: str, candidate: CandidateRow) -> None:
    """Calls oldest first; the text of a call is loaded when it is opened."""
    calls = queries.model_calls(index.current(), run_id, candidate.candidate_id)
    if not calls:
        st.caption("No model call concerns this kernel.")
    made = [c for c in calls if c.made_id == candidate.candidate_id]
    for call in calls:
        _call(run_id, candidate, call, is_open=bool(made) and call is made[-1])


def _call(run_id: str, candidate: CandidateRow, call: ModelCallRow, is_open: bool) -> None:
    led = "led to this kernel" if call.made_id == candidate.candidate_id else "about this kernel"
    size = f"{wording.tokens(call.input_tokens)} → {wording.tokens(call.output_tokens)} tokens"
    title = f"{str(call.role).capitalize()} ({led}) · {size}"
    details = st.expander(
        f"{title} · {wording.cost(call.cost_usd)} · {wording.seconds(call.seconds)}",
        expanded=is_open,
        key=f"call:{call.seq}",
        on_change="rerun",
    )
    if not details.open:
        return
    with details:
        st.caption(_facts(call))
        if call.finish_reason in set(CallFailure):
            name = wording.FAILURE_NAME[CallFailure(call.finish_reason)]
            st.warning(f"This call gave no usable reply: {name}.", icon=":material/cloud_off:")
        elif call.finish_reason not in ("stop", "end_turn"):
            st.warning(
                f"The reply ended because of “{wording.plain(call.finish_reason)}”.", icon=":material/content_cut:"
            )
        prompt, reply = st.columns(2, gap="medium")
        with prompt:
            stored = texts.source(run_id, call.prompt_blob)
            if found := prompt_shares.of_prompt(stored):
                st.caption(f"Share of each part: {prompt_shares.sentence(found)}")
            for role, text in messages(stored):
                st.markdown(f"**Prompt, {wording.plain(role)}** :gray[{len(text):,} characters]")
                st.code(text, language=None, wrap_lines=True, height=BOX if len(text) > 1500 else "content")
        with reply:
            text = texts.source(run_id, call.reply_blob) if call.reply_blob else ""
            st.markdown(f"**Reply** :gray[{len(text):,} characters]")
            st.code(text, language=None, wrap_lines=True, height=BOX if len(text) > 1500 else "content")


def _facts(call: ModelCallRow) -> str:
    parts = [
        wording.plain(call.model),
        wording.moment(call.at),
        f"{wording.tokens(call.input_tokens)} tokens in ({wording.tokens(call.cached_tokens)} from cache)",
        f"{wording.tokens(call.output_tokens)} out ({wording.tokens(call.reasoning_tokens)} reasoning)",
        f"cost {wording.plain(wording.cost(call.cost_usd))}",
        *(["tokens and cost estimated from characters"] if call.is_estimated else []),
        wording.seconds(call.seconds),
        f"finish reason {wording.plain(call.finish_reason)}",
    ]
    return " · ".join([*parts, "a profile was shown"] if call.is_profile_exposed else parts)


def messages(text: str) -> list[tuple[str, str]]:
    """The messages of a stored prompt; a text that is no list of messages is one message."""
    try:
        found = json.loads(text)
        return [(str(m["role"]), str(m["text"])) for m in found]
    except (json.JSONDecodeError, TypeError, KeyError):
        return [("text", text)]
