"""Prompt files with named slots, filled strictly. Knows the files, not what the words mean."""

from __future__ import annotations

import re
from pathlib import Path

from engine.errors import PromptError

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


def for_class(folder: str, kernel_class: str, suffix: str) -> str:
    """The file of a kernel class in a folder, or the folder's `other` file."""
    name = f"{folder}/{kernel_class}{suffix}"
    return text(name if (PROMPTS / name).exists() else f"{folder}/other{suffix}")
