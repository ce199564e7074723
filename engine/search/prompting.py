"""Prompt files with named slots, filled strictly, and prompts fitted to a model's window: sources stay whole, the rest
is cut by rule, and the prompt says what was cut. Tells each section of a prompt by name and length in characters."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from pathlib import Path

from engine.errors import ModelError, PromptError
from engine.evaluator.toolchain_table import device_of
from engine.search.llm import Message, Section
from storage import codec

PROMPTS = Path(__file__).resolve().parent.parent.parent / "prompts"
_SLOT = re.compile(r"\{\{ *(\w+)\?? *\}\}")
_OPTIONAL = re.compile(r"^\{\{ *(\w+)\? *\}\}\n\n?", re.MULTILINE)  # a paragraph of its own that may not be there
_NO_PACK: Mapping[str, str] = {}
_pack = ContextVar("texts by name in place of prompt files", default=_NO_PACK)


@contextmanager
def using(files: Mapping[str, str]) -> Iterator[None]:
    """While inside, these texts by name stand in place of the prompt files of their names."""
    before = _pack.set(files)
    try:
        yield
    finally:
        _pack.reset(before)


def slots_of(template: str) -> set[str]:
    """The slots in the text of a prompt file."""
    return set(_SLOT.findall(template))


def slots(name: str) -> set[str]:
    """The slots of a prompt file.

    Raises:
        PromptError: no such file.
    """
    return slots_of(text(name))


def text(name: str) -> str:
    """A prompt file as it is.

    Raises:
        PromptError: no such file.
    """
    if (packed := _pack.get().get(name)) is not None:
        return packed
    try:
        return (PROMPTS / name).read_text(encoding="utf-8")
    except OSError as error:
        raise PromptError(f"cannot read prompt file {PROMPTS / name}: {error}") from error


def fill(name: str, **values: str) -> str:
    """A prompt file with every slot filled, once: slots inside the values stay as they are.

    Raises:
        PromptError: a slot without a value, or a value without a slot; a pack may leave slots out.
    """
    return message("user", name, **values).text


def for_toolchain(folder: str, toolchain: str) -> str:
    """What a folder holds for a toolchain, a file or a folder's name; of one that it does not name, for its device."""
    paths = (path for path in (PROMPTS / folder).iterdir() if path.stem == toolchain)
    return next((f"{folder}/{path.name}" for path in paths), "") or for_toolchain(folder, device_of(toolchain))


def for_class(folder: str, kernel_class: str, suffix: str, language: str = "") -> str:
    """The file of a kernel class in a folder, or the folder's `other` file; a language's own where it has one."""
    name = f"{folder}/{kernel_class}{suffix}"
    return text(for_language(name if (PROMPTS / name).exists() else f"{folder}/other{suffix}", language))


def for_language(name: str, language: str) -> str:
    """The name of a file or a folder, or that of a language's own in its place."""
    special = f"languages/{language}/{name}"
    return special if (PROMPTS / special).exists() else name


def of_language(slot: str, language: str) -> str:
    """What a language says in a slot of the texts that all languages share; empty where it has no such file."""
    name = f"languages/{language}/{slot}.md"
    return text(name).strip() if (PROMPTS / name).exists() else ""


def in_language(name: str, language: str, **values: str) -> str:
    """A prompt file, or the language's own in its place, filled: a slot without a value with what the language says."""
    name = for_language(name, language)
    return fill(name, **{slot: of_language(slot, language) for slot in slots(name)} | values).strip()


