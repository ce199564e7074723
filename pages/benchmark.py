"""Suites: the list, a new one, and what one of them says: which arm, how much, how sure, at what cost. `?suite=` names
one, `?new=` what a new one begins with."""

from __future__ import annotations

import functools
import time
from dataclasses import replace

import streamlit as st

from engine.suites import exporting, formats, tables
from pages.parts import access, change_token, index, run_state, suite_folders, wording
from pages.parts.benchmark import benchmark_charts, cells_matrix, suite_acts, suite_form, suites_list, text_tables
from pages.parts.status import address, now, waiting_strip
from pages.parts.steering import dialogs, steer
from pages.parts.suite_folders import WATCHED
from storage.index.queries.suites import run_results
from storage.suites import files, summary
from storage.suites.files import SuiteError
from storage.suites.records import Purpose
from storage.suites.standing import Suite, as_left
from storage.suites.summary import Results

SUMMARY, RUNS, CURVES, TIMELINE, SCORECARD, PAPER, KERNELBENCH = (
    "summary", "runs", "curves", "timeline", "scorecard", "paper's table", "KernelBench's terms",
)  # fmt: skip


OWN = "as the suite has it"
OWN_HELP = (
    f"; {OWN}: with the baseline arm, and one that differs from another in its knowledge base alone with that one"
)


@st.fragment
def live(name: str) -> None:
    """The page; drawn again when a suite has news."""
    dialogs.sweep()
    watched = [f"{WATCHED}{name}"]
    now.watch(watched, is_overview=False, token=change_token.of(watched, is_overview=False))
    opened = draw_suite(name) if name else suites_list.draw()
    if opened and name:
        st.switch_page("run.py", query_params={"run": opened})
    if opened:
        follow(opened)
    steer.give_word_back()


def follow(opened: str) -> None:
    """Go where a click in the lists leads."""
    if opened.startswith(suites_list.START):
        suite_acts.ask_start(opened.removeprefix(suites_list.START))
        st.rerun()
    if opened.startswith(suites_list.COPY):
        st.switch_page("benchmark.py", query_params={"new": opened.removeprefix(suites_list.COPY)})
    st.switch_page("benchmark.py", query_params={"suite": opened})


def draw_suite(name: str) -> str | None:
    """One suite; the run opened just now, if any."""
    try:
        folder = files.find(name)
        suite = suite_folders.read(folder)
    except SuiteError as error:
        st.warning(wording.sentence(str(error)), icon=":material/search_off:")
        return None
    if suite is None:
        st.info("The suite's journal does not say yet what it is.", icon=":material/hourglass_top:")
        return None
    run_ids = [planned.run_id for planned in suite.planned if planned.run_id]
    head, acts = st.container(), st.container()
    tools = st.container(horizontal=True, vertical_alignment="bottom")
    with tools:
        suite, is_partial, only_clean = choose(suite if folder.has_runner else as_left(suite, run_state.has_engine))
    runs = run_results(index.current(), run_ids)
    results = summary.gather(suite, runs, is_partial, only_clean)
    with head:
        draw_head(results, folder.has_runner)
    with acts:  # always there: what comes and goes in it must not move the rest
        suite_acts.draw(folder, suite)
    with tools:
        offer_files(results)
    paper = [PAPER] if tables.paper_table(results) else []
    views = [SUMMARY, RUNS, CURVES, TIMELINE, SCORECARD, *paper, KERNELBENCH]
    first = RUNS if suite.defined.checks is Purpose.WORKS else SUMMARY
    view = st.segmented_control(
        "Show", views, default=first, required=True, key="show_suite", bind="query-params",
        label_visibility="collapsed",
    )  # fmt: skip
    if view == TIMELINE:
        waiting_strip.draw_runs(run_ids, time.time())
        return None
    return draw_view(results, str(view))


def draw_head(results: Results, has_runner: bool) -> None:
    """What it is, how far it is, and what it says in sentences."""
    suite = results.suite
    state = suite.state(has_runner)
    spent = suite.spent
    if suite.defined.about:
        st.caption(wording.plain(suite.defined.about))
    devices = ", ".join(map(wording.plain, results.devices)) or "nothing measured yet"
    is_unrecorded = any(cell.result is not None and cell.result.is_unrecorded for cell in results.cells)
    is_told = spent.cost_usd or not is_unrecorded
    price = f"{suite_folders.cost(suite)} for replies" if is_told else wording.NOTHING_RECORDED
    is_first = has_runner and results.engine_s < 1  # time is told when a step ends
    used = "its first step at work" if is_first else f"{wording.seconds(results.engine_s)} of engine time spent"
    used = f"{price}, {used}" if spent.model_calls else used
    example = ["an example, made on another machine"] if suite.defined.is_example else []
    st.markdown(" · ".join([f"**{state}**", *example, tables.progress_with_size(suite), used, devices]))
    if suite.is_left_behind:  # it was killed, or its machine was switched off
        st.caption("No runner is at work on it. *Continue* goes on with it, as this does from a terminal:")
        with st.container(key="resume_command"):
            st.code(suite_acts.command(["resume", suite.defined.name]), language=None, wrap_lines=True)
    for sentence in tables.headline(results):
        arm, _, rest = sentence.partition(":")
        st.markdown(f"- **{wording.plain(arm)}**:{wording.plain(rest)}")


