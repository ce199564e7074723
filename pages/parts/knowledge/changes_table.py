"""Who changed what is known, when and why: every revision, the newest first, and a way to take one back."""

from __future__ import annotations

import streamlit as st

from pages.parts import access, index, wording
from pages.parts.knowledge import known_tables
from pages.parts.steering import dialogs
from pages.parts.steering.dialogs import Dialog
from pages.parts.widgets import table
from storage.knowledge import browsing, seed
from storage.knowledge.browsing import RevisionRow
from storage.knowledge.records import Revision, State, Technique

REVERT = "revert:"
COLUMNS = [
    table.Column("what", "Change"),
    table.Column("why", "Reason", "wide"),
    table.Column("by", "By", "nowrap"),
    table.Column("at", "When", "right"),
]
SHOWN_NAMES = 4


def draw() -> None:
    """The table; a button of a row asks once more."""
    base = index.known()
    found = browsing.revisions(base)
    shown, offset = known_tables.a_part(found)
    by_id = {row.revision_id: row for row in found}
    rows = [
        table.Row(row.revision_id, cells(row, browsing.revision(base, row.revision_id), by_id.get(row.reverts)))
        for row in shown
    ]
    opened = table.draw("Changes", COLUMNS, rows, key="changes", is_folding=True)
    st.caption(
        f"{known_tables.showing(offset, len(shown), len(found), 'change')}, newest first. Nothing is deleted: a revert "
        "is a change too, and can be reverted."
    )
    if opened and opened.startswith(REVERT) and access.may_steer():
        dialogs.ask(Dialog.REVERT, subject=opened.removeprefix(REVERT))
        st.rerun()


def cells(row: RevisionRow, said: Revision | None, reverted: RevisionRow | None) -> dict[str, table.Cell]:
    """One change as cells."""
    buttons = []
    if access.may_steer() and row.counts:
        label = "Bring back" if row.reverts else "Revert"
        name = f"{label}: {summary(row, said, reverted)}"
        buttons = [table.button(label, "undo", f"{REVERT}{row.revision_id}", name)]
    what: dict[str, object] = {"text": summary(row, said, reverted), "tone": "strong", "note": names(said)}
    what |= {"badges": [] if row.counts else [table.pill("reverted", "gray", "stopped")], "buttons": buttons}
    origin = f"from {row.origin}" if row.origin else ""
    return {
        "what": what,
        "why": table.text(row.why, "", origin),
        "by": "Tilewright" if row.by == seed.SEED else row.by,
        "at": table.age(row.at) if row.at else table.text("shipped", "muted"),
    }


def summary(row: RevisionRow, said: Revision | None, reverted: RevisionRow | None) -> str:
    """What it did, in a few words."""
    if row.reverts:
        return f"Revert: {reverted.why if reverted else row.reverts}"
    if said and not said.transitions and _count(said) == 1:
        return _single(said)
    counts = ((row.states, "state"), (row.techniques, "technique"), (row.priors, "expectation"),
              (row.transitions, "transition"), (row.rules, "failure rule"))  # fmt: skip
    return ", ".join(wording.counted(number, noun) for number, noun in counts if number) or "no change"


def _single(said: Revision) -> str:
    for one in said.priors:
        return f"Expect {wording.speedup(one.gain)} of {one.technique} in {one.state}"
    for rule in said.rules:
        return "Failure rule turned off" if rule.is_disabled else f"Failure rule worded: {rule.words}"
    named: list[State | Technique] = [*said.states, *said.techniques]
    return f"{named[0].name} turned off" if named[0].is_disabled else f"{named[0].name} set"


def _count(said: Revision) -> int:
    return len(said.states) + len(said.techniques) + len(said.priors) + len(said.rules)


def names(said: Revision | None) -> str:
    """The first few names in it."""
    if said is None or _count(said) + len(said.transitions) < 2:
        return ""
    found = [one.name for one in said.states] + [one.name for one in said.techniques]
    found += [f"{one.technique} in {one.state}" for one in said.priors]
    found += [f"{one.source} → {one.target}" for one in said.transitions]
    found += [one.words or one.rule for one in said.rules]
    return ", ".join(found[:SHOWN_NAMES]) + (" …" if len(found) > SHOWN_NAMES else "")
