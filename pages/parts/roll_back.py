"""Going on from an earlier kernel: choose it, see what would be undone, confirm."""

from __future__ import annotations

import streamlit as st

from pages.parts import diff, index, steer, texts, wording
from storage import queries
from storage.queries import AttemptRow, RunRow
from storage.records import CommandKind, Verdict


@st.dialog("Roll back to an earlier kernel", width="large", icon=":material/undo:")
def dialog(run: RunRow) -> None:
    """The next depth starts from the chosen kernel; nothing is deleted."""
    found = targets(run)
    base = current_base(run)
    if not found:
        st.info("There is no finished depth with a correct kernel to go back to yet.")
        return
    chosen = st.selectbox("Kernel to go on from", found, format_func=label, key="roll_back_to")
    if base is None or chosen.candidate_id == base.candidate_id:
        st.caption("This is the kernel the run stands on now.")
    else:
        st.markdown(f"What changes between **kernel {base.number}**, the base now, and **kernel {chosen.number}**:")
        old, new = texts.source(run.run_id, base.source_blob), texts.source(run.run_id, chosen.source_blob)
        names = (f"kernel {base.number} (base now)", f"kernel {chosen.number} (roll back to this)")
        with st.container(height=360, border=False):
            diff.draw(old, new, names, key="roll_back_diff")
    with st.container(horizontal=True, horizontal_alignment="right"):
        if st.button("Cancel", key="roll_back_no"):
            st.rerun()
        if st.button(
            f"Roll back to kernel {chosen.number}", type="primary", icon=":material/undo:", key="roll_back_yes"
        ):
            steer.send(run.run_id, CommandKind.ROLL_BACK, chosen.candidate_id)
            st.rerun()


def targets(run: RunRow) -> list[AttemptRow]:
    """Kernels of finished depths that are correct and timed, newest first."""
    db = index.current()
    settled = {d.candidate_id for d in queries.depths(db, run.run_id) if d.outcome is not None}
    found = queries.attempts(db, run.run_id)
    return [a for a in found[::-1] if a.verdict is Verdict.PASSED and a.speedup and a.candidate_id in settled]


def current_base(run: RunRow) -> AttemptRow | None:
    """The kernel that the newest attempt was made from, or the newest accepted one."""
    found = queries.attempts(index.current(), run.run_id)
    by_id = {a.candidate_id: a for a in found}
    if not found:
        return None
    accepted = [a for a in found if a.is_accepted]
    newest = found[-1]
    base = by_id.get(newest.base_id or "")
    return base if base and not newest.is_accepted else (accepted[-1] if accepted else base)


def label(a: AttemptRow) -> str:
    """One line in the list of targets."""
    best = " · best" if a.is_best else ""
    return f"kernel {a.number} · depth {a.depth} · {wording.speedup(a.speedup, a.noise)}{best} · {a.summary[:60]}"
