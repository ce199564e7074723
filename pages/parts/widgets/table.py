"""A table whose rows open something: states as pills, progress bars, sparklines, ages that tick. Knows no run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import streamlit as st

from pages.parts import client

Cell = dict[str, Any] | str | None

_table = st.components.v2.component(
    "tilewright_table",
    html='<div class="scroll">\n<table role="table"><caption></caption><thead role="rowgroup"></thead>'
    '<tbody role="rowgroup"></tbody></table></div>',
    css=client.read("widgets/table.css"),
    js=client.read("widgets/press.js") + client.read("widgets/table.js"),
)


@dataclass(frozen=True, slots=True)
class Column:
    """One column; `help` is its tooltip."""

    key: str
    label: str
    align: str = ""
    help: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """One row; `href` is the deep link behind it, empty for rows that open nothing."""

    row_id: str
    cells: dict[str, Cell]
    href: str = ""


def text(value: str, tone: str = "", note: str = "", title: str = "", badges: Sequence[Cell] = ()) -> Cell:
    """Plain text, with a quiet second line."""
    return {"text": value, "tone": tone, "note": note, "title": title, "badges": list(badges)}


def link(value: str, note: str = "", badges: Sequence[Cell] = ()) -> Cell:
    """The cell that carries the row's link."""
    return {"text": value, "link": True, "note": note, "badges": list(badges)}


def pill(value: str, tone: str, icon: str = "", title: str = "", note: str = "", buttons: Sequence[Cell] = ()) -> Cell:
    """A coloured word; the colour never stands alone."""
    plain = {"kind": "pill", "text": value, "tone": tone, "icon": icon, "title": title, "note": note}
    return plain | ({"buttons": list(buttons)} if buttons else {})


def button(value: str, icon: str, opens: str, name: str) -> Cell:
    """A small button in a row; `opens` is what `draw` returns when it is pressed, `name` what a reader hears."""
    return {"text": value, "icon": icon, "opens": opens, "name": name}


def badge(value: str, tone: str, icon: str, opens: str, href: str) -> Cell:
    """A pill that opens something of its own; `opens` is what `draw` returns then, `href` the deep link behind it."""
    return {"kind": "pill", "text": value, "tone": tone, "icon": icon, "opens": opens, "href": href}


def bar(value: str, share: float, note: str = "") -> Cell:
    """A progress bar with its text and a quiet second line; `share` is 0..1."""
    return {"kind": "bar", "text": value, "share": share, "note": note}


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
) -> str | None:
    """Draw the table and return what was opened just now, if anything: a row's id, or what a badge of it opens.

    `name` is what a reader hears. Where it is narrow, a folding table puts its columns of align `wide` under the others
    and leaves out `minor` ones; with `is_cards` each row becomes a card there, every value under its column's name.
    """
    plain = {
        "caption": name,
        "columns": [{"key": c.key, "label": c.label, "align": c.align, "help": c.help} for c in columns],
        "rows": [{"id": row.row_id, "href": row.href, "cells": row.cells} for row in rows],
        "selected": selected,
        "is_compact": is_compact,
        "is_folding": is_folding,
        "is_cards": is_cards,
    }
    opened: str | None = _table(data=plain, key=key, on_opened_change=lambda: None).opened
    return opened
