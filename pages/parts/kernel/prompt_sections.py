"""What a model was told, section by section: each folds, with about how many tokens it has and how it differs from the
prompt before. What turns stored texts into sections is pure."""

from __future__ import annotations

import itertools
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import streamlit as st

from pages.parts import index, method, texts, wording
from pages.parts.widgets import bars, code, diff
from pages.parts.widgets.bars import Bar
from storage.index import queries
from storage.index.queries import ModelCallRow, PromptRow
from storage.run.models import CHARACTERS_PER_TOKEN

MOST_CHARACTERS = 60_000
# What a message is called that nobody divided: an earlier reply, and every message of a run made before sections.
WHOLE = {"system": "System message", "assistant": "Earlier reply of the model", "user": "Prompt"}

_NUMBERS = re.compile(r"^ *\d+ \| ?", re.MULTILINE)  # of a listing: one inserted line changes all that follow

Prompt = PromptRow | ModelCallRow


@dataclass(frozen=True, slots=True)
class Section:
    """A stretch of a message under the name that a reader knows it by."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class SentMessage:
    """A message of a prompt. One that nobody divided is one section; `parts` are its shares in characters then, as runs
    made before sections have them."""

    role: str
    text: str
    sections: tuple[Section, ...]
    is_divided: bool
    parts: Mapping[str, int]


def read(stored: str) -> list[SentMessage]:
    """The messages of a stored prompt; a text that is no list of messages is one message."""
    try:
        return [_sent_message(message, str(message["role"]), str(message["text"])) for message in json.loads(stored)]
    except (json.JSONDecodeError, TypeError, KeyError):
        return [SentMessage("text", stored, (Section("Prompt", stored),), False, {})]


def _sent_message(kept: Mapping[str, Any], role: str, text: str) -> SentMessage:
    try:
        lengths = [(str(name), int(length)) for name, length in kept.get("sections") or ()]
        parts = {str(name): int(count) for name, count in dict(kept.get("parts") or {}).items()}
    except (TypeError, ValueError):
        lengths, parts = [], {}
    if not lengths or sum(length for _, length in lengths) != len(text) or any(length <= 0 for _, length in lengths):
        return SentMessage(role, text, (Section(WHOLE.get(role, "Prompt"), text),), False, parts)
    ends = itertools.accumulate(length for _, length in lengths)
    sections = [Section(name, text[end - length : end]) for (name, length), end in zip(lengths, ends, strict=True)]
    return SentMessage(role, text, tuple(sections), True, {})


def shares(messages: Sequence[SentMessage]) -> dict[str, int]:
    """Characters under each name over all messages, the largest first; empty where no message was divided."""
    sums: dict[str, int] = {}
    for message in messages:
        lengths = [(part.name, len(part.text)) for part in message.sections]
        for name, count in message.parts.items() if message.parts else lengths:
            sums[name] = sums.get(name, 0) + count
    has_parts = any(message.is_divided or message.parts for message in messages)
    return dict(sorted(sums.items(), key=lambda item: -item[1])) if has_parts else {}


class State(StrEnum):
    """What became of a section since the prompt before."""

    SAME = "unchanged"
    CHANGED = "changed"
    NEW = "new"
    GONE = "left out"


@dataclass(frozen=True, slots=True)
class Change:
    """A section of either prompt: its text before and now, empty where that prompt has none of it."""

    name: str
    state: State
    before: str
    now: str


def changes(before: Sequence[SentMessage], now: Sequence[SentMessage]) -> list[Change]:
    """Each section of this prompt in order, then those of the one before that are gone.

    Sections are compared by name and place among those of one name; where either prompt was not divided, messages are.
    """
    is_divided = all(message.is_divided or message.role == "assistant" for message in [*before, *now])
    old, new = _by_place(before, is_divided), _by_place(now, is_divided)
    changed = [Change(place[1], _state(old.get(place), text), old.get(place, ""), text) for place, text in new.items()]
    return changed + [Change(place[1], State.GONE, text, "") for place, text in old.items() if place not in new]


def _by_place(messages: Sequence[SentMessage], is_divided: bool) -> dict[tuple[str, str, int], str]:
    by_place: dict[tuple[str, str, int], str] = {}
    for message in messages:
        whole = (Section(WHOLE.get(message.role, "Prompt"), message.text),)
        for section in message.sections if is_divided else whole:
            number = sum((message.role, section.name) == place[:2] for place in by_place)
            by_place[message.role, section.name, number] = section.text
    return by_place


def _state(before: str | None, now: str) -> State:
    return State.NEW if before is None else State.SAME if before.strip() == now.strip() else State.CHANGED


def common_start(before: Sequence[SentMessage], now: Sequence[SentMessage]) -> int:
    """Characters that both prompts begin with: what an endpoint's cache can reuse of the first for the second."""
    count = 0
    for old, new in zip(before, now, strict=False):
        pairs = zip(old.text, new.text, strict=False) if old.role == new.role else ()
        count += sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))
        if (old.role, old.text) != (new.role, new.text):
            break
    return count


