"""The edits that a raw reply holds, and where in it they were found. Knows JSON and blocks, not sources."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from engine.patching.edits import Edit, EditError
from engine.patching.json_edits import looks_like_edit, parse_edits
from engine.patching.mending import mended
from engine.patching.reply import Fence, fences

_START = re.compile(r'\{\s*"|\[\s*\{')
_DECODER = json.JSONDecoder(strict=False)
WINDOW, MIN_COST = 4096, 64  # characters
MISSING = "No list of edits was found: the reply must end with one ```json block that holds the edits."


@dataclass(frozen=True, slots=True)
class Found:
    """JSON that is meant as edits, the way to it in words, and the line of the answer it begins on."""

    plain: list[Any]
    way: str
    line: int

    def parsed(self) -> list[Edit]:
        """The edits.

        Raises:
            EditError: they are malformed.
        """
        return parse_edits(self.plain)


def find_edit_json(answer: str) -> Found | None:
    """JSON edits from the last block that holds any; blocks tagged json count before others, bare JSON last of all."""
    blocks = fences(answer)
    tagged = [b for b in blocks if b.tag.startswith("json")]
    others = [b for b in blocks if not b.tag.startswith("json")]
    return (
        _from_blocks(tagged, "json block")
        or _from_blocks(others, "untagged block")
        or _bare(answer)
    )  # fmt: skip


def find_edits(answer: str) -> list[Edit]:
    """The edits of an answer.

    Raises:
        EditError: no edits in it, or the last ones are malformed.
    """
    found = find_edit_json(answer)
    if found is None:
        raise EditError(MISSING)
    return found.parsed()


def _from_blocks(blocks: list[Fence], way: str) -> Found | None:
    for index in range(len(blocks) - 1, -1, -1):
        plain, is_mended = _edits_of(blocks[index].text)
        if plain:
            series = _series(blocks[: index + 1], plain)
            told = way + (", mended" if is_mended else "") + ("s, one edit each" if len(series) > len(plain) else "")
            return Found(series, told, blocks[index].line)
    return None


def _series(blocks: list[Fence], last: list[Any]) -> list[Any]:
    """One edit a block: all of them, as long as they are about different lines (else the earlier ones are drafts)."""
    series, seen = list(last), {_place(edit) for edit in last}
    for block in reversed(blocks[:-1]):
        plain, _ = _edits_of(block.text)
        is_single = block.text.lstrip().startswith("{") and len(plain) == 1 and len(last) == 1
        if not is_single or not blocks[-1].text.lstrip().startswith("{") or _place(plain[0]) in seen:
            break
        series.insert(0, plain[0])
        seen.add(_place(plain[0]))
    return series


def _place(edit: Any) -> str:
    return str(edit.get("line_number")) if isinstance(edit, dict) else ""


def _bare(answer: str) -> Found | None:
    plain, line = _scan(answer)
    return Found(plain, "bare JSON", line) if plain else None


def _edits_of(text: str) -> tuple[list[Any], bool]:
    """The edits of a block, and whether its JSON had to be mended first."""
    plain, _ = _scan(text)
    if plain or '"' not in text:
        return plain, False
    for meant in mended(text):
        if plain := _scan(meant)[0]:
            return plain, True
    return [], False


def _scan(text: str) -> tuple[list[Any], int]:
    """All edit objects of one text (a list, an object, several in a row, a wrapped list) and the line of the first."""
    position, found, line = 0, list[Any](), 0
    patience = 4 * len(text) + 10_000  # what failed readings may cost in all, so that no text takes long
    while patience > 0 and (match := _START.search(text, position)) is not None:
        value, length, cost = _read(text, match.start())
        position, patience = match.start() + max(length, 1), patience - cost
        if edits := _as_edits(value):
            line = line if found else text.count("\n", 0, match.start())
            found.extend(edits)
    return found, line


def _read(text: str, start: int) -> tuple[Any, int, int]:
    """(value, its length, what a failure cost in characters); a length of 0 means that no JSON begins here.

    Trap: the decoder's error counts the lines before it, so it must not be shown the whole text each time.
    """
    window = WINDOW
    while True:
        piece = text[start : start + window]
        try:
            value, length = _DECODER.raw_decode(piece)
            return value, length, 0
        except json.JSONDecodeError as error:
            is_cut = error.pos >= len(piece) - 16 or error.msg.startswith("Unterminated")
            if not is_cut or start + window >= len(text):
                return None, 0, max(error.pos, window if window > WINDOW else MIN_COST)
        except (RecursionError, ValueError):  # nested beyond reason, or a number beyond it
            return None, 0, window
        window *= 8


def _as_edits(value: Any) -> list[Any]:
    if looks_like_edit(value):
        return [value]
    if isinstance(value, list):
        return value if any(looks_like_edit(item) for item in value) else []
    if not isinstance(value, dict):
        return []
    inner = [v for v in value.values() if looks_like_edit(v) or (isinstance(v, list) and any(map(looks_like_edit, v)))]
    return _as_edits(inner[0]) if len(inner) == 1 else []
