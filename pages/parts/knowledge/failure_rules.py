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
from storage.index.queries import learning
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
    rules = index.known().rules()
    left_out = without_rule(*learning.without_rule(index.current(), index.known()))
    if not rules:
        st.info(
            "There is no failure rule yet: every run adds those of its own kernels as it goes, examples add none. "
            "Attempts that failed stand under *attempts* all the same.",
            icon=":material/rule:",
        )
        if left_out:
            st.caption(left_out)
        return None
    shown, offset = known_tables.a_part(rules)
    rows = [table.Row(rule.rule_id, cells(rule), link(rule)) for rule in shown]
    chosen = st.query_params.get(RULE, "")
    opened = table.draw("Failure rules", COLUMNS, rows, key="rules", selected=chosen, is_cards=True)
    st.caption(
        f"{known_tables.showing(offset, len(shown), len(rules), 'failure rule')}, most kernels first. Runs that ask "
        f"the knowledge base tell the writer of each kernel at most {MOST_TOLD} *active* rules of its language and "
        f"toolchain. One stays *waiting* until {LEAST_KERNELS} kernels failed so and a repair said how it mended one, "
        "or until a person words it. A row opens its kernels."
    )
    if left_out:
        st.caption(left_out)
    if opened:
        st.query_params[RULE] = opened
        st.rerun()
    rule = next((rule for rule in rules if rule.rule_id == chosen), None)
    return _draw_one(rule) if rule else None


def without_rule(count: int, mended: int) -> str:
    """How many wrong results stand in no row, and why; empty where none is left out."""
    if not count:
        return ""
    many = f"{wording.counted(count, 'wrong result')} of runs here {'is' if count == 1 else 'are'} not among them"
    was = f", though {mended:,} of them {'was' if mended == 1 else 'were'} mended" if mended else ""
    was = ", though it was mended" if mended == count == 1 else was
    return (
        f"{many}{was}: the numbers were wrong all over and for ordinary inputs. That looks alike whatever causes it, "
        "so it would tell the next writer nothing. A wrong result is kept where its place, or the kind of inputs, "
        "says more."
    )


def link(rule: FailureRule) -> str:
    """The deep link of a rule."""
    return f"knowledge?show=failure+rules&rule={rule.rule_id}"


def cells(rule: FailureRule) -> dict[str, table.Cell]:
    """One rule as cells."""
    tone, icon, title = STATUS[rule.status]
    where = f"{rule.language} on {rule.toolchain}"
    why = f"waits for {rule.waits_for}" if rule.waits_for else title
    return {
        "failure": table.link(wording.as_written_here(rule.signature), f"{where}: {rule.mend}"),
        "status": table.pill(rule.status, tone, icon, why),
        "kernels": table.text(wording.count(rule.kernels), "", wording.counted(rule.runs, "run")),
        "mended": wording.count(rule.mended),
        "told": wording.count(rule.told),
        "recurred": wording.count(rule.recurred) if rule.told else wording.NONE,
        "last": table.age(rule.last_at),
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
    cases = browsing.cases(index.known(), rule)
    known_runs = queries.titles(index.current(), {case.run_id for case in cases})
    rows = [
        table.Row(
            f"{case.run_id}\n{case.candidate_id}",
            case_cells(case, rule, case.run_id in known_runs),
            _link(case, known_runs),
        )
        for case in cases
    ]
    opened = table.draw("Kernels of this failure", CASES, rows, key="rule_cases", is_cards=True)
    newest = "the newest " if len(cases) == browsing.PAGE else ""
    st.caption(f"{newest}{wording.counted(len(cases), 'kernel')}, newest first".capitalize())
    return f"{opened}\n" if opened else None


def _link(case: FailureCase, known_runs: Container[str]) -> str:
    run = wording.in_address(case.run_id)
    return f"candidate?run={run}&candidate={wording.in_address(case.candidate_id)}" if case.run_id in known_runs else ""


def case_cells(case: FailureCase, rule: FailureRule, is_here: bool) -> dict[str, table.Cell]:
    """One kernel as cells; a link where its run is in this home."""
    origin = f"{case.run_id}, from {case.origin}" if case.origin else case.run_id
    name = f"kernel {case.candidate_id.lstrip('c0')}"
    return {
        "kernel": table.link(name, origin) if is_here else table.text(name, "", origin),
        "what": what(case, rule),
        "message": table.text(case.message or wording.NONE, "" if case.message else "muted"),
        "task": table.text(wording.task(case.task), "", case.model),
        "at": table.age(case.at),
    }


def what(case: FailureCase, rule: FailureRule) -> table.Cell:
    """What a kernel shows of a rule: failed so, mended it, or told and free of it."""
    is_told = rule.name in case.told
    if case.signature == rule.signature:
        word = "failed so again" if case.is_repeat else "told, and failed so" if is_told else "failed so"
        return table.pill(word, "red", "broken")
    if case.mends == rule.signature:
        return table.pill("mended it", "green", "held", note=case.words)
    return table.pill("told, without it", "green", "held")
