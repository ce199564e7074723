"""The overview's table: one line a run, with what it is, how far it is, how fast it got; and what can be done to it
right from its row. Rows can be ticked, for Compare and for what is done to several at once; a column's head orders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import streamlit as st

from engine.evaluator import languages
from pages.parts import access, index, method, run_state, suite_folders, wording
from pages.parts.overview import label_dialogs, runs_filter
from pages.parts.status import alerts, alternatives, damaged, provenance
from pages.parts.status.alerts import Alert
from pages.parts.steering import dialogs, reply_form, steer
from pages.parts.steering.verb_words import VERB_WORDS
from pages.parts.widgets import table
from storage.index import queries
from storage.index.queries import BaselineRow, ElsewhereRow, RunRow, RunSort
from storage.run.labels import Mark
from storage.run.settings import RunState
from storage.run.steering import commands
from storage.run.steering.verbs import CommandKind

COLUMNS = [
    table.Column("run", "Run", "line", "name or task; then tags, and why a run is not running"),
    table.Column("state", "State"),
    table.Column("depth", "Steps", help="completed steps of the search (depths, rounds) of the maximum"),
    table.Column(
        "best",
        "Best speed-up",
        "right",
        "over the eager baseline, with its 95 % interval; ⚑ is to look at: something found could change the verdict; "
        "a word beside it is a person's mark of that kernel",
    ),
    table.Column("over", alternatives.OVER_BEST, "right", alternatives.OVER_BEST_ABOUT),
    table.Column("curve", "Curve", help="best speed-up so far after each step of the search, log scale"),
    table.Column("correct", "Correct", "right", "correct kernels of all judged kernels; the last error in the hint"),
    table.Column("model", "Model", "roomy"),
    table.Column("strategy", "Strategy", "roomy"),
    table.Column("device", "Runs on", "roomy", "device and toolchain"),
    table.Column("cost", "Cost", "right", "cost of the model calls; unknown where no price is set in prices.toml"),
    table.Column("age", "Last event", "right"),
    table.Column("do", "Actions", "right"),
]
# The order that a click on a column's head asks for first, and the one for the next click.
HEADS: Mapping[str, tuple[RunSort, RunSort]] = {
    "run": (RunSort.TASK, RunSort.TASK_BACKWARDS),
    "state": (RunSort.STATE, RunSort.STATE),
    "depth": (RunSort.DEPTH, RunSort.DEPTH),
    "best": (RunSort.BEST, RunSort.SLOWEST),
    "correct": (RunSort.ERRORS, RunSort.CORRECT),
    "model": (RunSort.MODEL, RunSort.MODEL),
    "cost": (RunSort.COST, RunSort.CHEAPEST),
    "age": (RunSort.LAST_EVENT, RunSort.QUIET),
}
UPWARDS = {RunSort.TASK, RunSort.STATE, RunSort.MODEL, RunSort.SLOWEST, RunSort.ERRORS, RunSort.CHEAPEST, RunSort.QUIET}
DO, ORDER, COMPARE, LABELS = "do:", "order:", "compare:", "labels:"
# What a row offers, with the icon of each.
ICONS = {CommandKind.RESUME: "running", CommandKind.PAUSE: "paused", CommandKind.STOP: "stopped"}
TICK = "Tick runs to compare or label them."
TICK_HERE = "Tick runs to compare them."
MOST_TAGS = 3


def draw(
    shown: Sequence[RunRow],
    states: Mapping[str, RunState],
    by_run: Mapping[str, Sequence[Alert]],
    sort: RunSort,
    most_compared: int,
) -> str | None:
    """Draw the table; the id of the run opened just now, or what a button of it asks for, if any."""
    db, run_ids = index.current(), [run.run_id for run in shown]
    fastest, suites = queries.fastest_baselines(db, run_ids), suite_folders.of_runs(run_ids)
    without = [run.run_id for run in shown if run.best_speedup and run.run_id not in fastest]
    elsewhere, marks = queries.baselines_elsewhere(db, without) if without else {}, queries.marks(db, run_ids)
    rows = [
        table.Row(
            run.run_id,
            _cells(
                run, states[run.run_id], by_run.get(run.run_id, ()), fastest.get(run.run_id),
                elsewhere.get(run.run_id), suites.get(run.run_id, ""),
                marks.get(run.run_id, {}).get(run.best_candidate_id or ""),
            ),
            f"run?run={wording.in_address(run.run_id)}", f"{run.title}, {run.run_id}",
        )
        for run in shown
    ]  # fmt: skip
    for_ticked = [table.bulk("Compare", COMPARE, 2, most_compared)]
    if access.may_steer():
        for_ticked.append(table.bulk("Name, tags, archive, delete", LABELS))
    say = TICK if access.may_steer() else TICK_HERE
    return table.draw(
        "Runs", [_headed(column, sort) for column in COLUMNS], rows, key="runs", is_cards=True, is_lines=True,
        for_ticked=for_ticked, say=say,
    )  # fmt: skip


def _headed(column: table.Column, sort: RunSort) -> table.Column:
    """The column with what its head opens, and the order that the rows stand in."""
    if column.key not in HEADS:
        return column
    first, second = HEADS[column.key]
    now = ("ascending" if sort in UPWARDS else "descending") if sort in (first, second) else ""
    next_sort = second if sort is first else first
    return table.Column(column.key, column.label, column.align, column.help, f"{ORDER}{next_sort}", now)


def _cells(
    run: RunRow,
    state: RunState,
    run_alerts: Sequence[Alert],
    fastest: BaselineRow | None,
    elsewhere: ElsewhereRow | None = None,
    suite: str = "",
    mark: Mark | None = None,
) -> dict[str, table.Cell]:
    actions, state = _actions(run, state), run_state.shown_state(run)
    of_suite = [table.pill(f"suite {wording.cut(suite, 24)}", "gray", title=f"a run of suite {suite}")] if suite else []
    badges = _tags(run) + of_suite + damaged.cells(run.run_id) + _kinds(run) + alerts.badge(run_alerts)
    done, most = method.completed(run)
    model = wording.model(run.model, run.is_example)
    told = queries.HANDED_IN if wording.is_handed_in(run.model, run.is_example) else wording.cut(model, 22)
    details = f"{wording.CLASS_NAME[run.kernel_class]} · {languages.label(run.language)} · {run.run_id}"
    task = f"{wording.task(run.task_name)} · " if run.label else ""
    return {
        "run": table.link(run.title, _why(run, state) or task + details, badges, _hint(run, details)),
        "state": table.pill(
            "waiting for you" if state is RunState.WAITING else wording.STATE_NAME[state],
            wording.STATE_TONE[state], state, run.state_reason,
        ),
        "depth": table.bar(
            f"{done:,} / {most:,}", min(1.0, done / most) if most else 0.0, "",
            f"engine time {wording.seconds(run.engine_s)}" if run.engine_s else "",
        ),
        "best": _best(run, mark),
        "over": _over(run, fastest, elsewhere),
        "curve": table.spark(run.curve, f"{wording.best(run)} best"),
        "correct": _correct(run),
        "model": table.text(told, title=model),
        "strategy": table.text(wording.cut(run.strategy, 20), title=run.strategy),
        "device": table.text(
            wording.cut(run.device, 18) or run.toolchain, "", run.toolchain if run.device else "", run.device
        ),
        "cost": _cost(run),
        "age": table.age(run.last_event_at),
        "do": table.buttons(actions),
    }  # fmt: skip


def _hint(run: RunRow, details: str) -> str:
    """What stands behind the pointer on a run's name."""
    return "\n".join(line for line in (wording.task(run.task_name), details, run.note) if line)


