"""Two kernels head to head: which is faster and how sure that is, what differs in their sources, and the two timed
again on this machine: the button, what came of it while it works and afterwards, and what it found beside what the runs
had said."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st

from engine import supervisor
from engine.errors import EngineError
from pages.parts import access, index, texts, timed_anew, wording
from pages.parts.compare.compared_runs import Compared, differences
from pages.parts.timed_anew import Timed
from pages.parts.widgets import diff, table
from storage.index import queries
from storage.index.queries import TimedRow
from storage.results import relative
from storage.run import remeasurements
from storage.run.remeasurements import KernelName, Ratio, Remeasurement, RemeasureRequest, RemeasureState

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
    def short_name(self) -> str:
        """Its number and its run."""
        return f"kernel {self.row.number} of run {self.run.letter}"

    @property
    def name(self) -> str:
        """One line for one kernel."""
        best = " (best)" if self.row.candidate_id == self.run.run.best_candidate_id else ""
        outcome = wording.ratio(self.row)
        return (
            f"{self.run.letter} · kernel {self.row.number}{best} · {self.run.words.step} {self.row.depth} · {outcome}"
        )


def told_of_runs(runs: Sequence[Compared]) -> str:
    """Which of the runs has the fastest kernel, by how much and how sure that is, or why nobody can tell; as Markdown.
    Of more than two the best two are compared. Empty for a single run."""
    if len(runs) < 2:
        return ""
    if several := differences(runs):
        return _no_verdict(several)
    best = [Choice(run, row) for run in runs for row in run.timed if row.candidate_id == run.run.best_candidate_id]
    if without := [run.letter for run in runs if run.letter not in {choice.run.letter for choice in best}]:
        has = "has" if len(without) == 1 else "have"
        return f"**No verdict**: {' and '.join(without)} {has} no correct kernel with a timing that counts."
    first, second = sorted(best, key=lambda choice: -choice.row.speedup)[:2]
    others = "" if len(runs) == 2 else f" The best two of {len(runs)} runs."
    return told(first, second) + others


def told(first: Choice, second: Choice) -> str:
    """Which of two kernels is faster, by how much and how sure that is, or why nobody can tell; as Markdown. Where they
    were timed again in turn that counts, else what their runs measured."""
    if again := _timed_again(first, second) or _timed_again(second, first):
        return f"**Timed again in turn**: {again}"
    if several := differences([first.run, second.run]):
        return _no_verdict(several)
    this, other = sorted((first, second), key=lambda choice: -choice.row.speedup)
    is_one_run = this.row.run_id == other.row.run_id
    if is_one_run:  # as the run's own pages tell it
        this, other = sorted((first, second), key=lambda choice: -choice.row.number)
    ratio = relative.gain(this.row, other.row, is_on_gpu=is_one_run and this.run.run.is_on_gpu)
    if ratio is None:
        return _no_verdict(["what was timed"])
    figure = wording.measured(ratio.speedup, ratio.noise, ratio.low, ratio.high)
    name, by = wording.capital(this.short_name), "by their speed-ups over eager PyTorch, each timed in its own session"
    if ratio.is_faster or ratio.is_slower:
        way = "faster" if ratio.is_faster else "slower"
        return f"**{name} is {way}**: {figure} as fast as {other.short_name}, {by}."
    return f"**No significant difference**: {this.short_name} is {figure} as fast as {other.short_name}, {by}."


def _no_verdict(several: Sequence[str]) -> str:
    return f"**No verdict**: the runs differ in {' and '.join(several)}, so their speed-ups do not compare."


def _timed_again(first: Choice, second: Choice) -> str:
    """What the newest sound measurement of both in turn, in this order, came to; empty where there is none."""
    for done in remeasurements.concerning({first.row.run_id, second.row.run_id}):
        ratio, asked = done.progress.ratio, (done.request.first, done.request.second)
        is_of_them = [(kernel.run_id, kernel.candidate_id) for kernel in asked] == [
            (choice.row.run_id, choice.row.candidate_id) for choice in (first, second)
        ]
        if is_of_them and ratio and ratio.is_sound and done.progress.state is RemeasureState.DONE:
            return verdict(*asked, ratio, (first.short_name, second.short_name))
    return ""


def draw(runs: Sequence[Compared]) -> None:
    """Choose two kernels, then look at their difference."""
    st.markdown("## Compare two kernels")
    offered = choices(runs)
    if len(offered) < 2:
        st.caption("Needs two correct and timed kernels.")
        return
    by_id = {choice.choice_id: choice for choice in offered}
    compared = dict.fromkeys(choice.row.run_id for choice in offered)  # a run that is added brings a better one
    left, right = st.columns(2)
    chosen = left.selectbox("Kernel", list(by_id), format_func=lambda name: by_id[name].name, key="compare_first")
    first = by_id[str(chosen)]
    others = [choice for choice in offered if choice.choice_id != first.choice_id]
    other = right.selectbox(
        "Against", [choice.choice_id for choice in others], index=_start(others, first),
        format_func=lambda name: by_id[name].name, key=f"compare_second:{first.choice_id}:{' '.join(compared)}",
    )  # fmt: skip
    second = by_id[str(other)]
    hidden = sum(len(run.timed) for run in runs) - len(offered)
    if hidden:
        st.caption(f"Listed: the {OFFERED} fastest kernels of each run; {hidden:,} slower ones are not listed.")
    st.markdown(told(first, second))
    _difference(first, second)
    draw_remeasurement(first, second)


def choices(runs: Sequence[Compared]) -> list[Choice]:
    """What can be chosen: the best of each run first, then the others by run."""
    offered = [Choice(run, row) for run in runs for row in sorted(run.timed, key=lambda r: -r.speedup)[:OFFERED]]
    return sorted(offered, key=lambda c: c.row.candidate_id != c.run.run.best_candidate_id)


def _start(others: Sequence[Choice], first: Choice) -> int:
    """The best of another run of the same task, else whatever is next."""
    same = [c.run.run.task_name == first.run.run.task_name and c.run is not first.run for c in others]
    return same.index(True) if True in same else 0


def _difference(first: Choice, second: Choice) -> None:
    box = st.expander("Source diff", key="compare_diff", on_change="rerun")
    if not box.open:
        return
    with box:
        pair = [
            queries.candidate(index.current(), choice.row.run_id, choice.row.candidate_id) for choice in (first, second)
        ]
        old, new = (texts.source(row.run_id, candidate.source_blob if candidate else None)
                    for row, candidate in zip((first.row, second.row), pair, strict=True))  # fmt: skip
        counts = texts.counts(pair[0], pair[1]) if pair[0] and pair[1] else None
        key = f"compare_diff:{first.row.run_id}:{first.row.candidate_id}:{second.row.run_id}:{second.row.candidate_id}"
        diff.draw(old, new, (first.name, second.name), key=key, counts=counts)


SHOWN = 10
COLUMNS = [
    table.Column("round", "Round", "right"),
    table.Column("first", "First", "right", "speed-up over eager, and the median latency of its session"),
    table.Column("second", "Second", "right", "speed-up over eager, and the median latency of its session"),
    table.Column("ratio", "First over second", "right"),
]
TONE: dict[RemeasureState, wording.Tone] = {
    RemeasureState.STARTING: "blue",
    RemeasureState.BUILDING: "blue",
    RemeasureState.WAITING: "orange",
    RemeasureState.MEASURING: "blue",
    RemeasureState.DONE: "green",
    RemeasureState.FAILED: "red",
    RemeasureState.LOST: "violet",
}
ICON = {
    RemeasureState.STARTING: ":material/progress_activity:",
    RemeasureState.BUILDING: ":material/build:",
    RemeasureState.WAITING: ":material/schedule:",
    RemeasureState.MEASURING: ":material/timer:",
    RemeasureState.DONE: ":material/check:",
    RemeasureState.FAILED: ":material/close:",
    RemeasureState.LOST: ":material/warning:",
}


def why_not_again(first: Choice, second: Choice) -> str:
    """Why these two kernels cannot be timed again by this server; empty where they can."""
    if not access.may_steer():
        return "this server is read-only and starts nothing"
    if first.run.run.task_name != second.run.run.task_name:
        return "these kernels belong to different tasks and have no common baseline"
    toolchain = first.run.run.toolchain
    lacks = supervisor.available_toolchains().get(toolchain, "")
    return f"toolchain {toolchain} not available: {lacks}" if lacks else ""


def draw_remeasurement(first: Choice, second: Choice) -> None:
    """The button for these two kernels, and every re-measurement of kernels of these runs."""
    why = why_not_again(first, second)
    if st.button(
        "Time both again on this machine", icon=":material/timer:", key="remeasure", disabled=bool(why),
        help=why or "times both in turn against the same baseline; continues when this page is closed",
    ):  # fmt: skip
        _start_remeasurement(first.row, second.row)
    for remeasurement in remeasurements.concerning({first.row.run_id, second.row.run_id})[:SHOWN]:
        _result(remeasurement)


def _result(remeasurement: Remeasurement) -> None:
    request, state = remeasurement.request, remeasurement.progress.state
    names = names_of(request)
    with st.container(border=True, key=f"remeasured-{request.remeasure_id}"):
        with st.container(horizontal=True, vertical_alignment="center"):
            st.badge(str(state), icon=ICON[state], color=TONE[state])
            st.caption(
                f"{wording.plain(names[0])} against {wording.plain(names[1])} · asked by "
                f"{wording.plain(request.asked_by)} · {wording.moment(request.asked_at)}",
                width="content",
            )
        st.markdown(wording.plain(sentence(remeasurement, names)))
        if not state.is_finished:
            st.progress(len(remeasurement.progress.rounds) / request.rounds, text="rounds completed")
            if access.may_steer() and st.button("Stop measuring", key=f"stop-{request.remeasure_id}"):
                supervisor.stop_remeasuring(request.remeasure_id)
        elif remeasurement.progress.rounds:
            box = st.expander("Every round", key=f"rounds-{request.remeasure_id}", on_change="rerun")
            if box.open:
                with box:
                    _rounds(remeasurement)


def _rounds(remeasurement: Remeasurement) -> None:
    rows = [
        table.Row(
            f"{number}",
            {
                "round": f"{number}",
                "first": table.text(wording.speedup(timing.first_speedup), note=wording.latency(timing.first_ms)),
                "second": table.text(wording.speedup(timing.second_speedup), note=wording.latency(timing.second_ms)),
                "ratio": table.text(wording.speedup(timing.ratio), "strong"),
            },
        )
        for number, timing in enumerate(remeasurement.progress.rounds, 1)
    ]
    key = f"rounds-table-{remeasurement.request.remeasure_id}"
    table.draw("Rounds of this re-measurement", COLUMNS, rows, key=key, is_compact=True)
    st.caption(
        "Each round times both kernels against eager PyTorch in separate sessions, in turn. The result above is the "
        "median over rounds, from six rounds on with a 95 % confidence interval."
    )
    for number, timing in enumerate(remeasurement.progress.rounds, 1):
        pair = [
            Timed("the first", timing.first_speedup, timing.first_ms),
            Timed("the second", timing.second_speedup, timing.second_ms),
        ]
        if anew := timed_anew.sentence(pair):
            st.caption(f"Round {number}: {anew[:1].lower()}{anew[1:]}")
            break


def _start_remeasurement(first: TimedRow, second: TimedRow) -> None:
    try:
        with st.spinner("Starting the measurement"):
            supervisor.remeasure((first.run_id, first.candidate_id), (second.run_id, second.candidate_id))
    except (EngineError, FileNotFoundError) as error:
        st.error(wording.sentence(str(error)), icon=":material/error:")


def names_of(request: RemeasureRequest) -> tuple[str, str]:
    """What the two kernels are called: with their runs, and by these runs' ids where both have one name."""
    runs = request.first.run_id, request.second.run_id
    titles = queries.titles(index.current(), set(runs))
    called = [titles.get(run_id, run_id) for run_id in runs]
    if runs[0] != runs[1] and called[0] == called[1]:
        called = [f"{name} ({run_id})" for name, run_id in zip(called, runs, strict=True)]
    first, second = f"kernel {request.first.number}", f"kernel {request.second.number}"
    return (f"{first} of {called[0]}", f"{second} of {called[1]}") if runs[0] != runs[1] else (first, second)


