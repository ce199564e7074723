"""Which line of one source stands beside which of another: hunks, with folded parts between. Pure; draws nothing."""

from __future__ import annotations

import bisect
import difflib
import functools
import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

CONTEXT = 3
LEAST_FOLD = 3
Pair = tuple[str, int, int]


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of a diff: a hunk with its context, or unchanged lines that are folded away."""

    is_folded: bool
    pairs: tuple[Pair, ...]


@functools.lru_cache(maxsize=32)
def pairs(old: str, new: str) -> tuple[Pair, ...]:
    """(kind, old line, new line); kind is =, ~ (changed), - or +; -1 where a side has no line."""
    a, b = old.split("\n"), new.split("\n")
    found: list[Pair] = []
    for a0, a1, b0, b1, is_same in _blocks(a, b):
        if is_same:
            found += [("=", a0 + k, b0 + k) for k in range(a1 - a0)]
            continue
        both = min(a1 - a0, b1 - b0)
        found += [("~", a0 + k, b0 + k) for k in range(both)]
        found += [("-", k, -1) for k in range(a0 + both, a1)]
        found += [("+", -1, k) for k in range(b0 + both, b1)]
    return tuple(found)


def pieces(found: Sequence[Pair]) -> list[Piece]:
    """Hunks, with what lies far from every change folded."""
    near = {k for i, pair in enumerate(found) if pair[0] != "=" for k in range(i - CONTEXT, i + CONTEXT + 1)}
    runs = [(is_near, list(group)) for is_near, group in itertools.groupby(range(len(found)), key=near.__contains__)]
    out: list[Piece] = []
    for is_near, places in runs:
        is_folded = not is_near and len(places) >= LEAST_FOLD
        rows = tuple(found[i] for i in places)
        if out and not is_folded and not out[-1].is_folded:
            out[-1] = Piece(False, out[-1].pairs + rows)
        else:
            out.append(Piece(is_folded, rows))
    return out


def unified(old: str, new: str, names: tuple[str, str]) -> str:
    """The same diff as text that `patch` reads. A newline at the end of both is the end of the last line, no line."""
    is_ended = old.endswith("\n") and new.endswith("\n")
    if is_ended:
        old, new = old[:-1], new[:-1]
    a, b = old.split("\n"), new.split("\n")
    lines = [f"--- {names[0]}", f"+++ {names[1]}"]
    for piece in pieces(pairs(old, new)):
        if not piece.is_folded and any(kind != "=" for kind, _, _ in piece.pairs):
            lines += _hunk(piece.pairs, a, b)
    return "\n".join(lines) + "\n"


def _hunk(rows: Sequence[Pair], a: Sequence[str], b: Sequence[str]) -> Iterator[str]:
    olds, news = [i for _, i, _ in rows if i >= 0], [j for _, _, j in rows if j >= 0]
    yield f"@@ -{min(olds, default=-1) + 1},{len(olds)} +{min(news, default=-1) + 1},{len(news)} @@"
    for is_same, group in itertools.groupby(rows, key=lambda row: row[0] == "="):
        block = list(group)
        if is_same:
            yield from (f" {a[i]}" for _, i, _ in block)
            continue
        yield from (f"-{a[i]}" for _, i, _ in block if i >= 0)
        yield from (f"+{b[j]}" for _, _, j in block if j >= 0)


def _blocks(a: Sequence[str], b: Sequence[str]) -> Iterator[tuple[int, int, int, int, bool]]:
    """Equal and unequal blocks. Lines that stand once on each side are anchors, which keeps sources full of equal lines
    fast and readable; only what lies between them is compared line by line."""
    i = j = 0
    for at, bt in [*_anchors(a, b), (len(a), len(b))]:
        for tag, a0, a1, b0, b1 in difflib.SequenceMatcher(None, a[i:at], b[j:bt], autojunk=False).get_opcodes():
            yield a0 + i, a1 + i, b0 + j, b1 + j, tag == "equal"
        if at < len(a):
            yield at, at + 1, bt, bt + 1, True
        i, j = at + 1, bt + 1


def _anchors(a: Sequence[str], b: Sequence[str]) -> list[tuple[int, int]]:
    """Lines unique on both sides that stand in the same order: the longest rising sequence of their places."""
    here, there = Counter(a), Counter(b)
    place = {line: j for j, line in enumerate(b) if there[line] == 1}
    common = [(i, place[line]) for i, line in enumerate(a) if here[line] == 1 and line in place]
    ends: list[int] = []
    chain: list[tuple[int, int | None]] = []
    last: list[int] = []
    for n, (_, j) in enumerate(common):
        at = bisect.bisect_left(ends, j)
        chain.append((n, last[at - 1] if at else None))
        ends[at : at + 1], last[at : at + 1] = [j], [n]
    out: list[tuple[int, int]] = []
    step: int | None = last[-1] if last else None
    while step is not None:
        out.append(common[step])
        step = chain[step][1]
    return out[::-1]
