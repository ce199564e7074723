"""A map of wrong elements in words, so that it can be heard and searched for. Pure."""

from __future__ import annotations

from collections.abc import Sequence

Heat = Sequence[Sequence[float]]


def sentence(heat: Heat) -> str:
    """Where the wrong blocks lie: everywhere, whole rows, whole columns, the diagonal, or how many of how many."""
    rows, columns = len(heat), len(heat[0]) if heat else 0
    wrong = {(i, j) for i, row in enumerate(heat) for j, share in enumerate(row) if share > 0}
    total = rows * columns
    if not wrong:
        return "No block of the output has errors."
    if len(wrong) == total:
        return f"All {total} blocks of the output have errors."
    told = f"{len(wrong)} of {total} blocks of the output have errors"
    whole_columns = [j for j in range(columns) if rows > 1 and all((i, j) in wrong for i in range(rows))]
    whole_rows = [i for i in range(rows) if columns > 1 and all((i, j) in wrong for j in range(columns))]
    rest = {(i, j) for i, j in wrong if i not in whole_rows and j not in whole_columns}
    parts = [_span("row", whole_rows, rows), _span("column", whole_columns, columns), _rest(rest, rows == columns)]
    named = [part for part in parts if part]
    return f"{told}: {', '.join(named)}." if named and (whole_rows or whole_columns or len(named) > 1) else f"{told}."


def _span(what: str, found: Sequence[int], total: int) -> str:
    if not found:
        return ""
    if len(found) == 1:
        return f"all of block {what} {found[0] + 1} of {total}"
    if found[-1] - found[0] == len(found) - 1:
        return f"all of block {what}s {found[0] + 1} to {found[-1] + 1} of {total}"
    return f"all of {len(found)} of {total} block {what}s"


def _rest(found: set[tuple[int, int]], is_square: bool) -> str:
    if not found:
        return ""
    if is_square and len(found) > 1 and all(i == j for i, j in found):
        return f"{len(found)} on the diagonal"
    return f"{len(found)} elsewhere"
