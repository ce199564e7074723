"""What a stored prompt is made of: the share of source, error log, history and the rest. Draws nothing."""

from __future__ import annotations

import json

from pages.parts import wording


def of_prompt(text: str) -> dict[str, int]:
    """Characters of each part over all messages, the largest first; a message that nobody divided counts as one part.

    Empty for a prompt none of whose messages were divided, and for a text that is no prompt.
    """
    try:
        found = [(str(m["role"]), len(m["text"]), dict(m.get("parts") or {})) for m in json.loads(text)]
    except (json.JSONDecodeError, TypeError, KeyError, AttributeError, ValueError):
        return {}
    if not any(parts for _, _, parts in found):
        return {}
    sums: dict[str, int] = {}
    for role, length, parts in found:
        for name, count in (parts or {f"{role} messages": length}).items():
            sums[str(name)] = sums.get(str(name), 0) + int(count)
    return dict(sorted(sums.items(), key=lambda item: -item[1]))


def sentence(shares: dict[str, int]) -> str:
    """The shares in per cent: "source 61 % · guide 22 % · …", safe for Markdown."""
    whole = sum(shares.values()) or 1
    return " · ".join(f"{wording.plain(name)} {percent(count, whole)}" for name, count in shares.items())


def percent(count: int, whole: int) -> str:
    """ "61 %", or "under 1 %"."""
    share = 100 * count / whole
    return f"{share:.0f} %" if share >= 1 else "under 1 %"
