"""The runs that are compared, each with a letter, a colour, a dash and a symbol of its own; what stands in the way of
comparing them; one figure over several tasks: the geometric mean of the best speed-ups, and the share of tasks above a
bar. Pure but for gathering."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from engine.evaluator import languages
from engine.search.methods import catalogue
from pages.parts import method, run_state, speed_of_light, wording
from pages.parts.pass_rates import PassRates
from pages.parts.status import damaged
from storage.index import queries
from storage.index.database import Database
from storage.index.queries import BaselineRow, ConditionsRow, ReachedRow, RunChoice, RunRow, TimedRow, TryRow
from storage.results.hardware_limit import HardwareLimit
from storage.run import damage
from storage.run.method_words import PLAIN, MethodWords
from storage.run.settings import RunState
from storage.suites.statistics import geometric_mean

AT_MOST = 12  # side by side
OFFERED_RUNS = 4
MOST = 300  # in a summary: their names must fit into an address
COLOURS = ("blue", "orange", "green", "violet", "yellow", "red", "gray")
DASHES = ("solid", "dash", "dot", "dashdot", "longdash")
# Without the star, which is the best kernel of a run wherever it stands.
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "pentagon", "hexagon")
BARS = (1.0, 1.5, 2.0)


class Axis(StrEnum):
    """What the curves are drawn over."""

    DEPTH = "step"
    CALLS = "calls"
    TIME = "time"
    TOKENS = "tokens"
    MONEY = "money"


AXIS_TITLE = {
    Axis.DEPTH: "step of the search (as each method counts: depths, rounds)",
    Axis.CALLS: "model calls",
    Axis.TIME: "engine time at work, minutes",
    Axis.TOKENS: "tokens in and out, thousands",
    Axis.MONEY: "cost of the model calls, US dollars",
}


@dataclass(frozen=True, slots=True)
class Compared:
    """One run with everything that is drawn of it; `place` counts the chosen runs from 0.

    `damage` says what is wrong with its files, empty for a whole run; `device_mark` names the device where not all runs
    were timed on one model.
    """

    place: int
    run: RunRow
    state: RunState
    conditions: ConditionsRow
    reached: Sequence[ReachedRow]
    timed: Sequence[TimedRow]
    damage: str = ""
    strategy: str = ""
    words: MethodWords = PLAIN
    tries: Sequence[TryRow] = ()
    device_mark: str = ""
    limit: HardwareLimit | None = None
    fastest: BaselineRow | None = None
    unjudged: int = 0

    @property
    def letter(self) -> str:
        """Names the run on the chart and in the table."""
        return chr(ord("A") + self.place)

    @property
    def colour(self) -> str:
        """A theme colour; never the only thing that tells two runs apart."""
        return f"@{COLOURS[self.place % len(COLOURS)]}-color"

    @property
    def dash(self) -> str:
        """The dash of the run's line."""
        return DASHES[self.place % len(DASHES)]

    @property
    def symbol(self) -> str:
        """The symbol of the run's kernels."""
        return SYMBOLS[self.place % len(SYMBOLS)]

    @property
    def ahead(self) -> list[TimedRow]:
        """Kernels that raised the best so far in a step that has not finished, or that was cut short."""
        best = max((row.best_speedup or 0.0 for row in self.reached), default=0.0)
        rising = []
        for row in self.timed:
            if row.speedup > best:
                rising.append(row)
                best = row.speedup
        return rising

    @property
    def name(self) -> str:
        """One line that tells the run from others of its task: its name, or what it is where nobody has named it."""
        if self.run.label:
            return " · ".join(word for word in (self.letter, self.run.label, self.device_mark) if word)
        model = wording.model(self.run.model, self.run.is_example)
        made_by = f"{self.strategy} · {model}" if self.strategy else model
        words = [self.letter, self.run.title, self.device_mark, made_by, wording.moment(self.run.created_at)[:16]]
        return " · ".join(word for word in words if word)


def pass_rates(run: Compared) -> PassRates:
    """How often the kernels of a run pass, and what a pass costs."""
    return PassRates(run.tries, run.conditions.cost_usd, run.run.model, run.unjudged)


def position(row: ReachedRow | TimedRow, axis: Axis) -> float | None:
    """Where a kernel stands on an axis, in the axis's unit; None where that is unknown."""
    match axis:
        case Axis.DEPTH:
            return float(row.depth)
        case Axis.CALLS:
            return float(row.calls)
        case Axis.TIME:
            return row.engine_s / 60
        case Axis.TOKENS:
            return None if row.tokens is None else row.tokens / 1000
        case Axis.MONEY:
            return row.cost_usd


