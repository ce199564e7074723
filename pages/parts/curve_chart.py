"""The speed-up curve on the page: gathers its rows, draws it in place, tells which kernel was clicked."""

from __future__ import annotations

import streamlit as st

from pages.parts import curve, index, plot, wording
from storage import folder, queries
from storage.codec import DecodeError
from storage.queries import RunRow

HEIGHT = 440
ALL_STEPS = 20_000


def draw(run: RunRow) -> str | None:
    """Draw the curve; the id of the kernel clicked just now, if any."""
    rows = gather(run)
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        st.markdown("#### Speed-up by depth", width="content")
        scale = st.segmented_control(
            "Scale", ["log", "linear"], default="log", required=True, key="scale", label_visibility="collapsed"
        )
    is_log = scale != "linear"
    figure = curve.figure(rows, is_log, run.run_id)
    return plot.draw(figure, name(run, rows), HEIGHT, f"{run.run_id}:{scale}", key="curve")


def gather(run: RunRow) -> curve.CurveRows:
    """Everything the curve shows of one run."""
    db = index.current()
    attempts = queries.attempts(db, run.run_id)
    steps = queries.steps(db, run.run_id, limit=ALL_STEPS)
    limit = queries.limit(db, run.run_id)
    baseline = next((a.baseline_latency_ms for a in reversed(attempts) if a.baseline_latency_ms), None)
    return curve.CurveRows(
        attempts=attempts,
        depths=queries.depths(db, run.run_id),
        steering=queries.steering_marks(db, run.run_id),
        unapplied=[s for s in steps if s.outcome == "patch_failed"],
        budget_depths=run.depths,
        limit_speedup=baseline / limit.limit_ms if baseline and limit and limit.limit_ms else None,
        target_speedup=_target(run.run_id),
        selected_id=st.session_state.get(f"looked_at:{run.run_id}", ""),
        second=queries.baseline(db, run.run_id),
    )


def name(run: RunRow, rows: curve.CurveRows) -> str:
    """The chart in words, for those who cannot see it."""
    timed = sum(a.speedup is not None for a in rows.attempts)
    best = f"best {wording.speedup(run.best_speedup)}" if run.best_speedup else "no correct kernel yet"
    second = (
        f", {rows.second.name} {wording.speedup(rows.second.speedup)}" if rows.second and rows.second.speedup else ""
    )
    return (
        f"Speed-up by depth: {len(rows.attempts)} kernels, {timed} correct and timed, {best}{second}. "
        "Every point is also a row of the kernels table."
    )


def _target(run_id: str) -> float | None:
    try:
        return folder.find_run(run_id).read_settings().budget.target_speedup
    except (FileNotFoundError, DecodeError):
        return None
