"""Suites that were started under this home, and those that come with Tilewright, to be started or copied."""

from __future__ import annotations

import functools

import streamlit as st

from engine import supervisor
from engine.suites import definition
from engine.suites.tables import ARM, progress_line
from pages.parts import access, run_state, suite_folders, wording
from pages.parts.widgets import table
from storage.suites import files
from storage.suites.records import Defined
from storage.suites.standing import Suite, as_left

COLUMNS = [
    table.Column("name", "Suite"),
    table.Column("state", "State"),
    table.Column("cells", "Runs"),
    table.Column("size", "Tasks × arms × repeats", help=f"an arm is {ARM}"),
    table.Column("spent", "Spent", "right", "by the runs that have ended"),
]
SHIPPED = [
    table.Column("name", "Shipped suite"),
    table.Column("about", "What it is to find out", "words"),
    table.Column("size", "Tasks × arms × repeats", help=f"an arm is {ARM}"),
    table.Column("needs", "Needs"),
]
ACTS = table.Column("do", "Actions", "right")
START, COPY = "start:", "copy:"
GPU_AND_MODEL = "a GPU and a model"
EXAMPLE = table.pill("example", "gray", title="runs that come with Tilewright, made on another machine")
TONES: dict[str, wording.Tone] = {"running": "blue", "finished": "green", "stopped": "gray"}
NO_SUITES = (
    "No suite has been started here. A suite runs tasks × arms × repeats, an arm being one set of settings, and this "
    "page shows what came of it: which arm is better, by how much, how sure that is, and at what cost."
)


def draw() -> str | None:
    """Both tables; the name of the suite opened just now, if any."""
    suites = [(folder, suite) for folder in files.all_suites() if (suite := suite_folders.read(folder))]
    opened = None
    with st.container(key="suites_list"):
        if suites:
            rows = [
                table.Row(folder.name, _cells(folder.name, suite, folder.has_runner), f"benchmark?suite={folder.name}")
                for folder, suite in suites
            ]
            opened = table.draw("Suites", COLUMNS, rows, key="suites", is_cards=True)
        else:
            st.info(NO_SUITES, icon=":material/leaderboard:")
    st.markdown("## Shipped suites")
    may_steer = access.may_steer()
    lacks = supervisor.available_toolchains().get("cuda", "")
    rows = [
        table.Row(name, _needs_here(cells, lacks) | ({"do": _acts(name, _why_off(cells, lacks))} if may_steer else {}))
        for name, cells in shipped().items()
    ]
    columns = [*SHIPPED, *([ACTS] if may_steer else [])]
    return opened or table.draw("Shipped suites", columns, rows, key="shipped_suites", is_cards=True)


@functools.cache
def _acts(name: str, why_off: str) -> table.Cell:
    start = table.button("Start", "running", f"{START}{name}", f"Start {name}", why_off)
    if definition.outline(name)[1]:
        return table.buttons([start])
    return table.buttons([start, table.button("Edit a copy", "", f"{COPY}{name}", f"Edit a copy of {name}")])


def _cells(name: str, suite: Suite, has_runner: bool) -> dict[str, table.Cell]:
    state, defined = suite.state(has_runner), suite.defined
    return {
        "name": table.link(name, wording.cut(defined.title, 70), [EXAMPLE] if defined.is_example else ()),
        "state": table.pill(state, TONES[state], state, title=suite.reason),
        "cells": progress_line(suite if has_runner else as_left(suite, run_state.has_engine)),
        "size": f"{len(defined.tasks)} × {len(defined.arms)} × {defined.repeats}",
        "spent": spent_cell(suite),
    }


def spent_cell(suite: Suite) -> table.Cell:
    """Money above, tokens and time below; what nobody has told is not zero, and what costs nothing is no sum."""
    spent, time = suite.spent, wording.seconds(suite.spent.engine_s)
    if not spent.model_calls:
        return table.text(wording.NONE, "muted", "", "no run of it has asked a model and ended")
    if spent.tokens:
        tokens = f"{suite_folders.least(suite)}{wording.tokens(spent.tokens)} tokens"
        return table.text(suite_folders.cost(suite), "", f"{tokens}, {time}")
    told = wording.NOT_CALLED if suite_folders.is_recorded(suite) else wording.NOT_RECORDED
    return table.text(suite_folders.cost(suite), "", time, told)


@functools.cache
def shipped() -> dict[str, dict[str, table.Cell]]:
    """What is said of each shipped suite, by its name; those that need nothing first."""
    described: dict[str, dict[str, table.Cell]] = {}
    for name in definition.shipped():
        about, parameters = definition.outline(name)
        defined = None if parameters else definition.read(definition.find(name))
        described[name] = {
            "name": table.text(name, "strong", wording.cut(defined.title, 60) if defined else ""),
            "about": about,
            "size": _size(defined) if defined else "every file of a folder",
            "needs": _needs(defined) if defined else GPU_AND_MODEL,
        }
    return dict(sorted(described.items(), key=lambda item: item[1]["needs"] == GPU_AND_MODEL))


def _needs_here(cells: dict[str, table.Cell], lacks: str) -> dict[str, table.Cell]:
    """With why there is no GPU for it here, if so."""
    if not _why_off(cells, lacks):
        return cells
    return cells | {"needs": table.text(GPU_AND_MODEL, "", f"not here: {lacks}")}


def _why_off(cells: dict[str, table.Cell], lacks: str) -> str:
    """Why it cannot be started from the list. With a person as its model it can, from a terminal or as a copy."""
    return f"needs a GPU: {lacks}" if lacks and cells["needs"] == GPU_AND_MODEL else ""


def _size(defined: Defined) -> table.Cell:
    tasks, arms = len(defined.tasks), len(defined.arms)
    runs = wording.counted(tasks * arms * defined.repeats, "run")
    return table.text(f"{tasks} × {arms} × {defined.repeats}", "", runs, ", ".join(arm.name for arm in defined.arms))


def _needs(defined: Defined) -> str:
    return GPU_AND_MODEL if "--toolchain cuda" in defined.settings else "nothing: recorded replies, processor"
