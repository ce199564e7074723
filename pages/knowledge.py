"""What runs have learned: states and techniques with their evidence, what failed, who changed it, and a picture of it
all. What is shown stands in the address."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import streamlit as st

from engine import supervisor
from engine.errors import EngineError
from pages.parts import access, change_token, index, wording
from pages.parts.knowledge import (
    amend_dialogs,
    changes_table,
    evidence_table,
    exchange_panel,
    failure_rules,
    known_tables,
    learning_table,
    technique_graph,
)
from pages.parts.knowledge.known_tables import STATE, VIEW
from pages.parts.status import now
from pages.parts.steering import dialogs, steer
from pages.parts.steering.dialogs import Dialog
from storage.index.ingest import KNOWLEDGE
from storage.index.queries import learning
from storage.knowledge import browsing, files
from storage.knowledge.browsing import EdgeRow, KnowledgeSums
from storage.knowledge.records import Technique

TECHNIQUES, STATES, ATTEMPTS, NEGATIVE = "techniques", "states", "attempts", "did not help"
FROM_STATES, FROM_TECHNIQUES = "state to technique", "technique to technique"
RULES, PICTURE, RUNS, CHANGES = "failure rules", "picture", "runs", "changes"
ABOUT = (
    "What made kernels faster, what did not, and how failures were mended. A run whose knowledge base is on is told of "
    "it before it changes a kernel."
)
VIEWS = [TECHNIQUES, STATES, ATTEMPTS, NEGATIVE, RULES, PICTURE, RUNS, CHANGES]


@st.fragment
def live() -> None:
    """The page; drawn again when the knowledge base has news."""
    dialogs.sweep()
    now.watch([KNOWLEDGE], is_overview=False, token=change_token.of([KNOWLEDGE], is_overview=False))
    known = index.known()
    draw_sums(browsing.sums(known), len(known.rules()), learning.unnamed(index.current(), known))
    view = st.segmented_control(
        "Show", VIEWS, default=TECHNIQUES, required=True, key=VIEW, bind="query-params", label_visibility="collapsed",
        on_change=known_tables.first_part,
    )  # fmt: skip
    opened = None
    match view:
        case "states":
            if state := known_tables.draw_states():
                st.switch_page("kernel_state.py", query_params={"state": state})
        case "attempts":
            if attempt := evidence_table.draw():
                evidence_table.open_attempt(attempt)
        case "did not help":
            opened = known_tables.draw_negative()
        case "failure rules":
            if case := failure_rules.draw():
                evidence_table.open_attempt(case)
        case "picture":
            opened = draw_picture()
        case "runs":
            if run_id := learning_table.draw_runs():
                st.switch_page("learning.py", query_params={"run": run_id})
        case "changes":
            exchange_panel.draw_buttons()
            changes_table.draw()
        case _:
            if access.may_steer():
                st.button(
                    "Add a technique", icon=":material/add:", key="add_technique", on_click=dialogs.ask,
                    args=(Dialog.TECHNIQUE,),
                )  # fmt: skip
            opened = known_tables.draw_techniques()
    if opened:
        st.switch_page("technique.py", query_params={"technique": opened})
    steer.give_word_back()


def draw_sums(sums: KnowledgeSums, failures: int, unnamed: tuple[int, int]) -> None:
    """What it is for, how much is known, what is left out, and what is wrong with it. `unnamed`: changes without a
    technique, and the runs that made them."""
    st.caption(ABOUT)
    words = [
        f"{wording.counted(sums.techniques, 'technique')}, {sums.tried:,} tried"
        + (f" ({sums.disabled} off)" if sums.disabled else ""),
        wording.counted(sums.states, "state") + (f" ({sums.discovered} discovered)" if sums.discovered else ""),
        f"{wording.counted(sums.attempts, 'attempt')} of {wording.counted(sums.runs, 'run')}"
        + (f" ({sums.imported:,} imported)" if sums.imported else ""),
        wording.counted(failures, "failure rule"),
    ]
    st.markdown(" · ".join(words))
    changes, runs = unnamed
    if changes:
        are = "is" if changes == 1 else "are"
        st.caption(
            f"{wording.counted(changes, 'change')} of {wording.counted(runs, 'run')} named no technique and {are} not "
            "counted."
        )
    if not sums.attempts:
        st.caption(
            "No attempt has been kept yet. Each run, also one with its knowledge base off, adds those changes of a "
            "timed kernel whose replies name a technique. Many recorded replies name none; examples, replays and "
            "imported runs add nothing by themselves. Techniques and states are those that Tilewright is shipped with"
            + ("; failure rules are learned from runs here." if failures else ".")
        )
        if access.may_steer():
            st.button(
                "Take over what the examples show", icon=":material/school:", key="learn_examples", on_click=_learn,
                help="attempts of the runs from an H200 and an H100 that come with Tilewright, finished or stopped; "
                "their failed kernels make no failure rules",
            )  # fmt: skip
    if sums.damaged:
        lines = wording.counted(sums.damaged, "line")
        st.warning(
            f"{lines} under `{files.folder()}` cannot be read and {'is' if sums.damaged == 1 else 'are'} left out.",
            icon=":material/broken_image:",
        )


def _learn() -> None:
    try:
        steer.say(f"{wording.counted(supervisor.learn_from_examples(), 'attempt')} of the examples taken over.")
    except (EngineError, OSError) as error:
        steer.say(str(error), is_error=True)


def draw_picture() -> str | None:
    """States and techniques as a graph; the technique clicked just now, if any."""
    reckoned = index.known().reckoning()
    with st.container(horizontal=True, gap="small", vertical_alignment="bottom", key="picture_filter"):
        between = st.segmented_control(
            "Edges",
            [FROM_STATES, FROM_TECHNIQUES],
            default=FROM_STATES,
            required=True,
            key="edges",
            bind="query-params",
        )
        if between == FROM_STATES:
            state = known_tables.choice("State", STATE, list(reckoned.known.states), 260)
        else:
            rows = browsing.edges(index.known())
            before = known_tables.choice("Technique before", "before", sorted({row.source for row in rows}), 260)
        is_tried_only = st.toggle("Only what was tried", key="tried", bind="query-params")
    if between == FROM_TECHNIQUES:
        chosen = [row for row in rows if before in ("", row.source)]
        return _draw_sequences(chosen, reckoned.known.techniques, is_tried_only)
    edges = technique_graph.edges_of(reckoned, state, is_tried_only)
    if not edges:
        st.info("Nothing to draw: no technique was tried in these states.", icon=":material/hub:")
        return None
    clicked = technique_graph.draw(edges, "graph")
    st.caption(
        "Left: states. Right: techniques, blue for memory, orange for compute, violet for latency, gray for general. "
        "An edge: the technique is known for the state; the wider it is, the more attempts. Point at an edge for its "
        "figures; a click opens the technique."
    )
    return clicked


def _draw_sequences(rows: Sequence[EdgeRow], techniques: Mapping[str, Technique], is_tried_only: bool) -> str | None:
    """Which technique followed which; the technique clicked just now, if any."""
    edges = technique_graph.edges_between(rows, techniques, is_tried_only)
    if not edges:
        st.info("No technique has been tried after another yet.", icon=":material/account_tree:")
        return None
    clicked = technique_graph.draw(edges, "sequences", "technique before")
    st.caption(
        "Left: the technique that made a kernel, or *start* for a first one. Right: what was tried on it next. N is "
        "the attempts of all runs, Q adds up the logarithms of their gains, with -1 for each that failed. Dotted: no "
        "attempt was timed, or a model has laid it out and no run has tried it. Point at an edge for its figures; a "
        "click opens the technique."
    )
    if len(rows) > len(edges) >= technique_graph.MOST_BETWEEN:
        st.caption(f"The {len(edges):,} edges tried most, of {len(rows):,}.")
    return clicked


st.title("Knowledge", anchor=False)
live()
amend_dialogs.draw()
