"""The speed-up curve on the page: gathers its rows and draws it in place."""

from __future__ import annotations

import streamlit as st

from pages.parts import index, wording
from pages.parts.run import curve, curve_marks, selection
from pages.parts.widgets import plot
from storage import exposure, folder, queries
from storage.codec import DecodeError
from storage.queries import RunRow
from storage.records import RunSettings

# As high as the window leaves room for under the header, so that the whole curve is seen without scrolling.
HEIGHT = "clamp(360px, calc(100vh - 405px), 1100px)"


def draw(run: RunRow) -> None:
    """Draw the curve; a click on it is told through `selection`."""
    rows = gather(run, selection.marked(run.run_id))
    with st.container(
        horizontal=True, vertical_alignment="center", horizontal_alignment="distribute", key="curve_head"
    ):
        st.markdown("## Speed-up by depth", width="content")
        scale = st.segmented_control(
            "Scale", ["log", "linear"], default="log", required=True, key="scale", label_visibility="collapsed"
        )
    figure = curve.figure(rows, scale != "linear", run.run_id)
    plot.draw(figure, name(run, rows), HEIGHT, f"{run.run_id}:{scale}", key="curve")
    if shown := _left_out(rows):
        st.caption(shown)


def gather(run: RunRow, selected_id: str = "") -> curve.CurveRows:
    """Everything the curve shows of one run."""
    db = index.current()
    settings = _settings(run.run_id)
    seen, switch = queries.exposures(db, run.run_id), queries.steering_state(db, run.run_id).expose
    last = -1 if run.state.is_finished else run.depths  # nothing is planned any more
    return curve.CurveRows(
        points=queries.points(db, run.run_id, selected_id),
        failures=queries.failures(db, run.run_id, selected_id),
        unapplied=queries.unapplied(db, run.run_id),
        beam=queries.beam(db, run.run_id),
        rises=queries.rises(db, run.run_id),
        phases=curve_marks.phases(seen, switch, exposure.asked_depth(settings) if settings else None, last),
        steering=queries.steering_marks(db, run.run_id),
        kernels=run.attempts,
        budget_depths=run.depths,
        limit_speedup=queries.limit_speedup(db, run.run_id),
        target_speedup=settings.budget.target_speedup if settings else None,
        selected_id=selected_id,
        second=queries.baseline(db, run.run_id),
    )


def name(run: RunRow, rows: curve.CurveRows) -> str:
    """The chart in words, for those who cannot see it."""
    best = f"best {wording.speedup(run.best_speedup)}" if run.best_speedup else "no correct kernel timed yet"
    second = (
        f", {rows.second.name} {wording.speedup(rows.second.speedup)}" if rows.second and rows.second.speedup else ""
    )
    return (
        f"Speed-up by depth: {wording.counted(rows.kernels, 'kernel')}, {run.passed:,} correct, {best}{second}. "
        "The kernels table lists every point."
    )


def _left_out(rows: curve.CurveRows) -> str:
    """That a long run's curve does not draw every kernel; empty where it does."""
    marks = len(rows.points) + len(rows.failures)
    if rows.kernels <= queries.FEW_POINTS:
        return ""
    return (
        f"{rows.kernels:,} kernels drawn as {marks:,} marks: in each column of pixels the fastest, the slowest and the "
        "failures by kind. The table lists all kernels."
    )


def _settings(run_id: str) -> RunSettings | None:
    try:
        return folder.find_run(run_id).read_settings()
    except (FileNotFoundError, DecodeError):
        return None
