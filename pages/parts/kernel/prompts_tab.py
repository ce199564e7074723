"""Every model call about a kernel, in order: the exact prompt by message and its parts, the exact reply, failed tries,
what it cost; searchable. Texts are read when a call is opened. What turns rows into words is pure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st

from pages.parts import index, texts, wording
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
    st.caption(wording.plain(total(calls, failed)))
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
    title = wording.plain(call_title(number, call, candidate))
    details = st.expander(title, expanded=is_open, key=f"call:{call.seq}", on_change="rerun")
    for hit in found[:MOST_SNIPPETS]:
        st.markdown(
            f":gray[{wording.plain(hit.where)}:] …{wording.plain(hit.before)}**{wording.plain(hit.word)}**"
            f"{wording.plain(hit.after)}…"
        )
    if len(found) > MOST_SNIPPETS:
        st.caption(f"showing {MOST_SNIPPETS} of {len(found)} places")
    if details.open:
        with details:
            _details(run_id, call, [one for one in failed if (one.step, one.call) == (call.step, call.call)])


def _hits(run_id: str, call: ModelCallRow, word: str) -> list[Hit]:
    prompt = messages(texts.source(run_id, call.prompt_blob))
    parts = [(f"prompt, {role}", text) for role, text in prompt]
    return word_hits(word, [*parts, ("reply", texts.source(run_id, call.reply_blob))])


def _unanswered(calls: Sequence[ModelCallRow], failed: Sequence[FailedTryRow]) -> None:
    """Tries of calls that never got a reply."""
    answered = {(call.step, call.call) for call in calls}
    lost = [one for one in failed if (one.step, one.call) not in answered]
    if lost:
        st.markdown("## Calls without a reply")
        st.markdown("\n".join(f"- {wording.plain(failure(one))}" for one in lost))


def _details(run_id: str, call: ModelCallRow, failed: Sequence[FailedTryRow]) -> None:
    """Facts, then prompt and reply beside each other."""
    st.caption(wording.plain(" · ".join(facts(call))))
    for one in failed:
        st.markdown(f":material/cloud_off: {wording.plain(failure(one))}")
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
    if shares := part_shares(stored.text):
        whole = sum(shares.values()) or 1
        found = [Bar(name, n / whole, percent(n, whole)) for name, n in shares.items()]
        bars.draw("Share of each part of the prompt", found, "", key=f"shares:{call.seq}")
    for number, (role, text) in enumerate(messages(stored.text)):
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


SNIPPET = 80
MOST_SNIPPETS = 4


@dataclass(frozen=True, slots=True)
class Hit:
    """One place of a word: in which message, and the text around it."""

    where: str
    before: str
    word: str
    after: str


def messages(text: str) -> list[tuple[str, str]]:
    """The messages of a stored prompt; a text that is no list of messages is one message."""
    try:
        found = json.loads(text)
        return [(str(m["role"]), str(m["text"])) for m in found]
    except (json.JSONDecodeError, TypeError, KeyError):
        return [("text", text)]


def word_hits(word: str, parts: Sequence[tuple[str, str]]) -> list[Hit]:
    """Every place of a word, capitals or not, in (where, text) pairs."""
    needle = word.strip().lower()
    return [hit for where, text in parts for hit in _in(needle, where, text)] if needle else []


def _in(needle: str, where: str, text: str) -> list[Hit]:
    lower, found, at = text.lower(), [], 0
    if len(lower) != len(text):  # a letter whose small form is longer would shift every place
        lower = text
    while (at := lower.find(needle, at)) >= 0:
        end = at + len(needle)
        before, after = text[max(0, at - SNIPPET) : at], text[end : end + SNIPPET]
        found.append(Hit(where, before, text[at:end], after))
        at = end
    return found


def call_title(number: int, call: ModelCallRow, candidate: CandidateRow) -> str:
    """What a call was for, what it used, on one line."""
    size = f"{wording.tokens(call.input_tokens)} → {wording.tokens(call.output_tokens)} tokens"
    cost = f"{wording.cost(call.cost_usd)} · {wording.seconds(call.seconds)}"
    return f"{number}. {str(call.role).capitalize()} ({relation(call, candidate)}) · {call.model} · {size} · {cost}"


def relation(call: ModelCallRow, candidate: CandidateRow) -> str:
    """What a call is to a kernel."""
    if call.made_id == candidate.candidate_id:
        return "made this kernel"
    if call.candidate_id == candidate.candidate_id:
        return "about this kernel"
    return f"about kernel {candidate.parent_number}, its parent"


def facts(call: ModelCallRow) -> list[str]:
    """The rest of what is known of a call."""
    parts = [
        wording.moment(call.at),
        f"depth {call.depth}, step {call.step}",
        f"{wording.tokens(call.input_tokens)} tokens in ({wording.tokens(call.cached_tokens)} from cache)",
        f"{wording.tokens(call.output_tokens)} out ({wording.tokens(call.reasoning_tokens)} reasoning)",
        f"cost {wording.cost(call.cost_usd)}",
        *(["tokens and cost estimated from the text's length"] if call.is_estimated else []),
        wording.seconds(call.seconds),
        f"finish reason {call.finish_reason}",
    ]
    return [*parts, "profile shown"] if call.is_profile_exposed else parts


def total(calls: Sequence[ModelCallRow], failed: Sequence[FailedTryRow]) -> str:
    """All calls in one line; a sum with an unknown part is unknown."""
    costs, sizes = [c.cost_usd for c in calls], [(c.input_tokens, c.output_tokens) for c in calls]
    cost = None if None in costs else sum(x for x in costs if x is not None)
    into = None if any(a is None for a, _ in sizes) else sum(a or 0 for a, _ in sizes)
    out = None if any(b is None for _, b in sizes) else sum(b or 0 for _, b in sizes)
    many = f"{len(calls)} {'call' if len(calls) == 1 else 'calls'}"
    tries = f" · {len(failed)} failed {'try' if len(failed) == 1 else 'tries'}" if failed else ""
    seconds = wording.seconds(sum(c.seconds for c in calls))
    size = f"{wording.tokens(into)} tokens in, {wording.tokens(out)} out"
    return f"{many} · {size} · {wording.cost(cost)} · {seconds}{tries}"


def failure(one: FailedTryRow) -> str:
    """One failed try as a sentence."""
    after = (
        "not retried"
        if one.retry_in_s is None
        else "retried at once"
        if one.retry_in_s == 0
        else f"retried after {wording.seconds(one.retry_in_s)}"
    )
    charged = ", may have been charged" if one.is_charged else ""
    return f"Try {one.attempt + 1}: {wording.FAILURE_NAME[one.failure]}: {one.reason} ({after}{charged})"


def part_shares(text: str) -> dict[str, int]:
    """Characters of each part over all messages, the largest first; a message that nobody divided counts as one part.

    Empty for a prompt none of whose messages were divided, and for a text that is no prompt.
    """
    try:
        found = [(str(m["role"]), len(m["text"]), dict(m.get("parts") or {})) for m in json.loads(text)]
    except (json.JSONDecodeError, TypeError, KeyError, AttributeError, ValueError):
        return {}
    if not any(parts for _, _, parts in found):
        return {}
    sums: dict[str, int] = {}
    for role, length, parts in found:
        for name, count in (parts or {f"{role} messages": length}).items():
            sums[str(name)] = sums.get(str(name), 0) + int(count)
    return dict(sorted(sums.items(), key=lambda item: -item[1]))


def shares_sentence(shares: dict[str, int]) -> str:
    """The shares in per cent: "source 61 % · guide 22 % · …", safe for Markdown."""
    whole = sum(shares.values()) or 1
    return " · ".join(f"{wording.plain(name)} {percent(count, whole)}" for name, count in shares.items())


def percent(count: int, whole: int) -> str:
    """ "61 %", or "under 1 %"."""
    share = 100 * count / whole
    return f"{share:.0f} %" if share >= 1 else "under 1 %"