INSTRUCTIONS, REPLY_FORMAT = "Instructions", "Reply format"
# What a reader calls the section that a slot fills. A slot that is not here is called by its own name.
SECTIONS: Mapping[str, str] = {
    "analysis": "Analysis of the differences",
    "backward": "What is asked and how it is judged",
    "change": "Last change",
    "classes": "Reply format",
    "compiler": "PyTorch's compiler",
    "contract": "What is asked and how it is judged",
    "device": "Device",
    "diagnosis": "Diagnosis",
    "earlier": "Steps so far",
    "evaluation": "Predicted and measured",
    "example": "Example kernel",
    "examples": "Examples of the step",
    "failure": "What failed",
    "failure_rules": "Failure rules",
    "fusion": "Guide",
    "guide": "Guide",
    "headroom": "Headroom",
    "hint": "Person's hint",
    "kernel": "Kernel",
    "known": "Known techniques",
    "language": INSTRUCTIONS,
    "language_rule": INSTRUCTIONS,
    "library": "Rules of every reply",
    "listing": "Kernel",
    "names": "Reply format",
    "node": "Place in the graph",
    "others": "Known techniques",
    "patch_format": "Reply format",
    "precision": "Rules of every reply",
    "profile": "Profile",
    "repairs": "Repairs so far",
    "report": "Why the last reply was not used",
    "review": "Judge's point",
    "reward": "Reward",
    "rules": "Person's rules",
    "scale": "Instructions",
    "state": "State of the kernel",
    "tunables": "Tunables",
    "second_kernel": "Second parent",
    "second_timing": "Measured so far",
    "start": INSTRUCTIONS,
    "states": "Known states",
    "steps": "Sequence of techniques",
    "taken": "Place in the graph",
    "task": "Reference module",
    "technique": "Technique drawn",
    "techniques": "Known techniques",
    "timing": "Measured so far",
    "toolchain": "Toolchain",
}
_ASKS_FOR_A_FORM = re.compile(r"(Reply|Send|Start with)\b")
_PARAGRAPHS = re.compile(r"(?<=[^:]\n\n)(?=[^\n])")  # one that ends with a colon goes on below


def message(role: str, name: str, **values: str) -> Message:
    """A prompt file as a message, with every slot filled and the sections that the slots make of it. A paragraph
    `{{ slot? }}` goes where its value is empty.

    Raises:
        PromptError: a slot without a value, or a value without a slot; a pack may leave slots out.
    """
    template = text(name)
    slots_used = set(_SLOT.findall(template))
    if slots_used - set(values) or (slots_used != set(values) and name not in _pack.get()):
        missing, unused = sorted(slots_used - set(values)), sorted(set(values) - slots_used)
        raise PromptError(f"prompt {name}: missing {missing}, unused {unused}")
    template = _OPTIONAL.sub(lambda match: match[0] if values[match[1]].strip() else "", template)
    sections: list[list[str]] = []
    for section, piece in _pieces(template):
        filled = _SLOT.sub(lambda match: values[match[1]], piece)
        if sections and (section == sections[-1][0] or not filled.strip()):
            sections[-1][1] += filled
        elif filled.strip():
            sections.append([section, filled])
    if not sections:
        return Message(role, "\n")
    sections[0][1] = sections[0][1].lstrip()
    sections[-1][1] = sections[-1][1].rstrip() + "\n"
    whole = "".join(filled for _, filled in sections)
    return Message(role, whole, tuple(Section(section, len(filled)) for section, filled in sections))


@functools.lru_cache(maxsize=512)
def _pieces(template: str) -> tuple[tuple[str, str], ...]:
    return tuple(_cut(template))


def _cut(template: str) -> Iterator[tuple[str, str]]:
    """(section, text): in a paragraph the lines down to each slot belong to it, and what follows the last slot too."""
    for paragraph in _PARAGRAPHS.split(template):
        section, lines, slots = "", paragraph.splitlines(keepends=True), len(_SLOT.findall(paragraph))
        piece = ""
        for line in lines:
            piece += line
            if named := _SLOT.findall(line):
                section, slots = section_name(named[0]), slots - len(named)
                if slots:
                    yield section, piece
                    piece = ""
        yield section or (REPLY_FORMAT if _ASKS_FOR_A_FORM.match(paragraph) else INSTRUCTIONS), piece


def section_name(slot: str) -> str:
    """What a reader calls the section that a slot fills."""
    return SECTIONS.get(slot) or slot.replace("_", " ").capitalize()


def as_json(messages: Sequence[Message]) -> str:
    """A prompt as it is kept: role and text of each message, and its sections where it was made of any."""
    plain = [{"role": m.role, "text": m.text} | ({"sections": m.sections} if m.sections else {}) for m in messages]
    return codec.dumps(plain)


NOTE = "[{count} lines left out here to fit the model's window]"


def compose(name: str, room: int | None, **values: str | Ranked) -> Message:
    """A prompt file as a user message of at most `room` characters (None: no bound).

    Raises:
        PromptError: slots and values do not agree.
        ModelError: it does not fit even with everything cut that may be cut.
    """
    slots = {slot: str(value) for slot, value in values.items()}
    whole = message("user", name, **slots)
    for slot, cut in _RULES:
        if room is None or len(whole.text) <= room:
            break
        if slots.get(slot):
            value, allowed = values[slot], max(0, len(slots[slot]) - (len(whole.text) - room))
            slots[slot] = value.within(allowed - len(LESSER)) if isinstance(value, Ranked) else cut(value, allowed)
            whole = message("user", name, **slots)
    if room is not None and len(whole.text) > room:
        raise ModelError(
            f"the prompt needs {len(whole.text):,} characters with everything cut that may be cut, and the model's "
            f"window leaves {max(room, 0):,}: choose a model with a larger window, or set its `window` if it is larger "
            f"than assumed"
        )
    return whole


