"""A table whose rows open something: states as pills, progress bars, sparklines, ages that tick. Knows no run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import streamlit as st

from pages.parts import client

Cell = dict[str, Any] | str | None

_table = st.components.v2.component(
    "tilewright_table",
    html='<div class="bulk" role="toolbar" hidden></div><div class="scroll">\n'
    '<table role="table"><caption></caption><thead role="rowgroup"></thead>'
    '<tbody role="rowgroup"></tbody></table></div>',
    css=client.read("widgets/table.css"),
    js=client.read("widgets/press.js") + client.read("widgets/table.js"),
)


@dataclass(frozen=True, slots=True)
class Column:
    """One column; `help` is its tooltip.

    A click on the head of a column with `sorts` opens that; `sorted` is `ascending` or `descending` where the rows
    stand in its order.
    """

    key: str
    label: str
    align: str = ""
    help: str = ""
    sorts: str = ""
    sorted: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """One row; `href` is the deep link behind it, empty for rows that open nothing. `name` is heard at its tick."""

    row_id: str
    cells: dict[str, Cell]
    href: str = ""
    name: str = ""


def text(value: str, tone: str = "", note: str = "", title: str = "", badges: Sequence[Cell] = ()) -> Cell:
    """Plain text, with a quiet second line."""
    return {"text": value, "tone": tone, "note": note, "title": title, "badges": list(badges)}


def link(value: str, note: str = "", badges: Sequence[Cell] = (), title: str = "") -> Cell:
    """The cell that carries the row's link."""
    return {"text": value, "link": True, "note": note, "badges": list(badges), "title": title}


def pill(value: str, tone: str, icon: str = "", title: str = "", note: str = "") -> Cell:
    """A coloured word; the colour never stands alone."""
    return {"kind": "pill", "text": value, "tone": tone, "icon": icon, "title": title, "note": note}


def button(value: str, icon: str, opens: str, name: str, off: str = "") -> Cell:
    """A small button in a row; `opens` is what `draw` returns when it is pressed, `name` what a reader hears, `off` why
    it cannot be pressed."""
    return {"text": value, "icon": icon, "opens": opens, "name": name, **({"off": off} if off else {})}


def buttons(cells: Sequence[Cell]) -> Cell:
    """Buttons and nothing else."""
    return {"text": "", "buttons": list(cells)}


def switch(is_on: bool, opens: str, name: str) -> Cell:
    """A switch in a row; `opens` is what `draw` returns when it is pressed, `name` what a reader hears of it."""
    return {"kind": "switch", "is_on": is_on, "opens": opens, "name": name}


def bulk(value: str, opens: str, at_least: int = 1, at_most: int = 10_000) -> Cell:
    """A button for the rows that are ticked: what it opens is followed by their ids, with commas between."""
    return {"text": value, "opens": opens, "at_least": at_least, "at_most": at_most}


def badge(value: str, tone: str, icon: str, opens: str, href: str) -> Cell:
    """A pill that opens something of its own; `opens` is what `draw` returns then, `href` the deep link behind it."""
    return {"kind": "pill", "text": value, "tone": tone, "icon": icon, "opens": opens, "href": href}


def bar(value: str, share: float, note: str = "", title: str = "") -> Cell:
    """A progress bar with its text and a quiet second line; `share` is 0..1."""
    return {"kind": "bar", "text": value, "share": share, "note": note, "title": title}


def spark(points: Sequence[float], title: str = "") -> Cell:
    """A small step curve of positive values on a log scale, with a dashed line at 1."""
    return {"kind": "spark", "points": list(points), "title": title}


def age(since: float | None) -> Cell:
    """How long ago `since` (seconds since the epoch) was; ticks in the browser."""
    return {"kind": "age", "since": since}


def draw(
    name: str,
    columns: Sequence[Column],
    rows: Sequence[Row],
    key: str,
    selected: str = "",
    is_compact: bool = False,
    is_folding: bool = False,
    is_cards: bool = False,
    is_lines: bool = False,
    for_ticked: Sequence[Cell] = (),
    say: str = "",
) -> str | None:
    """Draw the table and return what was opened just now, if anything: a row's id, or what a badge of it opens.

    `name` is what a reader hears. Where it is narrow, a folding table puts its columns of align `wide` under the others
    and leaves out `minor` ones; with `is_cards` each row becomes a card there, every value under its column's name. A
    `words` column keeps the room for a sentence.
    With `is_lines` every row is one line: a `line` column gives way, `roomy` ones show where there is room. With
    `for_ticked` rows can be ticked, and these buttons stand above them; `say` is what stands there before.
    """
    plain = {
        "caption": name,
        "columns": [asdict(column) for column in columns],
        "rows": [{"id": row.row_id, "href": row.href, "cells": row.cells, "name": row.name} for row in rows],
        "selected": selected,
        "is_compact": is_compact,
        "is_folding": is_folding,
        "is_cards": is_cards,
        "is_lines": is_lines,
        "for_ticked": list(for_ticked),
        "say": say,
    }
    opened: str | None = _table(data=plain, key=client.key(key), on_opened_change=lambda: None).opened
    return opened
