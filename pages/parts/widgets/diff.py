"""Two sources beside each other: which line stands beside which, what changed is marked to the character, what did not
is folded away. Knows no run."""

from __future__ import annotations

import bisect
import functools
import itertools
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

import streamlit as st

from pages.parts import client
from pages.parts.widgets import code
from pages.parts.widgets.code import HeatMap, Line
from storage.differences import PATIENCE, Comparison

MOST_LINES = 4_000
SIMILAR = 0.35
CONTEXT = 3
LEAST_FOLD = 3
HOT = 0.25  # of what the hottest line took
PATIENCE_A_LINE = 50_000
Span = tuple[int, int]
Pair = tuple[str, int, int]

_diff = st.components.v2.component(
    "tilewright_diff",
    html=client.read("widgets/diff.html"),
    css=client.read("widgets/code.css") + client.read("widgets/heat.css") + client.read("widgets/diff.css"),
    js=client.read("widgets/heat.js") + client.read("widgets/diff.js"),
)


def draw(
    old: str,
    new: str,
    names: tuple[str, str],
    key: str,
    is_compact: bool = False,
    counts: tuple[int, int] | None = None,
    heat: tuple[HeatMap, HeatMap] = ({}, {}),
) -> None:
    """Draw the diff; both sources are escaped here, so that nothing in them can act as markup.

    A compact one is unified, has no bar and listens to no key. Of sources beyond `MOST_LINES` the rest is left out,
    which is said. `counts` are the lines added and removed that are told of this pair elsewhere, `heat` stands in the
    margin of the old and of the new source.
    """
    if old == new:
        st.caption("The sources are identical.")
        return
    shown = cut(old), cut(new)
    data = {
        "pieces": rows(*shown, hot=(_hot(heat[0]), _hot(heat[1]))),
        "names": list(names),
        "summary": summary(old, new, counts),
        "is_compact": is_compact,
        "heat": [code.sent(side) for side in heat] if any(heat) else None,
    }
    _diff(data=data | {"left_out": left_out(old, new)}, key=client.key(key))


def _hot(heat: HeatMap) -> frozenset[int]:
    """Lines, from 0, that are worth seeing though nothing changed there."""
    return frozenset(line - 1 for line, spot in heat.items() if spot.level >= HOT)


def changed_lines(old: str, new: str) -> tuple[int, int]:
    """Lines added and removed."""
    changes = pairs(old, new)
    return sum(p[0] in "+~" for p in changes), sum(p[0] in "-~" for p in changes)


def summary(old: str, new: str, counts: tuple[int, int] | None = None) -> str:
    """ "12 lines added, 3 removed", of what is shown, unless `counts` are given."""
    added, removed = counts or changed_lines(cut(old), cut(new))
    return f"{added:,} {'line' if added == 1 else 'lines'} added, {removed:,} removed"


def cut(text: str) -> str:
    """At most `MOST_LINES` lines of it."""
    lines = text.split("\n", MOST_LINES)
    return "\n".join(lines[:MOST_LINES])


def left_out(old: str, new: str) -> str:
    """That not everything is shown; empty where it is."""
    counts = [text.count("\n") + 1 for text in (old, new)]
    if max(counts) <= MOST_LINES:
        return ""
    rest = [text[len(cut(text)) :] for text in (old, new)]
    what = "the rest is identical" if rest[0] == rest[1] else "the rest differs too; download it to see all"
    return f"Showing {MOST_LINES:,} of {max(counts):,} lines; {what}."


@functools.lru_cache(maxsize=16)
def rows(
    old: str, new: str, hot: tuple[frozenset[int], frozenset[int]] = (frozenset(), frozenset())
) -> list[dict[str, Any]]:
    """Pieces for the browser: `[change, old line, new line, old side, new side]` per row, sides as escaped HTML.

    Of an unchanged row there is one side: it is drawn on both.
    """
    left, right = code.lines(old), code.lines(new)
    hunks = pieces(pairs(old, new), hot)
    return [{"fold": piece.is_folded, "rows": [_row(p, left, right) for p in piece.pairs]} for piece in hunks]


def _row(pair: Pair, left: tuple[Line, ...], right: tuple[Line, ...]) -> list[Any]:
    change, i, j = pair
    if change == "=":
        return ["=", i, j, code.as_html(right[j]), ""]
    old_line, new_line = left[i] if i >= 0 else (), right[j] if j >= 0 else ()
    old_spans, new_spans = _changed_spans(old_line, new_line) if change == "~" else ([], [])
    return [change, i, j, _marked(old_line, old_spans), _marked(new_line, new_spans)]


