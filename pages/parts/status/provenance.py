"""Where a run's kernels come from: that it began with one of another run, has its first ones in common with another
run, or only replays one. Said on every page that shows it."""

from __future__ import annotations

import streamlit as st

from engine import supervisor
from engine.errors import EngineError
from pages.parts import access, index, run_settings, wording
from pages.parts.status import pinned_snapshot
from pages.parts.widgets import table
from storage.codec import DecodeError
from storage.index import queries
from storage.index.database import Database
from storage.index.queries import RunRow, SharedRow
from storage.run.settings import RunState

HANDED_IN = (
    f" Its kernels were written by {wording.BY_PROMPTS}; a person only handed its replies in, which is what the run "
    "waited for."
)


def fork_words(run: RunRow) -> str:
    """ "forked from kernel 6 of RUN"; empty for a run that is no fork."""
    return f"forked from kernel {run.forked_number} of {run.forked_run}" if run.forked_run else ""


def draw_fork(run: RunRow) -> None:
    """The words beside the run's name, as a link while the other run is there."""
    if run.forked_run is None:
        return
    if queries.titles(index.current(), [run.forked_run]):
        st.page_link(
            "run.py", label=wording.plain(fork_words(run)), icon=":material/fork_right:",
            query_params={"run": run.forked_run}, width="content",
        )  # fmt: skip
    else:
        st.caption(f":material/fork_right: {wording.plain(fork_words(run))} (run not found)", width="content")


def fork_cells(run: RunRow) -> list[table.Cell]:
    """The mark of a fork in a row of the overview."""
    if run.forked_run is None:
        return []
    name = f"forked from kernel {run.forked_number} of {run.forked_run[-20:]}"  # as rows name their own run
    return [table.badge(name, "gray", "", run.forked_run, f"run?run={wording.in_address(run.forked_run)}")]


def replay_badge(run: RunRow) -> None:
    """The word beside the run's name."""
    if run.replay_of:
        st.badge("replay", icon=":material/replay:", color="violet", help=f"of run {run.replay_of}")


def replay_banner(run: RunRow, state: RunState) -> None:
    """What is told, how fast, the way to the run itself, and, once it is over, the way to be rid of the replay."""
    if not run.replay_of:
        return
    with st.container(border=True, horizontal=True, vertical_alignment="center", key="replay_banner"):
        st.markdown(
            f":material/replay: **This is a replay** of a recorded run{_pace(run.run_id)}. Playback only; no cost.",
            width="stretch",
        )
        st.page_link(
            "run.py", label="Original run", icon=":material/arrow_forward:", query_params={"run": run.replay_of},
            width="content",
        )  # fmt: skip
        may_delete = state.is_over and access.may_steer() and not pinned_snapshot.is_sought(run.run_id)
        if may_delete and st.button("Delete replay", icon=":material/delete:", key=f"delete:{run.run_id}"):
            _delete(run)


def example_note(run: RunRow) -> None:
    """What an example is there to show, and who wrote its kernels where its settings say "manual"."""
    if run.is_example and run.note:
        by = HANDED_IN if wording.is_handed_in(run.model, is_example=True) else ""
        st.markdown(f":material/school: {wording.plain(run.note + by)}")


def shared_note(run: RunRow, state: RunState) -> None:
    """That the first kernels of a run are those of another one, which a link leads to. Asked once a run is over: until
    then each kernel would ask all runs anew."""
    db = index.current()
    if shared := shared_with(db, run, state):
        title = wording.plain(_title(db, shared))
        other = f"[{title}](run?run={wording.in_address(shared.run_id)})"
        st.markdown(f":material/content_copy: {shared_words(run, shared, other)}")


def shared_in_report(db: Database, run: RunRow, state: RunState) -> str:
    """The same note as plain text, the other run by its name and id; empty where there is none."""
    shared = shared_with(db, run, state)
    return shared_words(run, shared, f"“{_title(db, shared)}” (run {shared.run_id})") if shared else ""


def shared_with(db: Database, run: RunRow, state: RunState) -> SharedRow | None:
    """The run whose first kernels a run that is over has; None where there is none."""
    return queries.same_first_kernels(db, run.run_id) if state.is_over else None


def _title(db: Database, shared: SharedRow) -> str:
    return queries.titles(db, [shared.run_id]).get(shared.run_id, shared.run_id)


def shared_words(run: RunRow, shared: SharedRow, other: str) -> str:
    """The note, with the other run as `other` names it."""
    first = "" if shared.kernels == run.attempts else "first "
    many = shared.kernels > 1
    kernels = f"Its {first}{wording.count(shared.kernels)} kernels are those" if many else f"Its {first}kernel is that"
    if shared.is_one_run:
        return (
            f"{kernels} of {other}, with {'their timings' if many else 'its timing'}: until then the two were one run."
        )
    if (recording := _recording(run.run_id)) and recording == _recording(shared.run_id):
        return f"{kernels} of {other}: both were written from the same recording."
    return f"{kernels} of {other}: the sources are the same."


def _recording(run_id: str) -> str | None:
    try:
        return run_settings.of(run_id).recording
    except (FileNotFoundError, DecodeError):
        return None


def _pace(run_id: str) -> str:
    try:
        speed = run_settings.of(run_id).replay_speed
    except (FileNotFoundError, DecodeError):
        return ""
    return " at original speed" if speed == 1 else f" at {wording.significant(speed, 2)}× speed"


def _delete(run: RunRow) -> None:
    try:
        supervisor.delete_replay(run.run_id)
    except (EngineError, OSError) as error:
        st.error(wording.sentence(str(error)), icon=":material/error:")
        return
    st.switch_page("run.py", query_params={"run": run.replay_of or ""})
