"""What a command's argument says, as text and back, and the words of a person's part in a run. Knows grammar, not what
is done with it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from storage.run.models import Options, with_option

MANUAL = "manual"  # the model of a run whose every call a person answers
REPLY_TAKES = {
    "source": "the whole file with class ModelNew, in one Python code block or by itself as plain text",
    "patch": "line edits as JSON, SEARCH/REPLACE blocks, or the whole file",
    "text": "plain text",
    "json": "the one JSON object that it asks for",
}
"""What the reply to a prompt is read as, by what the prompt expects."""
HANDED_IN = "submit"  # the step that takes what a person hands in: asking for it is the yes
CONSULT, TEACH = "consult", "teach"  # steps that read and write what is known: they cost nothing and can be taken back
LOOK_UPS = (CONSULT, TEACH)
RANK = "rank"  # the step that ranks drawn kernels before they are evaluated
TUNE = "tune"  # the step that tries other numbers for what an accepted kernel declares open to tuning
BEGIN = "begin"  # the step that takes what torch.compile generates as the first kernel
REFUSE = "refuse"  # what was said of a kernel and what was measured of it speak against it together
NO_CALLS = ("compile", "check", "time", "profile", HANDED_IN, REFUSE, RANK, TUNE, BEGIN, *LOOK_UPS)
NOBODY = "-"
NOTE_LENGTH = 140
# How an argument reads on screen: no hashes, kernels by number, an answer by its step, no id of another command.
READABLE = (
    (r"[0-9a-f]{64} ?", ""),
    (r"^c0*([1-9][0-9]*)( |$)", r"kernel \1\2"),
    (r"^([0-9]+)\.[0-9]+ $", r"to step \1"),
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
        """Read what `str` writes.

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
        return (self.which is Ask.ALL and kind not in (HANDED_IN, REFUSE, RANK, *LOOK_UPS)) or (
            self.which is Ask.CALLS and is_call(kind)
        )


@dataclass(frozen=True, slots=True)
class Answer:
    """A person's answer to call number `call` of a step; the text is the blob."""

    step: int
    call: int
    blob: str

    @classmethod
    def parse(cls, text: str) -> Answer:
        """Read what `str` writes.

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
