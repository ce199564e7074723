"""Every cell of a suite, a row a task: state, best speed-up with its interval, what a person should look at."""

from __future__ import annotations

from engine.suites.formats import interval, name, times
from engine.suites.tables import best_of, over_alternative, planned_word
from pages.parts import wording
from pages.parts.widgets import table
from storage.suites.records import CellState, Purpose
from storage.suites.statistics import Estimate
from storage.suites.summary import CellResult, Results

TONES: dict[CellState, wording.Tone] = {
    CellState.PLANNED: "gray",
    CellState.RUNNING: "blue",
    CellState.WAITING: "orange",
    CellState.FINISHED: "green",
    CellState.STOPPED: "gray",
    CellState.FAILED: "red",
}
WHOLE = 0.995  # less of a call in the kernel's own code is told
ABOUT = (
    "Each cell of the table is one run, and opens it. Its figure is the best speed-up over eager PyTorch, with the "
    "95 % interval of that measurement; green: faster beyond it. Below that the same kernel over the best alternative, "
    "where its run has timed one beside eager, and how much of a call its own code takes, where PyTorch's operators "
    "take the rest. A flag counts what is to look at: findings that could change the "
    "kernel's verdict."
)

ABOUT_CHECK = (
    "Each cell of the table is one run, and opens it. It works once it has a correct kernel that was timed; how fast "
    "that is stands below it. A flag counts what is to look at: findings that could change the kernel's verdict."
)


def about(results: Results) -> str:
    """What a cell says."""
    return ABOUT_CHECK if results.suite.defined.checks is Purpose.WORKS else ABOUT


def draw(results: Results) -> str | None:
    """The matrix; the run opened just now, if any."""
    repeats = results.suite.defined.repeats
    columns = [table.Column("task", "Task", "nowrap")]
    for arm in results.arms:
        columns += [table.Column(f"{arm}:{n}", f"{arm} · {n}" if repeats > 1 else arm) for n in range(1, repeats + 1)]
    is_check = results.suite.defined.checks is Purpose.WORKS
    classes = {result.cell.task: result.kernel_class for result in results.cells}
    rows: dict[str, dict[str, table.Cell]] = {
        task.name: {"task": table.text(name(task.name), "strong", name(classes.get(task.name, "")))}
        for task in results.suite.defined.tasks
    }
    for result in results.cells:
        rows[result.cell.task][f"{result.cell.arm}:{result.cell.repeat}"] = cell(
            result, is_check=is_check, planned=planned_word(results.suite), only_clean=results.only_clean
        )
    table_rows = [table.Row(task, cells) for task, cells in rows.items()]
    return table.draw("Runs of the suite", columns, table_rows, key="suite_cells", is_cards=True, is_compact=True)


def cell(
    result: CellResult, *, is_check: bool = False, planned: str = CellState.PLANNED, only_clean: bool = False
) -> table.Cell:
    """A cell: its figure where it has one, else its state in a word; of a check whether it works, before the figure."""
    state, best, run_id = result.standing.state, best_of(result), result.standing.run_id
    is_done = state is CellState.FINISHED
    none = "none marked clean" if only_clean else "no correct kernel"
    word = none if is_done else planned if state is CellState.PLANNED else str(state)
    text = times(best.speedup) if best else word
    tone = TONES[state]
    if is_done:
        tone = (
            ("gray" if only_clean else "red")
            if best is None
            else "green"
            if best.low > 1
            else "orange"
            if best.high < 1
            else "yellow"
        )
    reason = wording.cut(result.standing.headroom if is_done else result.standing.reason, 200)
    note = reason[:60]
    if best:
        spread, over = interval(Estimate(best.speedup, best.low, best.high)), over_alternative(result)
        is_shared = best.own_share is not None and best.own_share < WHOLE
        own = f"{wording.percent(best.own_share)} in its own code" if is_shared else ""
        note = "; ".join(filter(None, [spread, over, own]))
        if is_check:
            note = f"{text}, {note}"
            text, tone = ("works", "green") if is_done else (f"works, {state}", tone)
    if not run_id:
        return table.pill(text, tone, "", reason, note)
    flags: list[table.Cell] = []
    address = f"run?run={wording.in_address(run_id)}"
    if best and best.flags:
        flags = [table.badge(f"{len(best.flags)}", "orange", "flagged", run_id, address)]
    shown = table.badge(text, tone, "" if is_done else str(state), run_id, address)
    assert isinstance(shown, dict)
    title = "; ".join([f"{state}, {run_id}", reason, *dict.fromkeys(best.flags if best else ())])
    return shown | {"note": note, "title": title, "badges": flags}
