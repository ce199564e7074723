"""What a person may change of what is known: what is wrong with a change, and writing it. Draws nothing."""

from __future__ import annotations

from collections.abc import Iterable

from storage.knowledge import files
from storage.knowledge.base import Base
from storage.knowledge.exported import KnowledgeError
from storage.knowledge.records import Revision, Technique

NAME_LENGTH = 80
MOST_PARTS = 3


def words_of(text: str) -> tuple[str, ...]:
    """What stands between commas, each once."""
    return tuple(dict.fromkeys(word for part in text.split(",") if (word := " ".join(part.split()))))


def problem_of_name(name: str, taken: Iterable[str]) -> str:
    """What is wrong with the name of something new; empty where nothing is."""
    if not name:
        return "It needs a name."
    if len(name) > NAME_LENGTH:
        return f"A name has at most {NAME_LENGTH} characters."
    return "There is one of this name: edit that one." if name.casefold() in map(str.casefold, taken) else ""


def problem_of_technique(technique: Technique, base: Base) -> str:
    """What is wrong with it; empty where nothing is."""
    if not technique.about:
        return "Say what it does."
    if len(technique.parts) > MOST_PARTS:
        return f"A composite joins at most {MOST_PARTS} techniques."
    if technique.name in technique.parts:
        return "A technique cannot be a part of itself."
    unknown = [name for name in technique.parts if name not in base.techniques]
    return f"Not known: {', '.join(unknown)}." if unknown else ""


def append(change: Revision) -> str:
    """Write it. Returns what went wrong; empty where it is on disk."""
    try:
        is_new = files.append_revision(change)
    except (KnowledgeError, OSError) as error:
        return str(error)
    return "" if is_new else "There is a change of this id already."
