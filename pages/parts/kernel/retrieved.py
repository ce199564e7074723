"""What the knowledge base had answered before a kernel was written, whether the kernel follows it, and which failure
rules its writer was told. What turns rows into words is pure."""

from __future__ import annotations

import streamlit as st

from pages.parts import index, method, wording
from pages.parts.widgets import table
from storage.index import queries
from storage.index.queries import RetrievalRow
from storage.knowledge.records import Advised, ToldRule
from storage.run.method_words import MethodWords

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
    if rules or (asked and asked.mark):
        st.markdown("## From the knowledge base")
    elif asked:
        st.markdown("## State of the kernel before it")
    if rules:
        with st.expander(f"Told {wording.counted(len(rules), 'failure rule')}", icon=":material/rule:"):
            st.markdown("\n".join(f"- {wording.plain(rule_text(rule))}" for rule in rules))
    if asked is None:
        return
    lines = state(asked), followed(asked, method.words(run_id))
    st.markdown("  \n".join(map(wording.plain, lines)))
    if not asked.techniques:
        return
    title = f"{wording.counted(asked.techniques, 'technique')} found in step {asked.step}"
    with st.expander(title, icon=":material/library_books:", key="retrieved:open", on_change="rerun") as folded:
        if folded.open:
            techniques = queries.retrieved(index.current(), run_id, asked.step)
            rows = [table.Row(f"{n}", cells(advised, n == asked.followed)) for n, advised in enumerate(techniques)]
            table.draw(
                "Techniques that the knowledge base named", COLUMNS, rows, key="retrieved:found", is_compact=True
            )
            st.caption(wording.plain(f"As the base stood then ({asked.mark})."))


def rule_text(rule: ToldRule) -> str:
    """A failure rule with its evidence as it stood then."""
    where = f"{wording.counted(rule.kernels, 'kernel')} of {wording.counted(rule.runs, 'run')}"
    return f"{rule.signature}: {rule.words} ({where})"


def state(asked: RetrievalRow) -> str:
    """Which state the kernel before it was in."""
    if not asked.state:
        return f"The state of kernel {asked.number} is not known: {asked.why}."
    beside = f"; also {', '.join(asked.secondary)}" if asked.secondary else ""
    sure = f"confidence {asked.state_confidence:.2f}"
    return f"State of kernel {asked.number}: {asked.state.replace('_', ' ')} ({sure}; {asked.why}){beside}."


def followed(asked: RetrievalRow, words: MethodWords) -> str:
    """Whether the kernel does what was found, or what the prompt named beside it."""
    if not asked.mark:
        return "The state follows from its profile by fixed rules; the knowledge base was not asked."
    if asked.is_other and words.names_others:
        return (
            f"Followed by name: the prompt named this kernel's technique, {asked.technique}, as known from other "
            "states, without its figures."
        )
    if not asked.techniques:
        return "No technique was found for it."
    if not asked.technique:
        return "Which technique this kernel uses was not named."
    if asked.followed is None:
        return f"Not followed: this kernel's technique, {asked.technique}, is not among what was found."
    return f"Followed: this kernel's technique, {asked.technique}, is number {asked.followed + 1} of what was found."


def cells(advised: Advised, is_followed: bool) -> dict[str, table.Cell]:
    """A technique as a row."""
    note = "went wrong more often than not" if advised.is_negative else ""
    if advised.inherited_from:
        note = "; ".join(filter(None, (note, f"expected as in {advised.inherited_from.replace('_', ' ')}")))
    badges = [table.pill("followed", "green", "held")] if is_followed else []
    if advised.parts:
        note = "; ".join(filter(None, (f"joins {', then '.join(advised.parts)}", note)))
    description = " ".join(filter(None, (advised.about, advised.helps, advised.hurts)))
    return {
        "technique": table.text(advised.technique, note=note, title=description, badges=badges),
        "expected": wording.speedup(advised.expected_gain),
        "confidence": f"{advised.confidence:.2f}",
        "attempts": f"{advised.attempts:,}",
        "outcome": f"{advised.faster} / {advised.slower} / {advised.failed}" if advised.attempts else wording.NONE,
    }
