"""A kernel's model calls as a conversation: messages, sums, where a word stands in them, and what a stored prompt is
made of. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from pages.parts import wording
from storage.queries import CandidateRow, FailedTryRow, ModelCallRow

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


def hits(word: str, parts: Sequence[tuple[str, str]]) -> list[Hit]:
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


def title(number: int, call: ModelCallRow, candidate: CandidateRow) -> str:
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


def shares(text: str) -> dict[str, int]:
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