def choose(suite: Suite) -> tuple[Suite, bool, bool]:
    """The suite with the baseline arm that a person wants; whether unfinished runs count; whether only kernels that a
    person has marked clean do."""
    arms = [arm.name for arm in suite.defined.arms]
    if len(arms) > 1:
        usual = suite.defined.baseline_arm if suite.defined.baseline_arm in arms else arms[0]
        twins = [arm for arm in arms if suite.baseline_of(arm) not in (usual, arm)]
        # Where an arm has a twin of its own, that all others have one arm is a choice beside it.
        offered = [OWN, *arms] if twins else arms
        chosen = st.selectbox(
            "Compare with", offered, index=0 if twins else arms.index(usual), key="baseline_arm", width=220,
            bind="query-params", help=f"the arm that the others are compared with{OWN_HELP if twins else ''}",
        )  # fmt: skip
        arm = str(chosen) if chosen in arms else usual
        defined = replace(suite.defined, baseline_arm=arm)
        suite = replace(suite, defined=defined, compared_with="" if twins and chosen != arm else arm)
    is_partial = st.toggle(
        "Unfinished runs too", key="is_partial", help="count runs that have not ended, as far as they are"
    )
    only_clean = st.toggle(
        "Only marked clean", key="only_clean", bind="query-params",
        help="A run counts as solved only where a person has read its best kernel and marked it clean.",
    )  # fmt: skip
    return suite, bool(is_partial), bool(only_clean)


def offer_files(results: Results) -> None:
    """What stands here as files."""
    with st.popover("Export", icon=":material/download:", width="content"):
        for form, ending in exporting.ENDINGS.items():
            st.download_button(
                form, functools.partial(exporting.exported, results, form), key=f"export_{form}",
                file_name=f"{results.suite.defined.name}.{ending}", on_click="ignore", width="stretch",
                help="one file that opens without a server" if form == "html" else None,
            )  # fmt: skip


def draw_view(results: Results, view: str) -> str | None:
    """One view; the run opened just now, if any."""
    if view == RUNS:
        opened = cells_matrix.draw(results)
        st.caption(cells_matrix.about(results))
        text_tables.draw(tables.headroom_table(results), "headroom_table", has_title=True)
        return opened
    if view == CURVES:
        kernel_class, (results, on_which) = choose_class(results), tables.compared(results)
        if on_which:
            st.caption(on_which.strip())
        benchmark_charts.draw_fast(results, kernel_class)
        st.markdown("## Over what was spent")
        benchmark_charts.draw_curve(results, kernel_class)
    elif view == SCORECARD:
        text_tables.draw(tables.scorecard(results), "scorecard")
        text_tables.draw(tables.portability_table(results), "portability_table", has_title=True)
    elif view == PAPER:
        if paper := tables.paper_table(results):
            text_tables.draw(paper, "paper_table")
    elif view == KERNELBENCH:
        text_tables.draw(tables.kernelbench_fast(results), "kernelbench_fast", has_title=True)
        text_tables.draw(tables.kernelbench_table(results), "kernelbench_table", has_title=True)
    else:
        benchmark_charts.draw_pairs(results)
        text_tables.draw(tables.paired_table(results), "paired_table", has_title=True)
        text_tables.draw(tables.arms_table(results), "arms_table", has_title=True)
        if results.counted:
            st.markdown("## How often it works, and at what cost")
            text_tables.draw(tables.costs_table(results, choose_class(results)), "costs_table")
        text_tables.draw(tables.reaching_table(results), "reaching_table", has_title=True)
    if view != CURVES and not results.counted:
        st.info("No run has ended yet; figures appear with the first one.", icon=":material/hourglass_empty:")
    return None


def choose_class(results: Results) -> str:
    """The kernel class that charts are of, empty for all."""
    if len(results.classes) < 2:
        return summary.ALL
    return str(
        st.selectbox(
            "Kernel class", [summary.ALL, *results.classes], key="suite_class", width=220, bind="query-params",
            format_func=lambda kernel_class: formats.name(kernel_class) or "all",
        ) or summary.ALL
    )  # fmt: skip


def head(suite: str, new: str) -> None:
    """The title with the way back, or to a new suite."""
    with st.container(horizontal=True, vertical_alignment="center", key="title_row"):
        st.title(wording.plain(suite) or ("New suite" if new else "Benchmark"), anchor=False, width="content")
        if suite or new:
            st.page_link("benchmark.py", label="All suites", icon=":material/arrow_back:", width="content")
        elif access.may_steer():
            st.space("stretch")
            st.page_link(
                "benchmark.py", label="New suite", icon=":material/add:", query_params={"new": suite_form.FRESH},
                width="content",
            )  # fmt: skip


asked = st.query_params.get("suite", "")
asked_new = st.query_params.get("new", "") if access.may_steer() and not asked else ""
address.confirm("benchmark", f"{asked} {asked_new}")
head(asked, asked_new)
if asked_new:
    suite_form.draw(asked_new)
else:
    live(asked)
suite_acts.draw_dialog()
