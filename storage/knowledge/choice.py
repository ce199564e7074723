"""Which knowledge base a run asks: the words for it, and how they read. Knows no files."""

from __future__ import annotations

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


def is_frozen(knowledge: str) -> bool:
    """Whether what a run learns itself does not count for it."""
    return knowledge.startswith(FROZEN)


def base_of(knowledge: str) -> str:
    """The word or path without the mark of a frozen base."""
    return knowledge.removeprefix(FROZEN)


def name_of(knowledge: str) -> str:
    """The word, or of a path its last part."""
    if is_frozen(knowledge):
        return f"{name_of(base_of(knowledge))}, frozen"
    return knowledge if knowledge in CHOICES else knowledge.replace("\\", "/").rstrip("/").split("/")[-1]


def in_words(knowledge: str) -> str:
    """A run's choice of a knowledge base, as people read it."""
    usual = "read only, and nothing of what this run learns" if is_frozen(knowledge) else _OF_A_PATH
    about = CHOICES.get(knowledge, usual)
    return f"{name_of(knowledge)}: {about}"
