"""Kernel sources as coloured tokens, line by line, and drawn with their numbers. Knows the two languages in one file,
not what they are shown for."""

from __future__ import annotations

import functools
import html
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import streamlit as st
from pygments.lexer import Lexer
from pygments.lexers import CudaLexer, PythonLexer
from pygments.token import STANDARD_TYPES

from pages.parts import client

Token = tuple[str, str]
Line = tuple[Token, ...]

# A candidate is a Python module that carries its C++ or CUDA sources in triple-quoted strings.
_EMBEDDED = re.compile(r'("""|\'\'\')(.*?)(\1)', re.DOTALL)
_IS_CPP = re.compile(r"#include|__global__|template\s*<|std::|torch::|cute::|;\s*\n")
_CLASSES = {"k", "kt", "kd", "kc", "kn", "c", "s", "m", "nf", "nc", "nb", "cp", "o"}

_source = st.components.v2.component(
    "tilewright_source",
    html='<pre tabindex="0"></pre>',
    css=client.read("widgets/code.css") + client.read("widgets/heat.css") + client.read("widgets/source.css"),
    js=client.read("widgets/heat.js") + client.read("widgets/source.js"),
)

_listing = st.components.v2.component(
    "tilewright_listing",
    html='<div><button>Copy</button>\n<pre tabindex="0" role="group"></pre></div>',
    css=client.read("widgets/listing.css"),
    js=client.read("widgets/listing.js"),
)


@functools.lru_cache(maxsize=256)
def lines(text: str) -> tuple[Line, ...]:
    """Tokens of each line as (class, text)."""
    rows: list[list[Token]] = [[]]
    for css_class, value in _tokens(text):
        for i, piece in enumerate(value.split("\n")):
            if i:
                rows.append([])
            if piece:
                rows[-1].append((css_class, piece))
    return tuple(tuple(line) for line in rows)


def cpp_starts(text: str) -> list[int]:
    """The line, from 1, on which each embedded C++ or CUDA text begins."""
    return [text.count("\n", 0, match.start(2)) + 1 for match in _EMBEDDED.finditer(text) if _IS_CPP.search(match[2])]


def as_html(line: Line) -> str:
    """One line as escaped HTML."""
    return "".join(
        f'<span class="{css_class}">{html.escape(text)}</span>' if css_class else html.escape(text)
        for css_class, text in line
    )


def _tokens(text: str) -> Iterator[Token]:
    if not re.search(r"^\s*(import|from|class|def) ", text, re.MULTILINE):
        yield from _lex(CudaLexer, text)
        return
    end = 0
    for match in _EMBEDDED.finditer(text):
        if _IS_CPP.search(match[2]):
            yield from _lex(PythonLexer, text[end : match.start()])
            yield ("s", match[1])
            yield from _lex(CudaLexer, match[2])
            yield ("s", match[3])
            end = match.end()
    yield from _lex(PythonLexer, text[end:])


def _lex(lexer_class: type[Lexer], text: str) -> Iterator[Token]:
    # stripnl and ensurenl would add or drop lines and shift every number beside the text.
    lexer = lexer_class(stripnl=False, ensurenl=False)
    for token, value in lexer.get_tokens(text) if text else ():
        yield _class(STANDARD_TYPES.get(token, "")), value


def _class(name: str) -> str:
    return name if name in _CLASSES else name[:1] if name[:1] in _CLASSES else ""


@dataclass(frozen=True, slots=True)
class Heat:
    """What stands in the margin of a line: `level` from 0 to 1, the hottest line's; a short text, and what it means."""

    level: float
    text: str
    meaning: str


HeatMap = Mapping[int, Heat]
"""By line number, from 1; lines that took no time are left out."""


def draw(
    name: str, lines: Sequence[Line], key: str, first: int = 1, marked: Sequence[int] = (), heat: HeatMap | None = None
) -> None:
    """`name` is what a reader hears; `marked` and `heat` go by line number, counted as the lines are from `first`."""
    shown = [as_html(line) for line in lines]
    data = {"name": name, "lines": shown, "first": first, "marked": list(marked), "heat": sent(heat or {})}
    _source(data=data, key=client.key(key))


def sent(heat: HeatMap) -> dict[str, list[float | str]]:
    """For the browser: `[level, text, meaning]` by line number."""
    return {str(line): [spot.level, spot.text, spot.meaning] for line, spot in heat.items()}


def draw_plain(name: str, text: str, key: str, *, is_wrapped: bool = False) -> None:
    """A long text as it is, in a frame that scrolls and can be copied; `name` is what a reader hears."""
    _listing(data={"name": name, "text": text, "is_wrapped": is_wrapped}, key=client.key(key))
