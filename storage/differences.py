"""In which lines two texts differ, found in bounded time whatever stands in them. Knows no kernel and no page."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

PATIENCE = 2_000_000  # pairs of equal lines that are looked at: about a second
CONTEXT = 3


class Comparison(difflib.SequenceMatcher[str]):
    """Compares as `difflib` does until its patience is used up; what is left then counts as different."""

    a: Sequence[str]
    b2j: dict[str, list[int]]  # where each line stands in the new text

    def __init__(
        self, old: Sequence[str], new: Sequence[str], patience: int = PATIENCE, *, autojunk: bool = False
    ) -> None:
        super().__init__(None, old, new, autojunk)
        self._patience = patience

    def find_longest_match(
        self, alo: int = 0, ahi: int | None = None, blo: int = 0, bhi: int | None = None
    ) -> difflib.Match:
        """The longest stretch that both have within these bounds."""
        if self._patience > 0:
            end = len(self.a) if ahi is None else ahi
            self._patience -= end - alo + sum(len(self.b2j.get(self.a[i], ())) for i in range(alo, end))
        if self._patience < 0:
            return difflib.Match(alo, blo, 0)
        return super().find_longest_match(alo, ahi, blo, bhi)


def unified(old: Sequence[str], new: Sequence[str], context: int = CONTEXT) -> list[str]:
    """The hunks of a unified diff, each with its head."""
    lines = list[str]()
    for group in Comparison(old, new, autojunk=True).get_grouped_opcodes(context):
        (_, a, _, c, _), (_, _, b, _, d) = group[0], group[-1]
        lines.append(f"@@ -{_range(a, b)} +{_range(c, d)} @@")
        for tag, i, j, k, m in group:
            if tag == "equal":
                lines += [f" {line}" for line in old[i:j]]
                continue
            lines += [f"-{line}" for line in old[i:j]]
            lines += [f"+{line}" for line in new[k:m]]
    return lines


def _range(start: int, stop: int) -> str:
    length = stop - start
    return f"{start + 1}" if length == 1 else f"{start + 1 if length else start},{length}"