def characters_per_token(prompt: Prompt, messages: Sequence[SentMessage]) -> float:
    """The figure as the endpoint counted this prompt, or by rule where it did not."""
    whole = sum(len(message.text) for message in messages)
    return whole / prompt.input_tokens if prompt.input_tokens and not prompt.is_estimated else CHARACTERS_PER_TOKEN


def size_line(prompt: Prompt, messages: Sequence[SentMessage], before: Sequence[SentMessage] | None) -> str:
    """How long the prompt is, what the endpoint counted, what of it came from the cache and what could have."""
    per = characters_per_token(prompt, messages)
    whole, count = sum(len(message.text) for message in messages), sum(len(message.sections) for message in messages)
    parts = [f"{about(whole, per)} in {wording.counted(count, 'section')}"]
    if prompt.input_tokens and not prompt.is_estimated:
        cached = "it does not say how many came from its cache"
        if prompt.cached_tokens is not None:
            cached = f"{wording.tokens(prompt.cached_tokens)} of them from its cache"
        parts = [f"{wording.tokens(prompt.input_tokens)} tokens counted by the endpoint, {cached}"]
        parts.append(wording.counted(count, "section"))
    if before:
        parts.append(f"starts like the prompt before for {about(common_start(before, messages), per)}")
    return " · ".join(parts)


def about(characters: int, per: float) -> str:
    """How many tokens so many characters are, in words: `about 1,240 tokens`."""
    return f"about {wording.tokens(round(characters / per))} tokens"


def relation(before: PromptRow, step: str) -> str:
    """Which prompt another one is compared with."""
    return f"the {before.role} prompt of step {before.step}, {step} {before.depth}"


def percent(count: int, whole: int) -> str:
    """ "61 %", or "under 1 %"."""
    share = 100 * count / whole
    return f"{share:.0f} %" if share >= 1 else "under 1 %"


def _before(run_id: str, prompt: Prompt) -> tuple[PromptRow | None, list[SentMessage] | None]:
    """The prompt before this one, and its messages; None where there is none, or its text is gone."""
    earlier = queries.prompt_before(index.current(), run_id, prompt)
    kept = texts.read(run_id, earlier.prompt_blob) if earlier else None
    return earlier, read(kept.text) if kept and not kept.is_gone else None


def draw_new(run_id: str, prompt: Prompt) -> bool:
    """What a prompt has that the one before had not, folded under its sections' names: open it is often longer
    than a screen. False where there was none before, or either is gone."""
    stored = texts.read(run_id, prompt.prompt_blob)
    earlier, before = _before(run_id, prompt)
    if stored.is_gone or earlier is None or before is None:
        return False
    messages = read(stored.text)
    compared = changes(before, messages)
    names = dict.fromkeys(change.name for change in compared if change.state is not State.SAME)
    what = wording.plain(wording.cut(", ".join(names), 100)) or "nothing"
    with st.expander(f"What is new in the prompt: :gray[{what}]"):
        st.caption(f"Compared with {wording.plain(relation(earlier, method.words(run_id).distinct))}.")
        with st.container(gap="xsmall"):
            _changes(compared, prompt.seq, characters_per_token(prompt, messages))
    return True


