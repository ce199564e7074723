"""Every steering command with its three moments: asked, acknowledged, in effect (or refused and why)."""

from __future__ import annotations

import streamlit as st

from pages.parts import index, table, wording
from storage import queries
from storage.queries import CommandRow, RunRow

LIMIT = 8
COLUMNS = [
    table.Column("what", "Command"),
    table.Column("state", "State", help="asked, acknowledged, in effect or refused"),
]


def draw(run: RunRow) -> None:
    """The newest commands; nothing at all while nobody has steered."""
    found = queries.commands(index.current(), run.run_id)[::-1]
    if not found:
        return
    st.markdown(f"#### Steering :gray[{len(found):,}]")
    rows = [table.Row(command.command_id, cells(command)) for command in found[:LIMIT]]
    table.draw("Steering commands, newest first", COLUMNS, rows, key="commands", is_compact=True)
    if len(found) > LIMIT:
        st.caption(f"newest {LIMIT} of {len(found):,} shown")


def cells(command: CommandRow) -> dict[str, table.Cell]:
    """One command as cells."""
    argument = f" {command.argument}" if command.argument else ""
    return {
        "what": table.text(
            f"{wording.COMMAND_NAME[command.kind]}{argument}"[:90], "strong", f"by {command.asked_by} {times(command)}"
        ),
        "state": state(command),
    }


def state(command: CommandRow) -> table.Cell:
    """How far a command has come."""
    if command.refused_at is not None:
        return table.pill("refused", "red", "failed", note=command.note)
    if command.effective_at is not None:
        return table.pill("in effect", "green", "finished", note=command.note)
    if command.acknowledged_at is not None:
        return table.pill("acknowledged", "blue", "waiting", note="takes effect when the step in flight ends")
    return table.pill("asked", "gray", "waiting", note="the engine has not read it yet")


def times(command: CommandRow) -> str:
    """The clock time it was asked, then how much later it was read and took effect."""
    parts = [f"at {wording.clock(command.asked_at)}"]
    moments = (("read", command.acknowledged_at), ("in effect", command.effective_at), ("refused", command.refused_at))
    parts += [f"{what} +{wording.seconds(max(0.0, at - command.asked_at))}" for what, at in moments if at is not None]
    return ", ".join(parts)
