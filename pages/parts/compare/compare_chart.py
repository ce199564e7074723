"""The charts of the compare page and the switches above them: the best speed-up so far over steps, calls, time, tokens
or money; early against delayed profiling, runs of one task grouped by when the model first saw a profile.

Several runs of a group make one curve, their geometric mean, with a band from the lowest to the highest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import streamlit as st

from pages.parts import wording
from pages.parts.compare import compared_runs
from pages.parts.compare.compared_runs import AXIS_TITLE, Axis, Compared, position
from pages.parts.widgets import plot
from storage.index.queries import ReachedRow, TimedRow
from storage.suites.statistics import geometric_mean


def draw(runs: Sequence[Compared]) -> str | None:
    """The curves; `run#kernel` of the point clicked just now, if any."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        axis = st.segmented_control(
            "Speed-up by", list(Axis), default=Axis.DEPTH, required=True, key="compare_axis", format_func=str
        )
        scale = st.segmented_control("Scale", ["log", "linear"], default="log", required=True, key="compare_scale")
        has_kernels = st.toggle("All kernels", key="compare_kernels", help="not only the best so far")
    axis, is_log = Axis(str(axis)), scale != "linear"
    figure = curve_figure(runs, axis, is_log, has_kernels)
    for run in unknown(runs, axis):
        st.caption(
            f":material/help: Run {run.letter}: {_why_unknown(axis)} for some calls; its curve ends before them."
        )
    if letters := ", ".join(run.letter for run in runs if not run.timed):
        st.caption(f":material/help: No curve yet without a correct, timed kernel: {letters}.")
    height = chart_height(len(runs))
    return plot.draw(figure, name(runs, axis), height, f"compare:{axis}:{scale}", key="compare_curve")


def _why_unknown(axis: Axis) -> str:
    return "price unknown" if axis is Axis.MONEY else "tokens not counted"


def name(runs: Sequence[Compared], axis: Axis) -> str:
    """The chart in words, for those who cannot see it."""
    bests = ", ".join(f"{run.letter} {wording.best(run.run)}" for run in runs)
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
            "Task", tasks, default=task, required=True, key="compare_task", format_func=wording.task
        )
    of_task = [run for run in runs if run.run.task_name == task]
    by_exposure = groups(of_task)
    if compared_runs.are_of_several_devices(of_task):
        st.caption("Runs on different devices make no common curve: choose runs of one device.")
        return
    if len(by_exposure) < 2:
        only = f" All runs here: {by_exposure[0].exposure}." if by_exposure else ""
        st.caption(
            "Compares runs of one task by when the model was first shown a profile: early, delayed or never. Choose "
            f"runs that differ in this.{only}"
        )
        return
    shown = ", ".join(f"{group.name}: {wording.speedup(group.spots[-1].mean)}" for group in by_exposure)
    words = f"Best speed-up so far by step of the search, grouped by when profiles were shown. {shown}"
    figure = exposure_figure(by_exposure, True, str(task))
    plot.draw(figure, words, chart_height(len(by_exposure)), f"exposure:{task}", key="exposure_curve")
    st.caption(
        f"Early: by step {EARLY_UNTIL}; delayed: later. Vertical lines mark the first profile shown. "
        "Line: geometric mean of the group's runs; band: lowest to highest. A run that has ended counts with its best."
    )


def draw_languages(runs: Sequence[Compared]) -> None:
    """The best kernels of each language, where the runs are written in several."""
    figures = compared_runs.language_figures(runs)
    if len(figures) < 2:
        return
    st.markdown("## By language")
    if compared_runs.are_of_several_devices(runs):
        st.caption("Languages on different devices do not compare: choose runs of one device.")
        return
    with st.container(horizontal=True):
        for title, value, note in figures:
            with st.container(border=True, width=250):
                st.metric(title, value)
                st.caption(wording.plain(note))
    st.caption("Each task counts once in each language, with the best of its chosen runs; geometric mean over tasks.")


def draw_tasks(runs: Sequence[Compared]) -> None:
    """Figures over all tasks, where there are several."""
    over = compared_runs.over_tasks(runs)
    if len(over.tasks) < 2:
        return
    st.markdown("## Over all tasks")
    if compared_runs.are_of_several_devices(runs):
        st.caption("Speed-ups on different devices have no common mean: choose runs of one device.")
        return
    with st.container(horizontal=True):
        for title, value, note in compared_runs.task_figures(over):
            with st.container(border=True, width=250):
                st.metric(title, value)
                st.caption(note)
    st.caption(
        "Each task counts once, with the best of its chosen runs: "
        + "; ".join(
            f"{wording.plain(task.task)} {task.in_words}" + (f" ({task.best_letter})" if task.best else "")
            for task in over.tasks
        )
    )


