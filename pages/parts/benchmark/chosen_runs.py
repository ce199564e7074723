"""Any runs summarised as if they were a suite: grouped by one setting, tasks counted once, groups compared in pairs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from enum import StrEnum

import streamlit as st

from engine.suites import tables
from pages.parts import wording
from pages.parts.benchmark import benchmark_charts, cells_matrix, text_tables
from storage.queries import RunChoice
from storage.suites import summary
from storage.suites.records import Arm, Cell, CellState, Defined, SuiteTask
from storage.suites.results import RunResult
from storage.suites.standing import CellStanding, Suite
from storage.suites.summary import Results


class GroupBy(StrEnum):
    """What makes a run's group."""

    STRATEGY = "strategy"
    MODEL = "model"
    LANGUAGE = "language"
    DEVICE = "device"


def draw(choices: Sequence[RunChoice], runs: Mapping[str, RunResult]) -> str | None:
    """Sentences, pairs, figures and every run; the run opened just now, if any."""
    by = GroupBy(
        st.segmented_control(
            "Group by", list(GroupBy), default=GroupBy.STRATEGY, required=True, key="summary_by", bind="query-params"
        )
        or GroupBy.STRATEGY
    )
    results = results_of(choices, runs, by)
    for sentence in tables.headline(results):
        arm, _, rest = sentence.partition(":")
        st.markdown(f"- **{wording.plain(arm)}**:{wording.plain(rest)}")
    benchmark_charts.draw_pairs(results)
    text_tables.draw(tables.paired_table(results), "paired_table", has_title=True)
    text_tables.draw(tables.arms_table(results), "arms_table", has_title=True)
    text_tables.draw(tables.costs_table(results), "costs_table", has_title=True)
    st.markdown("## Every run")
    opened = cells_matrix.draw(results)
    st.caption(cells_matrix.ABOUT)
    return opened


def results_of(choices: Sequence[RunChoice], runs: Mapping[str, RunResult], by: GroupBy) -> Results:
    """Runs of one task in one group are its repeats, oldest first; the group with most runs is the baseline."""
    cells: dict[Cell, CellStanding] = {}
    seen: Counter[tuple[str, str]] = Counter()
    for one in sorted(choices, key=lambda choice: choice.created_at):
        if run := runs.get(one.run_id):
            group = str(getattr(run, by)) or wording.UNKNOWN
            seen[one.task_name, group] += 1
            cell = Cell(one.task_name, group, seen[one.task_name, group])
            cells[cell] = CellStanding(cell, one.run_id, CellState.FINISHED)
    groups = Counter(cell.arm for cell in cells).most_common()
    tasks = tuple(SuiteTask(task, task) for task in dict.fromkeys(cell.task for cell in cells))
    defined = Defined(
        "chosen runs", tasks, tuple(Arm(name) for name, _ in groups), max(seen.values(), default=1),
        baseline_arm=groups[0][0] if groups else "",
    )  # fmt: skip
    return summary.gather(Suite(defined, cells), runs)
