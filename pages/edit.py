"""Editing a kernel by hand and handing it in: it is judged like any other, as the run's next attempt."""

from __future__ import annotations

import streamlit as st

from pages.parts import access, change_token, index, method, run_state, texts, wording
from pages.parts.status import address
from pages.parts.steering import drafts, kernel_choice, steer
from pages.parts.widgets import diff
from storage.index import queries
from storage.index.queries import AttemptRow, RunRow
from storage.run import folder
from storage.run.blobs import Blobs
from storage.run.settings import RunState
from storage.run.steering.command_arguments import NOTE_LENGTH, Submission
from storage.run.steering.verbs import CommandKind

run_id = st.query_params.get("run", "")
candidate_id = st.query_params.get("candidate", "")


def page() -> None:
    """No live part: what is typed here must not be disturbed."""
    run = queries.run(index.current(), run_id)
    if run is None:
        address.unknown_run(run_id, change_token.of([run_id], is_overview=False))
        return
    st.page_link(
        "run.py", label=run.title, icon=":material/arrow_back:", query_params={"run": run_id},
        width="content",
    )  # fmt: skip
    st.title("Edit a kernel by hand", anchor=False)
    attempts = queries.attempts(index.current(), run_id)[::-1]
    if not access.may_steer():
        st.info("This server is read-only and takes no kernels.", icon=":material/lock:")
    elif not attempts:
        st.info("No kernel to edit yet: none has been written.", icon=":material/hourglass_top:")
    else:
        _editor(run, attempts)
    steer.give_word_back()


def _editor(run: RunRow, attempts: list[AttemptRow]) -> None:
    best = candidate_id or run.best_candidate_id or ""
    parent = kernel_choice.draw(run, "Kernel to start from", attempts, f"edit_from:{run_id}", best)
    source = texts.source(run_id, parent.source_blob)
    st.html("<style>.st-key-editor textarea { font-family: var(--st-code-font, monospace) }</style>")
    with st.container(key="editor"):
        key, about = f"draft:edit:{run_id}:{parent.candidate_id}", f"draft:note:{run_id}"
        drafts.begin(key, source)
        text = st.text_area(
            "Kernel source", height=520, key=key, help="a Python file that defines class ModelNew",
            on_change=drafts.keep, args=(key,),
        )  # fmt: skip
    drafts.begin(about)
    note = st.text_input(
        "Describe the change", key=about, max_chars=NOTE_LENGTH, placeholder="optional, a few words",
        on_change=drafts.keep, args=(about,),
    )  # fmt: skip
    state = run_state.of(run)
    st.info(preview(parent, state, method.words(run_id).distinct), icon=":material/visibility:")
    is_over = state.is_over
    label = "Submit and resume the run" if is_over else "Submit"
    if st.button(label, type="primary", icon=":material/send:", key=f"edit_yes:{run_id}", disabled=text == source):
        _hand_in(parent, text, note, is_over)
    with st.expander("Your changes, line by line", icon=":material/difference:", expanded=text != source):
        diff.draw(source, text, (f"kernel {parent.number}", "yours"), key="edit_diff")


def preview(parent: AttemptRow, state: RunState, step: str) -> str:
    """What will happen, and what is lost."""
    when = "when the run is resumed" if state.is_over else "as soon as the current kernel is judged"
    return (
        f"Your kernel becomes the next attempt, based on kernel {parent.number}, {when}. It is built, checked and "
        f"timed like any other. If it is correct, the {step} ends with it; if not, it is treated like any that failed."
    )


def _hand_in(parent: AttemptRow, text: str, note: str, is_over: bool) -> None:
    try:
        blob = Blobs(folder.find_run(run_id).blobs).put(text)
    except (OSError, FileNotFoundError) as error:
        st.error(wording.sentence(str(error)), icon=":material/error:")
        return
    sent = steer.ask(run_id, CommandKind.SUBMIT, str(Submission(parent.candidate_id, blob, note)))
    if sent:
        drafts.forget(f"draft:edit:{run_id}:{parent.candidate_id}")
        drafts.forget(f"draft:note:{run_id}")
    if sent and (not is_over or steer.resume(run_id)):
        st.switch_page("run.py", query_params={"run": run_id})
    st.rerun()


page()