def _tags(run: RunRow) -> list[table.Cell]:
    shown = [table.pill(tag, "blue") for tag in run.tags[:MOST_TAGS]]
    more = len(run.tags) - MOST_TAGS
    return [*shown, table.pill(f"+{more}", "blue", title=", ".join(run.tags))] if more > 0 else shown


def _kinds(run: RunRow) -> list[table.Cell]:
    """What sets a run apart from one that a live model works on."""
    kinds = {"archived": run.is_archived, "demo": run.is_demo, "replay": run.replay_of is not None}
    kinds["example"] = run.is_example and run.replay_of is None
    kinds["imported"] = run.is_imported
    kinds["recorded replies"] = run.has_recorded_replies and not run.is_demo
    return [table.pill(name, "gray") for name, is_so in kinds.items() if is_so] + provenance.fork_cells(run)


def _best(run: RunRow, mark: Mark | None = None) -> table.Cell:
    if run.best_speedup is None:
        return table.text(wording.NONE, "muted", "", "no correct kernel yet")
    tone = wording.gain_tone(run.best_low, run.best_high)
    best = wording.best(run)
    beside = wording.beside(run.best_noise, run.best_low, run.best_high)
    note, title = ("", beside) if beside == wording.TOO_WIDE else (beside, "")
    said = [table.pill(mark.kind, wording.MARK_TONE[mark.kind], title=mark.in_words)] if mark else []
    if not run.best_looks:
        return table.text(best, tone, note, title, said)
    could = (
        f"To look at: {wording.counted(run.best_looks, 'finding')} of the best kernel could change its verdict. The "
        "run's page and the kernel's Trust tab say what to do."
    )
    flag = table.pill("⚑", "orange")  # with a word more the names of runs break
    return table.text(best, tone, note, "\n".join(filter(None, [title, could])), [flag, *said])


