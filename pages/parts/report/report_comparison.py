"""The report of a comparison: what the compare page shows, as one file."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pages.parts import wording
from pages.parts.compare import compare_chart, compare_table, compared_runs
from pages.parts.compare.compared_runs import AXIS_TITLE, COLOURS, Axis, Compared, position
from pages.parts.report import report_html
from pages.parts.report.report_html import Html, Level, Series, Spot, document, element, section, table
from pages.parts.status import settings_list

HEADINGS = (
    "Run", "State", "Best speed-up", "95 % interval", "Depth", "Correct", "Calls", "Tokens", "Cost", "Engine time",
    "Profiles shown", "Conditions",
)  # fmt: skip


def comparison_report(runs: Sequence[Compared]) -> str:
    """The whole file as text; `runs` is not empty."""
    tasks = ", ".join(dict.fromkeys(run.run.title for run in runs))
    return document(
        f"{len(runs)} runs compared: {tasks}",
        *(element("p", without_marks(text), class_="warn") for text in compared_runs.warnings(runs)),
        section("The runs", _table(runs)),
        *_settings(runs),
        *(_curves(runs, axis) for axis in Axis),
        *_exposure(runs),
        *_tasks(runs),
    )


def without_marks(text: str) -> str:
    """A sentence written for Markdown as plain text."""
    return re.sub(r"\*\*(.+?)\*\*", r"\1", text)


def _table(runs: Sequence[Compared]) -> Html:
    rows = []
    for run in runs:
        row, known = run.run, run.conditions
        rows.append((
            f"{run.letter} · {row.title} · {row.model} · {row.run_id}", str(run.state),
            wording.speedup(row.best_speedup), wording.interval(row.best_low, row.best_high),
            f"{known.last_depth} / {row.depths}",
            wording.share(row.passed, row.passed + row.failed), wording.count(row.model_calls),
            wording.tokens(known.tokens), wording.cost(known.cost_usd), wording.seconds(known.engine_s),
            compare_table.exposure(known), f"{known.device or 'device not known'} · {compare_table.conditions(run)}",
        ))  # fmt: skip
    return table("Compared runs", HEADINGS, rows, right=(2, 3, 4, 5, 6, 7, 8, 9))


def _settings(runs: Sequence[Compared]) -> list[Html]:
    found = settings_list.differing([run.run.run_id for run in runs])
    if not found:
        return []
    head = ("Setting", *(run.letter for run in runs))
    return [section("Settings that differ", table("Settings that differ", head, found))]


def _curves(runs: Sequence[Compared], axis: Axis) -> Html:
    series = [_series(run, axis) for run in runs]
    missing = [run.letter for run, one in zip(runs, series, strict=True) if not one.steps and run.run.best_speedup]
    note = f"Not shown, because not known for them: {', '.join(missing)}." if missing else ""
    if not any(one.steps for one in series):
        return section(f"By {axis}", element("p", note or "No correct kernel timed yet.", class_="quiet"))
    words = f"Best speed-up so far by {AXIS_TITLE[axis]}, {len(runs)} runs"
    drawn = report_html.draw_curve(words, AXIS_TITLE[axis], series, [Level(1.0, "eager")], is_whole=axis is Axis.DEPTH)
    return section(f"By {axis}", drawn, element("p", note, class_="quiet"))


def _series(run: Compared, axis: Axis) -> Series:
    steps = [
        Spot(x, row.best_speedup, f"{run.letter}, depth {row.depth}: best so far {wording.speedup(row.best_speedup)}")
        for row in run.reached
        if row.best_speedup and (x := position(row, axis)) is not None
    ]
    return Series(run.name, COLOURS[run.place % len(COLOURS)], run.dash, steps, label=run.letter)


def _exposure(runs: Sequence[Compared]) -> list[Html]:
    """Early against delayed profiling, for each task that has both."""
    parts = []
    for task in dict.fromkeys(run.run.task_name for run in runs):
        found = compare_chart.groups([run for run in runs if run.run.task_name == task])
        if len(found) < 2:
            continue
        series = [
            Series(group.name, compare_chart.LOOKS[group.exposure][0][1:].removesuffix("-color"),
                   compare_chart.LOOKS[group.exposure][1],
                   [Spot(s.depth, s.mean, f"{group.exposure}, depth {s.depth}: {wording.speedup(s.mean)}")
                    for s in group.spots])
            for group in found
        ]  # fmt: skip
        words = f"Best speed-up so far by depth, {task}, grouped by when profiles were shown"
        drawn = report_html.draw_curve(words, AXIS_TITLE[Axis.DEPTH], series, [Level(1.0, "eager")])
        parts.append(section(f"When profiles were shown: {task.replace('_', ' ')}", drawn))
    return parts


def _tasks(runs: Sequence[Compared]) -> list[Html]:
    over = compared_runs.over_tasks(runs)
    if len(over.tasks) < 2:
        return []
    items = [
        element("li", n, element("b", v), element("small", note)) for n, v, note in compared_runs.task_figures(over)
    ]
    return [section("Over all tasks", element("ul", *items, class_="figures"))]