Trace = dict[str, Any]
Figure = dict[str, Any]
NEAR_EAGER = 1.5  # a curve this near stands where the name of the line would
LEGEND_ROW_PX = 22
POINTS = 600


def curve_figure(runs: Sequence[Compared], axis: Axis, is_log: bool, has_kernels: bool) -> Figure:
    """The whole figure; colours are names that the browser resolves."""
    traces = [trace for run in runs for trace in _traces(run, axis, has_kernels)]
    values = [value for trace in traces for value in trace["y"] if value]
    layout = chart_layout(AXIS_TITLE[axis], values, is_log, f"{axis}", len(runs))
    if axis is Axis.DEPTH:  # there is no half a step
        layout["xaxis"]["dtick"] = plot.tick_step(max((_last(run) for run in runs), default=0))
    return {"data": traces, "layout": layout}


def unknown(runs: Sequence[Compared], axis: Axis) -> list[Compared]:
    """Runs that have a kernel which cannot be placed on this axis, for want of counts or prices."""
    return [run for run in runs if any(position(row, axis) is None for row in line_rows(run))]


def line_rows(run: Compared) -> list[ReachedRow | TimedRow]:
    """What the line of the best so far goes through."""
    return [*(row for row in telling(run.reached) if row.best_speedup), *run.ahead]


def _last(run: Compared) -> int:
    """The last step index that the run's line comes to."""
    rows: list[ReachedRow | TimedRow] = [*run.reached, *run.ahead]
    return max((row.depth for row in rows), default=-1)


def best_at(row: ReachedRow | TimedRow) -> float:
    """The best speed-up so far when that row's step ended, or its kernel was timed."""
    return row.speedup if isinstance(row, TimedRow) else row.best_speedup or 0.0


def _traces(run: Compared, axis: Axis, has_kernels: bool) -> list[Trace]:
    """The line of the best so far with the run's letter at its end; and its kernels when asked for."""
    steps = [(x, best_at(row), row) for row in line_rows(run) if (x := position(row, axis)) is not None]
    line = {
        "type": "scatter", "mode": "lines+markers", "name": wording.cut(run.name, 70), "legendgroup": run.letter,
        "x": [x for x, _, _ in steps], "y": [best for _, best, _ in steps],
        "line": {"shape": "hv", "width": 2.4, "color": run.colour, "dash": run.dash},
        "marker": {"symbol": run.symbol, "size": [9 if r.speedup == best else 1 for _, best, r in steps],
                   "color": run.colour, "opacity": 1},
        "customdata": [f"{r.run_id}#{r.candidate_id}" if r.candidate_id else "" for _, _, r in steps],
        "text": [_hover(run, r) for _, _, r in steps], "hovertemplate": "%{text}<extra></extra>",
    }  # fmt: skip
    return [line, _end(run, steps), *([_kernels(run, axis)] if has_kernels else [])]


def telling(rows: Sequence[ReachedRow]) -> list[ReachedRow]:
    """Of a very long run only where the best so far rose, and the end: between them nothing is to be seen."""
    if len(rows) <= POINTS:
        return list(rows)
    bests = [row.best_speedup for row in rows]
    return [row for at, row in enumerate(rows) if at == len(rows) - 1 or not at or bests[at] != bests[at - 1]]


def _end(run: Compared, steps: Sequence[tuple[float, float, ReachedRow | TimedRow]]) -> Trace:
    """The letter beside the end of the line, so that no colour has to be told apart."""
    last = steps[-1:]
    return {
        "type": "scatter", "mode": "text", "hoverinfo": "skip", "showlegend": False, "cliponaxis": False,
        "legendgroup": run.letter, "name": f"end of {run.letter}",
        "x": [x for x, _, _ in last], "y": [best for _, best, _ in last],
        "text": [f"\u00a0\u00a0<b>{run.letter}</b>" for _ in last], "textposition": "middle right",
        "textfont": {"size": 13, "color": run.colour.replace("-color", "-text-color")},
    }  # fmt: skip


def _kernels(run: Compared, axis: Axis) -> Trace:
    points = [(x, row) for row in run.timed if (x := position(row, axis)) is not None]
    trace_type = "scattergl" if len(points) > POINTS else "scatter"
    return {
        "type": trace_type, "mode": "markers", "name": f"kernels of {run.letter}", "legendgroup": run.letter,
        "showlegend": False, "x": [x for x, _ in points], "y": [row.speedup for _, row in points],
        "marker": {"symbol": f"{run.symbol}-open", "size": 8, "color": run.colour, "line": {"width": 1.4}},
        "customdata": [f"{row.run_id}#{row.candidate_id}" for _, row in points],
        "text": [_hover_kernel(run, row) for _, row in points],
        "hovertemplate": "%{text}<extra></extra>",
    }  # fmt: skip


