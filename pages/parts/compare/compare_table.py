"""The compared runs as rows: how far, how fast, with what and for how much. Pure but for drawing."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from engine.evaluator import languages
from pages.parts import method, wording
from pages.parts.compare.compared_runs import Compared, pass_rates
from pages.parts.pass_rates import ABOUT, help_of
from pages.parts.status import alternatives, settings_list
from pages.parts.widgets import table
from storage.index.queries import ConditionsRow
from storage.results.relative import is_known

COLUMNS = [
    table.Column("run", "Run", "words"),
    table.Column("state", "State"),
    table.Column("best", "Best speed-up", "right", "over the eager baseline, with its 95 % interval"),
    table.Column("second", alternatives.OVER_BEST, "right", alternatives.OVER_BEST_ABOUT),
    table.Column("depth", "Steps", "right", "completed steps of the search (depths, rounds) of the maximum"),
    table.Column("correct", "Correct", "right", "correct kernels of those judged"),
    table.Column("tokens", "Tokens", "right", "input and output; unknown where the endpoint did not report them"),
    table.Column("cost", "Cost", "right", "of the model calls; unknown where a price is missing"),
    table.Column("time", "Engine time", "right", "in steps, also those that were cut off; pauses excluded"),
    table.Column(
        "exposed", "Profiles shown", "nowrap", "first step of the search in which the model was shown a profile"
    ),
    table.Column("where", "Where", "words"),
]


def draw(runs: Sequence[Compared]) -> str | None:
    """Draw the table; the id of the run opened just now, if any."""
    rows = [table.Row(run.run.run_id, cells(run), f"run?run={wording.in_address(run.run.run_id)}") for run in runs]
    return table.draw("Compared runs", COLUMNS, rows, key="compared", is_cards=True)


def draw_settings(runs: Sequence[Compared]) -> None:
    """The settings in which the runs differ, a row each; nothing where they have the same."""
    differing = settings_list.differing([run.run.run_id for run in runs])
    if not differing:
        return
    columns = [table.Column("", "Setting"), *(table.Column(run.letter, run.letter) for run in runs)]
    keys = [column.key for column in columns]
    rows = [table.Row(row[0], dict(zip(keys, map(table.text, row), strict=True))) for row in differing]
    with st.expander("Settings that differ", icon=":material/tune:"):
        table.draw("Settings that differ", columns, rows, key="settings_that_differ", is_compact=True)


def draw_tries(runs: Sequence[Compared]) -> None:
    """How often the model's kernels pass and what a pass costs, a row a run; nothing before the first try."""
    tried = [(run, pass_rates(run)) for run in runs if run.tries]
    if not tried:
        return
    names = list(dict.fromkeys(name for _, rates in tried for name, _ in rates.figures() if name.startswith("Pass")))
    columns = [
        table.Column("run", "Run"),
        table.Column("tries", "Tries", "right", "correct kernels of those tried"),
        *(table.Column(name, name, "right", help_of(name)) for name in [*names, "Perf@1", "Cost a pass"]),
    ]
    rows = [
        table.Row(
            run.run.run_id,
            {
                "run": table.text(f"{run.letter} · {run.run.title}"),
                "tries": table.text(wording.share(rates.passed, len(rates.tries)), "", rates.without_verdict),
                **dict.fromkeys(names, table.text(wording.NONE, "muted")),
                **{name: table.text(value) for name, value in rates.figures()},
            },
        )
        for run, rates in tried
    ]
    with st.expander("How often kernels pass", icon=":material/rule:"):
        table.draw("How often kernels pass", columns, rows, key="tries", is_compact=True)
        st.caption(ABOUT)


def cells(run: Compared) -> dict[str, table.Cell]:
    """One run as cells."""
    row, facts = run.run, run.conditions
    return {
        "run": table.link(
            f"{run.letter} · {row.title}",
            f"{wording.model(row.model, row.is_example)} · {wording.moment(row.created_at)}",
        ),
        "state": table.pill(run.state, wording.STATE_TONE[run.state], run.state),
        "best": _best(run),
        "second": second(run),
        "depth": "{:,} / {:,}".format(*method.completed(row)),
        "correct": wording.share(row.passed, row.passed + row.failed),
        "tokens": _known(wording.tokens(facts.tokens, row.model), wording.counted(row.model_calls, "call")),
        "cost": _known(wording.cost(facts.cost_usd, row.model)),
        "time": wording.seconds(facts.engine_s),
        "exposed": exposure(facts),
        "where": table.text(facts.device or "not measured yet", "" if facts.device else "muted", conditions(run)),
    }


def conditions(run: Compared) -> str:
    """Class, language, toolchain, precision and baseline in one line."""
    facts = run.conditions
    against = f"over {facts.baseline}" if facts.baseline else "nothing timed yet"
    return " · ".join(
        [
            run.run.kernel_class,
            languages.label(facts.language),
            facts.toolchain,
            facts.precision or wording.UNKNOWN,
            against,
        ]
    )


def exposure(facts: ConditionsRow) -> str:
    """When the model saw a profile for the first time."""
    return "never" if facts.exposed_at is None else f"from step {facts.exposed_at}"


def second(run: Compared) -> table.Cell:
    """The best kernel over the best alternative and what that is, as far as both are known."""
    ratio = run.fastest.under(run.run.best_measured) if run.fastest else None
    if run.fastest is None or ratio is None:
        return wording.NONE
    if alternatives.is_eager_best(run.fastest):
        return table.text(wording.best(run.run), "", alternatives.EAGER, alternatives.EAGER_IS_BEST)
    tone = "orange" if ratio.is_slower and is_known(ratio.noise) else ""
    return table.text(wording.ratio(ratio), tone, run.fastest.name)


def _best(run: Compared) -> table.Cell:
    row = run.run
    if row.best_speedup is None:
        return table.text(wording.NONE, "muted", "no correct kernel timed yet")
    tone = wording.gain_tone(row.best_low, row.best_high)
    best = wording.best(row)
    return table.text(best, tone, wording.beside(row.best_noise, row.best_low, row.best_high))


def _known(text: str, note: str = "") -> table.Cell:
    return table.text(
        text,
        "muted" if text in (wording.UNKNOWN, wording.UNTOLD, wording.UNRECORDED, wording.PAID_NOTHING) else "",
        note,
    )
