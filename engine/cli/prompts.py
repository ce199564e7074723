"""A stored prompt as text. Knows how prompts are kept, not who reads them."""

from __future__ import annotations

import json


def as_text(stored: str) -> str:
    """The messages one below the other, each under its role."""
    return "\n\n".join(f"[{message['role']}]\n{message['text']}" for message in json.loads(stored))
