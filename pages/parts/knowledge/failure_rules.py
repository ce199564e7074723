"""Failure rules: what goes wrong again and again, what mended it, how often telling it helped; and one of them with its
kernels. Which one is open stands in the address. What turns rows into words is pure."""

from __future__ import annotations

from collections.abc import Container

import streamlit as st

from pages.parts import access, index, wording
from pages.parts.knowledge import known_tables
from pages.parts.steering import dialogs
from pages.parts.steering.dialogs import Dialog
from pages.parts.widgets import table
from storage.index import queries
from storage.knowledge import browsing
from storage.knowledge.failures import LEAST_KERNELS, MOST_TOLD, FailureRule, RuleStatus
from storage.knowledge.records import FailureCase

RULE = "rule"
STATUS: dict[RuleStatus, tuple[wording.Tone, str, str]] = {
    RuleStatus.ACTIVE: ("green", "held", "the writers of the next kernels are told it, as far as there is room"),
    RuleStatus.WAITING: ("gray", "absent", ""),
    RuleStatus.FADED: ("orange", "flagged", "told at least twice, and the failure came back more often than not"),
    RuleStatus.OFF: ("gray", "stopped", "a person has turned it off"),
}
COLUMNS = [
    table.Column("failure", "Failure"),
    table.Column("status", "Status"),
    table.Column("kernels", "Kernels", "right", "that failed so, repairs that failed again apart"),
    table.Column("mended", "Mended", "right", "times that a repair ended it"),
    table.Column("told", "Kernels told", "right", "kernels whose writer was told the rule in these words"),
    table.Column("recurred", "Came back", "right", "of the kernels told, how many failed so all the same"),
    table.Column("last", "Last seen", "right"),
]
CASES = [
    table.Column("kernel", "Kernel", help="opens the kernel, where the run is in this home"),
    table.Column("what", "What it shows"),
    table.Column("message", "First line of its failure"),
    table.Column("task", "Task", "nowrap"),
    table.Column("at", "When", "right"),
]


def draw() -> str | None:
    """The table and the rule that is open; the kernel opened just now, if any, as run and candidate."""
    found = index.known().rules()
    if not found:
        st.info(
            "No failure has been kept yet: every run adds those of its own kernels as it goes.", icon=":material/rule:"
        )
        return None
    shown, offset = known_tables.a_part(found)
    rows = [table.Row(one.rule_id, cells(one), link(one)) for one in shown]
    chosen = st.query_params.get(RULE, "")
    opened = table.draw("Failure rules", COLUMNS, rows, key="rules", selected=chosen, is_cards=True)
    st.caption(
        f"{known_tables.showing(offset, len(shown), len(found), 'failure')}, most kernels first. Runs that ask the "
        f"knowledge base tell the writer of each kernel at most {MOST_TOLD} *active* rules of its language and "
        f"toolchain. One stays *waiting* until {LEAST_KERNELS} kernels failed so and a repair said how it mended one, "
        "or until a person words it. A row opens its kernels."
    )
    if opened:
        st.query_params[RULE] = opened
        st.rerun()
    rule = next((one for one in found if one.rule_id == chosen), None)
    return _draw_one(rule) if rule else None


def link(one: FailureRule) -> str:
    """The deep link of a rule."""
    return f"knowledge?show=failure+rules&rule={one.rule_id}"


def cells(one: FailureRule) -> dict[str, table.Cell]:
    """One rule as cells."""
    tone, icon, title = STATUS[one.status]
    place = f"{one.language} on {one.toolchain}"
    why = f"waits for {one.waits_for}" if one.waits_for else title
    return {
        "failure": table.link(wording.as_written_here(one.signature), f"{place}: {one.mend}"),
        "status": table.pill(one.status, tone, icon, why),
        "kernels": table.text(wording.count(one.kernels), "", wording.counted(one.runs, "run")),
        "mended": wording.count(one.mended),
        "told": wording.count(one.told),
        "recurred": wording.count(one.recurred) if one.told else wording.NONE,
        "last": table.age(one.last_at),
    }


def _draw_one(rule: FailureRule) -> str | None:
    st.markdown(f"## {wording.plain(wording.as_written_here(rule.signature))}")
    by = "as a person words it" if rule.is_worded else "as the first repair that mended it says"
    st.markdown(f"**{wording.plain(rule.words)}** ({by})" if rule.words else f"{rule.mend.capitalize()}.")
    if rule.waits_for:
        st.caption(wording.plain(f"No writer is told it yet: it waits for {rule.waits_for}."))
    if access.may_steer():
        with st.container(horizontal=True):
            st.button(
                "Edit", icon=":material/edit:", key=f"edit:{rule.rule_id}", on_click=dialogs.ask, args=(Dialog.RULE,),
                kwargs={"subject": rule.rule_id},
            )  # fmt: skip
            label, icon = ("Turn on", "toggle_on") if rule.is_disabled else ("Turn off", "toggle_off")
            st.button(
                label, icon=f":material/{icon}:", key=f"switch:{rule.rule_id}", on_click=dialogs.ask,
                args=(Dialog.SWITCH,), kwargs={"subject": f"rule:{rule.rule_id}"},
            )  # fmt: skip
    found = browsing.cases(index.known(), rule)
    known_runs = queries.titles(index.current(), {one.run_id for one in found})
    rows = [
        table.Row(
            f"{one.run_id}\n{one.candidate_id}", case_cells(one, rule, one.run_id in known_runs), _link(one, known_runs)
        )
        for one in found
    ]
    opened = table.draw("Kernels of this failure", CASES, rows, key="rule_cases", is_cards=True)
    newest = "the newest " if len(found) == browsing.PAGE else ""
    st.caption(f"{newest}{wording.counted(len(found), 'kernel')}, newest first".capitalize())
    return f"{opened}\n" if opened else None


def _link(one: FailureCase, known_runs: Container[str]) -> str:
    run = wording.in_address(one.run_id)
    return f"candidate?run={run}&candidate={wording.in_address(one.candidate_id)}" if one.run_id in known_runs else ""


def case_cells(one: FailureCase, rule: FailureRule, is_here: bool) -> dict[str, table.Cell]:
    """One kernel as cells; a link where its run is in this home."""
    origin = f"{one.run_id}, from {one.origin}" if one.origin else one.run_id
    name = f"kernel {one.candidate_id.lstrip('c0')}"
    return {
        "kernel": table.link(name, origin) if is_here else table.text(name, "", origin),
        "what": what(one, rule),
        "message": table.text(one.message or wording.NONE, "" if one.message else "muted"),
        "task": table.text(wording.task(one.task), "", one.model),
        "at": table.age(one.at),
    }


def what(one: FailureCase, rule: FailureRule) -> table.Cell:
    """What a kernel shows of a rule: failed so, mended it, or told and free of it."""
    is_told = rule.name in one.told
    if one.signature == rule.signature:
        word = "failed so again" if one.is_repeat else "told, and failed so" if is_told else "failed so"
        return table.pill(word, "red", "broken")
    if one.mends == rule.signature:
        return table.pill("mended it", "green", "held", note=one.words)
    return table.pill("told, without it", "green", "held")