def gather(db: Database, run_ids: Sequence[str]) -> list[Compared]:
    """The runs in the order chosen; those that are not in the index are left out."""
    conditions = {row.run_id: row for row in queries.conditions(db, run_ids)}
    reached = queries.reached(db, run_ids)
    timed, tries = queries.timed_kernels(db, run_ids), queries.tries(db, run_ids)
    fastest = queries.fastest_baselines(db, run_ids)
    unjudged = queries.unjudged(db, run_ids)
    runs = [run for run in queries.of_ids(db, run_ids) if run.run_id in conditions]
    has_several = len(devices_of([conditions[run.run_id] for run in runs])) > 1
    return [
        Compared(
            place,
            run,
            run_state.of(run),
            conditions[run.run_id],
            [row for row in reached if row.run_id == run.run_id],
            [row for row in timed if row.run_id == run.run_id],
            damage.title(damaged.of(run.run_id, db)),
            catalogue.short(queries.strategy(db, run.run_id)),
            method.words(run.run_id, db),
            [row for row in tries if row.run_id == run.run_id],
            conditions[run.run_id].device if has_several else "",
            queries.limit(db, run.run_id),
            fastest.get(run.run_id),
            unjudged.get(run.run_id, 0),
        )
        for place, run in enumerate(runs)
    ]


@dataclass(frozen=True, slots=True)
class Offered:
    """Runs of one task; `device` is that of them all, empty where it need not or cannot be told."""

    run_ids: tuple[str, ...]
    device: str = ""


def offered(choices: Sequence[RunChoice]) -> dict[str, Offered]:
    """By task, the newest runs that compare directly: at the same sizes, on one model of device."""
    by_task: dict[str, list[RunChoice]] = {}
    for choice in sorted(choices, key=lambda choice: -choice.created_at):
        by_task.setdefault(choice.task_name, []).append(choice)
    found = {name: _newest(runs) for name, runs in by_task.items()}
    return {name: runs for name, runs in found.items() if runs is not None}


def _newest(runs: Sequence[RunChoice]) -> Offered | None:
    """Those of the newest that has company. Where none has, runs whose device is not known yet go with one that has."""
    timed = [run for run in runs if run.device]
    is_told = len({run.device for run in timed}) > 1
    groups = itertools.chain(
        ([run for run in timed if (run.device, run.sizes) == (first.device, first.sizes)] for first in timed),
        ([run for run in runs if run.sizes == first.sizes] for first in runs),
    )
    for alike in groups:
        devices = {run.device for run in alike}
        if len(alike) > 1 and len(devices - {""}) < 2:
            of_all = alike[0].device if len(devices) == 1 and is_told else ""
            return Offered(tuple(run.run_id for run in alike[:OFFERED_RUNS]), of_all)
    return None


def are_of_several_devices(runs: Sequence[Compared]) -> bool:
    """Whether speed-ups of these runs must not be put into one figure or beside each other as if they compared."""
    return len(devices_of([run.conditions for run in runs])) > 1


def devices_of(conditions: Sequence[ConditionsRow]) -> set[str]:
    """The models of device that runs were timed on, as far as that is known."""
    return {row.device for row in conditions if row.device}


def differences(runs: Sequence[Compared]) -> list[str]:
    """What differs that makes speed-ups no measure of each other; empty where they compare. What is not known of a run
    yet differs from nothing."""
    conditions = {
        "task": {run.run.task_name for run in runs},
        "sizes": {run.conditions.sizes for run in runs},
        "device": devices_of([run.conditions for run in runs]),
        "toolchain": {run.conditions.toolchain for run in runs},
        "precision class or passes": {run.conditions.precision for run in runs} - {""},
        "baseline": {run.conditions.baseline for run in runs} - {""},
    }
    several = [name for name, values in conditions.items() if len(values) > 1]
    implied = {"sizes": "task", "toolchain": "device"}
    return [name for name in several if implied.get(name) not in several]


def warnings(runs: Sequence[Compared]) -> list[str]:
    """One sentence per difference that makes speed-ups hard to compare; empty when nothing does."""
    sentences = []
    if spoilt := [run for run in runs if run.damage]:
        sentences.append("**Damaged runs.** What is missing is left out here. " + _who(spoilt, lambda run: run.damage))
    if len({run.run.task_name for run in runs}) > 1:
        sentences.append(
            "**Different tasks.** Each speed-up is over the baseline of its own task, so curves of different tasks do "
            "not compare. " + _who(runs, lambda run: run.run.title)
        )
    for task in dict.fromkeys(run.run.task_name for run in runs):
        same = [run for run in runs if run.run.task_name == task]
        if len({run.conditions.sizes for run in same}) > 1:
            sentences.append("**Different sizes of the same task.** " + _who(same, lambda run: _sizes(run)))
    devices = [run for run in runs if run.conditions.device]
    if are_of_several_devices(runs):
        sentences.append(
            "**Different devices.** Speed-ups on different devices do not compare directly. "
            + _who(devices, lambda run: run.conditions.device)
        )
    if len({run.conditions.precision for run in runs}) > 1:
        sentences.append(
            "**Different precision classes or passes.** Lower precision alone can make a kernel faster, and "
            "forward with backward is another task than forward. "
            + _who(runs, lambda run: run.conditions.precision or "unknown")
        )
    return [*sentences, *_differing_limits(runs)]


