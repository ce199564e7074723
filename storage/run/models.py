"""How a run talks to its models: roles, options per role, words for a call that came to nothing. Knows no client.

An option that is not set falls back to the option for all roles, then to the environment and its defaults.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any
from urllib.parse import urlsplit

CHARACTERS_PER_TOKEN = 3.0  # on the safe side, until an endpoint has counted


class ModelRole(StrEnum):
    """Whose part a model plays. ALL stands for every role that has no option of its own."""

    ALL = "all"
    WRITER = "writer"
    DIAGNOSER = "diagnoser"
    REPAIRER = "repairer"
    JUDGE = "judge"


class WireProtocol(StrEnum):
    """How an endpoint is spoken to. AUTO: responses at OpenAI's own address, chat completions everywhere else."""

    AUTO = "auto"
    CHAT = "chat"
    RESPONSES = "responses"


class PatchForm(StrEnum):
    """How edits are asked for; whatever comes goes through the same parser."""

    TEXT = "text"
    JSON_SCHEMA = "json_schema"
    TOOL = "tool"


class CallFailure(StrEnum):
    """Why a call to a model gave no usable reply."""

    RATE_LIMITED = "rate_limited"
    SERVER_ERROR = "server_error"
    UNREACHABLE = "unreachable"
    TIMED_OUT = "timed_out"
    DROPPED = "dropped"
    EMPTY = "empty"
    REFUSED = "refused"
    MALFORMED = "malformed"
    ENDLESS = "endless"
    REJECTED = "rejected"
    CANCELLED = "cancelled"
    LOST = "lost"


@dataclass(frozen=True, slots=True)
class TokenUsage:
    """Tokens as the endpoint counts them; None is not known. Input holds cached, output holds reasoning tokens."""

    input: int | None = None
    output: int | None = None
    cached: int | None = None
    reasoning: int | None = None


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """Options of one role."""

    role: ModelRole = ModelRole.ALL
    model: str | None = None
    base_url: str | None = None
    key_variable: str | None = None
    """Name of an environment variable; a key itself is never a setting."""
    reasoning_effort: str | None = None
    temperature: float | None = None
    timeout_s: float | None = None
    """Bounds a whole reply."""
    silence_s: float | None = None
    """Bounds the time between two pieces of a reply."""
    max_output: int | None = None
    """Tokens of a reply."""
    window: int | None = None
    """Tokens of prompt and reply together."""
    protocol: WireProtocol | None = None
    patches: PatchForm | None = None


Options = tuple[ModelOptions, ...]
NAMES = tuple(field.name for field in dataclasses.fields(ModelOptions) if field.name != "role")
_NUMBERS = {"temperature": float, "timeout_s": float, "silence_s": float, "max_output": int, "window": int}
_SETS = {"protocol": WireProtocol, "patches": PatchForm}


def for_role(options: Options, role: ModelRole) -> ModelOptions:
    """The options of a role, with those for all roles where it has none of its own."""
    of_role = ModelOptions(role)
    for asked_role in (ModelRole.ALL, role):
        for entry in options:
            if entry.role is asked_role:
                stated = {name: getattr(entry, name) for name in NAMES if getattr(entry, name) is not None}
                of_role = replace(of_role, **stated)
    return of_role


def with_option(options: Options, text: str) -> Options:
    """The options with one more: `name=value` for all roles, `role.name=value` for one.

    Raises:
        ValueError: no such role or option, or a value it cannot have; the message says what would do.
    """
    left, equals, value = text.partition("=")
    prefix, dot, name = left.strip().rpartition(".")
    role = _role(prefix.strip()) if dot else ModelRole.ALL
    if not equals or name not in NAMES:
        raise ValueError(f"expected [ROLE.]NAME=VALUE with one of {', '.join(NAMES)}, got {text!r}")
    before = next((entry for entry in options if entry.role is role), ModelOptions(role))
    changes: dict[str, Any] = {name: _value(name, value.strip())}
    return (*(entry for entry in options if entry.role is not role), replace(before, **changes))


def read_options(lines: str) -> Options:
    """Options from text with one per line; empty lines and lines that start with # say nothing.

    Raises:
        ValueError: as `with_option`.
    """
    options: Options = ()
    for line in lines.splitlines():
        if line.strip() and not line.strip().startswith("#"):
            options = with_option(options, line)
    return options


def _role(text: str) -> ModelRole:
    if text not in set(ModelRole):
        raise ValueError(f"unknown role {text!r}: use one of {', '.join(ModelRole)}")
    return ModelRole(text)


def _value(name: str, text: str) -> Any:
    try:
        if name in _NUMBERS:
            number = _NUMBERS[name](text)
            if not 0 <= number < float("inf") or (number == 0 and name != "temperature"):
                raise ValueError
            return number
        if name in _SETS:
            return _SETS[name](text)
    except ValueError:
        kinds = ", ".join(_SETS[name]) if name in _SETS else "a number above 0"
        raise ValueError(f"{name} takes {kinds}, not {text!r}") from None
    return _text(name, text)


def _text(name: str, text: str) -> str:
    if not text:
        raise ValueError(f"{name} needs a value")
    if name == "base_url":
        check_address(text)
    if name == "key_variable" and not text.isidentifier():
        raise ValueError(
            "key_variable takes the name of an environment variable that holds the key, never the key itself"
        )
    return text


def check_address(text: str) -> None:
    """See that an endpoint's address can be kept in settings.

    Raises:
        ValueError: no http address, or one that holds a name, a password or a query, which may be secrets.
    """
    try:
        parts = urlsplit(text)
        secret = parts.username or parts.password or parts.query or parts.fragment
    except ValueError:
        raise ValueError("the endpoint's address is invalid") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("the address (base_url) must look like http://localhost:8000/v1")
    if secret:
        raise ValueError("base_url must contain no password and no query: put the key into an environment variable")
