"""Tables of text as every export has them, drawn. Knows no suite."""

from __future__ import annotations

import streamlit as st

from engine.suites.tables import TextTable
from pages.parts import wording
from pages.parts.widgets import table


def draw(text_table: TextTable, key: str, *, has_title: bool = False) -> None:
    """The table, and below it what must be known to read it; nothing where it has no row."""
    if not text_table.rows:
        return
    if has_title:
        st.markdown(f"## {wording.plain(text_table.title)}")
    columns = [
        table.Column(f"c{i}", column.label, "right" if column.is_number else "" if i else "nowrap", column.about)
        for i, column in enumerate(text_table.columns)
    ]
    rows = [
        table.Row(
            f"r{number}",
            {
                f"c{i}": table.text(text, "" if i else "strong", title="" if i else text_table.row_abouts.get(text, ""))
                for i, text in enumerate(row)
            },
        )
        for number, row in enumerate(text_table.rows)
    ]
    table.draw(text_table.title, columns, rows, key=key, is_cards=True, is_compact=True)
    if text_table.about:
        st.caption(wording.plain(text_table.about))
