"""Every model call about a kernel, in order: the exact prompt, the exact reply, what it cost; searchable."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from pages.parts import index, texts, wording
from pages.parts.kernel import call_view, transcript
from pages.parts.kernel.transcript import Hit
from storage import queries
from storage.queries import CandidateRow, FailedTryRow, ModelCallRow


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
            call_view.draw(run_id, call, [one for one in failed if (one.step, one.call) == (call.step, call.call)])


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
