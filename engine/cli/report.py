"""Runs told from their folders: list, show. Reads journals only, so it works beside a running dashboard."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from engine.cli import tuned
from engine.cli.live import attempts_table, interval, named
from engine.cli.terminal import printable, widen
from engine.exporting import kernel_of as kernel_of
from engine.search.methods import catalogue
from engine.shown.runs import best_over
from engine.shown.runs import details as details
from engine.shown.runs import load as load
from engine.shown.runs import summary as summary
from engine.shown.runs import was_left as was_left
from storage import files
from storage.knowledge.choice import in_words
from storage.results import deployment, flags
from storage.results.check_records import CheckOutcome
from storage.run import damage
from storage.run.events import BaselineMeasured
from storage.run.folder import RunFolder
from storage.run.record import Record, checks_of


def print_list(console: Console, folders: Sequence[RunFolder]) -> None:
    """Runs as a table."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("run", "task", "state", "step", "best", "calls", "name and tags"):
        table.add_column(heading, no_wrap=heading in ("run", "state", "step", "best"))
    for folder in folders:
        row = summary(folder)
        if "task" not in row:
            of_settings = any(fact.startswith("run.json") for fact in row["damage"])
            mark = "run.json damaged" if of_settings else "damaged"
            table.add_row(escape(row["run"]), "", f"[red]{mark}[/]", "", "", "", "")
            continue
        mark = " [red](damaged)[/]" if row["damage"] else ""
        gain = f"{row['speedup']:.3g}x" if row["speedup"] else "-"
        table.add_row(
            escape(row["run"]),
            escape(row["task"]),
            f"{row['state']}{mark}",
            f"{row['depth']}/{row['depths']}",
            gain,
            str(row["model_calls"]),
            escape(" ".join([row["name"], *(f"#{tag}" for tag in row["tags"])]).strip()),
        )
    widen(console, table)
    console.print(table if table.row_count else "No runs yet. Start one: python -m engine run square_matmul")


def print_run(console: Console, folder: RunFolder) -> None:
    """One run with all its kernels."""
    record, row = load(folder), summary(folder)
    reason = f" ({row['reason']})" if row["reason"] else ""
    console.print(f"{row['run']}: {row['state']}{reason}", highlight=False, markup=False)
    if record.settings.strategy in catalogue.names():
        catalogue.description(record.settings.strategy)  # waits until one of somebody's own is described
    words = "; ".join(
        f"{label[:1].lower()}{label[1:]}: {value}"
        for label, value in catalogue.in_words(record.settings, record.kernel_class)
    )
    if record.settings.prompts.hash:
        console.print(f"prompts: {record.settings.prompts.in_words}", highlight=False, markup=False)
    if record.asks_base:
        console.print(f"knowledge: {in_words(record.settings.knowledge)}", highlight=False, markup=False)
    console.print(f"strategy {record.settings.strategy}: {words or 'no options'}", highlight=False, markup=False)
    if row["judged"]:
        console.print(f"kernels: {row['judged']}; the run keeps the rules it began with", highlight=False)
    label = "[bold red]damaged:[/]" if row["damage"] else "note:"
    for note in damage.damage_notes(folder):
        console.print(f"{label} {escape(printable(note))}", highlight=False, soft_wrap=True)
    console.print(attempts_table(list(record.candidates.values()), catalogue.words(record.settings.strategy)))
    for name, sweep in record.sweeps.items():
        tuned.print_sweep(console, named(name), sweep)
    for candidate in record.candidates.values():
        records = checks_of(record.events, candidate, record.limit)
        found = flags.flags(records)
        for check in (check for check in records if check.standing is CheckOutcome.FLAGGED):
            note = f"{flags.in_words(check, found)}: {check.check}: {printable(check.detail)}"
            console.print(f"{named(candidate.candidate_id)}: {note}", highlight=False, markup=False)
    if record.best and record.best.timed:
        console.print(
            f"best: {named(record.best.candidate_id)}, {record.best.timed.speedup:.3g}x over eager "
            f"({interval(*record.best.timed.speedup_interval)}), {record.best.timed.latency_ms:.4g} ms",
            highlight=False,
        )
    for measured in record.alternatives.values():
        console.print(_baseline_line(record, measured), highlight=False, markup=False)
    for candidate_id, seen in record.deployments.items():
        told = f"deployment of {named(candidate_id)}: {printable(deployment.line(seen))}"
        console.print(told, highlight=False, markup=False)


def _baseline_line(record: Record, measured: BaselineMeasured) -> str:
    timed, ratio = measured.result, best_over(record, measured)
    if timed is None:
        return f"{printable(measured.name)}: not measured: {' '.join(printable(measured.failure).split())}"
    over = f"; best kernel: {ratio.speedup:.3g}x over it ({interval(ratio.low, ratio.high)})" if ratio else ""
    return (
        f"{printable(measured.name)}: {timed.speedup:.3g}x over eager ({interval(*timed.speedup_interval)}), "
        f"{timed.latency_ms:.4g} ms{over}"
    )


def write(text: str, output: str | None) -> None:
    """To a file, or to standard output: as it is into a pipe, and as far as it is printable to a terminal."""
    if output:
        files.hand_over(Path(output), text)
    elif sys.stdout.isatty():
        print(text, end="")
    else:
        sys.stdout.flush()
        sys.stdout.buffer.write(text.encode("utf-8", "surrogatepass"))
