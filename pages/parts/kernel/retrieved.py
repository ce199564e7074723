"""What the knowledge base had answered before a kernel was written, whether the kernel follows it, and which failure
rules its writer was told. What turns rows into words is pure."""

from __future__ import annotations

import streamlit as st

from pages.parts import index, wording
from pages.parts.widgets import table
from storage.index import queries
from storage.index.queries import RetrievalRow
from storage.knowledge.records import Advised, ToldRule

COLUMNS = [
    table.Column("technique", "Technique"),
    table.Column("expected", "Expected", "right", "gain over the kernel that is changed"),
    table.Column("confidence", "Confidence", "right", "how likely it makes a kernel faster"),
    table.Column("attempts", "Attempts", "right", "measured in runs before"),
    table.Column("outcome", "Faster / slower / failed", "right"),
]


def draw(run_id: str, candidate_id: str) -> None:
    """A sentence or two, and the answer folded away; nothing where the base was not asked."""
    asked = queries.retrieval(index.current(), run_id, candidate_id)
    rules = queries.told_rules(index.current(), run_id, candidate_id)
    if asked or rules:
        st.markdown("## From the knowledge base")
    if rules:
        with st.expander(f"Told {wording.counted(len(rules), 'failure rule')}", icon=":material/rule:"):
            st.markdown("\n".join(f"- {wording.plain(rule_text(one))}" for one in rules))
    if asked is None:
        return
    st.markdown("  \n".join(wording.plain(line) for line in (state(asked), followed(asked)) if line))
    if not asked.techniques:
        return
    title = f"{wording.counted(asked.techniques, 'technique')} found in step {asked.step}"
    with st.expander(title, icon=":material/library_books:", key="retrieved:open", on_change="rerun") as folded:
        if folded.open:
            found = queries.retrieved(index.current(), run_id, asked.step)
            rows = [table.Row(f"{n}", cells(one, n == asked.followed)) for n, one in enumerate(found)]
            table.draw(
                "Techniques that the knowledge base named", COLUMNS, rows, key="retrieved:found", is_compact=True
            )
            st.caption(wording.plain(f"As the base stood then ({asked.mark})."))


def rule_text(one: ToldRule) -> str:
    """A failure rule with its evidence as it stood then."""
    return (
        f"{one.signature}: {one.words} ({wording.counted(one.kernels, 'kernel')} of {wording.counted(one.runs, 'run')})"
    )


def state(asked: RetrievalRow) -> str:
    """Which state the kernel before it was in."""
    if not asked.state:
        return f"The state of kernel {asked.number} is not known: {asked.why}."
    beside = f"; also {', '.join(asked.secondary)}" if asked.secondary else ""
    sure = f"confidence {asked.state_confidence:.2f}"
    return f"State of kernel {asked.number}: {asked.state.replace('_', ' ')} ({sure}; {asked.why}){beside}."


def followed(asked: RetrievalRow) -> str:
    """Whether the kernel does what was found."""
    if not asked.techniques:
        return "No technique was found for it."
    if not asked.technique:
        return "Which technique this kernel uses was not named."
    if asked.followed is None:
        return f"Not followed: this kernel's technique, {asked.technique}, is not among what was found."
    return f"Followed: this kernel's technique, {asked.technique}, is number {asked.followed + 1} of what was found."


def cells(one: Advised, is_followed: bool) -> dict[str, table.Cell]:
    """A technique as a row."""
    note = "went wrong more often than not" if one.is_negative else ""
    if one.inherited_from:
        note = "; ".join(filter(None, (note, f"expected as in {one.inherited_from.replace('_', ' ')}")))
    badges = [table.pill("followed", "green", "held")] if is_followed else []
    if one.parts:
        note = "; ".join(filter(None, (f"joins {', then '.join(one.parts)}", note)))
    description = " ".join(filter(None, (one.about, one.helps, one.hurts)))
    return {
        "technique": table.text(one.technique, note=note, title=description, badges=badges),
        "expected": wording.speedup(one.expected_gain),
        "confidence": f"{one.confidence:.2f}",
        "attempts": f"{one.attempts:,}",
        "outcome": f"{one.faster} / {one.slower} / {one.failed}" if one.attempts else wording.NONE,
    }
