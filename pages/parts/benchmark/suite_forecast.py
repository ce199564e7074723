"""What all runs of a suite will take, before it starts: the forecast that *New run* gives of one, added up."""

from __future__ import annotations

import functools
import math
import shlex
from argparse import ArgumentTypeError
from collections.abc import Sequence
from dataclasses import replace

from engine import run_options, supervisor
from engine.errors import TaskError
from engine.evaluator import tasks
from pages.parts import index, wording
from pages.parts.benchmark import suite_draft
from pages.parts.new_run import forecast
from pages.parts.new_run.forecast import Forecast
from storage.index import queries
from storage.run.settings import Budget
from storage.suites.records import Defined, SuiteLimits

FLAGS = (
    suite_draft.TOOLCHAIN, suite_draft.STRATEGY, suite_draft.MODEL, *(limit.flag for limit in run_options.LIMITS)
)  # fmt: skip


def of_suite(defined: Defined, more: str) -> Forecast | None:
    """The forecast of all its runs together, within its limits; None where its settings cannot be read. `more` are
    further words of `engine run` for each."""
    known = {run.task_name for run in queries.comparable_runs(index.current())}
    of_run = functools.cache(forecast.of_run)  # tasks without a run of their own are told of by the same runs
    cells = []
    try:
        for task in defined.tasks:
            name = name if (name := _name(task.task)) in known else ""
            words = (" ".join((defined.settings, more, task.settings, arm.settings)) for arm in defined.arms)
            cells += [of_run(name, *_settings(text)) for text in words]
    except (ValueError, ArgumentTypeError):
        return None
    return added(cells * defined.repeats, defined.limits)


def added(cells: Sequence[Forecast], limits: SuiteLimits) -> Forecast:
    """The sum; not known where one cell's is not. Cut where a limit of all would end the suite."""
    engine_s, calls = (_sum([getattr(cell, name) for cell in cells]) for name in ("engine_s", "calls"))
    cost = _sum([cell.cost_usd for cell in cells])
    asking = [cell.tokens for cell in cells if cell.cost_usd != 0 or cell.tokens]
    tokens = _sum(asking) if asking else None
    pairs = (
        (engine_s, limits.engine_s), (calls, limits.model_calls), (tokens, limits.tokens), (cost, limits.cost_usd)
    )  # fmt: skip
    share = min([1.0, *(limit / value for value, limit in pairs if value and limit is not None)])
    unknown = sum(cell.engine_s is None for cell in cells)
    basis = f"Added up over {wording.counted(len(cells), 'run')}, each estimated from those most like it so far."
    if unknown:
        which = "these" if unknown == len(cells) else f"{unknown:,} of these {len(cells):,}"
        basis = f"No run so far tells how long {which} will take: the first ones will."
    engine_s, calls, tokens, cost = (None if value is None else value * share for value, _ in pairs)
    basis += " Time is that of engines, one after the other."
    why = next((cell.why_no_cost for cell in cells if cell.why_no_cost), "")
    return Forecast(engine_s, calls, tokens, cost, basis, why, all(cell.is_manual for cell in cells))


def _sum(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return math.fsum(known) if len(known) == len(values) else None


def _name(task: str) -> str:
    """What runs of it are called; empty where a file of a person's own has a shipped task's name, or cannot be read."""
    try:
        name = tasks.find(task).name
    except TaskError:
        return ""
    return name if task in tasks.shipped_names() or name not in tasks.shipped_names() else ""


def _settings(words: str) -> tuple[str, str, str, Budget]:
    """Toolchain, strategy, model and limits of a run with these words.

    Raises:
        ValueError, ArgumentTypeError: a limit is no number.
    """
    values, _ = suite_draft.taken(shlex.split(words), FLAGS)
    limits = {
        limit.name: limit.read(values[limit.flag]) * limit.factor
        for limit in run_options.LIMITS
        if limit.flag in values
    }
    model = values.get(suite_draft.MODEL) or supervisor.available_models()[0]
    return (
        values.get(suite_draft.TOOLCHAIN, "cpu"), values.get(suite_draft.STRATEGY, suite_draft.DEFAULT), model,
        replace(Budget(), **limits),  # type: ignore[arg-type]
    )  # fmt: skip