def draw(run_id: str, prompt: Prompt) -> None:
    """A prompt as it was sent, in sections that fold, or what changed in it since the one before."""
    stored = texts.read(run_id, prompt.prompt_blob)
    if stored.is_gone:
        texts.say_gone(stored, "prompt")
        return
    messages = read(stored.text)
    earlier, before = _before(run_id, prompt)
    st.caption(wording.plain(size_line(prompt, messages, before)))
    per = characters_per_token(prompt, messages)
    if sums := shares(messages):
        whole = sum(sums.values()) or 1
        rows = [
            Bar(name, n / whole, f"{wording.tokens(round(n / per))} · {percent(n, whole)}") for name, n in sums.items()
        ]
        bars.draw("Sections by length, in tokens (about)", rows, "", key=f"shares:{prompt.seq}")
    only = False
    if earlier and before:
        st.caption(f"Changes are marked against {wording.plain(relation(earlier, method.words(run_id).distinct))}.")
        only = st.toggle("Show only what changed", key=f"only_changes:{prompt.seq}")
    compared = changes(before or [], messages)
    with st.container(gap="xsmall"):
        if only:
            _changes(compared, prompt.seq, per)
        else:
            _whole(
                messages,
                {(change.name, change.now): change.state for change in compared} if before else {},
                prompt.seq,
                per,
            )


def _whole(messages: Sequence[SentMessage], states: Mapping[tuple[str, str], State], seq: int, per: float) -> None:
    for number, message in enumerate(messages):
        st.markdown(f"**Prompt, {wording.plain(message.role)}** :gray[{len(message.text):,} characters]")
        for position, section in enumerate(message.sections):
            state = states.get((section.name, section.text), State.SAME)
            note = "" if state is State.SAME else f" · :orange[{state}]"
            fold = st.expander(
                f"{wording.plain(section.name)} :gray[{wording.plain(about(len(section.text), per))}]{note}",
                expanded=not message.is_divided,
                key=f"section:{seq}:{number}:{position}",
                on_change="rerun",
            )
            if fold.open:
                with fold:
                    show(section.text.strip("\n"), f"prompt-{seq}-{number}-{position}")


def told_apart(compared: Sequence[Change]) -> list[str]:
    """What each section is called: by its name, and where several that changed share it by how they begin too."""
    often = Counter(change.name for change in compared if change.state is not State.SAME)
    return [
        f"{one.name}: “{wording.cut((one.now or one.before).strip(), 50)}”" if often[one.name] > 1 else one.name
        for one in compared
    ]


def _changes(compared: Sequence[Change], seq: int, per: float) -> None:
    titles = told_apart(compared)
    for number, (change, title) in enumerate(zip(compared, titles, strict=True)):
        if change.state is State.SAME:
            continue
        size = about(len(change.now or change.before), per)
        fold = st.expander(
            f"{wording.plain(title)} :gray[{wording.plain(size)}] · :orange[{change.state}]",
            expanded=True, key=f"change:{seq}:{number}", on_change="rerun",
        )  # fmt: skip
        if fold.open:
            with fold:
                _change(change, f"change-{seq}-{number}")
    same = [change.name for change in compared if change.state is State.SAME]
    if same:
        st.caption(f"Unchanged: {wording.plain(', '.join(same))}")


def _change(change: Change, key: str) -> None:
    if change.state is State.CHANGED:
        old, new = (_NUMBERS.sub("", text.strip("\n")) for text in (change.before, change.now))
        diff.draw(old, new, ("before", "now"), key=key, is_compact=True)
    else:
        show((change.now or change.before).strip("\n"), key)


def show(text: str, file: str) -> None:
    """A text that scrolls in its box where it is long; a very long one is cut and can be downloaded."""
    if len(text) > MOST_CHARACTERS:
        st.caption(f"Showing {MOST_CHARACTERS:,} of {len(text):,} characters; download it to see all.")
        st.download_button(
            "Download", text, f"{file}.txt", icon=":material/download:", on_click="ignore", key=f"download:{file}"
        )
    code.draw_plain(file, text[:MOST_CHARACTERS], key=f"text:{file}", is_wrapped=True)
