"""The seam to language models: messages in, one completed reply out. Knows no toolchain and no run folder.

endpoint.py, protocols.py               any OpenAI-compatible endpoint and its two protocols
server_events.py, watched_client.py     an answer from its bytes to its events; a client that can be broken off
faults.py, retrying.py                  what a call that came to nothing is called; whether it is sent again
recorded.py, recording.py, manual.py    recorded replies; a person
command.py, output.py                   any program; what it printed, read as a reply (command_profiles.toml: examples)
agent.py, workspace.py                  a program that works in a folder and calls tools there
opening.py, environment.py, saved.py    which model answers which role; what a model's name stands for
tools.py                                what a model may call within one turn
prices.py, trial.py                     what a model costs; one small question to see whether it replies
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol


class Section(NamedTuple):
    """A stretch of a message: what a reader calls it, and how many characters it has."""

    name: str
    length: int


@dataclass(frozen=True, slots=True)
class Message:
    """One chat message; `role` is system, user, assistant, or tool for the answer to a tool call. Its sections, where
    it has any, make up the whole text."""

    role: str
    text: str
    sections: tuple[Section, ...] = ()


class ToolAnswer(NamedTuple):
    """What a tool call was answered. `was_done` is False where nothing was carried out for it."""

    text: str
    is_passed: bool
    was_done: bool


UseTool = Callable[[str, str, bool], ToolAnswer]
"""Carries out a tool's call on the text of a kernel file, or only says that none is left where the last is False."""


@dataclass(frozen=True, slots=True)
class Workbench:
    """What a model that works in a folder of its own gets beside the prompt."""

    reference: str
    kernel: str
    """The source of the kernel that the call is about; empty where there is none."""
    use: UseTool | None
    """None where the reply is to be no kernel."""


@dataclass(frozen=True, slots=True)
class Purpose:
    """What a call is for. A recording is looked up by it; other models may ignore it."""

    role: str
    source_hash: str | None
    """SHA-256 of the kernel the call is about; None for a synthesis."""
    occurrence: int
    """How many earlier calls there were of the same role about the same kernel."""
    depth: int = 0
    given: frozenset[str] = frozenset()
    """Hashes of all replies the run has had."""
    wants_edits: bool = False
    """Asks for line edits in the form that suits the endpoint."""
    output_limit: int | None = None
    """In tokens; it stands above the model's own option."""
    tools_left: int | None = None
    """How many tool calls the reply may make; None where no tools are offered."""
    task: str = ""
    """Says to a person what is to be done."""
    bench: Workbench | None = field(default=None, compare=False, repr=False)
    """For an agent; None where nothing can be tried."""


@dataclass(frozen=True, slots=True)
class Completion:
    """A finished reply. `finish_reason` is stop, length (cut off at the output limit), or what the endpoint said.

    None means unknown, for tokens and for `cost_usd`.
    """

    text: str
    model: str
    finish_reason: str
    seconds: float
    input_tokens: int | None = 0
    output_tokens: int | None = 0
    cached_tokens: int | None = 0
    reasoning_tokens: int | None = 0
    cost_usd: float | None = None


@dataclass(frozen=True, slots=True)
class Terms:
    """On what terms a model would answer a call. Prices are US dollars per token, None when unknown.

    `window` is all tokens that prompt and reply may have together, `reply_room` those kept free for the reply, and
    `longest_reply` the largest output limit that may be asked for; None leaves it open.
    """

    model: str
    window: int
    reply_room: int
    output_limit: int | None = None
    longest_reply: int | None = None
    input_price: float | None = None
    output_price: float | None = None

    def cost(self, input_tokens: int, output_tokens: int) -> float | None:
        """What so many tokens cost at most, in US dollars; None when the price is unknown."""
        if self.input_price is None or self.output_price is None:
            return None
        return self.input_price * input_tokens + self.output_price * output_tokens


OnText = Callable[[str], None]


class LanguageModel(Protocol):
    """Anything that answers: an endpoint, a program, a recording, a person. A call brings the whole conversation; none
    is kept."""

    name: str

    def terms(self, purpose: Purpose) -> Terms | None:
        """The terms of a call, the same whenever asked; None only where every call costs nothing and has no limits."""
        ...

    def complete(self, messages: list[Message], purpose: Purpose, on_text: OnText) -> Completion:
        """Answer the conversation. One call is one request; nothing is tried again behind the caller's back.

        `on_text` gets the pieces of the reply in order: joined they are the completion's text, or what had arrived of
        a reply that failed. While more is awaited it gets the empty text several times a second (not while a connection
        is being made). What it raises breaks the call off and reaches the caller as it is; the model can then be asked
        again. A recording and a person give the same reply to the same purpose, in a later process too.

        Raises:
            ModelError: no usable reply can be had, for whatever reason.
        """
        ...
