"""A sweep over a kernel's tunables for programs, and one outside a run. Knows results, no run and no terminal."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from engine.errors import EngineError
from engine.evaluator.build import tunables
from engine.evaluator.request import Evaluator
from engine.evaluator.tasks import Task
from engine.search.steps.tune import carried_out, width
from storage.results import relative
from storage.results.evaluation_results import CheckResult, CompileResult, TimingResult, Tunable, headline
from storage.results.vocabulary import Verdict
from storage.run.tuning import Sweep, Variant


@dataclass(frozen=True, slots=True)
class AsWrittenForm:
    """The kernel as it is written. `ratio` is the time over that of the kernel as written, larger is faster."""

    values: Mapping[str, int]
    latency_ms: float
    speedup: float
    speedup_interval: tuple[float, float]
    ratio: float
    ratio_interval: tuple[float, float]


@dataclass(frozen=True, slots=True)
class VariantForm:
    """One set of numbers. Figures are null where it was not timed; `is_full` says that it was timed as a kernel is."""

    number: int
    values: Mapping[str, int]
    verdict: str
    message: str
    is_full: bool
    latency_ms: float | None = None
    speedup: float | None = None
    speedup_interval: tuple[float, float] | None = None
    ratio: float | None = None
    ratio_interval: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class SweepForm:
    """A sweep. `candidate` is the kernel that it is about, empty outside a run; `kept` is null where nothing is
    faster beyond the noise."""

    candidate: str
    tunables: tuple[Tunable, ...]
    most: int
    as_written: AsWrittenForm
    failed_again: str
    variants: tuple[VariantForm, ...]
    kept: VariantForm | None


def form(name: str, sweep: Sweep) -> SweepForm:
    """A sweep as it stands; `name` is the kernel that it is about, empty outside a run."""
    written, kept = sweep.to_beat, sweep.kept
    return SweepForm(
        name, tuple(sweep.tunables), sweep.most,
        AsWrittenForm(dict(sweep.as_written), *_figures(written, sweep)),
        failed_again(sweep.failed_again) if sweep.failed_again else "",
        tuple(_variant(variant, sweep) for variant in sweep.variants.values()),
        _variant(kept, sweep) if kept else None,
    )  # fmt: skip


def _variant(variant: Variant, sweep: Sweep) -> VariantForm:
    timed = variant.last_timing
    return VariantForm(
        variant.number, dict(variant.values), str(variant.verdict), variant.failure, variant.timed is not None,
        *(_figures(timed, sweep) if timed else ()),
    )  # fmt: skip


Interval = tuple[float, float]


def _figures(timed: TimingResult, sweep: Sweep) -> tuple[float, float, Interval, float, Interval]:
    relation = ratio(timed, sweep)
    return (
        timed.latency_ms, timed.speedup, timed.speedup_interval, relation.speedup, (relation.low, relation.high)
    )  # fmt: skip


def ratio(timed: TimingResult, sweep: Sweep) -> relative.Relative:
    """How much faster than the kernel as it is written, each timed in a session of its own."""
    written = sweep.to_beat
    return relative.between_sessions(timed.speedup, timed.noise, written.speedup, written.noise)


def failed_again(checked: CheckResult) -> str:
    """Why nothing is kept of a sweep whose kernel has failed when it was timed again."""
    return f"As written it failed when timed again: {checked.verdict}: {headline(checked).rstrip('.')}."


def tune(
    toolchain: Evaluator,
    task: Task,
    source: str,
    most: int,
    remark: Callable[[str], None],
    tell: Callable[[int, Sweep], None],
) -> tuple[Sweep, str, float]:
    """Judge a kernel as it is written, then sweep over its tunables. `remark` hears what is wrong with a declaration,
    `tell` of each variant by its number.

    Returns:
        The sweep, the source of what it keeps (empty where nothing is faster), seconds.

    Raises:
        EngineError: the kernel declares nothing to tune, or is not correct as it is written.
    """
    began, declared = time.monotonic(), tunables.read(source)
    for words in declared.remarks:
        remark(words)
    if not declared.tunables:
        raise EngineError(f"the file declares nothing to tune: write {tunables.EXAMPLES}, each on a line of its own")
    sweep = Sweep(declared.tunables, most, _as_written(toolchain, task, source))
    while (act := sweep.next(width())) is not None:
        for event in carried_out(toolchain, task, source, sweep, act):
            sweep.apply(event)
            tell(event.number, sweep)
    kept = sweep.kept
    return sweep, tunables.with_values(source, kept.values) if kept else "", time.monotonic() - began


def _as_written(toolchain: Evaluator, task: Task, source: str) -> TimingResult:
    failed: CompileResult | CheckResult = toolchain.compile(task, source)
    if failed.verdict is Verdict.PASSED:
        failed = toolchain.check(task, source)
    if failed.verdict is Verdict.PASSED:
        timed = toolchain.time(task, source)
        if isinstance(timed, TimingResult):
            return timed
        failed = timed
    raise EngineError(f"only a correct kernel can be tuned, and this one is not ({failed.verdict}): {headline(failed)}")
