"""The charts of the compare page and the switches above them."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from pages.parts import wording
from pages.parts.compare import compare_curve, compare_exposure, compared_runs
from pages.parts.compare.compared_runs import AXIS_TITLE, Axis, Compared
from pages.parts.widgets import plot


def draw(runs: Sequence[Compared]) -> str | None:
    """The curves; `run#kernel` of the point clicked just now, if any."""
    with st.container(horizontal=True, vertical_alignment="center"):
        axis = st.segmented_control(
            "Speed-up by", list(Axis), default=Axis.DEPTH, required=True, key="compare_axis", format_func=str
        )
        scale = st.segmented_control("Scale", ["log", "linear"], default="log", required=True, key="compare_scale")
        has_kernels = st.toggle("All kernels", key="compare_kernels", help="not only the best so far")
    axis, is_log = Axis(str(axis)), scale != "linear"
    figure = compare_curve.figure(runs, axis, is_log, has_kernels)
    for run in compare_curve.unknown(runs, axis):
        st.caption(
            f":material/help: Run {run.letter}: {_why_unknown(axis)} for some calls; its curve ends before them."
        )
    height = compare_curve.height(len(runs))
    return plot.draw(figure, name(runs, axis), height, f"compare:{axis}:{scale}", key="compare_curve")


def _why_unknown(axis: Axis) -> str:
    return "price unknown" if axis is Axis.MONEY else "tokens not counted"


def name(runs: Sequence[Compared], axis: Axis) -> str:
    """The chart in words, for those who cannot see it."""
    bests = ", ".join(f"{run.letter} {wording.speedup(run.run.best_speedup)}" for run in runs)
    return (
        f"Best speed-up so far by {AXIS_TITLE[axis]} of {len(runs)} runs: {bests}. The table below lists all figures."
    )


def draw_exposure(runs: Sequence[Compared]) -> None:
    """Early against delayed profiling, one task at a time."""
    tasks = list(dict.fromkeys(run.run.task_name for run in runs))
    st.markdown("## When profiles were shown")
    task = tasks[0]
    if len(tasks) > 1:
        task = st.segmented_control(
            "Task", tasks, default=task, required=True, key="compare_task", format_func=lambda t: t.replace("_", " ")
        )
    found = compare_exposure.groups([run for run in runs if run.run.task_name == task])
    if len(found) < 2:
        only = f" All runs here: {found[0].exposure}." if found else ""
        st.caption(
            "Compares runs of one task by when the model was first shown a profile: early, delayed or never. Choose "
            f"runs that differ in this.{only}"
        )
        return
    shown = ", ".join(f"{group.name}: {wording.speedup(group.spots[-1].mean)}" for group in found)
    words = f"Best speed-up so far by depth, grouped by when profiles were shown. {shown}"
    figure = compare_exposure.figure(found, True, str(task))
    plot.draw(figure, words, compare_curve.height(len(found)), f"exposure:{task}", key="exposure_curve")
    st.caption(
        f"Early: by depth {compare_exposure.EARLY_UNTIL}; delayed: later. Vertical lines mark the first profile shown. "
        "Line: geometric mean of the group's runs; band: lowest to highest. A run that has ended counts with its best."
    )


def draw_tasks(runs: Sequence[Compared]) -> None:
    """Figures over all tasks, where there are several."""
    over = compared_runs.over_tasks(runs)
    if len(over.tasks) < 2:
        return
    st.markdown("## Over all tasks")
    with st.container(horizontal=True):
        for title, value, note in compared_runs.task_figures(over):
            with st.container(border=True, width=250):
                st.metric(title, value)
                st.caption(note)
    st.caption(
        "Each task counts once, with the best of its chosen runs: "
        + "; ".join(
            f"{wording.plain(task.task)} {wording.speedup(task.best)}" + (f" ({task.best_letter})" if task.best else "")
            for task in over.tasks
        )
    )
