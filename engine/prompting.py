"""Prompt files with named slots, filled strictly, and prompts fitted to a model's window: sources stay whole, the rest
is cut by rule, and the prompt says what was cut. Knows files and lengths in characters, not what the words mean."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from enum import StrEnum
from pathlib import Path

from engine.errors import ModelError, PromptError
from engine.llm import Message
from engine.toolchain_table import device_of

PROMPTS = Path(__file__).resolve().parent.parent / "prompts"
_SLOT = re.compile(r"\{\{ *(\w+) *\}\}")


def slots(name: str) -> set[str]:
    """The slots of a prompt file.

    Raises:
        PromptError: no such file.
    """
    return set(_SLOT.findall(text(name)))


def text(name: str) -> str:
    """A prompt file as it is.

    Raises:
        PromptError: no such file.
    """
    try:
        return (PROMPTS / name).read_text(encoding="utf-8")
    except OSError as error:
        raise PromptError(f"cannot read prompt file {PROMPTS / name}: {error}") from error


def fill(name: str, **values: str) -> str:
    """A prompt file with every slot filled, once: slots inside the values stay as they are.

    Raises:
        PromptError: a slot without a value, or a value without a slot.
    """
    template = text(name)
    wanted = set(_SLOT.findall(template))
    if wanted != set(values):
        missing, unused = sorted(wanted - set(values)), sorted(set(values) - wanted)
        raise PromptError(f"prompt {name}: missing {missing}, unused {unused}")
    return _SLOT.sub(lambda match: values[match[1]], template).strip() + "\n"


def for_toolchain(folder: str, toolchain: str) -> str:
    """What a folder holds for a toolchain, a file or a folder's name; of one that it does not name, for its device."""
    found = (path for path in (PROMPTS / folder).iterdir() if path.stem == toolchain)
    return next((f"{folder}/{path.name}" for path in found), "") or for_toolchain(folder, device_of(toolchain))


def for_class(folder: str, kernel_class: str, suffix: str) -> str:
    """The file of a kernel class in a folder, or the folder's `other` file."""
    name = f"{folder}/{kernel_class}{suffix}"
    return text(name if (PROMPTS / name).exists() else f"{folder}/other{suffix}")


class Part(StrEnum):
    """What a stretch of a prompt is."""

    SOURCE = "source"
    ERROR_LOG = "error log"
    DIAGNOSIS = "diagnosis"
    HISTORY = "history"
    PROFILE = "profile"
    GUIDE = "guide"
    RULES = "rules"
    HINT = "hint"
    INSTRUCTIONS = "instructions"


_PART_OF: Mapping[str, Part] = {
    "task": Part.SOURCE,
    "listing": Part.SOURCE,
    "failure": Part.ERROR_LOG,
    "diagnosis": Part.DIAGNOSIS,
    "review": Part.DIAGNOSIS,
    "kernel": Part.SOURCE,
    "change": Part.HISTORY,
    "earlier": Part.HISTORY,
    "timing": Part.HISTORY,
    "profile": Part.PROFILE,
    "guide": Part.GUIDE,
    "example": Part.GUIDE,
    "rules": Part.RULES,
    "hint": Part.HINT,
}
NOTE = "[{count} lines left out here to fit the model's window]"


def compose(name: str, room: int | None, **values: str) -> Message:
    """A prompt file as a user message of at most `room` characters (None: no bound), with the share of each part.

    Raises:
        PromptError: slots and values do not agree.
        ModelError: it does not fit even with everything cut that may be cut.
    """
    text = fill(name, **values)
    for slot, cut in _RULES:
        if room is None or len(text) <= room:
            break
        if slot in values:
            allowed = max(0, len(values[slot]) - (len(text) - room))
            values[slot] = cut(values[slot], allowed)
            text = fill(name, **values)
    if room is not None and len(text) > room:
        raise ModelError(
            f"the prompt needs {len(text):,} characters with everything cut that may be cut, and the model's window "
            f"leaves {max(room, 0):,}: choose a model with a larger window, or set its `window` if it is larger than "
            f"assumed"
        )
    return Message("user", text, shares(text, values))


def shares(text: str, values: Mapping[str, str]) -> dict[str, int]:
    """Characters of each part of a filled prompt; what came from no slot is instructions."""
    found: dict[str, int] = {}
    for slot, value in values.items():
        part = _PART_OF.get(slot, Part.INSTRUCTIONS)
        found[part] = found.get(part, 0) + len(value)
    known = sum(found.values())
    found[Part.INSTRUCTIONS] = found.get(Part.INSTRUCTIONS, 0) + max(0, len(text) - known)
    return {part: count for part, count in found.items() if count}


def fit_conversation(messages: list[Message], room: int | None) -> list[Message]:
    """The conversation within `room` characters: first the oldest replies go, then the oldest questions again asked.

    The system message, the first prompt and the last message stay whole.
    """
    fitted = list(messages)
    inner = range(2, len(fitted) - 1)
    for role in ("assistant", "user"):
        for place in inner:
            if room is None or sum(len(m.text) for m in fitted) <= room:
                return fitted
            if fitted[place].role == role:
                count = fitted[place].text.count("\n") + 1
                fitted[place] = replace(fitted[place], text=NOTE.format(count=count), parts={})
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


def _drop(text: str, allowed: int) -> str:
    return NOTE.format(count=text.count("\n") + 1)


_RULES: tuple[tuple[str, Callable[[str, int], str]], ...] = (
    ("earlier", keep_newest),
    ("failure", keep_ends),
    ("change", keep_ends),
    ("profile", keep_start),
    ("diagnosis", keep_ends),
    ("example", _drop),
    ("guide", _drop),
)
