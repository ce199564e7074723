"""Sources and their differences in a report: escaped, coloured, cut where they are too long."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from pages.parts.report.report_html import Html, element, join
from pages.parts.widgets import code

DIFF_LINES = 600
SOURCE_LINES = 4_000
LOOKS = {"+": "add", "-": "del", "@": "hunk"}


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
