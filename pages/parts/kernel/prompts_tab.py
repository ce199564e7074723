"""Every model call about a kernel, in order: the exact prompt by section, the exact reply, failed tries, what it cost;
searchable. Texts are read when a call is opened. What turns rows into words is pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st

from pages.parts import index, method, texts, wording
from pages.parts.kernel import prompt_sections, retrieved, tool_calls, walk
from pages.parts.texts import Text
from storage.index import queries
from storage.index.queries import CandidateRow, FailedTryRow, ModelCallRow
from storage.run.models import CallFailure


def draw(run_id: str, candidate: CandidateRow) -> None:
    """Calls oldest first; the text of a call is read when it is opened, or when somebody searches."""
    retrieved.draw(run_id, candidate.candidate_id)
    walk.draw(run_id, candidate.candidate_id)
    tool_calls.draw(run_id, candidate.candidate_id)
    calls = queries.conversation(index.current(), run_id, candidate.candidate_id)
    failed = queries.failed_tries(index.current(), run_id, candidate.candidate_id)
    if not calls and not failed:
        st.caption("No model calls for this kernel.")
        return
    writer = _writer(run_id)
    st.caption(wording.plain(total(calls, failed, writer)))
    word = st.text_input(
        "Search in prompts and replies", key=f"search:{candidate.candidate_id}", type="search", width=440,
        placeholder="word or phrase",
    )  # fmt: skip
    by_call = {c.seq: _hits(run_id, c, word or "") for c in calls} if (word or "").strip() else None
    if by_call is not None:
        count, where = sum(len(hits) for hits in by_call.values()), sum(bool(hits) for hits in by_call.values())
        st.caption(f"{wording.counted(count, 'place')} in {where} of {wording.counted(len(calls), 'call')}")
    making = [c for c in calls if c.made_id == candidate.candidate_id]
    for number, call in enumerate(calls, 1):
        if by_call is None or by_call[call.seq]:
            is_open = bool(making) and call is making[-1]
            hits = by_call[call.seq] if by_call else ()
            _call(run_id, call_title(number, call, candidate, writer), call, failed, is_open, hits)
    _unanswered(calls, failed)


def _writer(run_id: str) -> str:
    run = queries.run(index.current(), run_id)
    return run.model if run else ""


def _call(
    run_id: str, title: str, call: ModelCallRow, failed: Sequence[FailedTryRow], is_open: bool, hits: Sequence[Hit]
) -> None:
    fold = st.expander(wording.plain(title), expanded=is_open, key=f"call:{call.seq}", on_change="rerun")
    for hit in hits[:MOST_SNIPPETS]:
        st.markdown(
            f":gray[{wording.plain(hit.where)}:] …{wording.plain(hit.before)}**{wording.plain(hit.word)}**"
            f"{wording.plain(hit.after)}…"
        )
    if len(hits) > MOST_SNIPPETS:
        st.caption(f"Showing {MOST_SNIPPETS} of {len(hits)} places")
    if fold.open:
        with fold:
            details(run_id, call, [row for row in failed if (row.step, row.call) == (call.step, call.call)])


def _hits(run_id: str, call: ModelCallRow, word: str) -> list[Hit]:
    prompt = prompt_sections.read(texts.source(run_id, call.prompt_blob))
    parts = [(f"prompt, {message.role}", message.text) for message in prompt]
    return word_hits(word, [*parts, ("reply", texts.source(run_id, call.reply_blob))])


def _unanswered(calls: Sequence[ModelCallRow], failed: Sequence[FailedTryRow]) -> None:
    """Tries of calls that never got a reply."""
    answered = {(call.step, call.call) for call in calls}
    lost = [row for row in failed if (row.step, row.call) not in answered]
    if lost:
        st.markdown("## Calls without a reply")
        st.markdown("\n".join(f"- {wording.plain(failure(row))}" for row in lost))


def details(run_id: str, call: ModelCallRow, failed: Sequence[FailedTryRow]) -> None:
    """Facts, then prompt and reply beside each other."""
    st.caption(wording.plain(" · ".join(facts(call, method.words(run_id).distinct, _writer(run_id)))))
    for row in failed:
        st.markdown(f":material/cloud_off: {wording.plain(failure(row))}")
    _ending(call)
    left, right = st.columns(2, gap="medium")
    with left:
        prompt_sections.draw(run_id, call)
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


def _text(name: str, text: Text, file: str) -> None:
    """One text with its length."""
    if text.is_gone:
        texts.say_gone(text, name.lower())
        return
    st.markdown(f"**{wording.plain(name)}** :gray[{len(text.text):,} characters]")
    prompt_sections.show(text.text, file)


SNIPPET = 80
MOST_SNIPPETS = 4


@dataclass(frozen=True, slots=True)
class Hit:
    """One place of a word: in which message, and the text around it."""

    where: str
    before: str
    word: str
    after: str


def word_hits(word: str, parts: Sequence[tuple[str, str]]) -> list[Hit]:
    """Every place of a word, capitals or not, in (where, text) pairs."""
    needle = word.strip().lower()
    return [hit for where, text in parts for hit in _in(needle, where, text)] if needle else []


def _in(needle: str, where: str, text: str) -> list[Hit]:
    lower, hits, at = text.lower(), [], 0
    if len(lower) != len(text):  # a letter whose small form is longer would shift every place
        lower = text
    while (at := lower.find(needle, at)) >= 0:
        end = at + len(needle)
        before, after = text[max(0, at - SNIPPET) : at], text[end : end + SNIPPET]
        hits.append(Hit(where, before, text[at:end], after))
        at = end
    return hits


NO_TOKENS, UNTOLD = "no tokens", wording.in_tokens(None)


def call_title(number: int, call: ModelCallRow, candidate: CandidateRow, writer: str) -> str:
    """What a call was for, what it used, on one line; the replies of its run are by `writer`."""
    into, out = call.input_tokens, call.output_tokens
    size = f"{wording.tokens(into)} → {wording.tokens(out)} tokens" if _used(into, out) else NO_TOKENS
    size = UNTOLD if into is out is None else size
    spent = f"{size} · {wording.cost(call.cost_usd, call.model)}"
    if _is_unrecorded(call, writer):
        spent = wording.NOTHING_RECORDED
    what = f"{str(call.role).capitalize()} ({relation(call, candidate)})"
    return f"{number}. {what} · {call.model} · {spent} · {wording.seconds(call.seconds)}"


def _is_unrecorded(call: ModelCallRow, writer: str) -> bool:
    by = wording.told_as(call.model, writer)
    return wording.is_unrecorded(call.cost_usd, by) and not _used(call.input_tokens, call.output_tokens)


def relation(call: ModelCallRow, candidate: CandidateRow) -> str:
    """What a call is to a kernel."""
    if call.made_id == candidate.candidate_id:
        return "made this kernel"
    if call.candidate_id == candidate.candidate_id:
        return "about this kernel"
    return f"about kernel {candidate.parent_number}, its parent"


def _used(into: int | None, out: int | None) -> bool:
    """Whether tokens were used, or may have been: a person's replies and recorded ones use none."""
    return (into, out) != (0, 0)


