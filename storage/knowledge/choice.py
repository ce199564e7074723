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


def name_of(knowledge: str) -> str:
    """The word, or of a path its last part."""
    return knowledge if knowledge in CHOICES else knowledge.replace("\\", "/").rstrip("/").split("/")[-1]


def in_words(knowledge: str) -> str:
    """For people."""
    about = CHOICES.get(knowledge, "read only, and what this run learns")
    return f"{name_of(knowledge)}: {about}"
