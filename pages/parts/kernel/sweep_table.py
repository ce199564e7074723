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
    sweep = queries.sweep(index.current(), run_id, candidate_id)
    if sweep is None:
        return
    rows = queries.variants(index.current(), run_id, sweep.candidate_id)
    st.markdown("## Tuning")
    st.markdown(wording.plain(sentence(sweep, len(rows))))
    if rows:
        shown = [table.Row(f"{variant.number}", cells(variant, sweep)) for variant in rows]
        table.draw("Variants that were tried", COLUMNS, shown, key="sweep", is_folding=True)


def sentence(sweep: SweepRow, tried: int) -> str:
    """What the sweep was about and came to."""
    text = f"{wording.counted(tried, 'variant')} of kernel {sweep.number} tried in {wording.seconds(sweep.seconds)}"
    if sweep.kept_number is not None:
        return f"{text}, without a model call; the fastest is kernel {sweep.kept_number}, {sweep.kept_summary}."
    if sweep.failed_again is not None:
        reason = sweep.failed_again.rstrip(".")
        return f"{text}, without a model call; as written it failed when timed again ({reason}), so none was taken."
    state = "none is faster by more than the noise" if sweep.is_over else "still going on"
    return f"{text}, without a model call; {state}."


def cells(variant: VariantRow, sweep: SweepRow) -> dict[str, table.Cell]:
    """A variant as a row."""
    shown, is_good = words(variant, sweep), variant.verdict is Verdict.PASSED
    tone, icon = ("green", "held") if is_good else ("red", "broken")
    return {**shown, "outcome": table.pill(shown["outcome"], tone, icon, title=variant.message)}


def words(variant: VariantRow, sweep: SweepRow) -> dict[str, str]:
    """A variant as a row of texts alone."""
    is_good = variant.verdict is Verdict.PASSED
    word = "timed fully" if variant.is_full else "timed briefly" if variant.speedup else "compiles"
    ratio = variant.speedup / sweep.speedup if is_good and variant.speedup and sweep.speedup else None
    return {
        "numbers": ", ".join(f"{name} {value}" for name, value in variant.numbers.items()),
        "outcome": word if is_good else wording.VERDICT_NAME[variant.verdict],
        "latency": wording.latency(variant.latency_ms) if is_good else wording.NONE,
        "speedup": wording.speedup(variant.speedup) if is_good else wording.NONE,
        "ratio": wording.speedup(ratio),
        "seconds": wording.seconds(variant.seconds),
    }