def _sizes(call: ModelCallRow) -> list[str]:
    if call.input_tokens is call.output_tokens is None:
        return [UNTOLD]
    return [
        f"{wording.tokens(call.input_tokens)} tokens in ({wording.tokens(call.cached_tokens)} from cache)",
        f"{wording.tokens(call.output_tokens)} out ({wording.tokens(call.reasoning_tokens)} reasoning)",
    ]


def _spent(call: ModelCallRow) -> list[str]:
    sizes = _sizes(call) if _used(call.input_tokens, call.output_tokens) else [NO_TOKENS]
    return [*sizes, f"cost: {wording.cost(call.cost_usd, call.model)}"]


def facts(call: ModelCallRow, step: str, writer: str) -> list[str]:
    """The rest of what is known of a call."""
    parts = [
        wording.moment(call.at),
        f"{step} {call.depth}, step {call.step}",
        *([wording.NOTHING_RECORDED] if _is_unrecorded(call, writer) else _spent(call)),
        *(["tokens and cost estimated from the text's length"] if call.is_estimated else []),
        wording.seconds(call.seconds),
        f"finish reason {call.finish_reason}",
    ]
    return [*parts, "profile shown"] if call.is_profile_exposed else parts


def total(calls: Sequence[ModelCallRow], failed: Sequence[FailedTryRow], writer: str) -> str:
    """All calls in one line; a sum with an unknown part is unknown."""
    costs, sizes = [c.cost_usd for c in calls], [(c.input_tokens, c.output_tokens) for c in calls]
    cost = None if None in costs else sum(x for x in costs if x is not None)
    into = None if any(a is None for a, _ in sizes) else sum(a or 0 for a, _ in sizes)
    out = None if any(b is None for _, b in sizes) else sum(b or 0 for _, b in sizes)
    many = f"{len(calls)} {'call' if len(calls) == 1 else 'calls'}"
    tries = f" · {len(failed)} failed {'try' if len(failed) == 1 else 'tries'}" if failed else ""
    seconds = wording.seconds(sum(c.seconds for c in calls))
    size = f"{wording.tokens(into)} tokens in, {wording.tokens(out)} out" if _used(into, out) else NO_TOKENS
    size = UNTOLD if into is out is None else size
    models = {c.model for c in calls}
    spent = f"{size} · {wording.cost(cost, models.pop()) if len(models) == 1 else wording.paid(cost)}"
    if any(_is_unrecorded(call, writer) for call in calls) and cost == 0 and not _used(into, out):
        spent = wording.NOTHING_RECORDED
    return f"{many} · {spent} · {seconds}{tries}"


def failure(row: FailedTryRow) -> str:
    """One failed try as a sentence."""
    after = (
        "not retried"
        if row.retry_in_s is None
        else "retried at once"
        if row.retry_in_s == 0
        else f"retried after {wording.seconds(row.retry_in_s)}"
    )
    charged = ", may have been charged" if row.is_charged else ""
    return f"Try {row.attempt + 1}: {wording.FAILURE_NAME[row.failure]}: {row.reason} ({after}{charged})"
