"""One technique: what it is, what was measured on each device and in each state, and every attempt with its kernel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st

from pages.parts import access, index, wording
from pages.parts.knowledge import evidence_table, known_tables
from pages.parts.steering import dialogs
from pages.parts.steering.dialogs import Dialog
from pages.parts.widgets import table
from storage.knowledge import browsing
from storage.knowledge.browsing import DeviceRow, EvidenceFilter
from storage.knowledge.figures import Reckoning
from storage.knowledge.records import Figures, Prior, Technique

FIGURES = [
    table.Column("attempts", "Faster", "nowrap", "attempts whose kernel became faster, of all attempts"),
    table.Column("slower", "Slower", "right"),
    table.Column("failed", "Failed", "right", "wrong result, does not compile, or the patch did not apply"),
    table.Column("gain", "Measured gain", "right", "over the parent kernel: geometric mean of the timed attempts"),
    table.Column("predicted", "Predicted", "right", "geometric mean of the gains that models predicted"),
]
STATE_COLUMNS = [
    table.Column("state", "In state", "wide"),
    *FIGURES,
    table.Column("before", "Expected before", "right", "before any attempt, and how likely an attempt is faster"),
    table.Column("expected", "Expected now", "right", "with the attempts; what was expected before counts as two"),
    table.Column("confidence", "Confidence", "right", "that an attempt makes the kernel faster"),
]
DEVICE_COLUMNS = [table.Column("device", "Device"), *FIGURES, table.Column("used", "Last attempt", "right")]


@dataclass(frozen=True, slots=True)
class StateFigures:
    """A technique in one state; `prior` is None where nothing of its own was expected there."""

    state: str
    figures: Figures
    prior: Prior | None
    inherited_from: str


def draw_about(technique: Technique) -> None:
    """What it does, when it helps and when it hurts."""
    st.markdown(wording.plain(technique.about))
    for icon, sentence in (("trending_up", technique.helps), ("trending_down", technique.hurts)):
        if sentence:
            st.markdown(f":material/{icon}: {wording.plain(sentence)}")
    words = [f"works on {technique.category}"]
    words += (
        [f"for {limits}"] if (limits := known_tables.limits_of(technique)) else ["for every kernel class and device"]
    )
    st.caption(wording.plain(" · ".join(words)))
    if technique.parts:
        parts = " → ".join(
            f"[{wording.plain(name)}]({known_tables.technique_link(name)})" for name in technique.parts
        )  # fmt: skip
        st.markdown(f"In this order: {parts}")
    if technique.is_disabled:
        st.warning("This technique is off: no run is offered it.", icon=":material/toggle_off:")


def draw_actions(technique: Technique) -> None:
    """What a person may change, where people may."""
    if not access.may_steer():
        return
    with st.container(horizontal=True):
        subject = {"subject": technique.name}
        st.button(
            "Edit", icon=":material/edit:", key=f"edit:{technique.name}", on_click=dialogs.ask,
            args=(Dialog.TECHNIQUE,), kwargs=subject,
        )  # fmt: skip
        st.button(
            "Change an expectation", icon=":material/query_stats:", key=f"expect:{technique.name}",
            on_click=dialogs.ask, args=(Dialog.EXPECTATION,), kwargs=subject,
        )  # fmt: skip
        label, icon = ("Turn on", "toggle_on") if technique.is_disabled else ("Turn off", "toggle_off")
        st.button(
            label, icon=f":material/{icon}:", key=f"switch:{technique.name}", on_click=dialogs.ask,
            args=(Dialog.SWITCH,), kwargs={"subject": f"technique:{technique.name}"},
        )  # fmt: skip


def draw(technique: Technique) -> str | None:
    """Tables and picture; the attempt opened just now, if any."""
    draw_about(technique)
    draw_actions(technique)
    return _draw_figures(technique.name)


def draw_undefined(name: str) -> str | None:
    """What is known of a technique that attempts name and nobody has defined."""
    st.info("A model gave its change this name; nobody has said what it means.", icon=":material/help:")
    if access.may_steer():
        st.button(
            "Define it", icon=":material/edit:", key=f"define:{name}", on_click=dialogs.ask, args=(Dialog.TECHNIQUE,),
            kwargs={"subject": name},
        )  # fmt: skip
    return _draw_figures(name)


def _draw_figures(name: str) -> str | None:
    base = index.known()
    st.markdown("## In each state")
    in_states = by_state(base.reckoning(), name)
    if in_states:
        rows = [table.Row(f"in {row.state}", state_cells(row)) for row in in_states]
        table.draw("Figures in each state", STATE_COLUMNS, rows, key="by_state", is_cards=True)
    else:
        st.caption("Not known for any state yet: no run is offered it.")
    devices = browsing.by_device(base, name)
    if devices:
        st.markdown("## On each device")
        table.draw("Figures on each device", DEVICE_COLUMNS, device_rows(devices), key="by_device", is_cards=True)
    st.markdown("## Attempts")
    return evidence_table.draw_attempts(
        EvidenceFilter(technique=name), "story", has_technique=False, nothing="This technique was not tried yet."
    )


def by_state(reckoned: Reckoning, name: str) -> list[StateFigures]:
    """Every state in which it is known, those with most attempts first."""
    in_states = [
        StateFigures(
            state,
            reckoned.figures(name, state),
            reckoned.known.priors.get((state, name)),
            reckoned.inherited_from(name, state),
        )
        for state in reckoned.known.states
        if reckoned.is_known_in(name, state)
    ]
    if (elsewhere := reckoned.figures(name, "")).attempts:
        in_states.append(StateFigures("", elsewhere, None, ""))
    return sorted(in_states, key=lambda row: (-row.figures.attempts, row.state))


def state_cells(row: StateFigures) -> dict[str, table.Cell]:
    """One state as cells."""
    before = table.text(wording.NONE, "muted", f"as in {row.inherited_from}" if row.inherited_from else "")
    if row.prior:
        before = table.text(wording.speedup(row.prior.gain), "", wording.percent(row.prior.confidence))
    return known_tables.figure_cells(row.figures) | {
        "state": row.state or table.text("state not known", "muted"),
        "before": before,
    }


def device_rows(devices: Sequence[DeviceRow]) -> list[table.Row]:
    """Rows of one device each."""
    return [
        table.Row(row.device, known_tables.figure_cells(row.figures) | {"device": row.device or wording.UNKNOWN})
        for row in devices
    ]
