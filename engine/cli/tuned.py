"""Sweeps over a kernel's tunables on a terminal and as JSON, and one outside a run. Knows results, no run."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from engine.cli.terminal import printable
from engine.errors import EngineError
from engine.evaluator.build import tunables
from engine.evaluator.request import Evaluator
from engine.evaluator.tasks import Task
from engine.search.steps.tune import carried_out, width
from storage import codec
from storage.results import relative
from storage.results.evaluation_results import CheckResult, CompileResult, TimingResult, headline
from storage.results.vocabulary import Verdict
from storage.run import tuning
from storage.run.tuning import AS_WRITTEN, Sweep, Variant


def tune(
    toolchain: Evaluator, task: Task, source: str, most: int, tell: Callable[[str], None]
) -> tuple[Sweep, str, float]:
    """Judge a kernel as it is written, then sweep over its tunables. `tell` is told of each variant.

    Returns:
        The sweep, the source of what it keeps (empty where nothing is faster), seconds.

    Raises:
        EngineError: the kernel declares nothing to tune, or is not correct as it is written.
    """
    began, declared = time.monotonic(), tunables.read(source)
    for remark in declared.remarks:
        tell(remark)
    if not declared.tunables:
        raise EngineError(f"the file declares nothing to tune: write {tunables.EXAMPLES}, each on a line of its own")
    sweep = Sweep(declared.tunables, most, _as_written(toolchain, task, source))
    while (act := sweep.next(width())) is not None:
        for event in carried_out(toolchain, task, source, sweep, act):
            sweep.apply(event)
            tell(_variant_line(event.number, sweep))
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


def ratio(timed: TimingResult, sweep: Sweep) -> relative.Relative:
    """How much faster than the kernel as it is written, each timed in a session of its own."""
    written = sweep.to_beat
    return relative.between_sessions(timed.speedup, timed.noise, written.speedup, written.noise)


def plain(name: str, sweep: Sweep) -> dict[str, Any]:
    """A sweep as JSON; `name` is the kernel that it is about, empty outside a run."""
    kept = sweep.kept
    return {
        "candidate": name,
        "tunables": list(codec.to_plain(sweep.tunables)),
        "most": sweep.most,
        "as_written": {"values": dict(sweep.as_written)} | _figures(sweep.to_beat, sweep),
        "failed_again": _failed_again(sweep.failed_again) if sweep.failed_again else "",
        "variants": [_plain(variant, sweep) for variant in sweep.variants.values()],
        "kept": _plain(kept, sweep) if kept else None,
    }


def _plain(variant: Variant, sweep: Sweep) -> dict[str, Any]:
    timed = variant.last_timing
    return {
        "number": variant.number,
        "values": dict(variant.values),
        "verdict": str(variant.verdict),
        "message": variant.failure,
        "is_full": variant.timed is not None,
        **(_figures(timed, sweep) if timed else dict.fromkeys(FIGURES)),
    }


FIGURES = ("latency_ms", "speedup", "speedup_interval", "ratio", "ratio_interval")


def _figures(timed: TimingResult, sweep: Sweep) -> dict[str, Any]:
    relation = ratio(timed, sweep)
    values = (
        timed.latency_ms,
        timed.speedup,
        list(timed.speedup_interval),
        relation.speedup,
        [relation.low, relation.high],
    )
    return dict(zip(FIGURES, values, strict=True))


def print_sweep(console: Console, name: str, sweep: Sweep) -> None:
    """What it came to, and its variants, the fastest first."""
    kept = sweep.kept
    line = f"{name}: {len(sweep.variants)} variants tried; as written {tuning.in_words(sweep.as_written)}"
    console.print(escape(f"{line}, {sweep.to_beat.speedup:.3g}x over {sweep.to_beat.baseline}"), highlight=False)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("numbers", "outcome", "time", "speed-up", "over as written"):
        table.add_column(heading, overflow="fold")
    for variant in sorted(
        sweep.variants.values(), key=lambda variant: -(variant.last_timing.speedup if variant.last_timing else 0.0)
    ):
        table.add_row(*map(escape, _cells(variant, sweep)))
    if sweep.variants:
        console.print(table, highlight=False)
    if sweep.failed_again:
        console.print(escape(printable(f"{_failed_again(sweep.failed_again)} Nothing is kept.")), highlight=False)
        return
    if kept is None or kept.timed is None:
        console.print("No variant is faster beyond the noise.", highlight=False)
        return
    relation = ratio(kept.timed, sweep)
    console.print(
        escape(
            f"Fastest: {tuning.in_words(kept.values)}, {relation.speedup:.3g}x of it as written "
            f"({relation.low:.3g} to {relation.high:.3g})"
        ),
        highlight=False,
    )


def _cells(variant: Variant, sweep: Sweep) -> tuple[str, str, str, str, str]:
    timed, numbers = variant.last_timing, tuning.in_words(variant.values)
    if timed is None:
        return (
            numbers,
            printable(f"{variant.verdict}: {variant.failure}") if variant.has_failed else "built",
            "",
            "",
            "",
        )
    how = "timed fully" if variant.timed else "timed briefly"
    return numbers, how, f"{timed.latency_ms:.4g} ms", f"{timed.speedup:.3g}x", f"{ratio(timed, sweep).speedup:.3g}x"


def _failed_again(checked: CheckResult) -> str:
    return f"As written it failed when timed again: {checked.verdict}: {headline(checked).rstrip('.')}."


def _variant_line(number: int, sweep: Sweep) -> str:
    if number == AS_WRITTEN:
        if sweep.failed_again:
            return printable(_failed_again(sweep.failed_again))
        return f"as written, once more  {sweep.again.speedup:.3g}x" if isinstance(sweep.again, TimingResult) else ""
    return "  ".join(text for text in _cells(sweep.variants[number], sweep) if text)