def fit_conversation(messages: list[Message], room: int | None) -> list[Message]:
    """The conversation within `room` characters: first the oldest replies go, then what tools
    answered, then the oldest questions again asked.

    The system message, the first prompt and the last message stay whole.
    """
    fitted = list(messages)
    inner = range(2, len(fitted) - 1)
    for role in ("assistant", "tool", "user"):
        for index in inner:
            if room is None or sum(len(m.text) for m in fitted) <= room:
                return fitted
            if fitted[index].role == role:
                count = fitted[index].text.count("\n") + 1
                fitted[index] = replace(fitted[index], text=NOTE.format(count=count), sections=())
    return fitted


def keep_newest(text: str, allowed: int) -> str:
    """The last lines that fit, below a note."""
    lines, kept = text.split("\n"), list[str]()
    left = allowed - len(NOTE)
    while lines and left > len(lines[-1]):
        left -= len(lines[-1]) + 1
        kept.insert(0, lines.pop())
    return "\n".join([NOTE.format(count=len(lines)), *kept]) if lines else text


def keep_start(text: str, allowed: int) -> str:
    """The first lines that fit, above a note."""
    backwards = keep_newest("\n".join(reversed(text.split("\n"))), allowed)
    return "\n".join(reversed(backwards.split("\n")))


def keep_ends(text: str, allowed: int) -> str:
    """The first and the last lines, two thirds of the room for the first: the cause of a failure is named early."""
    if len(text) <= allowed:
        return text
    lines = text.split("\n")
    head = _fitting(lines, 2 * (allowed - len(NOTE)) // 3)
    tail = _fitting(lines[head:][::-1], (allowed - len(NOTE)) // 3)
    count = len(lines) - head - tail
    return "\n".join([*lines[:head], NOTE.format(count=count), *lines[len(lines) - tail :]])


def _fitting(lines: list[str], room: int) -> int:
    used = 0
    for count, line in enumerate(lines):
        used += len(line) + 1
        if used > room:
            return count
    return len(lines)


LESSER = "[{count} of {total} entries left out here, those that tell least]"


@dataclass(frozen=True, slots=True)
class Passage:
    """A stretch of a text that stays whole or goes. Passages in a row with the same heading stand below it, once.

    The larger `worth` stays longer; it is compared place by place.
    """

    heading: str
    text: str
    worth: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Ranked:
    """Passages in reading order, of which those of least worth go where `budget` characters do not hold them all."""

    passages: tuple[Passage, ...]
    budget: int

    def __str__(self) -> str:
        return self.within(self.budget)

    def within(self, allowed: int) -> str:
        """At most `allowed` characters, the note on what was left out aside; passages stand in their order."""
        allowed, ranked = (
            min(allowed, self.budget),
            sorted(self.passages, key=lambda passage: passage.worth, reverse=True),
        )
        kept = list(self.passages)
        while kept and len(_joined(kept)) > allowed:
            kept.remove(ranked.pop())
        left_out = len(self.passages) - len(kept)
        note = [LESSER.format(count=left_out, total=len(self.passages))] if left_out else []
        return "\n".join([_joined(kept), *note]).strip()


def _joined(passages: list[Passage]) -> str:
    lines = list[str]()
    for before, passage in zip([None, *passages], passages, strict=False):
        if passage.heading and (before is None or passage.heading != before.heading):
            lines.append(passage.heading)
        lines.append(passage.text)
    return "\n".join(lines)


def _drop(text: str, allowed: int) -> str:
    return NOTE.format(count=text.count("\n") + 1)


_RULES: tuple[tuple[str, Callable[[str, int], str]], ...] = (
    ("earlier", _drop),
    ("repairs", _drop),
    ("failure", keep_ends),
    ("change", keep_ends),
    ("profile", keep_start),
    ("diagnosis", keep_ends),
    ("compiler", _drop),
    ("example", _drop),
    ("guide", _drop),
)
