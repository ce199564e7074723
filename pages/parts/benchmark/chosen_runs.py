"""Any runs summarised as if they were a suite: grouped by one setting, tasks counted once, groups compared in pairs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import StrEnum

import streamlit as st

from engine.suites import tables
from pages.parts import wording
from pages.parts.benchmark import benchmark_charts, cells_matrix, text_tables
from pages.parts.status import settings_list
from storage.index.queries import RunChoice
from storage.run.settings import RunState
from storage.suites import summary
from storage.suites.records import Arm, Cell, CellState, Defined, SuiteTask
from storage.suites.results import RunResult
from storage.suites.standing import CellStanding, Suite
from storage.suites.summary import CellResult, Results

# What a suite calls the state of a run; any other is at work. A run that is lost can be resumed as a stopped one can.
STATES = {
    RunState.FINISHED: CellState.FINISHED,
    RunState.STOPPED: CellState.STOPPED,
    RunState.LOST: CellState.STOPPED,
    RunState.FAILED: CellState.FAILED,
    RunState.WAITING: CellState.WAITING,
}


class GroupBy(StrEnum):
    """What makes a run's group."""

    STRATEGY = "strategy"
    MODEL = "model"
    LANGUAGE = "language"
    DEVICE = "device"


def draw(choices: Sequence[RunChoice], runs: Mapping[str, RunResult], states: Mapping[str, RunState]) -> str | None:
    """Sentences, pairs, figures and every run; the run opened just now, if any."""
    by = GroupBy(
        st.segmented_control(
            "Group by", list(GroupBy), default=GroupBy.STRATEGY, required=True, key="summary_by", bind="query-params"
        )
        or GroupBy.STRATEGY
    )
    whole = results_of(choices, runs, states, by)
    results = decided(whole)
    with st.container():  # always there: what comes and goes in it must not move the rest
        _warn(whole, results)
    for sentence in tables.headline(results):
        arm, _, rest = sentence.partition(":")
        st.markdown(f"- **{wording.plain(arm)}**:{wording.plain(rest)}")
    benchmark_charts.draw_pairs(results)
    text_tables.draw(tables.paired_table(results), "paired_table", has_title=True)
    text_tables.draw(tables.arms_table(results), "arms_table", has_title=True)
    text_tables.draw(tables.costs_table(results), "costs_table", has_title=True)
    st.markdown("## Every run")
    opened = cells_matrix.draw(whole)
    st.caption(cells_matrix.ABOUT)
    return opened


def decided(results: Results) -> Results:
    """The results without the runs that are not over and have no correct kernel yet: they are no failures so far."""
    return replace(results, cells=tuple(result for result in results.cells if _is_decided(result)))


def _is_decided(result: CellResult) -> bool:
    return result.speedup is not None or result.standing.state in (
        CellState.FINISHED,
        CellState.STOPPED,
        CellState.FAILED,
    )


def _warn(whole: Results, results: Results) -> None:
    """Tell of runs that are not counted, and of settings that differ among runs averaged as repeats."""
    if left := sum(result.standing.run_id is not None and not _is_decided(result) for result in whole.cells):
        st.caption(f"{wording.counted(left, 'unfinished run')} without a correct kernel yet, not counted.")
    repeats: dict[tuple[str, str], list[str]] = {}
    for result in results.cells:
        repeats.setdefault((result.cell.task, result.cell.arm), []).append(result.standing.run_id or "")
    labels = dict.fromkeys(row[0] for run_ids in repeats.values() for row in settings_list.differing(run_ids))
    if labels:
        st.warning(
            "**Different settings in one group.** Runs of one task in a group are averaged as repeats, but differ in: "
            f"{wording.plain(wording.cut(', '.join(labels), 300))}.",
            icon=":material/warning:",
        )


def results_of(
    choices: Sequence[RunChoice], runs: Mapping[str, RunResult], states: Mapping[str, RunState], by: GroupBy
) -> Results:
    """Runs of one task in one group are its repeats, oldest first; the group with most runs is the baseline."""
    cells: dict[Cell, CellStanding] = {}
    seen: Counter[tuple[str, str]] = Counter()
    for choice in sorted(choices, key=lambda choice: choice.created_at):
        if run := runs.get(choice.run_id):
            group = str(getattr(run, by)) or wording.UNKNOWN
            seen[choice.task_name, group] += 1
            cell = Cell(choice.task_name, group, seen[choice.task_name, group])
            state = STATES.get(states.get(choice.run_id, RunState.LOST), CellState.RUNNING)
            cells[cell] = CellStanding(cell, choice.run_id, state)
    groups = Counter(cell.arm for cell in cells).most_common()
    tasks = tuple(SuiteTask(task, task) for task in dict.fromkeys(cell.task for cell in cells))
    defined = Defined(
        "chosen runs", tasks, tuple(Arm(name) for name, _ in groups), max(seen.values(), default=1),
        baseline_arm=groups[0][0] if groups else "",
    )  # fmt: skip
    return summary.gather(Suite(defined, cells), runs, is_partial=True)
