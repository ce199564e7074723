"""Two sources side by side: what changed is marked to the character, what did not is folded away."""

from __future__ import annotations

import difflib
import functools
import itertools
import re
from collections.abc import Iterator

import streamlit as st

from pages.parts import client, code
from pages.parts.code import Line

CONTEXT = 3
SIMILAR = 0.35
Span = tuple[int, int]
Pair = tuple[str, int, int]

_diff = st.components.v2.component(
    "tilewright_diff",
    html='<div class="summary"></div>\n<div class="scroll"><table class="diff"></table></div>',
    css=client.read("code.css") + client.read("diff.css"),
    js=client.read("diff.js"),
)


def draw(old: str, new: str, names: tuple[str, str], key: str) -> None:
    """Draw the diff; both sources are escaped here, so that nothing in them can act as markup."""
    if old == new:
        st.caption("These two sources are the same.")
        return
    added, removed = changed_lines(old, new)
    summary = f"{added} lines added, {removed} removed"
    _diff(data={"rows": table_rows(old, new), "names": list(names), "summary": summary}, key=key)


def changed_lines(old: str, new: str) -> tuple[int, int]:
    """Lines added and removed."""
    pairs = _pairs(old, new)
    return sum(p[0] in "+~" for p in pairs), sum(p[0] in "-~" for p in pairs)


@functools.lru_cache(maxsize=64)
def table_rows(old: str, new: str) -> str:
    """The table's body as HTML."""
    left, right = code.lines(old), code.lines(new)
    pairs = _pairs(old, new)
    out = []
    for is_folded, chunk in _folds(pairs):
        if is_folded:
            out.append(f'<tr class="fold"><td colspan="4"><button>{len(chunk)} unchanged lines</button></td></tr>')
        out += [_row(pair, left, right, is_folded) for pair in chunk]
    return "".join(out)


@functools.lru_cache(maxsize=64)
def _pairs(old: str, new: str) -> tuple[Pair, ...]:
    """(kind, left line, right line); kind is =, ~ (changed), - or +; -1 where a side has no line."""
    a, b = old.split("\n"), new.split("\n")
    found: list[Pair] = []
    for tag, a0, a1, b0, b1 in difflib.SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        if tag == "equal":
            found += [("=", a0 + k, b0 + k) for k in range(a1 - a0)]
            continue
        both = min(a1 - a0, b1 - b0)
        found += [("~", a0 + k, b0 + k) for k in range(both)]
        found += [("-", k, -1) for k in range(a0 + both, a1)]
        found += [("+", -1, k) for k in range(b0 + both, b1)]
    return tuple(found)


def _folds(pairs: tuple[Pair, ...]) -> Iterator[tuple[bool, tuple[Pair, ...]]]:
    """Cut into what is shown and long unchanged runs, which are folded save for some lines of context."""
    changed = [i for i, pair in enumerate(pairs) if pair[0] != "="]
    near = {k for i in changed for k in range(i - CONTEXT, i + CONTEXT + 1)}
    start = 0
    while start < len(pairs):
        is_far = start not in near
        end = start
        while end < len(pairs) and (end not in near) is is_far:
            end += 1
        yield is_far and end - start > 2, pairs[start:end]
        start = end


def _row(pair: Pair, left: tuple[Line, ...], right: tuple[Line, ...], is_folded: bool) -> str:
    kind, i, j = pair
    old_line, new_line = left[i] if i >= 0 else (), right[j] if j >= 0 else ()
    old_spans, new_spans = _changed_spans(old_line, new_line) if kind == "~" else ([], [])
    cells = _cell(i, old_line, old_spans, "del" if kind in "-~" else "") + _cell(
        j, new_line, new_spans, "add" if kind in "+~" else ""
    )
    return f"<tr{' class=folded hidden' if is_folded else ''}>{cells}</tr>"


def _cell(number: int, line: Line, spans: list[Span], look: str) -> str:
    if number < 0:
        return '<td class="no none"></td><td class="none"></td>'
    return f'<td class="no {look}">{number + 1}</td><td class="{look}">{_marked(line, spans)}</td>'


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
