"""The speed-up curve on the page: gathers its rows and draws it in place."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from pages.parts import curve, index, phases, plot, selection, wording
from storage import folder, queries
from storage.codec import DecodeError
from storage.queries import PointRow, RunRow
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
    points = queries.points(db, run.run_id, selected_id)
    settings = _settings(run.run_id)
    seen, switch = queries.exposures(db, run.run_id), queries.switches(db, run.run_id).expose
    last = -1 if run.state.is_finished else run.depths  # nothing is planned any more
    return curve.CurveRows(
        points=points,
        failures=queries.failures(db, run.run_id, selected_id),
        unapplied=queries.unapplied(db, run.run_id),
        beam=queries.beam(db, run.run_id),
        rises=queries.rises(db, run.run_id),
        phases=phases.phases(seen, switch, settings.expose_from_depth if settings else None, last),
        steering=queries.steering_marks(db, run.run_id),
        kernels=run.attempts,
        budget_depths=run.depths,
        limit_speedup=_limit_speedup(run, points),
        target_speedup=settings.budget.target_speedup if settings else None,
        selected_id=selected_id,
        second=queries.baseline(db, run.run_id),
    )


def name(run: RunRow, rows: curve.CurveRows) -> str:
    """The chart in words, for those who cannot see it."""
    best = f"best {wording.speedup(run.best_speedup)}" if run.best_speedup else "no correct kernel yet"
    second = (
        f", {rows.second.name} {wording.speedup(rows.second.speedup)}" if rows.second and rows.second.speedup else ""
    )
    return (
        f"Speed-up by depth: {wording.counted(rows.kernels, 'kernel')}, {run.passed:,} correct, {best}{second}. "
        "Every point is also a row of the kernels table."
    )


def _left_out(rows: curve.CurveRows) -> str:
    """That a long run's curve does not draw every kernel; empty where it does."""
    marks = len(rows.points) + len(rows.failures)
    if rows.kernels <= queries.FEW_POINTS:
        return ""
    return (
        f"{rows.kernels:,} kernels drawn as {marks:,} marks: of each column of pixels the fastest and the slowest, and "
        "each way to fail with its count. The table has them all."
    )


def _limit_speedup(run: RunRow, points: Sequence[PointRow]) -> float | None:
    """The hardware limit as a speed-up over eager, as far above the best kernel as the headroom says.

    Each kernel was timed against a baseline of its own session; without a best one the newest of them has to do.
    """
    limit = queries.limit(index.current(), run.run_id)
    if limit is None or not limit.limit_ms:
        return None
    if run.best_speedup and run.best_latency_ms:
        return run.best_speedup * run.best_latency_ms / limit.limit_ms
    baseline = next((p.baseline_latency_ms for p in reversed(points) if p.baseline_latency_ms), None)
    return baseline / limit.limit_ms if baseline else None


def _settings(run_id: str) -> RunSettings | None:
    try:
        return folder.find_run(run_id).read_settings()
    except (FileNotFoundError, DecodeError):
        return None
