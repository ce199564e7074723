"""Every kernel of a run, newest first: what it is, what became of it."""

from __future__ import annotations

import streamlit as st

from pages.parts import index, table, wording
from storage import queries
from storage.queries import AttemptRow, RunRow, StandingCount
from storage.records import Verdict

SHORT = 12
REASON_LENGTH = 110
COLUMNS = [
    table.Column("number", "Kernel"),
    table.Column("depth", "Depth", "right"),
    table.Column("what", "What changed"),
    table.Column("verdict", "Verdict"),
    table.Column("speedup", "Speed-up", "right", "over the eager baseline, with the noise of the measurement"),
    table.Column("latency", "Latency", "right", "median of the timed calls"),
    table.Column("lines", "Lines", "right", "added and removed against its parent"),
]


def draw(run: RunRow) -> str | None:
    """Draw the table; the id of the kernel opened just now, if any, with `#Trust` after it when its flags were."""
    found = queries.attempts(index.current(), run.run_id)
    st.markdown(f"#### Kernels :gray[{len(found):,}]")
    if not found:
        st.caption("No kernel has been written yet. The first one appears here as soon as the model's reply is read.")
        return None
    is_long = len(found) > SHORT
    is_open = is_long and st.session_state.get("all_kernels", False)
    shown = found[::-1] if is_open or not is_long else found[::-1][:SHORT]
    numbers = {a.candidate_id: a.number for a in found}
    flags = queries.standing_counts(index.current(), run.run_id)
    rows = [
        table.Row(a.candidate_id, cells(a, numbers.get(a.parent_id or ""), flags.get(a.candidate_id)), address(a))
        for a in shown
    ]
    selected = st.session_state.get(f"looked_at:{run.run_id}", "")
    opened = table.draw("Kernels of this run, newest first", COLUMNS, rows, key="kernels", selected=selected)
    if is_long:
        st.toggle(f"show all {len(found):,} (newest {len(shown)} shown)", key="all_kernels")
    return opened


def address(a: AttemptRow) -> str:
    """Deep link of a kernel."""
    return f"candidate?run={a.run_id}&candidate={a.candidate_id}"


def cells(a: AttemptRow, parent: int | None, count: StandingCount | None) -> dict[str, table.Cell]:
    """One kernel as cells."""
    badges = [table.pill("best", "green", "finished")] if a.is_best else []
    badges += [table.pill("kept", "blue")] if a.is_accepted and not a.is_best else []
    badges += [table.pill("saw profile", "violet")] if a.is_profile_exposed else []
    if count and count.flagged:
        opens, href = f"{a.candidate_id}#Trust", f"{address(a)}&tab=Trust"
        badges.append(table.badge(f"{count.flagged} flagged", "orange", "flagged", opens, href))
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
    """The verdict as a coloured word, with the message behind it; a refusal says why at once."""
    if a.verdict is None:
        return table.pill("not judged yet", "gray")
    icon = {Verdict.PASSED: "held", Verdict.REFUSED: "refused"}.get(a.verdict, "broken")
    reason = wording.cut(a.message, REASON_LENGTH) if a.verdict is Verdict.REFUSED else ""
    return table.pill(wording.VERDICT_NAME[a.verdict], wording.VERDICT_TONE[a.verdict], icon, a.message, reason)


def speedup(a: AttemptRow) -> table.Cell:
    """Speed-up with its noise; green only when faster than the baseline beyond it."""
    if a.speedup is None:
        return table.text(wording.NONE, "muted")
    tone = "green" if a.low and a.low > 1 else "orange" if a.high and a.high < 1 else ""
    return table.text(wording.speedup(a.speedup, a.noise), tone, wording.plus_minus(a.noise))
