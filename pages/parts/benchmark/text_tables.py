"""Tables of text as every export has them, drawn. Knows no suite."""

from __future__ import annotations

import streamlit as st

from engine.suites.tables import TextTable
from pages.parts import wording
from pages.parts.widgets import table


def draw(found: TextTable, key: str, *, has_title: bool = False) -> None:
    """The table, and below it what must be known to read it; nothing where it has no row."""
    if not found.rows:
        return
    if has_title:
        st.markdown(f"## {wording.plain(found.title)}")
    columns = [
        table.Column(f"c{place}", one.label, "right" if one.is_number else "" if place else "nowrap", one.about)
        for place, one in enumerate(found.columns)
    ]
    rows = [
        table.Row(
            f"r{number}",
            {f"c{place}": table.text(text, "strong" if not place else "") for place, text in enumerate(row)},
        )
        for number, row in enumerate(found.rows)
    ]
    table.draw(found.title, columns, rows, key=key, is_cards=True, is_compact=True)
    if found.about:
        st.caption(wording.plain(found.about))