def _over(run: RunRow, fastest: BaselineRow | None, elsewhere: ElsewhereRow | None = None) -> table.Cell:
    """The best kernel over the best alternative, and what that is."""
    if said := alternatives.elsewhere(elsewhere, run.best_measured):
        return table.text(wording.NONE, "muted", "not measured in this run", said)
    ratio = fastest.under(run.best_measured) if fastest else None
    if fastest is None or ratio is None:
        return table.text(wording.NONE, "muted", "", "no alternative was timed")
    if alternatives.is_eager_best(fastest):
        over_eager = wording.best(run)
        return table.text(over_eager, "", alternatives.EAGER, alternatives.EAGER_IS_BEST)
    lost = alternatives.loses(fastest, run.best_measured)
    over = wording.ratio(ratio)
    return table.text(
        over, "orange" if lost else "", wording.cut(fastest.name, 26), f"the best kernel {lost}" if lost else ""
    )


def _correct(run: RunRow) -> table.Cell:
    """How many passed; a run that is wrong more often than right says what was wrong last."""
    share, judged = wording.share(run.passed, run.passed + run.failed), run.passed + run.failed
    short = f"{run.passed} of {judged}" if judged else wording.NONE
    hint = share if not run.last_error else f"{share}; last error: {run.last_error}"
    return table.text(short, "red" if run.failed > run.passed else "", "", hint)


def _cost(run: RunRow) -> table.Cell:
    """What a run has spent; what a replay tells of was spent by the run itself."""
    if run.replay_of:
        return table.text(wording.NONE, "muted", "", "replay")
    why_none = wording.why_none(run.cost_usd, run.model)
    tone = "muted" if run.cost_usd is None or why_none else ""
    hint = why_none or f"tokens: {wording.tokens(run.tokens)}"
    return table.text(wording.cost(run.cost_usd, run.model), tone, "", hint)


def _why(run: RunRow, state: RunState) -> str:
    if state is RunState.WAITING:
        return wording.cut(run.waiting_reason, 80)
    if state is RunState.LOST:
        damages = damaged.of(run.run_id)
        rest = "; can be resumed" if damages.can_resume else ""
        return "end of the journal missing" if damages.is_cut else f"its engine ended{rest}"
    has_none = state is RunState.FAILED and run.failed and not run.passed and "no correct" not in run.state_reason
    why = f"no kernel was correct: {run.state_reason}" if has_none else run.state_reason
    return wording.cut(why, 80) if state in (RunState.FAILED, RunState.STOPPED) else ""


def _actions(run: RunRow, state: RunState) -> list[table.Cell]:
    """Buttons of a row, where people may steer: those for an engine at work, and the run's labels."""
    if not access.may_steer():
        return []
    offered = [command for command in ICONS if commands.is_offered(command, state)]
    if reply_form.needs_answer(run, state):
        offered.remove(CommandKind.RESUME)
    label = table.button("Labels", "label", f"{LABELS}{run.run_id}", f"Name, tags and more: {run.title}, {run.run_id}")
    return [*(_button(command, run) for command in offered), label]


def _button(command: CommandKind, run: RunRow) -> table.Cell:
    label = VERB_WORDS[command].label
    return table.button(label, ICONS[command], f"{DO}{command}:{run.run_id}", f"{label}: {run.title}, {run.run_id}")


def take_action(opened: str, shown: Sequence[RunRow]) -> bool:
    """Do what a button of the table asked for; False when it was no such button."""
    if opened.startswith(COMPARE):
        st.switch_page("compare.py", query_params={"runs": opened.removeprefix(COMPARE)})
    if opened.startswith(LABELS):
        label_dialogs.ask(opened.removeprefix(LABELS).split(","))
        st.rerun()
    if opened.startswith(ORDER):
        runs_filter.ask({runs_filter.SORT: RunSort(opened.removeprefix(ORDER))})
    if not opened.startswith(DO):
        return False
    command, _, run_id = opened.removeprefix(DO).partition(":")
    run = next((run for run in shown if run.run_id == run_id), None)
    kind = CommandKind(command) if command in ICONS else None
    if run and kind in dialogs.OF_VERB:
        dialogs.ask(dialogs.OF_VERB[kind], run.run_id)
        st.rerun()
    elif run and kind:
        steer.send(run.run_id, kind)
        st.rerun(scope="fragment")  # the word back stands at the top of the page
    return True
