"""The profiler's own advice as rows, what could save most first. Knows no profiler."""

from __future__ import annotations

from collections.abc import Sequence

from pages.parts import wording
from pages.parts.widgets import table
from storage import kernel_names
from storage.queries import AdviceRow

COLUMNS = [
    table.Column("gain", "Could save", "right", "estimated share of that launch's time"),
    table.Column("launch", "Launch", "nowrap"),
    table.Column("text", "Advice", "wide"),
]
MOST = 12


def rows(found: Sequence[AdviceRow]) -> list[table.Row]:
    """At most a dozen."""
    return [table.Row(f"{i}", cells(one)) for i, one in enumerate(found[:MOST])]


def cells(one: AdviceRow) -> dict[str, table.Cell]:
    """One piece of advice as cells."""
    gain = wording.NONE if one.gain_percent is None else f"{wording.significant(one.gain_percent, 2)} %"
    return {
        "gain": table.text(gain, "strong"),
        "launch": table.text(f"{one.launch}: {kernel_names.short(one.kernel)}", title=one.kernel[:1000]),
        "text": table.text(one.text, title=one.rule),
    }
