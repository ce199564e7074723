"""The report of a comparison: what the compare page shows, as one file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from pages.parts import method, wording
from pages.parts.compare import compare_chart, compare_kernels, compare_table, compared_runs
from pages.parts.compare.compared_runs import AXIS_TITLE, COLOURS, Axis, Compared, position
from pages.parts.report.report_html import Curve, Level, Series, Spot, render
from pages.parts.status import settings_list
from storage.index.queries import ReachedRow, TimedRow

HEADINGS = (
    "Run", "State", "Best speed-up", "95 % interval", "Steps", "Correct", "Calls", "Tokens", "Cost", "Engine time",
    "Profiles shown", "Conditions",
)  # fmt: skip
EAGER = Level(1.0, "eager")
# A heading, the curve below it, and a line below that.
Section = tuple[str, Curve | None, str | None]


def comparison_report(runs: Sequence[Compared]) -> str:
    """The whole file as text; `runs` is not empty."""
    over, of_several = compared_runs.over_tasks(runs), compared_runs.are_of_several_devices(runs)
    return render(
        "comparison.html",
        f"{len(runs)} runs compared: {', '.join(dict.fromkeys(run.run.title for run in runs))}",
        verdict=without_marks(compare_kernels.told_of_runs(runs)),
        warnings=[without_marks(text) for text in compared_runs.warnings(runs)],
        headings=HEADINGS,
        rows=[_row(run) for run in runs],
        settings=settings_list.differing([run.run.run_id for run in runs]),
        setting_headings=("Setting", *(run.letter for run in runs)),
        curves=[*(_curve(runs, axis) for axis in Axis), *_exposure(runs)],
        over_tasks=[] if len(over.tasks) < 2 or of_several else compared_runs.task_figures(over),
    )


def without_marks(text: str) -> str:
    """A sentence written for Markdown as plain text."""
    return re.sub(r"\*\*(.+?)\*\*", r"\1", text)


def _row(run: Compared) -> Sequence[str]:
    row, facts = run.run, run.conditions
    return (
        f"{run.letter} · {row.title} · {wording.model(row.model, row.is_example)} · {row.run_id}", str(run.state),
        wording.best(row), wording.interval(row.best_low, row.best_high),
        "{:,} / {:,}".format(*method.completed(row)),
        wording.share(row.passed, row.passed + row.failed), wording.count(row.model_calls),
        wording.tokens(facts.tokens, row.model), wording.cost(facts.cost_usd, row.model),
        wording.seconds(facts.engine_s),
        compare_table.exposure(facts), f"{facts.device or 'device not known'} · {compare_table.conditions(run)}",
    )  # fmt: skip


def _curve(runs: Sequence[Compared], axis: Axis) -> Section:
    series = [_series(run, axis) for run in runs]
    missing = [run.letter for run, line in zip(runs, series, strict=True) if not line.steps and run.run.best_speedup]
    note = f"Not shown, because not known for them: {', '.join(missing)}." if missing else ""
    if not any(line.steps for line in series):
        return f"By {axis}", None, note or "No correct kernel timed yet."
    words = f"Best speed-up so far by {AXIS_TITLE[axis]}, {len(runs)} runs"
    return f"By {axis}", Curve(words, AXIS_TITLE[axis], series, [EAGER], is_whole=axis is Axis.DEPTH), note


def _series(run: Compared, axis: Axis) -> Series:
    steps = [
        Spot(
            x, compare_chart.best_at(row), f"{run.letter}, {run.words.step} {row.depth}: best so far {_best(run, row)}"
        )
        for row in compare_chart.line_rows(run)
        if (x := position(row, axis)) is not None
    ]
    return Series(run.name, COLOURS[run.place % len(COLOURS)], run.dash, steps, label=run.letter)


def _best(run: Compared, row: ReachedRow | TimedRow) -> str:
    if isinstance(row, TimedRow):
        return wording.ratio(row)
    return wording.best_so_far(row.best_speedup, row.best_noise, run.timed)


def _exposure(runs: Sequence[Compared]) -> Iterator[Section]:
    """Early against delayed profiling, for each task that has both."""
    for task in dict.fromkeys(run.run.task_name for run in runs):
        of_task = [run for run in runs if run.run.task_name == task]
        groups = compare_chart.groups(of_task)
        if len(groups) < 2 or compared_runs.are_of_several_devices(of_task):
            continue
        series = [
            Series(group.name, compare_chart.LOOKS[group.exposure][0][1:].removesuffix("-color"),
                   compare_chart.LOOKS[group.exposure][1],
                   [Spot(s.depth, s.mean, f"{group.exposure}, step {s.depth}: {wording.speedup(s.mean)}")
                    for s in group.spots])
            for group in groups
        ]  # fmt: skip
        words = f"Best speed-up so far by step of the search, {task}, grouped by when profiles were shown"
        curve = Curve(words, AXIS_TITLE[Axis.DEPTH], series, [EAGER])
        yield f"When profiles were shown: {wording.task(task)}", curve, None
