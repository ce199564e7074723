"""What the model thought was wrong or would help, and each try to turn its reply into a new source."""

from __future__ import annotations

import json
from collections.abc import Mapping

import streamlit as st

from pages.parts import index, texts, wording
from storage.index import queries
from storage.index.database import Database
from storage.index.queries import CandidateRow, DiagnosisRow, PatchRow, ReviewRow
from storage.results.vocabulary import Verdict

# What a reply was, and where it could not be read what it was asked to be.
PATCH_NAME = {
    "edits": "line edits", "reask": "line edits", "search_replace": "SEARCH/REPLACE blocks",
    "SEARCH/REPLACE": "SEARCH/REPLACE blocks", "rewrite": "whole file",
}  # fmt: skip


def draw(run_id: str, candidate: CandidateRow) -> None:
    """Diagnoses and reviews first, then patches, both ways: those that led here and those made from here."""
    db = index.current()
    diagnoses = queries.diagnoses(db, run_id, candidate.candidate_id)
    patches = queries.patches(db, run_id, candidate.candidate_id)
    reviews = queries.reviews(db, run_id, candidate.candidate_id)
    if not diagnoses and not patches and not reviews:
        st.caption(_nothing(candidate))
    for review in reviews:
        draw_review(run_id, candidate, review)
    for diagnosis in diagnoses:
        _diagnosis(run_id, candidate, diagnosis)
    for found_patch in patches:
        _patch(run_id, candidate, found_patch)


def _diagnosis(run_id: str, candidate: CandidateRow, diagnosis: DiagnosisRow) -> None:
    is_own = diagnosis.candidate_id == candidate.candidate_id
    title = "Diagnosis of this kernel" if is_own else "Diagnosis of its parent"
    with st.container(border=True):
        st.markdown(f"**{title}** :gray[{wording.moment(diagnosis.at)}]")
        text = texts.read(run_id, diagnosis.text_blob)
        if text.is_gone:
            texts.say_gone(text, "diagnosis")
        else:
            st.markdown(wording.prose(text.text))


def led_here(db: Database, run_id: str, candidate_id: str) -> ReviewRow | None:
    """The review of its parent from which a kernel was made; None for one made otherwise."""
    reviews = queries.reviews(db, run_id, candidate_id)
    before = [review for review in reviews if review.candidate_id != candidate_id and not review.problem]
    return before[-1] if before else None


def draw_review(run_id: str, candidate: CandidateRow, review: ReviewRow) -> None:
    """What was said of a kernel, field by field; what could not be read as it came, with the reason."""
    is_own = review.candidate_id == candidate.candidate_id
    about = "this kernel" if is_own else f"its parent, kernel {candidate.parent_number}"
    with st.container(border=True, key=f"review:{review.seq}"):
        st.markdown(f"**{review.label.capitalize()}, about {about}** :gray[{wording.moment(review.at)}]")
        text = texts.read(run_id, review.text_blob)
        if text.is_gone:
            texts.say_gone(text, "reply")
        elif review.problem:
            st.markdown(f":orange-badge[:material/close: not used] {wording.plain(review.problem)}")
            st.code(text.text, language=None, wrap_lines=True)
        else:
            for name, value in fields(text.text).items():
                st.markdown(f":gray[{wording.plain(name.capitalize())}]&ensp;{wording.plain(value)}")


def fields(text: str) -> Mapping[str, str]:
    """The fields of a review by name; a text that is no JSON object, such as the word that it is gone, as one field."""
    try:
        return {str(name): str(value) for name, value in json.loads(text).items()}
    except (json.JSONDecodeError, AttributeError):
        return {"reply": text}


def _patch(run_id: str, candidate: CandidateRow, patch: PatchRow) -> None:
    is_own = patch.made_id == candidate.candidate_id
    where = "made this kernel" if is_own else "edits this kernel"
    verdict = (
        ":green-badge[:material/check: applied]" if patch.is_applied else ":orange-badge[:material/close: not applied]"
    )
    with st.container(border=True):
        kind, _, way = patch.form.rstrip(")").partition(" (")
        kind = kind or patch.rung
        about = where if kind == "rewrite" else f"{wording.counted(patch.edit_count, 'edit')}, {where}"
        st.markdown(f"**Patch: {PATCH_NAME.get(kind, kind)}** ({about}) {verdict} :gray[{wording.moment(patch.at)}]")
        again = "" if patch.rung == "edits" else f"asked for again, as {PATCH_NAME.get(patch.rung, patch.rung)}"
        reason = "" if patch.is_applied else patch.reason
        if note := " · ".join(
            part for part in (again, way.replace("json", "JSON") if kind != "rewrite" else "", reason) if part
        ):
            st.caption(wording.plain(note))
        if patch.edits_blob:
            details = st.expander("Edits as sent by the model", key=f"edits:{patch.seq}", on_change="rerun")
            if details.open:
                with details:
                    _edits(texts.read(run_id, patch.edits_blob))


def _edits(text: texts.Text) -> None:
    if text.is_gone:
        texts.say_gone(text, "patch")
    else:
        st.code(text.text, language="json", wrap_lines=True)


def _nothing(candidate: CandidateRow) -> str:
    """Why there is neither a diagnosis nor a patch."""
    if candidate.verdict is None:
        return "No diagnosis or patch: written as a whole file, not judged yet."
    if candidate.verdict is not Verdict.PASSED:
        return "No diagnosis or patch yet: written as a whole file, failed, no repair tried."
    return "No diagnosis or patch: written as a whole file, no repair needed."
