"""Which knowledge base a run asks: the words for it, and how they read. Knows no files."""

from __future__ import annotations

import re
from collections.abc import Mapping

OFF, ON, SEED, EMPTY = "off", "on", "seed", "empty"
# A run's own evidence and what it has taught count with each of them but `off`.
CHOICES: Mapping[str, str] = {
    OFF: "not asked",
    ON: "what all runs have learned, and what Tilewright is shipped with",
    SEED: "what Tilewright is shipped with, and what this run learns",
    EMPTY: "only what this run learns",
}
_OF_A_PATH = "read only, and what this run learns"
# Before `seed` or a path: the base stays as it is in that run, which learns nothing for itself either.
FROZEN = "frozen:"
# Before a name: a base that begins empty and that only runs which name it add to.
OWN = "own:"
_OF_ITS_OWN = "began empty, and holds only what runs that name it have learned"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")


def is_frozen(knowledge: str) -> bool:
    """Whether what a run learns itself does not count for it."""
    return knowledge.startswith(FROZEN)


def own_name(knowledge: str) -> str:
    """The name of the base of its own that a run asks; empty where it asks another, or where that is no name."""
    name = knowledge.removeprefix(OWN)
    return name if knowledge.startswith(OWN) and _NAME.fullmatch(name) else ""


def base_of(knowledge: str) -> str:
    """The word or path without the mark of a frozen base."""
    return knowledge.removeprefix(FROZEN)


def name_of(knowledge: str) -> str:
    """The word, or of a path its last part."""
    if is_frozen(knowledge):
        return f"{name_of(base_of(knowledge))}, frozen"
    if name := own_name(knowledge):
        return name
    return knowledge if knowledge in CHOICES else knowledge.replace("\\", "/").rstrip("/").split("/")[-1]


def where_taught(knowledge: str) -> str:
    """Where what a run taught was written down, as a sentence's end; of a base that is only read in the run alone."""
    if name := own_name(knowledge):
        return f"in {name}, a knowledge base of its own"
    return "in another knowledge base" if knowledge == ON else "in the run alone"


def in_words(knowledge: str) -> str:
    """A run's choice of a knowledge base, as people read it."""
    usual = "read only, and nothing of what this run learns" if is_frozen(knowledge) else _OF_A_PATH
    about = CHOICES.get(knowledge, _OF_ITS_OWN if own_name(knowledge) else usual)
    return f"{name_of(knowledge)}: {about}"
