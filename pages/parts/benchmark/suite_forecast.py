"""What all runs of a suite will take, before it starts: the forecast that *New run* gives of one, added up."""

from __future__ import annotations

import functools
import itertools
import math
import shlex
from argparse import ArgumentTypeError
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from engine import run_options, supervisor
from engine.errors import TaskError
from engine.evaluator import languages, tasks
from engine.evaluator.tasks import Size
from pages.parts import index, wording
from pages.parts.benchmark import suite_draft
from pages.parts.new_run import forecast
from pages.parts.new_run.forecast import Forecast
from storage.index import queries
from storage.run.saved_models import RECORDED
from storage.run.settings import Budget
from storage.suites.records import Defined, SuiteLimits

FLAGS = (
    suite_draft.TOOLCHAIN, suite_draft.STRATEGY, suite_draft.LANGUAGE, suite_draft.MODEL,
    *(limit.flag for limit in run_options.LIMITS),
)  # fmt: skip


NO_MODEL = "Not all runs have recorded replies, and no model is chosen for those that have none: cost is not known."


@dataclass(frozen=True, slots=True)
class _Run:
    """What one run of a suite is, as far as its forecast goes. `name` is what runs of its task are called."""

    name: str
    toolchain: str
    strategy: str
    language: str
    model: str
    budget: Budget
    sizes: tuple[tuple[str, float], ...]

    @property
    def recorded_calls(self) -> int | None:
        """How many calls its recording holds for it; None without one."""
        return supervisor.recorded_calls(self.name, self.budget.depths, self.toolchain, self.strategy, self.language)

    @property
    def lacks_model(self) -> bool:
        """Whether it would ask a recording that does not exist."""
        return self.model == RECORDED and bool(
            supervisor.recording_note(self.name, self.toolchain, self.strategy, self.language)
        )


def of_suite(defined: Defined, more: str) -> Forecast | None:
    """The forecast of all its runs together, within its limits; None where its settings cannot be read. `more` are
    further words of `engine run` for each."""
    known = {run.task_name for run in queries.comparable_runs(index.current())}
    try:
        runs = _runs(defined, more)
    except (ValueError, ArgumentTypeError):
        return None
    of_run = functools.cache(_of_run)  # tasks without a run of their own are told of by the same runs
    cells = [of_run(run if run.name in known else replace(run, name="", sizes=()), run.lacks_model) for run in runs]
    return added(cells * defined.repeats, defined.limits)


def why_no_model(defined: Defined, more: str) -> str:
    """Why a model has to be chosen first, with what to do, as sentences; empty where none has to be."""
    try:
        runs = _runs(defined, more)
    except (ValueError, ArgumentTypeError):
        return ""  # what cannot be read is refused at the start
    if not (count := sum(run.lacks_model for run in runs) * defined.repeats):
        return ""
    which = f"{count:,} of its {len(runs) * defined.repeats:,} runs"
    return (
        f"There are no recorded replies for {which}: choose a model, as with --model NAME under Further settings. "
        "The page Models connects one; with --model manual you write the replies yourself."
    )


def _of_run(run: _Run, lacks_model: bool) -> Forecast:
    model = "" if lacks_model else run.model
    recorded = run.recorded_calls if model == RECORDED else None
    expected = forecast.of_run(run.name, run.toolchain, run.strategy, model, run.budget, dict(run.sizes), recorded)
    return replace(expected, cost_usd=None, why_no_cost=NO_MODEL) if lacks_model else expected


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
    if any(cell.elsewhere for cell in cells):
        basis += " Some of those were at other sizes, where a run may take more or less."
    basis += " Time is that of engines, one after the other; a busy machine takes longer."
    why = next((cell.why_no_cost for cell in cells if cell.why_no_cost), "")
    return Forecast(engine_s, calls, tokens, cost, basis, why, all(cell.is_manual for cell in cells))


def _sum(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return math.fsum(known) if len(known) == len(values) else None


def _runs(defined: Defined, more: str) -> list[_Run]:
    """Each task with each arm, once.

    Raises:
        ValueError, ArgumentTypeError: a limit or a size is no number.
    """
    return [
        _run(task.task, shlex.split(" ".join((defined.settings, more, task.settings, arm.settings))))
        for task in defined.tasks
        for arm in defined.arms
    ]


def _task(task: str, toolchain: str, sizes: Mapping[str, Size]) -> tuple[str, Mapping[str, Size]]:
    """What runs of it are called, and its sizes; nothing where a file of a person's own has a shipped task's name, or
    cannot be read."""
    try:
        file = tasks.find(task)
        chosen = file.task(toolchain, sizes)
    except TaskError:
        return "", {}
    is_known = task in tasks.shipped_names() or file.name not in tasks.shipped_names()
    return (file.name, chosen.sizes) if is_known else ("", {})


def _run(task: str, words: Sequence[str]) -> _Run:
    """A run of this task with these words of `engine run`."""
    values, rest = suite_draft.taken(words, FLAGS)
    sets = [word.removeprefix("--set=") for word in rest if word.startswith("--set=")]
    sets += [word for flag, word in itertools.pairwise(rest) if flag == "--set"]
    limits = {
        limit.name: limit.read(values[limit.flag]) * limit.factor
        for limit in run_options.LIMITS
        if limit.flag in values
    }
    model = values.get(suite_draft.MODEL) or supervisor.available_models()[0]
    toolchain = values.get(suite_draft.TOOLCHAIN, "cpu")
    pairs = (word.partition("=") for word in sets)
    given = {name: int(value) if value.isdigit() else float(value) for name, _, value in pairs}
    name, sizes = _task(task, toolchain, given)
    return _Run(
        name, toolchain, values.get(suite_draft.STRATEGY, suite_draft.DEFAULT),
        values.get(suite_draft.LANGUAGE, languages.DEFAULT), model,
        replace(Budget(), **limits), tuple(sizes.items()),  # type: ignore[arg-type]
    )  # fmt: skip
