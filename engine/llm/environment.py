"""Which model endpoint the environment names. Imports no client, so a dashboard can ask too."""

from __future__ import annotations

import os

DEFAULT_MODEL = "gpt-5"


def is_configured() -> bool:
    """True when the environment names an endpoint."""
    return bool(os.environ.get("OPENAI_API_KEY") or os.environ.get("OPENAI_BASE_URL"))


def configured_model() -> str:
    """The model that TILEWRIGHT_MODEL names, or a default."""
    return os.environ.get("TILEWRIGHT_MODEL") or DEFAULT_MODEL