def _differing_limits(runs: Sequence[Compared]) -> Iterator[str]:
    """A sentence for each group of runs whose limits should be one, and are not."""
    groups: dict[tuple[str, ...], list[Compared]] = {}
    for run in runs:
        if run.limit and run.limit.known_ms and (on := run.conditions).device:
            groups.setdefault((run.run.task_name, on.sizes, on.device, on.precision), []).append(run)
    for same in groups.values():
        if speed_of_light.are_apart([run.limit.limit_ms for run in same if run.limit]):
            yield f"**Different hardware limits on one model of device.** {_who(same, _limit)}. {speed_of_light.LONGER}"


def _limit(run: Compared) -> str:
    assert run.limit is not None
    busy = (
        f" (machine busy: {wording.percent(run.limit.others_share)} used by others)"
        if speed_of_light.is_busy(run.limit)
        else ""
    )
    return f"{wording.latency(run.limit.limit_ms)}{busy}"


def _sizes(run: Compared) -> str:
    return run.conditions.sizes.strip("{}").replace('"', "") or "unknown"


def _who(runs: Sequence[Compared], tell: Callable[[Compared], str]) -> str:
    """Which letters have what: "A, C: softmax; B: swish"."""
    groups: dict[str, list[str]] = {}
    for run in runs:
        groups.setdefault(tell(run), []).append(run.letter)
    return "; ".join(f"{', '.join(letters)}: {what}" for what, letters in groups.items())


@dataclass(frozen=True, slots=True)
class TaskBest:
    """The best kernel of the chosen runs of one task, also in words; None when none of them has a correct one."""

    task: str
    letters: tuple[str, ...]
    best: float | None
    best_letter: str
    in_words: str


@dataclass(frozen=True, slots=True)
class OverTasks:
    """All tasks together. `mean` is over the tasks that have a correct kernel; `fast` counts tasks above each bar."""

    tasks: tuple[TaskBest, ...]
    mean: float | None
    fast: tuple[tuple[float, int], ...]

    @property
    def solved(self) -> int:
        """Tasks with a correct kernel."""
        return sum(task.best is not None for task in self.tasks)


def over_tasks(runs: Sequence[Compared]) -> OverTasks:
    """The summary; every task counts once, by its best run."""
    tasks = []
    for name in dict.fromkeys(run.run.task_name for run in runs):
        same = [run for run in runs if run.run.task_name == name]
        first = max(same, key=lambda run: run.run.best_speedup or 0.0)
        best = first.run.best_speedup
        letters = tuple(r.letter for r in same)
        letter, in_words = first.letter if best else "", wording.best(first.run)
        tasks.append(TaskBest(first.run.title, letters, best, letter, in_words))
    bests = [task.best for task in tasks if task.best is not None]
    fast = tuple((bar, sum(best > bar for best in bests)) for bar in BARS)
    return OverTasks(tuple(tasks), geometric_mean(bests) if bests else None, fast)


def language_figures(runs: Sequence[Compared]) -> list[tuple[str, str, str]]:
    """(language, geometric mean of its best kernels, note), one for each; every task counts once in each language."""
    figures = []
    for name in dict.fromkeys(run.conditions.language for run in runs):
        of_language = [run for run in runs if run.conditions.language == name]
        over = over_tasks(of_language)
        solved = ", ".join(task.task for task in over.tasks if task.best is not None) or "no correct kernel yet"
        value = over.tasks[0].in_words if len(over.tasks) == 1 else wording.speedup(over.mean)
        figures.append((languages.label(name), value, f"{', '.join(r.letter for r in of_language)}: {solved}"))
    return figures


def task_figures(over: OverTasks) -> list[tuple[str, str, str]]:
    """(name, value, note) of each figure."""
    left = len(over.tasks) - over.solved
    missing = f"; {left} without a correct kernel not counted" if left else ""
    figures = [
        ("Geometric mean", wording.speedup(over.mean), f"best kernels of {over.solved} tasks{missing}"),
    ]
    for bar, count in over.fast:
        share = wording.share(count, len(over.tasks))
        figures.append((f"fast_p at {bar:g}×", share, f"tasks with a correct kernel faster than {bar:g}×"))
    return figures
