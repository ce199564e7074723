"""A person's part in a run: who answers the model's calls, which steps wait for a yes. Knows words, not files."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

MANUAL = "manual"  # the model of a run whose every call a person answers
HANDED_IN = "submit"  # the step that takes what a person hands in: asking for it is the yes
NO_CALLS = ("compile", "check", "time", "profile", HANDED_IN)


def is_call(label: str) -> bool:
    """Whether a step of this name asks a model: all do but those that evaluate, whatever a strategy calls them."""
    return label not in NO_CALLS


class Hand(StrEnum):
    """Which calls to the model a person answers instead."""

    OFF = "off"
    NEXT = "next"
    ALL = "all"


class Ask(StrEnum):
    """Which steps wait for a yes: none, those that call the model, or every one."""

    OFF = "off"
    CALLS = "calls"
    ALL = "all"


class Fallback(StrEnum):
    """What silence means once the time is over; never: it means nothing, and the run waits on."""

    YES = "yes"
    NO = "no"
    NEVER = "never"


@dataclass(frozen=True, slots=True)
class AskFirst:
    """The rule for waiting. `after_s` is how long, in seconds, before silence counts as the fallback."""

    which: Ask = Ask.OFF
    fallback: Fallback = Fallback.NEVER
    after_s: float = 60.0

    @classmethod
    def parse(cls, text: str) -> AskFirst:
        """`off`, `calls` or `all`, then optionally `never`, or `yes` or `no` with seconds: "all no 60".

        Raises:
            ValueError: anything else; the message says what would do.
        """
        match = re.fullmatch(r"(off|calls|all)(?: (never|(yes|no)(?: (\d{1,6}(?:\.\d+)?))?))?", " ".join(text.split()))
        if match is None:
            raise ValueError("ask_first takes off, calls or all, and then yes or no with seconds: 'all no 60'")
        fallback = Fallback(match[3] or Fallback.NEVER)
        return cls(Ask(match[1]), fallback, float(match[4] or cls().after_s))

    def __str__(self) -> str:
        silence = "" if self.fallback is Fallback.NEVER else f" {self.fallback} {self.after_s:g}"
        return f"{self.which}{silence}"

    def covers(self, kind: str) -> bool:
        """Whether a step of this kind (a StepKind) waits."""
        return (self.which is Ask.ALL and kind != HANDED_IN) or (self.which is Ask.CALLS and is_call(kind))


@dataclass(frozen=True, slots=True)
class Answer:
    """A person's answer to call number `call` of a step; the text is the blob."""

    step: int
    call: int
    blob: str

    @classmethod
    def parse(cls, text: str) -> Answer:
        """As `str` writes it.

        Raises:
            ValueError: anything else.
        """
        match = re.fullmatch(r"(\d{1,9})\.(\d{1,3}) ([0-9a-f]{64})", text)
        if match is None:
            raise ValueError("an answer is STEP.CALL and the hash of a text kept in the run's blobs")
        return cls(int(match[1]), int(match[2]), match[3])

    def __str__(self) -> str:
        return f"{self.step}.{self.call} {self.blob}"


def as_file_reply(file: str) -> str:
    """A whole file as a model would send it, in a fence longer than any in the file."""
    longest = max((len(run) for run in re.findall(r"`+", file)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}python\n{file.rstrip(chr(10))}\n{fence}\n"
