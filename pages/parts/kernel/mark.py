"""What a person found of a kernel: a badge where one was marked, and the dialog in which one is."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from pages.parts import access, index, wording
from pages.parts.steering import dialogs, steer
from pages.parts.steering.dialogs import Dialog
from storage.index import queries
from storage.index.queries import CandidateRow, RunRow
from storage.run import folder, labels
from storage.run.labels import LONGEST_REMARK, LabelError, Mark, MarkKind

ABOUT: Mapping[MarkKind, str] = {
    MarkKind.CLEAN: "it does the whole work",
    MarkKind.SUSPICIOUS: "it may not do the work; somebody should look again",
    MarkKind.HACK: "it is faster by not doing the work",
    MarkKind.UNCLEAR: "you read it and cannot say",
}
NOTHING = "no mark"


def of(run_id: str, candidate_id: str) -> Mark | None:
    """What was found of it; None where nobody has marked it."""
    return of_run(run_id).get(candidate_id)


def of_run(run_id: str) -> Mapping[str, Mark]:
    """What was found of a run's kernels, by kernel."""
    return queries.marks(index.current(), [run_id]).get(run_id, {})


def badge(mark: Mark | None) -> None:
    """The mark, with who set it and why behind it; nothing where there is none."""
    if mark:
        st.badge(
            str(mark.kind),
            color=wording.MARK_TONE[mark.kind],
            icon=":material/person_check:",
            help=wording.plain(said(mark)),
        )


def caption(mark: Mark | None) -> None:
    """Who marked it, when and why, in a line; nothing where nobody has."""
    if mark:
        st.caption(f":material/person_check: {wording.plain(said(mark))}")


def said(mark: Mark) -> str:
    """One sentence."""
    return wording.opened(wording.capital(mark.in_words))


def draw_if_open() -> None:
    """Draw the dialog, if it is open; for the page itself, after its live part."""
    asked = dialogs.opened()
    if asked is None or asked.dialog is not Dialog.MARK or not access.may_steer():
        return
    run = queries.run(index.current(), asked.run_id)
    candidate = queries.candidate(index.current(), asked.run_id, asked.candidate_id)
    if run and candidate:
        _draw(run, candidate)


@st.dialog("What you found of this kernel", icon=":material/person_check:", on_dismiss=dialogs.close)
def _draw(run: RunRow, candidate: CandidateRow) -> None:
    """The dialog."""
    dialogs.name_run(run.title, run.run_id)
    before = of(run.run_id, candidate.candidate_id)
    st.caption(
        "Your judgement after reading the source. It is shown and exported, and suites can count only kernels marked "
        "clean; it does not change the verdict. Anybody may mark the kernel anew."
    )
    kinds = [*map(str, MarkKind), NOTHING]
    chosen = st.segmented_control(
        f"Kernel {candidate.number} is", kinds, default=str(before.kind) if before else None, key="mark_kind"
    )
    if chosen and chosen != NOTHING:
        st.caption(f"{wording.capital(ABOUT[MarkKind(chosen)])}.")
    note = st.text_area("Why", before.note if before else "", key="mark_note", height=90, max_chars=LONGEST_REMARK)
    if dialogs.buttons("mark", "Save", ":material/check:", may=chosen is not None):
        _save(run, candidate, None if chosen == NOTHING else MarkKind(str(chosen)), note)


def _save(run: RunRow, candidate: CandidateRow, kind: MarkKind | None, note: str) -> None:
    try:
        labels.change(folder.find_run(run.run_id), labels.marked(candidate.candidate_id, kind, note, access.person()))
    except (LabelError, OSError) as error:
        st.error(wording.sentence(str(error)), icon=":material/error:")
        return
    index.ingest().look_at([run.run_id])
    steer.say(f"Kernel {candidate.number} is marked {kind}." if kind else f"Kernel {candidate.number} has no mark now.")
    dialogs.leave()
