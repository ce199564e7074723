"""SEARCH/REPLACE blocks put into a source, all or nothing: searched where the model read them. Knows no replies."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from engine.search.patching.edits import (
    Action,
    Edit,
    EditError,
    Lines,
    find_places,
    in_order,
    refuse_unwritable,
    settle,
)
from engine.search.patching.reply import Swap

PATIENCE = 5_000_000  # lines that all blocks together may look at


def apply_search_replace(source: str, swaps: Sequence[Swap]) -> str:
    """Replace each searched text, whole lines that must stand in the source exactly once; all or nothing.

    Blocks that do not fit the source as it was shown are read as made one after the other.

    Raises:
        EditError: a text is missing or ambiguous, or nothing changes.
    """
    refuse_unwritable("\n".join(text for swap in swaps for text in swap.replacement))
    before = Lines.of(source)
    try:
        lines = _together(before, swaps)
    except EditError:
        lines = _one_by_one(before, swaps)
    if lines.texts == before.texts:
        raise EditError("The SEARCH/REPLACE blocks change nothing.")
    if not any(text.strip() for text in lines.texts):
        raise EditError("The SEARCH/REPLACE blocks leave nothing of the kernel.")
    return lines.text


def _together(lines: Lines, swaps: Sequence[Swap]) -> Lines:
    places, search, edits = defaultdict[str, list[int]](list), _Search(), list[Edit]()
    for number, text in enumerate(lines.texts):
        places[text.strip()].append(number)
    for index, swap in enumerate(swaps, 1):
        line, new = search.place(lines, index, swap, places.get(_first(index, swap)[1], ()))
        edits.append(Edit(Action.REPLACE, line, len(swap.search), new))
    return lines.with_edits(in_order(settle(lines.texts, edits)))


def _one_by_one(lines: Lines, swaps: Sequence[Swap]) -> Lines:
    search = _Search()
    for index, swap in enumerate(swaps, 1):
        search.spend(index, len(lines.texts))
        first = _first(index, swap)[1]
        places = [number for number, text in enumerate(lines.texts) if text.strip() == first]
        line, new = search.place(lines, index, swap, places)
        lines = lines.with_edits([Edit(Action.REPLACE, line, len(swap.search), new)])
    return lines


def _first(index: int, swap: Swap) -> tuple[int, str]:
    """The first searched line that is not blank, which tells where to look, and its place in the block."""
    for number, text in enumerate(swap.search):
        if text.strip():
            return number, text.strip()
    raise EditError(f"SEARCH block {index} is empty. Copy whole lines exactly, enough of them to be unique.")


@dataclass(slots=True)
class _Search:
    left: int = PATIENCE

    def spend(self, index: int, lines: int) -> None:
        self.left -= lines
        if self.left < 0:
            raise EditError(f"SEARCH block {index} may stand in too many places. Choose lines that are rare.")

    def place(self, lines: Lines, index: int, swap: Swap, firsts: Sequence[int]) -> tuple[int, tuple[str, ...]]:
        """The line of the only place where a block stands, and its new lines as they would be written there."""
        before, size = _first(index, swap)[0], len(swap.search)
        starts = [n for first in firsts if 1 <= (n := first + 1 - before) <= len(lines.texts) - size + 1]
        self.spend(index, len(firsts) + len(starts) * size)
        places, new = find_places(lines.texts, swap.search, swap.replacement, starts)
        if len(places) != 1:
            raise EditError(
                f"SEARCH block {index} stands in the source {len(places)} times, not once. "
                "Copy whole lines exactly, enough of them to be unique."
            )
        return places[0], new
