"""Several runs side by side: one chart over depth, calls, time, tokens or money, one table, two kernels head to head.
More than twelve are summarised in groups. Which runs they are stands in the address as `?runs=a,b,c`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import streamlit as st

from engine.evaluator import languages
from pages.parts import change_token, index, run_state, wording
from pages.parts.benchmark import chosen_runs
from pages.parts.compare import compare_chart, compare_kernels, compare_table, compared_runs
from pages.parts.compare.compared_runs import AT_MOST, MOST, Compared
from pages.parts.report.report_comparison import comparison_report
from pages.parts.status import now
from storage.index import queries
from storage.index.queries import RunChoice
from storage.index.queries.suites import run_results

KEY = "compared_runs"
OFFERED_TASKS = 8


@st.fragment
def live(run_ids: list[str]) -> None:
    """Everything below the choice; drawn again when one of these runs has news."""
    token = change_token.of(run_ids, is_overview=False, has_measurements=True)
    now.watch(run_ids, is_overview=False, token=token, has_measurements=True)
    runs = compared_runs.gather(index.current(), run_ids)
    if not runs:
        return
    if told := compare_kernels.told_of_runs(runs):
        st.info(told, icon=":material/balance:")
    for sentence in compared_runs.warnings(runs):
        st.warning(sentence, icon=":material/warning:")
    clicked = compare_chart.draw(runs)
    opened = compare_table.draw(runs)
    compare_table.draw_tries(runs)
    compare_table.draw_settings(runs)
    offer_report(runs)
    compare_chart.draw_exposure(runs)
    compare_chart.draw_tasks(runs)
    compare_chart.draw_languages(runs)
    compare_kernels.draw(runs)
    if clicked:
        run_id, _, candidate_id = clicked.partition("#")
        st.switch_page("candidate.py", query_params={"run": run_id, "candidate": candidate_id})
    if opened:
        st.switch_page("run.py", query_params={"run": opened})


@st.fragment
def summarise(run_ids: list[str], choices: Sequence[RunChoice]) -> None:
    """More runs than can be drawn side by side, in groups."""
    now.watch([], is_overview=True, token=change_token.of([], is_overview=True))
    st.caption(
        f"More than {AT_MOST} runs: a summary by groups, unfinished runs as far as they are. Choose {AT_MOST} "
        "or fewer to see their curves."
    )
    chosen, db = set(run_ids), index.current()
    states = {run.run_id: run_state.shown_state(run) for run in queries.of_ids(db, run_ids)}
    opened = chosen_runs.draw(
        [choice for choice in choices if choice.run_id in chosen], run_results(db, run_ids), states
    )
    if opened:
        st.switch_page("run.py", query_params={"run": opened})


def choose(choices: Sequence[RunChoice]) -> list[str]:
    """The choice; says so when there is nothing to choose, and which runs of the address are not here."""
    by_id = {choice.run_id: choice for choice in choices}
    names = Counter(choice.name for choice in choices)
    asked = [name for name in st.query_params.get("runs", "").split(",") if name]
    if KEY not in st.session_state:
        st.session_state[KEY] = [name for name in dict.fromkeys(asked) if name in by_id][:MOST]
    if not by_id:
        st.info("No runs yet, so nothing to compare.", icon=":material/monitoring:")
        return []
    chosen = st.multiselect(
        "Runs to compare", list(by_id), key=KEY,
        format_func=lambda name: label(by_id[name], names[by_id[name].name] > 1) if name in by_id else name,
        max_selections=MOST, select_all=False, placeholder="Search by name or task; a run without a name also by model",
    )  # fmt: skip
    for name in [name for name in asked if name not in by_id][:3]:
        st.warning(f"Run {wording.plain(wording.cut(name, 80))} not found.", icon=":material/search_off:")
    if chosen != asked:
        _keep(chosen)
    if not chosen:
        st.info(
            f"Choose 2 to {AT_MOST} runs to see them side by side, or more for a summary by groups.",
            icon=":material/stacked_line_chart:",
        )
        _offer_tasks(choices)
    elif len(chosen) == 1:
        st.caption("Choose another run to compare with.")
    return list(chosen)


def _offer_tasks(choices: Sequence[RunChoice]) -> None:
    """A button for each task that has several runs: what is compared most."""
    several = compared_runs.offered(choices)
    if not several:
        return
    st.markdown("## Runs of one task")
    with st.container(horizontal=True, gap="small"):
        for name, offer in list(several.items())[:OFFERED_TASKS]:
            where = f" on {offer.device}" if offer.device else ""
            words = f"{wording.plain(wording.task(name))}: newest {len(offer.run_ids)} runs{wording.plain(where)}"
            st.button(words, key=f"offered:{name}", on_click=_choose, args=(offer.run_ids,))


def _choose(runs: Sequence[str]) -> None:
    st.session_state[KEY] = list(runs)


def label(choice: RunChoice, has_namesake: bool) -> str:
    """One line by which a run can be searched: its name, with its task where the name does not say it; of a run without
    a name all that tells it from others."""
    title = wording.task(choice.task_name)
    if choice.name:
        told = [choice.name, "" if title.lower() in choice.name.lower() else title]
        return " · ".join(word for word in (*told, choice.run_id[-16:] if has_namesake else "") if word)
    where = f"{languages.label(choice.language)} · {choice.toolchain}"
    model = wording.model(choice.model, choice.is_example)
    return f"{title} · {model} · {where} · {wording.moment(choice.created_at)} · {choice.run_id[-16:]}"


def _keep(chosen: Sequence[str]) -> None:
    if chosen:
        st.query_params["runs"] = ",".join(chosen)
    elif "runs" in st.query_params:
        del st.query_params["runs"]


def offer_report(runs: Sequence[Compared]) -> None:
    """A button that makes and downloads the file."""
    st.download_button(
        "Download report", lambda: comparison_report(runs), file_name="comparison.html", mime="text/html",
        icon=":material/description:", key="comparison_report", on_click="ignore",
        help="this comparison as one HTML file that opens without a server",
    )  # fmt: skip


st.title("Compare", anchor=False)
offered = queries.comparable_runs(index.current())
asked_for = choose(offered)
if len(asked_for) > AT_MOST:
    summarise(asked_for, offered)
else:
    live(asked_for)
