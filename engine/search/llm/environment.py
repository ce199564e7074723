"""Which model endpoint the environment names, and with which key. Imports no client, so a dashboard can ask too."""

from __future__ import annotations

import os
from collections.abc import Iterable

from engine.errors import ModelError

DEFAULT_MODEL = "gpt-5"
KEY = "OPENAI_API_KEY"
OPENAI = "https://api.openai.com/v1"
NO_KEY = "none"
BUS = "DBUS_SESSION_BUS_ADDRESS"


def is_configured() -> bool:
    """True when the environment names an endpoint."""
    return bool(os.environ.get(KEY) or os.environ.get("OPENAI_BASE_URL"))


def configured_model() -> str:
    """The model that TILEWRIGHT_MODEL names, or a default."""
    return os.environ.get("TILEWRIGHT_MODEL") or DEFAULT_MODEL


def configured_address() -> str:
    """The address that OPENAI_BASE_URL names, or OpenAI's own."""
    return os.environ.get("OPENAI_BASE_URL") or OPENAI


def key_in(variable: str | None, address: str) -> str:
    """The key in an environment variable, or in OPENAI_API_KEY. A local endpoint needs none; NO_KEY as the variable
    sends none, so that OpenAI's key does not travel to an address that asks for none.

    Raises:
        ModelError: the variable named is not set, OpenAI itself is asked without a key, or no header can carry the key.
    """
    if variable == NO_KEY:
        return NO_KEY
    key = os.environ.get(variable or KEY, "").strip()
    if not key and (variable or address == OPENAI):
        if variable:
            raise ModelError(f"the endpoint's key is missing: set the environment variable {variable} to it")
        raise ModelError(f"no model endpoint is set: set {KEY} to its key (and OPENAI_BASE_URL for another provider)")
    if not key.isascii() or not key.isprintable() or " " in key:
        raise ModelError(f"the key in {variable or KEY} contains spaces or characters that no key has: set it again")
    return key or NO_KEY


def withheld(variables: Iterable[str | None]) -> frozenset[str]:
    """What no program gets that is a model: keys of ours, and the way to the system's keyring."""
    return frozenset({KEY, BUS, *filter(None, variables)})


def forget(variables: set[str]) -> None:
    """Take keys out of this process's environment, so that no child can inherit them."""
    for variable in variables:
        os.environ.pop(variable, None)