def _hover_kernel(run: Compared, row: TimedRow) -> str:
    measured = wording.measured(row.speedup, row.noise, row.low, row.high)
    head = f"<b>{run.letter}</b> · kernel {row.number} · {wording.escaped(run.words.step)} {row.depth} · {measured}"
    return f"{head}<br>{wording.escaped(row.summary)}"


def _hover(run: Compared, row: ReachedRow | TimedRow) -> str:
    if isinstance(row, TimedRow):
        return f"{_hover_kernel(run, row)}<br>this step {'was cut short' if run.state.is_over else 'is not finished'}"
    tokens, cost = wording.in_tokens(row.tokens, run.run.model), wording.cost(row.cost_usd, run.run.model)
    spent = f"{wording.seconds(row.engine_s)} at work, {tokens}, {cost}"
    seen = " · profile shown" if row.is_profile_exposed else ""
    return (
        f"<b>{run.letter}</b> · {wording.escaped(run.run.title)} · {wording.escaped(run.words.step)} {row.depth}{seen}"
        "<br>"
        f"best so far {wording.best_so_far(row.best_speedup, row.best_noise, run.timed)} · {spent}"
    )


def chart_layout(x_title: str, values: Sequence[float], is_log: bool, revision: str, rows: int) -> dict[str, Any]:
    """Axes and legend; the legend stands below, where it covers nothing."""
    small, grid = {"size": 12}, {"gridcolor": "@border-color", "zeroline": False, "linecolor": "@border-color"}
    top, low = max([1.0, *values]), min([1.0, *values])
    is_above_taken = any(1 <= value < NEAR_EAGER for value in values)
    speed: dict[str, Any] = {"title": {"text": "best speed-up so far, over eager baseline", "font": small}, **grid}
    if is_log:
        ticks = plot.log_ticks(low / 1.2, top * 1.2)
        speed |= {"type": "log", "tickvals": ticks, "ticktext": [f"{t:g}×" for t in ticks]}
    else:
        speed |= {"ticksuffix": "×"}
    return {
        "uirevision": f"{revision}{is_log}", "hovermode": "closest", "dragmode": "zoom", "clickmode": "event",
        "margin": {"l": 62, "r": 26, "t": 30, "b": 60 + LEGEND_ROW_PX * rows},
        "paper_bgcolor": "rgba(0,0,0,0)", "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"color": "@text-color", "size": 12},
        "xaxis": {"title": {"text": x_title, "font": small, "standoff": 8}, **grid},
        "yaxis": speed,
        "legend": {"orientation": "v", "x": 0, "xanchor": "left", "yref": "container", "y": 0, "yanchor": "bottom",
                   "font": {"size": 11}},
        "hoverlabel": {"align": "left", "bgcolor": "@secondary-background-color", "bordercolor": "@border-color",
                       "font": {"color": "@text-color", "size": 12}},
        "shapes": [{"type": "line", "xref": "paper", "x0": 0, "x1": 1, "yref": "y", "y0": 1, "y1": 1,
                    "layer": "below", "line": {"color": "@gray-color", "width": 1.2, "dash": "dot"}}],
        "annotations": [{"xref": "paper", "x": 1, "yref": "y", "y": 0 if is_log else 1, "text": "eager 1×",
                         "showarrow": False, "xanchor": "right", "yanchor": "top" if is_above_taken else "bottom",
                         "font": {"size": 10, "color": "@gray-text-color"}}],
    }  # fmt: skip


def chart_height(rows: int) -> int:
    """Pixels: the legend grows below the curves, not into them."""
    return 400 + LEGEND_ROW_PX * rows


EARLY_UNTIL = 2


class Exposure(StrEnum):
    """When the prompts of a run first showed a profile."""

    NEVER = "never shown"
    EARLY = "early"
    DELAYED = "delayed"


LOOKS = {
    Exposure.EARLY: ("@orange-color", "dash", "square", "@orange-background-color/60"),
    Exposure.DELAYED: ("@blue-color", "solid", "circle", "@blue-background-color/60"),
    Exposure.NEVER: ("@gray-color", "dot", "diamond", "@gray-background-color/60"),
}


@dataclass(frozen=True, slots=True)
class Spot:
    """The group at one depth: geometric mean, lowest and highest of the best speed-ups so far of `count` runs."""

    depth: int
    mean: float
    low: float
    high: float
    count: int


@dataclass(frozen=True, slots=True)
class Group:
    """Runs with the same exposure; `exposed_at` are the depths at which theirs began."""

    exposure: Exposure
    letters: tuple[str, ...]
    exposed_at: tuple[int, ...]
    spots: tuple[Spot, ...]

    @property
    def name(self) -> str:
        """Exposure, its depths and the runs in it."""
        when = f" (from step {', '.join(map(str, self.exposed_at))})" if self.exposed_at else ""
        mean = "" if len(self.letters) == 1 else f", geometric mean of {len(self.letters)} runs"
        return f"{self.exposure}{when}: {', '.join(self.letters)}{mean}"


