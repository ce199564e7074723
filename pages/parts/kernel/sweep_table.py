"""What the tuner tried for a kernel: every set of numbers with what came of it. What turns rows into words is pure."""

from __future__ import annotations

import streamlit as st

from pages.parts import index, wording
from pages.parts.widgets import table
from storage.index import queries
from storage.index.queries import SweepRow, VariantRow
from storage.results.vocabulary import Verdict

COLUMNS = [
    table.Column("numbers", "Numbers"),
    table.Column("outcome", "Outcome"),
    table.Column("latency", "Time", "right"),
    table.Column("speedup", "Speed-up", "right", "over eager PyTorch"),
    table.Column("ratio", "Over as written", "right"),
    table.Column("seconds", "Took", "right", "building, checking and timing it"),
]


def draw(run_id: str, candidate_id: str) -> None:
    """A table; nothing where the kernel was not tuned."""
    found = queries.sweep(index.current(), run_id, candidate_id)
    if found is None:
        return
    rows = queries.variants(index.current(), run_id, found.candidate_id)
    st.markdown("## Tuning")
    st.markdown(wording.plain(sentence(found, len(rows))))
    if rows:
        shown = [table.Row(f"{one.number}", cells(one, found)) for one in rows]
        table.draw("Variants that were tried", COLUMNS, shown, key="sweep", is_folding=True)


def sentence(found: SweepRow, tried: int) -> str:
    """What the sweep was about and came to."""
    text = f"{wording.counted(tried, 'variant')} of kernel {found.number} tried in {wording.seconds(found.seconds)}"
    if found.kept_number is not None:
        return f"{text}, without a model call; the fastest is kernel {found.kept_number}, {found.kept_summary}."
    if found.failed_again is not None:
        said = found.failed_again.rstrip(".")
        return f"{text}, without a model call; as written it failed when timed again ({said}), so none was taken."
    return f"{text}, without a model call; {'none is faster beyond the noise' if found.is_over else 'still going on'}."


def cells(one: VariantRow, found: SweepRow) -> dict[str, table.Cell]:
    """A variant as a row."""
    shown, is_good = words(one, found), one.verdict is Verdict.PASSED
    tone, icon = ("green", "held") if is_good else ("red", "broken")
    return {**shown, "outcome": table.pill(shown["outcome"], tone, icon, title=one.message)}


def words(one: VariantRow, found: SweepRow) -> dict[str, str]:
    """The same as texts alone."""
    is_good = one.verdict is Verdict.PASSED
    word = "timed fully" if one.is_full else "timed briefly" if one.speedup else "compiles"
    ratio = one.speedup / found.speedup if is_good and one.speedup and found.speedup else None
    return {
        "numbers": ", ".join(f"{name} {value}" for name, value in one.numbers.items()),
        "outcome": word if is_good else wording.VERDICT_NAME[one.verdict],
        "latency": wording.latency(one.latency_ms) if is_good else wording.NONE,
        "speedup": wording.speedup(one.speedup) if is_good else wording.NONE,
        "ratio": wording.speedup(ratio),
        "seconds": wording.seconds(one.seconds),
    }
