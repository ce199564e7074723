"""Two sources beside each other: what changed is marked to the character, what did not is folded away."""

from __future__ import annotations

import difflib
import functools
import itertools
import re
from typing import Any

import streamlit as st

from pages.parts import client
from pages.parts.widgets import code, line_pairs
from pages.parts.widgets.code import Line
from pages.parts.widgets.line_pairs import Pair

MOST_LINES = 4_000
SIMILAR = 0.35
Span = tuple[int, int]

_diff = st.components.v2.component(
    "tilewright_diff",
    html=client.read("diff.html"),
    css=client.read("code.css") + client.read("diff.css"),
    js=client.read("diff.js"),
)


def draw(old: str, new: str, names: tuple[str, str], key: str, is_compact: bool = False) -> None:
    """Draw the diff; both sources are escaped here, so that nothing in them can act as markup.

    A compact one is unified, has no bar and listens to no key. Of sources beyond `MOST_LINES` the rest is left out,
    which is said.
    """
    if old == new:
        st.caption("The sources are identical.")
        return
    shown = cut(old), cut(new)
    data = {"pieces": rows(*shown), "names": list(names), "summary": summary(old, new), "is_compact": is_compact}
    _diff(data=data | {"left_out": left_out(old, new)}, key=key)


def changed_lines(old: str, new: str) -> tuple[int, int]:
    """Lines added and removed."""
    found = line_pairs.pairs(old, new)
    return sum(p[0] in "+~" for p in found), sum(p[0] in "-~" for p in found)


def summary(old: str, new: str) -> str:
    """ "12 lines added, 3 removed", of what is shown."""
    added, removed = changed_lines(cut(old), cut(new))
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
def rows(old: str, new: str) -> list[dict[str, Any]]:
    """Pieces for the browser: `[kind, old line, new line, old side, new side]` per row, sides as escaped HTML.

    Of an unchanged row there is one side: it is drawn on both.
    """
    left, right = code.lines(old), code.lines(new)
    found = line_pairs.pieces(line_pairs.pairs(old, new))
    return [{"fold": piece.is_folded, "rows": [_row(p, left, right) for p in piece.pairs]} for piece in found]


def _row(pair: Pair, left: tuple[Line, ...], right: tuple[Line, ...]) -> list[Any]:
    kind, i, j = pair
    if kind == "=":
        return ["=", i, j, code.as_html(right[j]), ""]
    old_line, new_line = left[i] if i >= 0 else (), right[j] if j >= 0 else ()
    old_spans, new_spans = _changed_spans(old_line, new_line) if kind == "~" else ([], [])
    return [kind, i, j, _marked(old_line, old_spans), _marked(new_line, new_spans)]


def _changed_spans(old: Line, new: Line) -> tuple[list[Span], list[Span]]:
    """Character ranges of the words that differ; none where the lines have too little in common for it to help."""
    a, b = _words(old), _words(new)
    matcher = difflib.SequenceMatcher(None, a, b, autojunk=False)
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
    for kind, text in line:
        cuts = [0, *(e - at for e in edges if 0 < e - at < len(text)), len(text)]
        for first, last in itertools.pairwise(cuts):
            piece = code.as_html(((kind, text[first:last]),))
            is_changed = any(s <= at + first < e for s, e in spans)
            out.append(f"<mark>{piece}</mark>" if is_changed else piece)
        at += len(text)
    return "".join(out)
