"""The seam to language models: messages in, one completed reply out. Knows no toolchain and no run folder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from storage.records import Role


@dataclass(frozen=True, slots=True)
class Message:
    """One chat message; `role` is system, user or assistant."""

    role: str
    text: str


@dataclass(frozen=True, slots=True)
class Purpose:
    """What a call is for. A recording is looked up by it; other models may ignore it.

    `source_hash` is the SHA-256 of the kernel the call is about (None for a synthesis); `occurrence` counts earlier
    calls of the same role about the same kernel.
    """

    role: Role
    source_hash: str | None
    occurrence: int


@dataclass(frozen=True, slots=True)
class Completion:
    """A finished reply. `finish_reason` is stop, length, content_filter or what the endpoint said.

    `cost_usd` None means the price is not known.
    """

    text: str
    model: str
    finish_reason: str
    seconds: float
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    cost_usd: float | None = None


OnText = Callable[[str], None]


class LanguageModel(Protocol):
    """Anything that answers. `on_text` gets each piece of the reply as it arrives and may raise to break off.

    Raises ModelError when no usable reply can be had; nothing is retried behind the caller's back at a cost.
    """

    name: str

    def complete(self, messages: list[Message], purpose: Purpose, on_text: OnText) -> Completion:
        """Answer the conversation."""
        ...
