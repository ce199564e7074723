"""Every model call about a kernel, in order: the exact prompt by message and its parts, the exact reply, failed tries,
what it cost; searchable. Texts are read when a call is opened."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from pages.parts import index, texts, wording
from pages.parts.kernel import transcript
from pages.parts.kernel.transcript import Hit
from pages.parts.texts import Text
from pages.parts.widgets import bars
from pages.parts.widgets.bars import Bar
from storage import queries
from storage.models import CallFailure
from storage.queries import CandidateRow, FailedTryRow, ModelCallRow

BOX = 460
LONG = 1_500
MOST_CHARACTERS = 60_000


def draw(run_id: str, candidate: CandidateRow) -> None:
    """Calls oldest first; the text of a call is read when it is opened, or when somebody searches."""
    calls = queries.conversation(index.current(), run_id, candidate.candidate_id)
    failed = queries.failed_tries(index.current(), run_id, candidate.candidate_id)
    if not calls and not failed:
        st.caption("No model calls for this kernel.")
        return
    st.caption(wording.plain(transcript.total(calls, failed)))
    word = st.text_input(
        "Search in prompts and replies", key=f"search:{candidate.candidate_id}", type="search", width=440,
        placeholder="word or phrase",
    )  # fmt: skip
    found = {c.seq: _hits(run_id, c, word or "") for c in calls} if (word or "").strip() else None
    if found is not None:
        count, where = sum(len(hits) for hits in found.values()), sum(bool(hits) for hits in found.values())
        st.caption(f"{wording.counted(count, 'place')} in {where} of {wording.counted(len(calls), 'call')}")
    made = [c for c in calls if c.made_id == candidate.candidate_id]
    for number, call in enumerate(calls, 1):
        if found is None or found[call.seq]:
            is_open = bool(made) and call is made[-1]
            _call(run_id, candidate, number, call, failed, is_open, found[call.seq] if found else ())
    _unanswered(calls, failed)


def _call(
    run_id: str,
    candidate: CandidateRow,
    number: int,
    call: ModelCallRow,
    failed: Sequence[FailedTryRow],
    is_open: bool,
    found: Sequence[Hit],
) -> None:
    title = wording.plain(transcript.title(number, call, candidate))
    details = st.expander(title, expanded=is_open, key=f"call:{call.seq}", on_change="rerun")
    for hit in found[: transcript.MOST_SNIPPETS]:
        st.markdown(
            f":gray[{wording.plain(hit.where)}:] …{wording.plain(hit.before)}**{wording.plain(hit.word)}**"
            f"{wording.plain(hit.after)}…"
        )
    if len(found) > transcript.MOST_SNIPPETS:
        st.caption(f"showing {transcript.MOST_SNIPPETS} of {len(found)} places")
    if details.open:
        with details:
            _details(run_id, call, [one for one in failed if (one.step, one.call) == (call.step, call.call)])


def _hits(run_id: str, call: ModelCallRow, word: str) -> list[Hit]:
    prompt = transcript.messages(texts.source(run_id, call.prompt_blob))
    parts = [(f"prompt, {role}", text) for role, text in prompt]
    return transcript.hits(word, [*parts, ("reply", texts.source(run_id, call.reply_blob))])


def _unanswered(calls: Sequence[ModelCallRow], failed: Sequence[FailedTryRow]) -> None:
    """Tries of calls that never got a reply."""
    answered = {(call.step, call.call) for call in calls}
    lost = [one for one in failed if (one.step, one.call) not in answered]
    if lost:
        st.markdown("## Calls without a reply")
        st.markdown("\n".join(f"- {wording.plain(transcript.failure(one))}" for one in lost))


def _details(run_id: str, call: ModelCallRow, failed: Sequence[FailedTryRow]) -> None:
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
    if shares := transcript.shares(stored.text):
        whole = sum(shares.values()) or 1
        found = [Bar(name, n / whole, transcript.percent(n, whole)) for name, n in shares.items()]
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
