"""Many places in few words: those that differ in numbers alone, as the layers of a network do, are told once."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pages.parts import wording

_NUMBER = re.compile(r"(?<![^.])\d+(?![^.])")
WHOLE = "the network itself"


def in_few(places: Sequence[str], most: int = 3) -> str:
    """`layers.*.mlp.act (12 places), head`; of more than `most` sorts how many others there are."""
    sorts: dict[str, list[str]] = {}
    for place in places:
        sorts.setdefault(_NUMBER.sub("*", place), []).append(place)
    told = [f"{sort} ({len(same)} places)" if len(same) > 1 else name(same[0]) for sort, same in sorts.items()]
    more = len(told) - most
    return ", ".join([*told[:most], *([f"{wording.counted(more, 'other sort')} of place"] if more > 0 else [])])


def name(place: str) -> str:
    """A place where it stands alone."""
    return place or WHOLE
