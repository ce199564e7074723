"""What each model has come to over all runs: how often it is right, how fast its kernels are, what it costs."""

from __future__ import annotations

import streamlit as st

from pages.parts import index, wording
from pages.parts.widgets import table
from storage.index import queries
from storage.index.queries import ModelRow
from storage.run.steering.command_arguments import MANUAL

NAMED = "as its service calls it, or the name under which it is saved"
WIN = "a kernel that became the best of its run and beats eager PyTorch by more than the noise"
COLUMNS = [
    table.Column("model", "Model", "nowrap", NAMED),
    table.Column("runs", "Runs", "right", "runs in which the model has replied"),
    table.Column("passed", "Correct", "right", "correct kernels of all that were judged"),
    table.Column("compiled", "Compiles at first try", "right", "of the kernels that were compiled"),
    table.Column("best", "Best speed-up", "right", "over the eager baseline, of any run"),
    table.Column("wins", "Wins", "right", WIN),
    table.Column(
        "tokens", "Tokens", "right", "pieces of words in which a model reads and writes and is paid; read and written"
    ),
    table.Column("cost", "Cost", "right", "US dollars of all calls, by the prices in prices.toml"),
    table.Column("cost_call", "Cost a call", "right", "US dollars, mean over all calls"),
    table.Column("cost_win", "Cost a win", "right", f"cost of all calls, for each win: {WIN}"),
    table.Column("call_s", "Time a call", "right", "from the question to the end of a model's reply, median"),
    table.Column("win_s", "Time a win", "right", f"time of all calls, for each win: {WIN}"),
]


def draw() -> None:
    """One row a model; nothing before the first call."""
    models = queries.model_figures(index.current())
    if not models:
        return
    st.markdown("## By model")
    table.draw("What each model has come to", COLUMNS, [table.Row(row.model, cells(row)) for row in models],
               key="by_model", is_cards=True)  # fmt: skip
    st.caption(
        f"A win is {WIN}. Runs: those in which the model has replied, the demo included; replays and examples are "
        "not counted. A cost is unknown where prices.toml has no price for the model."
    )


def part(count: int, whole: int, tone: str = "") -> table.Cell:
    """A share with what it is of below; a dash where there is nothing to be a share of."""
    return table.text(wording.percent(count / whole), tone, f"{count:,} of {whole:,}") if whole else wording.NONE


def cells(row: ModelRow) -> dict[str, table.Cell]:
    """One model as cells."""
    cost, is_person = row.cost_usd if not row.unpriced else None, row.model == MANUAL
    return {
        "model": table.text(row.model, "strong"),
        "runs": wording.count(row.runs),
        "passed": part(row.passed, row.judged),
        "compiled": part(row.compiled, row.built),
        "best": table.text(wording.best(row),
                           wording.gain_tone(row.best_low, row.best_high), wording.task(row.best_task or "")),
        "wins": wording.count(row.wins),
        "tokens": table.text(wording.tokens(row.tokens, row.model), "", wording.counted(row.calls, "call")),
        "cost": wording.cost(cost, row.model),
        "cost_call": wording.cost(None if cost is None else cost / row.calls, row.model),
        "cost_win": (
            wording.cost(None if cost is None else cost / row.wins, row.model) if row.wins else wording.NONE
        ),
        "call_s": wording.NONE if is_person else wording.seconds(row.call_s),
        "win_s": wording.seconds(row.calls_s / row.wins) if row.wins and not is_person else wording.NONE,
    }  # fmt: skip