def exposure_of(exposed_at: int | None) -> Exposure:
    """Early means by step 2: before the kernel's structure has settled."""
    if exposed_at is None:
        return Exposure.NEVER
    return Exposure.EARLY if exposed_at <= EARLY_UNTIL else Exposure.DELAYED


def groups(runs: Sequence[Compared]) -> list[Group]:
    """The groups that have a run with a correct kernel, early first."""
    with_spots = []
    for exposure in LOOKS:
        members = [run for run in runs if exposure_of(run.conditions.exposed_at) is exposure]
        spots = _spots(members)
        if spots:
            begun = sorted({r.conditions.exposed_at for r in members if r.conditions.exposed_at is not None})
            with_spots.append(Group(exposure, tuple(run.letter for run in members), tuple(begun), spots))
    return with_spots


def _spots(members: Sequence[Compared]) -> tuple[Spot, ...]:
    """Depth by depth; a run that has ended stays at its best, one without a correct kernel yet does not count."""
    last = max(map(_last, members), default=-1)
    spots = []
    for depth in range(last + 1):
        bests = [best for run in members if (best := _best_by(run, depth)) is not None]
        if bests:
            spots.append(Spot(depth, geometric_mean(bests), min(bests), max(bests), len(bests)))
    return tuple(spots)


def _best_by(run: Compared, depth: int) -> float | None:
    bests = [best_at(row) for row in line_rows(run) if row.depth <= depth]
    return bests[-1] if bests else None


def exposure_figure(by_exposure: Sequence[Group], is_log: bool, task: str) -> dict[str, Any]:
    """One curve per group, its band, and where its profiles began."""
    traces = [trace for group in by_exposure for trace in _group_traces(group)]
    values = [value for group in by_exposure for spot in group.spots for value in (spot.low, spot.high)]
    layout = chart_layout(AXIS_TITLE[Axis.DEPTH], values, is_log, f"exposure:{task}", len(by_exposure))
    marks = [(group, depth) for group in by_exposure for depth in group.exposed_at]
    layout["shapes"] = [*layout["shapes"], *(_line(group, depth) for group, depth in marks)]
    notes = [_note(group, depth, number) for number, (group, depth) in enumerate(marks)]
    layout["annotations"] = [*layout["annotations"], *notes]
    return {"data": traces, "layout": layout}


def _group_traces(group: Group) -> list[dict[str, Any]]:
    colour, dash, symbol, fill = LOOKS[group.exposure]
    depths = [spot.depth for spot in group.spots]
    edge = {"type": "scatter", "mode": "lines", "x": depths, "hoverinfo": "skip", "showlegend": False,
            "legendgroup": group.exposure, "line": {"width": 0, "color": colour}}  # fmt: skip
    band = [
        edge | {"y": [spot.low for spot in group.spots], "name": f"lowest, {group.exposure}"},
        edge | {"y": [spot.high for spot in group.spots], "name": f"highest, {group.exposure}", "fill": "tonexty",
                "fillcolor": fill},
    ]  # fmt: skip
    line = {
        "type": "scatter", "mode": "lines+markers", "name": group.name, "legendgroup": group.exposure,
        "x": depths, "y": [spot.mean for spot in group.spots],
        "line": {"width": 2.6, "color": colour, "dash": dash},
        "marker": {"symbol": symbol, "size": 8, "color": colour},
        "text": [_hover_spot(group, spot) for spot in group.spots], "hovertemplate": "%{text}<extra></extra>",
    }  # fmt: skip
    return [*(band if len(group.letters) > 1 else []), line]


def _hover_spot(group: Group, spot: Spot) -> str:
    band = f", {wording.interval(spot.low, spot.high)} over {spot.count} runs" if spot.count > 1 else ""
    return f"<b>{group.exposure}</b> · step {spot.depth}<br>best so far {wording.speedup(spot.mean)}{band}"


def _line(group: Group, depth: int) -> dict[str, Any]:
    colour, dash, _, _ = LOOKS[group.exposure]
    return {"type": "line", "xref": "x", "x0": depth - 0.5, "x1": depth - 0.5, "yref": "paper", "y0": 0, "y1": 1,
            "layer": "below", "line": {"color": colour, "width": 1.4, "dash": dash}}  # fmt: skip


def _note(group: Group, depth: int, number: int) -> dict[str, Any]:
    colour, _, _, _ = LOOKS[group.exposure]
    return {"xref": "x", "x": depth - 0.5, "yref": "paper", "y": 1, "yshift": -14 * number,
            "text": f" {group.exposure}: profiles from step {depth}", "showarrow": False, "xanchor": "left",
            "yanchor": "top", "font": {"size": 10, "color": colour.replace("-color", "-text-color")}}  # fmt: skip