def sentence(remeasurement: Remeasurement, names: tuple[str, str]) -> str:
    """What is known, in one sentence or two."""
    request, progress = remeasurement.request, remeasurement.progress
    ratio = progress.ratio
    match progress.state:
        case RemeasureState.DONE if ratio:
            return verdict(request.first, request.second, ratio, names)
        case RemeasureState.FAILED:
            return f"Measurement failed: {wording.cut(progress.message, 400)}"
        case RemeasureState.LOST:
            return "The measurement was interrupted. " + _so_far(remeasurement)
        case RemeasureState.WAITING:
            return f"Waiting for another timing to finish ({progress.message}). {_so_far(remeasurement)}"
        case _:
            return f"{wording.capital(progress.message)}. {_so_far(remeasurement)}"


def verdict(first: KernelName, second: KernelName, ratio: Ratio, names: tuple[str, str]) -> str:
    """Which is faster and by how much, beside what the runs had said."""
    in_runs = wording.speedup(first.speedup / second.speedup)
    name, other = names
    band = f"{wording.speedup(ratio.value)} ({wording.interval(ratio.low, ratio.high)})"
    if not ratio.is_sound:
        rounds = "1 round" if ratio.rounds == 1 else f"{ratio.rounds} rounds"
        value = wording.speedup(ratio.value)
        doubt = f"{wording.capital(name)} is {value} as fast as {other} in {rounds}, too few to rule out noise"
        return f"{doubt}; in their runs it was {in_runs}."
    if not ratio.is_difference:
        return f"No significant difference: {name} is {band} as fast as {other}; in their runs it was {in_runs}."
    return f"{wording.capital(name)} is {band} as fast as {other}; in their runs it was {in_runs}."


def _so_far(remeasurement: Remeasurement) -> str:
    done, ratio = len(remeasurement.progress.rounds), remeasurement.progress.ratio
    if ratio is None:
        return f"0 of {remeasurement.request.rounds} rounds completed."
    return f"{done} of {remeasurement.request.rounds} rounds completed, {wording.speedup(ratio.value)} so far."
