"""Finding what a raw reply offers: line edits, SEARCH/REPLACE blocks, or a whole file. Knows text, not kernels."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from engine.patching.edits import Edit, EditError, parse_edits

_FENCE = re.compile(r"^[ \t]*(`{3,}|~{3,})([^\n`]*)\n(.*?)^[ \t]*\1[ \t]*$", re.MULTILINE | re.DOTALL)
_SEARCH_REPLACE = re.compile(
    r"^<{5,9} ?SEARCH[^\n]*\n(.*?)^={5,9}[ \t]*\n(.*?)^>{5,9} ?REPLACE[^\n]*$", re.MULTILINE | re.DOTALL
)
_REASONING = re.compile(r"<(reasoning|think|thinking)>.*?</\1>", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Fence:
    """A fenced block: its language tag in lower case and its text."""

    tag: str
    text: str


def answer_part(reply: str) -> str:
    """The reply without reasoning sections, with newlines made uniform."""
    return _REASONING.sub("", reply.replace("\r\n", "\n").replace("\r", "\n"))


def fences(reply: str) -> list[Fence]:
    """Closed fenced blocks in order."""
    return [Fence(match[2].strip().lower(), match[3]) for match in _FENCE.finditer(answer_part(reply))]


def find_edits(reply: str) -> list[Edit]:
    """Edits from the last block that holds any; blocks tagged json count before others, bare JSON last of all.

    Raises:
        EditError: no edits in the reply, or the last ones are malformed.
    """
    blocks = fences(reply)
    tagged = [b.text for b in blocks if b.tag.startswith("json")]
    others = [b.text for b in blocks if not b.tag.startswith("json")]
    for text in (*reversed(tagged), *reversed(others), answer_part(reply)):
        if plain := _json_edits(text):
            return parse_edits(plain)
    raise EditError("No list of edits was found: the reply must end with one ```json block that holds the edits.")


def find_search_replace(reply: str) -> list[tuple[str, str]]:
    """(search, replacement) pairs in order; empty when the reply holds none."""
    return [(match[1], match[2]) for match in _SEARCH_REPLACE.finditer(answer_part(reply))]


def find_python(reply: str) -> str | None:
    """The last fenced Python file that defines ModelNew, ending in one newline, or None."""
    blocks = [b.text for b in fences(reply) if b.tag in ("", "python", "py", "python3") and "ModelNew" in b.text]
    return blocks[-1].strip("\n") + "\n" if blocks else None


def labelled(reply: str, label: str) -> str:
    """Text after `Label:` on the first line that starts so, markdown marks removed; empty when there is none."""
    match = re.search(
        rf"^[ \t>*#_-]*{label}[ \t*_]*:[ \t*_]*(.+?)[ \t*_]*$", answer_part(reply), re.MULTILINE | re.IGNORECASE
    )
    return match[1].strip() if match else ""


def _json_edits(text: str) -> list[Any]:
    """All edit objects of one text: a list, an object, several in a row, or an object that wraps a list."""
    decoder, position, found = json.JSONDecoder(strict=False), 0, []
    while (match := re.compile(r"[\[{]").search(text, position)) is not None:
        try:
            value, position = decoder.raw_decode(text, match.start())
        except json.JSONDecodeError:
            position = match.start() + 1
            continue
        found.extend(_as_edits(value))
    return found


def _as_edits(value: Any) -> list[Any]:
    if isinstance(value, dict) and "action" in value:
        return [value]
    if isinstance(value, dict):
        inner = [v for v in value.values() if isinstance(v, list)]
        return _as_edits(inner[0]) if len(inner) == 1 else []
    if isinstance(value, list) and value and all(isinstance(item, dict) and "action" in item for item in value):
        return value
    return []
