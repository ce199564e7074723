"""The arguments of verbs that say more than one word, as text and back. Knows grammar, not what is done with them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from storage.models import Options, with_option

NOBODY = "-"
NOTE_LENGTH = 140
# How an argument reads on screen: no hashes, kernels by number, an answer by its step, no id of another command.
READABLE = (
    (r"[0-9a-f]{64} ?", ""),
    (r"^c0*([1-9][0-9]*)( |$)", r"kernel \1\2"),
    (r"^([0-9]+)\.[0-9]+ $", r"for step \1"),
    (r"^- ", ""),
    (r"^[0-9a-f]{12}$", ""),
)


def readable(argument: str) -> str:
    """The argument of a command as people read it."""
    for pattern, words in READABLE:
        argument = re.sub(pattern, words, argument)
    return argument.strip()


@dataclass(frozen=True, slots=True)
class Submission:
    """A kernel edited by hand: the kernel it was made from (None without one), the blob with its text, a few words."""

    parent_id: str | None
    blob: str
    note: str = ""

    @classmethod
    def parse(cls, text: str) -> Submission:
        """As `str` writes it.

        Raises:
            ValueError: anything else.
        """
        match = re.fullmatch(r"(-|[A-Za-z0-9_.]{1,40}) ([0-9a-f]{64})(?: (.+))?", text)
        if match is None:
            raise ValueError("submit takes a kernel's id or -, and the hash of a text kept in the run's blobs")
        return cls(None if match[1] == NOBODY else match[1], match[2], (match[3] or "")[:NOTE_LENGTH])

    def __str__(self) -> str:
        note = " ".join(self.note.split())[:NOTE_LENGTH]
        return f"{self.parent_id or NOBODY} {self.blob}{f' {note}' if note else ''}"


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """Which model is asked from now on, or once, and how."""

    model: str
    options: Options = ()

    @classmethod
    def parse(cls, text: str) -> ModelChoice:
        """`MODEL [[ROLE.]NAME=VALUE …]`, as in "gpt-5 reasoning_effort=high".

        Raises:
            ValueError: no model, or an option that makes no sense; the message says what would do.
        """
        model, *words = text.split() or [""]
        if not model or "=" in model:
            raise ValueError("name a model first, then options such as reasoning_effort=high")
        options: Options = ()
        for word in words:
            options = with_option(options, word)
        return cls(model, options)


@dataclass(frozen=True, slots=True)
class Retry:
    """A model step to be done again by another model; `step` None is the last one."""

    choice: ModelChoice
    step: int | None = None

    @classmethod
    def parse(cls, text: str) -> Retry:
        """`MODEL [[ROLE.]NAME=VALUE …] [step=N]`.

        Raises:
            ValueError: as for a choice, or a step that is no number.
        """
        words = text.split()
        steps = [word.partition("=")[2] for word in words if word.startswith("step=")]
        if any(not step.isdecimal() for step in steps):
            raise ValueError("step takes the number of a step, as in step=31")
        choice = ModelChoice.parse(" ".join(word for word in words if not word.startswith("step=")))
        return cls(choice, int(steps[-1]) if steps else None)
