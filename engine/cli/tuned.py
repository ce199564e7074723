"""Sweeps over a kernel's tunables on a terminal. Knows results, no run."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from engine.cli.live import interval
from engine.cli.terminal import printable
from engine.shown.sweeps import failed_again, ratio
from storage.results.evaluation_results import TimingResult
from storage.run import tuning
from storage.run.tuning import AS_WRITTEN, Sweep, Variant


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
        console.print(escape(printable(f"{failed_again(sweep.failed_again)} Nothing is kept.")), highlight=False)
        return
    if kept is None or kept.timed is None:
        console.print("No variant is faster beyond the noise.", highlight=False)
        return
    relation = ratio(kept.timed, sweep)
    console.print(
        escape(
            f"Fastest: {tuning.in_words(kept.values)}, {relation.speedup:.3g}x of it as written "
            f"({interval(relation.low, relation.high)})"
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


def variant_line(number: int, sweep: Sweep) -> str:
    """What came of a variant, in one line; empty where there is nothing to tell."""
    if number == AS_WRITTEN:
        if sweep.failed_again:
            return printable(failed_again(sweep.failed_again))
        return f"as written, once more  {sweep.again.speedup:.3g}x" if isinstance(sweep.again, TimingResult) else ""
    return "  ".join(text for text in _cells(sweep.variants[number], sweep) if text)
