"""Suites that were started under this home, and those that come with Tilewright with the command that starts them."""

from __future__ import annotations

import functools

import streamlit as st

from engine.suites import definition
from engine.suites.tables import progress_line
from pages.parts import run_state, suite_folders, wording
from pages.parts.widgets import table
from storage.suites import files, summary
from storage.suites.standing import Suite, as_left

COLUMNS = [
    table.Column("name", "Suite"),
    table.Column("state", "State"),
    table.Column("cells", "Cells"),
    table.Column("size", "Tasks × arms × repeats"),
    table.Column("spent", "Spent", "right", "by runs that the runner has let go of"),
]
SHIPPED = [
    table.Column("name", "Shipped suite"),
    table.Column("about", "What it is to find out"),
    table.Column("command", "Command that starts it"),
]
TONES: dict[str, wording.Tone] = {"running": "blue", "finished": "green", "stopped": "gray"}
NO_SUITES = (
    "No suite has been started here. A suite runs tasks × arms × repeats, an arm being one set of settings, and this "
    "page shows what came of it: which arm is better, by how much, how sure that is, and at what cost. Start one "
    "from a terminal with a command below; it appears here by itself."
)


def draw() -> str | None:
    """Both tables; the name of the suite opened just now, if any."""
    suites = [(folder, suite) for folder in files.all_suites() if (suite := suite_folders.read(folder))]
    opened = None
    with st.container():
        if suites:
            rows = [
                table.Row(folder.name, _cells(folder.name, suite, folder.has_runner), f"benchmark?suite={folder.name}")
                for folder, suite in suites
            ]
            opened = table.draw("Suites", COLUMNS, rows, key="suites", is_cards=True)
        else:
            st.info(NO_SUITES, icon=":material/leaderboard:")
    st.markdown("## Shipped suites")
    rows = [table.Row(name, {"name": table.text(name, "strong"), "about": about, "command": command})
            for name, about, command in shipped()]  # fmt: skip
    table.draw("Shipped suites", SHIPPED, rows, key="shipped_suites", is_cards=True)
    return opened


def _cells(name: str, suite: Suite, has_runner: bool) -> dict[str, table.Cell]:
    state, defined, spent = suite.state(has_runner), suite.defined, suite.spent
    return {
        "name": table.link(name, wording.cut(defined.title, 70)),
        "state": table.pill(state, TONES[state], state, title=suite.reason),
        "cells": progress_line(summary.gather(suite if has_runner else as_left(suite, run_state.has_engine), {})),
        "size": f"{len(defined.tasks)} × {len(defined.arms)} × {defined.repeats}",
        "spent": table.text(
            wording.cost(spent.cost_usd),
            "",
            f"{wording.tokens(spent.tokens)} tokens, {wording.seconds(spent.engine_s)}",
        ),
    }


@functools.cache
def shipped() -> list[tuple[str, str, str]]:
    """(name, about, command) of each shipped suite."""
    described = []
    for name in definition.shipped():
        about, parameters = definition.outline(name)
        words = " ".join([name, *(parameter.upper() for parameter in parameters)])
        described.append((name, about, f"python -m engine suite run {words}"))
    return described
