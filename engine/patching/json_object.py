"""The one JSON object that a reply has to bring, with its fields. Knows text and names, not what they mean."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from engine.patching.edits import EditError
from engine.patching.reply import answer_part, fences

LONGEST = 1200  # characters of one field
_OBJECT = re.compile(r"[\[{]")
_DECODER = json.JSONDecoder(strict=False)


def read_fields(reply: str, names: Sequence[str]) -> dict[str, str]:
    """The fields of the last JSON object of a reply, in the order of `names`.

    Raises:
        EditError: no object, several points instead of one, or not exactly these fields with a text in each.
    """
    found = _last_value(answer_part(reply))
    if isinstance(found, list):
        raise EditError(f"The reply is a list of {len(found)}: send one object, with one point.")
    if not isinstance(found, dict):
        raise EditError("No JSON object was found in the reply.")
    if missing := [name for name in names if name not in found]:
        raise EditError(f"The object lacks {_listed(missing)}.")
    if unknown := [name for name in found if name not in names]:
        raise EditError(f"The object has {_listed(unknown)}, which was not asked for.")
    for name in names:
        if not isinstance(found[name], str) or not found[name].strip():
            raise EditError(f'"{name}" must be a text that is not empty.')
        if len(found[name]) > LONGEST:
            raise EditError(f'"{name}" has {len(found[name]):,} characters: one point in at most {LONGEST:,}.')
    return {name: found[name].strip() for name in names}


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f'"{name[:40]}"' for name in names[:8])


def _last_value(answer: str) -> object:
    """The last object or list: of the last fenced block that holds one, else of the whole answer."""
    for block in reversed(fences(answer)):
        if (found := _last_in(block.text)) is not None:
            return found
    return _last_in(answer)


def _last_in(text: str) -> object:
    position, found = 0, None
    patience = 4 * len(text) + 10_000  # what failed readings may cost in all, so that no text takes long
    while patience > 0 and (match := _OBJECT.search(text, position)) is not None:
        try:
            found, position = _DECODER.raw_decode(text, match.start())
        except (json.JSONDecodeError, RecursionError) as error:
            position = match.start() + 1
            patience -= getattr(error, "pos", len(text)) - match.start() + 1
    return found
