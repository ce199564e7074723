"""Two kernels head to head: what differs in their sources, and what a re-measurement says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st

from pages.parts import index, texts, wording
from pages.parts.compare import remeasure_panel
from pages.parts.compare.compared_runs import Compared
from pages.parts.widgets import diff
from storage import queries
from storage.queries import TimedRow

OFFERED = 300


@dataclass(frozen=True, slots=True)
class Choice:
    """A correct and timed kernel of one of the runs."""

    run: Compared
    row: TimedRow

    @property
    def choice_id(self) -> str:
        """Run and kernel. Trap: a widget hands back the object of an earlier draw, so choices go by this text."""
        return f"{self.row.run_id}#{self.row.candidate_id}"

    @property
    def name(self) -> str:
        """One line for one kernel."""
        best = " (best)" if self.row.candidate_id == self.run.run.best_candidate_id else ""
        outcome = wording.speedup(self.row.speedup, self.row.noise)
        return f"{self.run.letter} · kernel {self.row.number}{best} · depth {self.row.depth} · {outcome}"


def draw(runs: Sequence[Compared]) -> None:
    """Choose two kernels, then look at their difference."""
    st.markdown("## Compare two kernels")
    offered = choices(runs)
    if len(offered) < 2:
        st.caption("Needs two correct and timed kernels.")
        return
    by_id = {choice.choice_id: choice for choice in offered}
    left, right = st.columns(2)
    chosen = left.selectbox("Kernel", list(by_id), format_func=lambda name: by_id[name].name, key="compare_first")
    first = by_id[str(chosen)]
    others = [choice for choice in offered if choice.choice_id != first.choice_id]
    other = right.selectbox(
        "Against", [choice.choice_id for choice in others], index=_start(others, first),
        format_func=lambda name: by_id[name].name, key=f"compare_second:{first.choice_id}",
    )  # fmt: skip
    second = by_id[str(other)]
    hidden = sum(len(run.timed) for run in runs) - len(offered)
    if hidden:
        st.caption(f"Listed: the {OFFERED} fastest kernels of each run; {hidden:,} slower ones are not listed.")
    _difference(first, second)
    same_task = first.run.run.task_name == second.run.run.task_name
    remeasure_panel.draw(first.row, second.row, same_task)


def choices(runs: Sequence[Compared]) -> list[Choice]:
    """What can be chosen: the best of each run first, then the others by run."""
    found = [Choice(run, row) for run in runs for row in sorted(run.timed, key=lambda r: -r.speedup)[:OFFERED]]
    return sorted(found, key=lambda c: c.row.candidate_id != c.run.run.best_candidate_id)


def _start(others: Sequence[Choice], first: Choice) -> int:
    """The best of another run of the same task, else whatever is next."""
    same = [c.run.run.task_name == first.run.run.task_name and c.run is not first.run for c in others]
    return same.index(True) if True in same else 0


def _difference(first: Choice, second: Choice) -> None:
    box = st.expander("Source diff", key="compare_diff", on_change="rerun")
    if not box.open:
        return
    with box:
        old, new = _source(first), _source(second)
        key = f"compare_diff:{first.row.run_id}:{first.row.candidate_id}:{second.row.run_id}:{second.row.candidate_id}"
        diff.draw(old, new, (first.name, second.name), key=key)


def _source(choice: Choice) -> str:
    found = queries.candidate(index.current(), choice.row.run_id, choice.row.candidate_id)
    return texts.source(choice.row.run_id, found.source_blob if found else None)
