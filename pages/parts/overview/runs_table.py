"""The overview's table: what each run is, how far it is, how fast it got, what went wrong; and what can be done to it
right from its row: pause, go on, stop. Above it which runs are shown, in which order: fields whose values stand in the
address, so a view can be sent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import streamlit as st

from engine import languages
from pages.parts import access, run_state, wording
from pages.parts.status import alerts, damaged, provenance
from pages.parts.status.alerts import Alert
from pages.parts.steering import dialogs, steer
from pages.parts.widgets import table
from storage import commands
from storage.queries import Choices, RunFilter, RunRow, RunSort, StateCount
from storage.records import CommandKind, RunState
from storage.verbs import VERBS

COLUMNS = [
    table.Column("run", "Task"),
    table.Column("state", "State"),
    table.Column("depth", "Step", help="last step of the search (depth, round) of the maximum, and the engine time"),
    table.Column("best", "Best speed-up", "right", "over the eager baseline, with its 95 % interval"),
    table.Column("curve", "Curve", help="best speed-up so far after each step of the search, log scale"),
    table.Column("correct", "Correct", help="correct kernels of all judged kernels, and the last error"),
    table.Column("device", "Runs on", help="device and toolchain"),
    table.Column("cost", "Cost", "right", "cost of the model calls; unknown where no price is set in prices.toml"),
    table.Column("age", "Last event", "right"),
]
HEADLINE_STATES = (RunState.RUNNING, RunState.PAUSED, RunState.LOST, RunState.FAILED)
SIGN = "do:"
# What a row offers, with the icon of each.
ICONS = {CommandKind.RESUME: "running", CommandKind.PAUSE: "paused", CommandKind.STOP: "stopped"}


def draw(shown: Sequence[RunRow], states: Mapping[str, RunState], found: Mapping[str, Sequence[Alert]]) -> str | None:
    """Draw the table; the id of the run opened just now, or what a button in its row asks for, if any."""
    rows = [
        table.Row(run.run_id, _cells(run, states[run.run_id], found.get(run.run_id, ())), f"run?run={run.run_id}")
        for run in shown
    ]
    return table.draw("Runs", COLUMNS, rows, key="runs", is_cards=True)


def headline(total: int, counts: Sequence[StateCount], waiting: int) -> None:
    """How many runs there are, how many of them need a person, how many are at work or in trouble."""
    found = {row.state: row.runs for row in counts}
    parts = [f"{total:,} {'run' if total == 1 else 'runs'}"]
    if waiting:
        parts.append(f":orange-badge[{wording.STATE_ICON[RunState.WAITING]} {waiting:,} waiting for you]")
    parts += [
        f":{wording.STATE_TONE[state]}-badge[{wording.STATE_ICON[state]} {found[state]:,} {state}]"
        for state in HEADLINE_STATES
        if found.get(state)
    ]
    st.markdown("  ".join(parts))


def _cells(run: RunRow, state: RunState, found: Sequence[Alert]) -> dict[str, table.Cell]:
    actions, state = _actions(run, state), run_state.standing(run)
    badges = damaged.cells(run.run_id) + _labels(run) + alerts.badge(found)
    told = f"{run.kernel_class} · {languages.label(run.language)}"
    return {
        "run": table.link(run.title, f"{told} · {run.model} · {run.run_id[-20:]}", badges),
        "state": table.pill(
            "waiting for you" if state is RunState.WAITING else state, wording.STATE_TONE[state], state,
            run.state_reason, _why(run, state), actions,
        ),
        "depth": table.bar(
            f"{run.depth if run.depth is not None else 0} / {run.depths}", _progress(run),
            f"{wording.seconds(run.engine_s)}" if run.engine_s else "",
        ),
        "best": _best(run),
        "curve": table.spark(run.curve, f"{wording.speedup(run.best_speedup)} best"),
        "correct": _correct(run),
        "device": table.text(wording.cut(run.device, 26) or run.toolchain, "", run.toolchain if run.device else ""),
        "cost": _cost(run),
        "age": table.age(run.last_event_at),
    }  # fmt: skip


def _labels(run: RunRow) -> list[table.Cell]:
    """What sets a run apart from one that a live model works on."""
    labels = {"demo": run.is_demo, "replay": run.replay_of is not None, "imported": run.is_imported}
    labels["recorded replies"] = run.has_recorded_replies and not run.is_demo
    return [table.pill(name, "gray") for name, is_so in labels.items() if is_so] + provenance.fork_cells(run)


def _progress(run: RunRow) -> float:
    return min(1.0, (run.depth or 0) / run.depths) if run.depths else 0.0


def _best(run: RunRow) -> table.Cell:
    if run.best_speedup is None:
        return table.text(wording.NONE, "muted", "no correct kernel yet")
    tone = "green" if run.best_low and run.best_low > 1 else "strong"
    return table.text(wording.speedup(run.best_speedup), tone, wording.interval(run.best_low, run.best_high))


def _correct(run: RunRow) -> table.Cell:
    """How many passed; a run that is wrong more often than right says what was wrong last."""
    judged = run.passed + run.failed
    note = wording.cut(run.last_error, 48) if run.failed else ""
    return table.text(wording.share(run.passed, judged), "red" if run.failed > run.passed else "", note, run.last_error)


def _cost(run: RunRow) -> table.Cell:
    """What a run has spent; what a replay tells of was spent by the run itself."""
    if run.replay_of:
        return table.text(wording.NONE, "muted", "replay")
    tone = "muted" if run.cost_usd is None else ""
    return table.text(wording.cost(run.cost_usd), tone, f"{wording.tokens(run.tokens)} tokens")


def _why(run: RunRow, state: RunState) -> str:
    if state is RunState.WAITING:
        return wording.cut(run.waiting_reason, 44)
    if state is RunState.LOST:
        found = damaged.of(run.run_id)
        return (
            "end of the journal missing" if found.is_cut else f"crashed{'; can be resumed' if found.can_resume else ''}"
        )
    return wording.cut(run.state_reason, 44) if state in (RunState.FAILED, RunState.STOPPED) else ""


def _actions(run: RunRow, state: RunState) -> list[table.Cell]:
    """Buttons for a run that an engine works on, where people may steer."""
    if not access.may_steer():
        return []
    return [_button(command, run) for command in ICONS if commands.is_offered(command, state)]


def _button(command: CommandKind, run: RunRow) -> table.Cell:
    label = VERBS[command].label
    return table.button(label, ICONS[command], f"{SIGN}{command}:{run.run_id}", f"{label}: {run.title}, {run.run_id}")


def take_action(opened: str, shown: Sequence[RunRow]) -> bool:
    """Do what a button of a row asked for; False when it was no such button."""
    if not opened.startswith(SIGN):
        return False
    command, _, run_id = opened.removeprefix(SIGN).partition(":")
    run = next((one for one in shown if one.run_id == run_id), None)
    verb = VERBS[CommandKind(command)] if command in ICONS else None
    if run and verb and verb.is_confirmed:
        dialogs.ask(dialogs.OF_VERB[verb.kind], run.run_id)
        st.rerun()
    elif run and verb:
        steer.send(run.run_id, verb.kind)
        st.rerun(scope="fragment")  # the word back stands at the top of the page
    return True


SORT_NAME = {
    RunSort.NEWEST: "newest first",
    RunSort.LAST_EVENT: "latest event first",
    RunSort.BEST: "fastest first",
    RunSort.COST: "most expensive first",
    RunSort.ERRORS: "most errors first",
    RunSort.TASK: "by task",
}
# Names of their own: other pages have fields called task and model, and an address holds only this page's.
FIND, STATE, TASK, MODEL, SORT, PAGE = "find", "state", "task_name", "model_name", "sort", "page"


def draw_filter(choices: Choices) -> tuple[RunFilter, RunSort]:
    """The fields, and what they say now."""
    with st.container(horizontal=True, gap="small", vertical_alignment="bottom", key="runs_filter"):
        text = st.text_input(
            "Find", key=FIND, type="search", placeholder="task, model, device or ID", width=230, bind="query-params",
            on_change=first_page,
        )  # fmt: skip
        state = _choice("State", STATE, [str(one) for one in RunState], 165)
        task = _choice("Task", TASK, choices.tasks, 165)
        model = _choice("Model", MODEL, choices.models, 165)
        sort = st.selectbox(
            "Order", list(RunSort), format_func=SORT_NAME.__getitem__, key=SORT, width=165, bind="query-params",
            on_change=first_page,
        )  # fmt: skip
    return RunFilter(state, task, model, text or ""), RunSort(sort or RunSort.NEWEST)


def _choice(label: str, key: str, options: Sequence[str], width: int) -> str:
    """One of the options, or any. Trap: the address holds the name on screen, so it must not change with the data."""

    return str(
        st.selectbox(
            label, ["", *options], format_func=lambda one: one or "any", key=key, width=width, bind="query-params",
            on_change=first_page,
        ) or ""
    )  # fmt: skip


def first_page() -> None:
    """Another choice begins on its first page."""
    # Trap: a value taken away would come back from the address.
    st.session_state[PAGE] = 1


def clear() -> None:
    """Leave everything in."""
    first_page()
    for key in (FIND, STATE, TASK, MODEL):
        st.session_state[key] = ""


def nothing_fits(everything: int) -> None:
    """There are runs, but none of them was asked for."""
    with st.container(border=True, horizontal_alignment="center"):
        st.header(":material/filter_alt_off: No matching runs", text_alignment="center")
        sentence = (
            f"None of the {everything:,} runs matches all filters."
            if everything > 1
            else "The only run does not match."
        )
        st.markdown(sentence, text_alignment="center")
        st.button("Show all runs", icon=":material/filter_alt_off:", on_click=clear, key="clear_filter")