def _changed_spans(old: Line, new: Line) -> tuple[list[Span], list[Span]]:
    """Character ranges of the words that differ; none where the lines have too little in common for it to help."""
    a, b = _words(old), _words(new)
    matcher = Comparison(a, b, PATIENCE_A_LINE)
    if len(a) + len(b) > 400 or matcher.ratio() < SIMILAR:
        return [], []
    changes = [op for op in matcher.get_opcodes() if op[0] != "equal"]
    return (
        [_span(a, a0, a1) for _, a0, a1, _, _ in changes if a1 > a0],
        [_span(b, b0, b1) for _, _, _, b0, b1 in changes if b1 > b0],
    )


def _words(line: Line) -> list[str]:
    return re.findall(r"[\w.]+|\s+|.", "".join(text for _, text in line))


def _span(words: list[str], first: int, last: int) -> Span:
    return len("".join(words[:first])), len("".join(words[:last]))


def _marked(line: Line, spans: list[Span]) -> str:
    if not spans:
        return code.as_html(line)
    edges = sorted({edge for span in spans for edge in span})
    out, at = [], 0
    for css_class, text in line:
        cuts = [0, *(e - at for e in edges if 0 < e - at < len(text)), len(text)]
        for first, last in itertools.pairwise(cuts):
            piece = code.as_html(((css_class, text[first:last]),))
            is_changed = any(s <= at + first < e for s, e in spans)
            out.append(f"<mark>{piece}</mark>" if is_changed else piece)
        at += len(text)
    return "".join(out)


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of a diff: a hunk with its context, or unchanged lines that are folded away."""

    is_folded: bool
    pairs: tuple[Pair, ...]


@functools.lru_cache(maxsize=32)
def pairs(old: str, new: str) -> tuple[Pair, ...]:
    """(change, old line, new line); change is =, ~ (changed), - or +; -1 where a side has no line."""
    a, b = old.split("\n"), new.split("\n")
    changes: list[Pair] = []
    for a0, a1, b0, b1, is_same in _blocks(a, b):
        if is_same:
            changes += [("=", a0 + k, b0 + k) for k in range(a1 - a0)]
            continue
        both = min(a1 - a0, b1 - b0)
        changes += [("~", a0 + k, b0 + k) for k in range(both)]
        changes += [("-", k, -1) for k in range(a0 + both, a1)]
        changes += [("+", -1, k) for k in range(b0 + both, b1)]
    return tuple(changes)


def pieces(
    changes: Sequence[Pair], hot: tuple[AbstractSet[int], AbstractSet[int]] = (frozenset(), frozenset())
) -> list[Piece]:
    """Hunks, with what lies far from every change, and from every hot line of both sides (from 0), folded."""
    shown = (i for i, (change, a, b) in enumerate(changes) if change != "=" or a in hot[0] or b in hot[1])
    near = {k for i in shown for k in range(i - CONTEXT, i + CONTEXT + 1)}
    runs = [(is_near, list(group)) for is_near, group in itertools.groupby(range(len(changes)), key=near.__contains__)]
    out: list[Piece] = []
    for is_near, places in runs:
        is_folded = not is_near and len(places) >= LEAST_FOLD
        rows = tuple(changes[i] for i in places)
        if out and not is_folded and not out[-1].is_folded:
            out[-1] = Piece(False, out[-1].pairs + rows)
        else:
            out.append(Piece(is_folded, rows))
    return out


def unified(old: str, new: str, names: tuple[str, str]) -> str:
    """The diff as text that `patch` reads. A newline at the end of both is the end of the last line, no line."""
    is_ended = old.endswith("\n") and new.endswith("\n")
    if is_ended:
        old, new = old[:-1], new[:-1]
    a, b = old.split("\n"), new.split("\n")
    lines = [f"--- {names[0]}", f"+++ {names[1]}"]
    for piece in pieces(pairs(old, new)):
        if not piece.is_folded and any(change != "=" for change, _, _ in piece.pairs):
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
        patience = PATIENCE * (at - i + bt - j) // (len(a) + len(b))
        for tag, a0, a1, b0, b1 in Comparison(a[i:at], b[j:bt], patience).get_opcodes():
            yield a0 + i, a1 + i, b0 + j, b1 + j, tag == "equal"
        if at < len(a):
            yield at, at + 1, bt, bt + 1, True
        i, j = at + 1, bt + 1


def _anchors(a: Sequence[str], b: Sequence[str]) -> list[tuple[int, int]]:
    """Lines unique on both sides that stand in the same order: the longest rising sequence of their places."""
    in_a, in_b = Counter(a), Counter(b)
    positions = {line: j for j, line in enumerate(b) if in_b[line] == 1}
    common = [(i, positions[line]) for i, line in enumerate(a) if in_a[line] == 1 and line in positions]
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
