"""HTML of a report, escaped unless it was built here: one file without a script, told to ask for nothing. Sources and
their differences in it are coloured, and cut where they are too long."""

from __future__ import annotations

import difflib
import html
import time
from collections.abc import Iterable, Sequence

from pages.parts import client, wording
from pages.parts.widgets import code

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
DIFF_LINES = 600
SOURCE_LINES = 4_000
LOOKS = {"+": "add", "-": "del", "@": "hunk"}


class Html(str):
    """Text that is HTML already: built by `element`, every piece of it escaped on its way in."""

    __slots__ = ()


Part = str | Html


def escape(text: Part) -> Html:
    """The text as HTML; what is HTML already stays. Characters that no document may hold become a sign."""
    if isinstance(text, Html):
        return text
    printable = "".join(c if c in "\n\t" or (c.isprintable() or c == "\u00a0") else "\ufffd" for c in text)
    return Html(html.escape(printable))


def element(name: str, *children: Part, **attributes: str | float | bool) -> Html:
    """`<name …>children</name>`; attribute names end in `_` where Python keeps the word, `_` inside stands for `-`."""
    written = []
    for key, value in attributes.items():
        plain = key.rstrip("_").replace("_", "-")
        if value is True:
            written.append(f" {plain}")
        elif value not in (False, ""):
            written.append(f' {plain}="{html.escape(f"{value}")}"')
    return Html(f"<{name}{''.join(written)}>{join(children)}</{name}>")


def join(parts: Iterable[Part]) -> Html:
    """The parts one after the other."""
    return Html("".join(escape(part) for part in parts))


def table(name: str, headings: Sequence[str], rows: Iterable[Sequence[Part]], right: Sequence[int] = ()) -> Html:
    """A table that can be scrolled sideways; columns numbered in `right` hold figures."""

    def cells(tag: str, row: Sequence[Part]) -> Html:
        return join(element(tag, cell, class_="right" if i in right else "") for i, cell in enumerate(row))

    head = element("thead", element("tr", cells("th", headings)))
    body = element("tbody", *(element("tr", cells("td", row)) for row in rows))
    whole = element("table", element("caption", name), head, body)
    return element("div", whole, class_="scroll", tabindex="0", role="region", aria_label=name)


def facts(rows: Iterable[tuple[str, Part]]) -> Html:
    """Names with their values."""
    return element("dl", *(join([element("dt", name), element("dd", value)]) for name, value in rows), class_="facts")


def section(title: str, *children: Part, anchor: str = "") -> Html:
    """A part of the report under a heading of its own; `anchor` is what a link to it names."""
    heading = element("h2", title)
    return element("section", heading, *children, id=anchor) if anchor else element("section", heading, *children)


def folded(title: Part, *children: Part, is_open: bool = False) -> Html:
    """Something to open; needs no script."""
    return element("details", element("summary", title), *children, open=is_open)


def document(title: str, *children: Part) -> str:
    """The whole file."""
    head = join(
        [
            Html('<meta charset="utf-8">'),
            Html(f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'),
            Html('<meta name="viewport" content="width=device-width, initial-scale=1">'),
            Html('<meta name="color-scheme" content="light dark">'),
            element("title", title),
            Html(f"<style>{client.read('report/report.css')}</style>"),
        ]
    )
    foot = element("footer", f"Written by Tilewright on {wording.moment(time.time())}.")
    body = element("body", element("main", element("h1", title), *children, foot))
    return f'<!doctype html>\n<html lang="en"><head>{head}</head>{body}</html>\n'


def difference(old: str, new: str) -> Html:
    """What changed, with three lines around each change; says how much was left out."""
    lines = list(difflib.unified_diff(old.split("\n"), new.split("\n"), lineterm="", n=3))[2:]
    if not lines:
        return element("p", "The sources are identical.", class_="quiet")
    shown = [element("span", line or " ", class_=LOOKS.get(line[:1], "")) for line in lines[:DIFF_LINES]]
    return join([element("pre", *shown, class_="diff", tabindex="0"), _left_out(lines, DIFF_LINES)])


def changed(old: str, new: str) -> tuple[int, int]:
    """Lines added and removed."""
    lines = list(difflib.unified_diff(old.split("\n"), new.split("\n"), lineterm="", n=0))[2:]
    return sum(line.startswith("+") for line in lines), sum(line.startswith("-") for line in lines)


def source(text: str) -> Html:
    """A whole kernel, coloured."""
    lines = code.lines(text)
    shown = "\n".join(code.as_html(line) for line in lines[:SOURCE_LINES])
    return join([element("pre", Html(shown), tabindex="0"), _left_out(lines, SOURCE_LINES)])


def _left_out(lines: Sequence[object], limit: int) -> Html:
    more = len(lines) - limit
    return element("p", f"{more:,} more lines are not shown.", class_="quiet") if more > 0 else Html("")
