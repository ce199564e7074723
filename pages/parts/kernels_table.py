"""Every kernel of a run, newest first: what it is, what became of it."""

from __future__ import annotations

import streamlit as st

from pages.parts import index, table, wording
from storage import queries
from storage.queries import AttemptRow, RunRow
from storage.records import Verdict

SHORT = 12
COLUMNS = [
    table.Column("number", "Kernel"),
    table.Column("depth", "Depth", "right"),
    table.Column("what", "What changed"),
    table.Column("verdict", "Verdict"),
    table.Column("speedup", "Speed-up", "right", "over the eager baseline, with the noise of the measurement"),
    table.Column("latency", "Latency", "right", "median of the timed calls"),
    table.Column("lines", "Lines", "right", "added and removed against its parent"),
]
TONE = {
    Verdict.PASSED: "green",
    Verdict.COMPILE_ERROR: "orange",
    Verdict.INCORRECT: "red",
    Verdict.RUNTIME_ERROR: "red",
}


def draw(run: RunRow) -> str | None:
    """Draw the table; the id of the kernel opened just now, if any."""
    found = queries.attempts(index.current(), run.run_id)
    st.markdown(f"#### Kernels :gray[{len(found):,}]")
    if not found:
        st.caption("No kernel has been written yet. The first one appears here as soon as the model's reply is read.")
        return None
    is_long = len(found) > SHORT
    is_open = is_long and st.session_state.get("all_kernels", False)
    shown = found[::-1] if is_open or not is_long else found[::-1][:SHORT]
    numbers = {a.candidate_id: a.number for a in found}
    rows = [
        table.Row(
            a.candidate_id,
            cells(a, numbers.get(a.parent_id or "")),
            f"candidate?run={run.run_id}&candidate={a.candidate_id}",
        )
        for a in shown
    ]
    selected = st.session_state.get(f"looked_at:{run.run_id}", "")
    opened = table.draw("Kernels of this run, newest first", COLUMNS, rows, key="kernels", selected=selected)
    if is_long:
        st.toggle(f"show all {len(found):,} (newest {len(shown)} shown)", key="all_kernels")
    return opened


def cells(a: AttemptRow, parent: int | None) -> dict[str, table.Cell]:
    """One kernel as cells."""
    badges = [table.pill("best", "green", "finished")] if a.is_best else []
    badges += [table.pill("kept", "blue")] if a.is_accepted and not a.is_best else []
    badges += [table.pill("saw profile", "violet")] if a.is_profile_exposed else []
    return {
        "number": table.link(f"kernel {a.number}", f"from kernel {parent}" if parent else "", badges=()),
        "depth": str(a.depth),
        "what": table.text(a.summary or wording.ORIGIN_NAME[a.origin], note=origin(a), badges=badges),
        "verdict": verdict(a),
        "speedup": speedup(a),
        "latency": wording.latency(a.latency_ms),
        "lines": f"+{a.lines_added} −{a.lines_removed}" if a.lines_added is not None and a.parent_id else wording.NONE,
    }


def origin(a: AttemptRow) -> str:
    """How the kernel came to be, in a few words."""
    repeat = f" {a.repair}" if a.repair else f", try {a.generation + 1}" if a.generation else ""
    return f"{wording.ORIGIN_NAME[a.origin]}{repeat}"


def verdict(a: AttemptRow) -> table.Cell:
    """The verdict as a coloured word, with the message behind it."""
    if a.verdict is None:
        return table.pill("not judged yet", "gray")
    icon = "finished" if a.verdict is Verdict.PASSED else "failed"
    return table.pill(wording.VERDICT_NAME[a.verdict], TONE.get(a.verdict, "violet"), icon, a.message)


def speedup(a: AttemptRow) -> table.Cell:
    """Speed-up with its noise; green only when faster than the baseline beyond it."""
    if a.speedup is None:
        return table.text(wording.NONE, "muted")
    tone = "green" if a.low and a.low > 1 else "orange" if a.high and a.high < 1 else ""
    return table.text(wording.speedup(a.speedup, a.noise), tone, wording.plus_minus(a.noise))
