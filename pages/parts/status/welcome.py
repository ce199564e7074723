"""The first visit: it begins with the film of a run and goes on with the demo, which says what is to be seen and what
to do next. Once dismissed that stays away in that browser; whoever has a run of their own has no need of it. A later
visit begins with the list of runs, where the demo is a row like any other."""

from __future__ import annotations

import streamlit as st

from engine import supervisor
from engine.errors import EngineError
from pages.parts import access, client, index, wording
from storage.index import queries
from storage.index.queries import RunRow
from storage.run.settings import RunState
from storage.suites import files

TABLE = "table2_h200"
COOKIE = "tilewright-welcome"
SEEN_COOKIE = "tilewright-demo-seen"
_DISMISSED, _STAYS = "welcome_dismissed", "stays_with_list"
WHAT = "Live, on this machine's processor: kernels for a matrix product are written, compiled, checked and timed."
_SEEN = (
    ("A model writes", "one change at a time; you see its reply arrive. In this demo the replies are recorded."),
    (
        "Tilewright proves and times",
        "each point of the curve is one kernel, really built and measured here; higher is faster than PyTorch.",
    ),
)
_STEER = ("You steer", "pause, stop, send a hint, or go back to an earlier kernel, at any moment.")
_ONLY_SHOWN = (
    "People steer",
    "pause, stop, send a hint, or go back to an earlier kernel, at any moment; on this read-only server you watch.",
)

NONE_CORRECT = "The run found no correct kernel; the list of kernels says why each failed. "
UNTIMED = "The run found a correct kernel, but no timing that counts; the kernel's tab Trust says why. "

# As high before its program is loaded as after, so that the controls below keep their place.
_LISTED = "".join(f"<li><b>{title}</b>{about}</li>" for title, about in (*_SEEN, _STEER))
_welcome = st.components.v2.component(
    "tilewright_welcome",
    html=f'<section class="welcome" aria-label="Welcome"><p class="what">{WHAT}</p><ol>{_LISTED}</ol>\n'
    '<p class="next"></p><button>Dismiss</button></section>',
    css=client.read("status/welcome.css"),
    js=client.read("status/welcome.js"),
)


def is_first_visit() -> bool:
    """Whether the film comes before the list of runs: once in a browser that has not seen it, where a visit begins with
    the list."""
    if st.query_params:  # a list that was asked for; what is left out later by a click asks for the list too
        stay()
    return not (st.session_state.get(_STAYS) or was_seen() or queries.count_own_runs(index.current()))


def stay() -> None:
    """From now on *Runs* means the list: this visit has seen another page, or asked for the list itself."""
    st.session_state[_STAYS] = True


def draw(run: RunRow, state: RunState) -> None:
    """The welcome, on the page of a demo run; once that has ended, what else there is to be seen."""
    if not run.is_demo:
        return
    if state.is_finished:
        _draw_onward(run, state)  # also for whoever has runs of their own: nothing else on its page leads there
    elif not (is_dismissed() or queries.count_own_runs(index.current())):
        _draw_welcome(run, state)


def _draw_welcome(run: RunRow, state: RunState) -> None:
    content = {"what": WHAT, "steps": steps(), "next": following(run, state), "cookie": COOKIE, "seen": SEEN_COOKIE}
    _welcome(data=content, key="welcome", on_dismissed_change=_dismiss)
    _draw_example()


def _draw_example() -> None:
    if example := queries.first_example(index.current()):
        st.page_link(
            "run.py", label="See a run from a GPU", icon=":material/school:", query_params={"run": example},
            width="content",
        )  # fmt: skip


def _draw_onward(run: RunRow, state: RunState) -> None:
    with st.container(border=True, gap="xsmall", key="onward"):
        became = "was stopped" if state is RunState.STOPPED else "has ended"
        st.markdown(f"**The demo {became}.** {following(run, state)}")
        if run.best_candidate_id:
            st.page_link(
                "candidate.py", label="Can this result be trusted? Its checks",
                icon=":material/verified_user:", width="content",
                query_params={"run": run.run_id, "candidate": run.best_candidate_id, "tab": "Trust"},
            )  # fmt: skip
        st.page_link(
            "networks.py", label="A whole network: where kernels pay in it",
            icon=":material/account_tree:", width="content",
        )  # fmt: skip
        _draw_example()
        _draw_table()


def _draw_table() -> None:
    """The way to the table of results from a GPU, which is here once its runs are opened."""
    is_here = any(folder.name == TABLE for folder in files.all_suites())
    label, icon = "Results of 26 tasks on an H200", ":material/leaderboard:"
    if is_here:
        st.page_link("benchmark.py", label=label, icon=icon, query_params={"suite": TABLE}, width="content")
    elif access.may_steer() and st.button(
        label, icon=icon, type="tertiary", key="open_table", help="opens the runs that come with Tilewright"
    ):
        try:
            runs = supervisor.open_examples()
        except (EngineError, OSError) as error:
            st.error(wording.sentence(str(error)), icon=":material/error:")
            return
        index.ingest().look_at(example.run_id for example in runs)
        st.switch_page("benchmark.py", query_params={"suite": TABLE})


def is_dismissed() -> bool:
    """Whether this browser has dismissed it, now or on an earlier visit."""
    return bool(st.session_state.get(_DISMISSED)) or COOKIE in st.context.cookies


def was_seen() -> bool:
    """Whether this browser has shown the film or the welcome on an earlier visit, dismissed or not."""
    return is_dismissed() or SEEN_COOKIE in st.context.cookies


def _dismiss() -> None:
    st.session_state[_DISMISSED] = True


def steps() -> list[tuple[str, str]]:
    """What is to be seen, and what a person can do on this server."""
    return [*_SEEN, _STEER if access.may_steer() else _ONLY_SHOWN]


def following(run: RunRow, state: RunState) -> str:
    """What to do next."""
    if state is RunState.LOST:
        act = "resume the run" if access.may_steer() else "wait until it is resumed"
        return f"Next: {act}; nothing that was measured is gone."
    if state.is_over:
        has_kernel, may_start = run.best_candidate_id is not None, access.may_steer()
        opening = "" if has_kernel else UNTIMED if run.passed else NONE_CORRECT
        acts = ["resume the run"] if state is RunState.STOPPED and may_start else []
        acts += ["download the best kernel"] if has_kernel else []
        acts += ["start a run of your own under New run"] if may_start else []
        return opening + (f"Next: {', then '.join(acts)}." if acts else "")
    if run.best_speedup is None and run.passed:
        return "Next: watch a correct kernel being timed. Its point appears on the curve once a timing counts."
    if run.best_speedup is None and run.failed:
        return "Next: watch the failed kernel being mended. It is on the curve once it is correct and timed."
    if run.best_speedup is None:
        return (
            "Next: watch the first kernel being written, compiled, checked and timed. Its point appears on the curve "
            "in about a minute."
        )
    return "Next: click a point of the curve to see that kernel: what was changed, what it gained, and its checks."
