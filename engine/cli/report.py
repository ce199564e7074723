"""Runs told from their folders: list, show. Reads journals only, so it works beside a running dashboard."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from engine.cli.judgement import printable
from engine.cli.live import attempts_table, named
from engine.errors import EngineError
from engine.history import Attempt, History
from storage import codec, damage, journal, liveness, relative
from storage.events import BaselineMeasured
from storage.folder import RunFolder, all_runs
from storage.journal import Entry
from storage.proof import StagedProof, Standing, standing
from storage.records import RunState
from storage.relative import Relative


def load(folder: RunFolder) -> History:
    """A run's history, with `lost` as its state when its engine is gone without a final event.

    Raises:
        EngineError: run.json cannot be read.
    """
    return _folded(folder, list(journal.read(folder.journal_file)))


def _folded(folder: RunFolder, entries: list[Entry]) -> History:
    try:
        history = History.of(folder.read_settings(), entries)
    except codec.DecodeError as error:
        raise EngineError(f"run.json cannot be read, restore it from a backup: {error}") from error
    if not history.state.is_finished and not liveness.is_held(folder):
        history.state = RunState.LOST
    return history


def summary(folder: RunFolder) -> dict[str, Any]:
    """One run as plain values; only `run`, `state` and `damage` where run.json cannot be read."""
    read = journal.survey(folder.journal_file)
    found = damage.examine(folder, read=read)
    if found.settings:
        return {"run": folder.run_id, "state": "unreadable", "damage": damage.sentences(found)}
    history = _folded(folder, read[0])
    best = history.best
    return {
        "run": folder.run_id,
        "task": history.settings.task_name,
        "state": str(history.state),
        "reason": history.ended.reason if history.ended else "",
        "class": str(history.kernel_class),
        "toolchain": history.settings.toolchain,
        "model": history.settings.model,
        "depth": max(history.depth - 1, 0),
        "depths": history.budget.depths,
        "best": best.candidate_id if best else None,
        "speedup": best.timed.speedup if best and best.timed else None,
        "speedup_interval": list(best.timed.speedup_interval) if best and best.timed else None,
        "second_baseline": _second(history),
        "model_calls": history.usage.model_calls,
        "tokens": history.usage.tokens,
        "cost_usd": history.usage.cost_usd,
        "engine_s": history.usage.engine_s,
        "damage": damage.sentences(found) if found.is_damaged else [],
    }


def _second(history: History) -> dict[str, Any] | None:
    """The further baseline against eager, and the best kernel over it; None before it was measured."""
    if history.baseline is None:
        return None
    timed, found = history.baseline.result, over_second(history)
    return {
        "name": history.baseline.name,
        "failure": history.baseline.failure,
        "speedup": timed.speedup if timed else None,
        "speedup_interval": list(timed.speedup_interval) if timed else None,
        "latency_ms": timed.latency_ms if timed else None,
        "best_speedup": found.speedup if found else None,
        "best_speedup_interval": [found.low, found.high] if found else None,
    }


def over_second(history: History) -> Relative | None:
    """The best kernel over the further baseline; None where either is not known."""
    best, second = history.best, history.baseline.result if history.baseline else None
    if best is None or best.timed is None or second is None:
        return None
    return relative.over(best.timed.speedup, best.timed.noise, second.speedup, second.noise)


def details(folder: RunFolder) -> dict[str, Any]:
    """One run with its attempts as plain values."""
    history = load(folder)
    rows = [
        {
            "candidate": a.candidate_id,
            "parent": a.created.parent_id,
            "depth": a.created.depth,
            "origin": str(a.created.origin),
            "verdict": str(a.verdict) if a.verdict else None,
            "speedup": a.timed.speedup if a.timed else None,
            "speedup_interval": list(a.timed.speedup_interval) if a.timed else None,
            "latency_ms": a.timed.latency_ms if a.timed else None,
            "summary": a.created.summary,
            "flags": list(a.created.flags),
            "flagged": _checks(a, Standing.FLAGGED),
            "broken": _checks(a, Standing.BROKEN),
        }
        for a in history.attempts.values()
    ]
    return summary(folder) | {"attempts": rows, "finished_depths": codec.to_plain(history.depths)}


def kernel_of(folder: RunFolder, history: History, text: str) -> Attempt:
    """A kernel by its number or its id.

    Raises:
        EngineError: the run has no such kernel.
    """
    name = f"c{int(text):03d}" if text.isdecimal() else text
    if name not in history.attempts:
        raise EngineError(f"run {folder.run_id} has no kernel {text}; it has {len(history.attempts)}: see `show`")
    return history.attempts[name]


def proofs_of(attempt: Attempt) -> list[StagedProof]:
    """Every check made of a kernel, one per check, by group, the worst first."""
    stages = {"compile": attempt.compiled, "check": attempt.checked, "time": attempt.timed}
    made = {stage: result.proofs for stage, result in stages.items() if result is not None}
    return standing(
        StagedProof(p.group, p.check, p.standing, p.detail, p.value, p.limit, stages=(stage,))
        for stage, proofs in made.items()
        for p in proofs
    )


def _checks(attempt: Attempt, wanted: Standing) -> list[str]:
    return [f"{p.check}: {p.detail}" for p in proofs_of(attempt) if p.standing is wanted]


def print_list(console: Console) -> None:
    """All runs as a table."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("run", "task", "state", "depth", "best", "calls"):
        table.add_column(heading)
    for folder in all_runs():
        row = summary(folder)
        if "task" not in row:
            table.add_row(row["run"], "", "[red]run.json damaged[/]", "", "", "")
            continue
        mark = " [red](damaged)[/]" if row["damage"] else ""
        gain = f"{row['speedup']:.3g}x" if row["speedup"] else "-"
        table.add_row(
            row["run"],
            row["task"],
            f"{row['state']}{mark}",
            f"{row['depth']}/{row['depths']}",
            gain,
            str(row["model_calls"]),
        )
    console.print(table if table.row_count else "No runs yet. Start one: python -m engine run square_matmul")


def print_run(console: Console, folder: RunFolder) -> None:
    """One run with all its kernels."""
    history, row = load(folder), summary(folder)
    console.print(f"{row['run']}: {row['state']}" + (f" ({row['reason']})" if row["reason"] else ""), highlight=False)
    label = "[bold red]damaged:[/]" if row["damage"] else "note:"
    for told in damage.told(folder):
        console.print(f"{label} {escape(printable(told))}", highlight=False, soft_wrap=True)
    console.print(attempts_table(list(history.attempts.values())))
    for attempt in history.attempts.values():
        for told in (*attempt.created.flags, *_checks(attempt, Standing.FLAGGED)):
            console.print(f"{named(attempt.candidate_id)}: flagged: {printable(told)}", highlight=False, markup=False)
    if history.best and history.best.timed:
        low, high = history.best.timed.speedup_interval
        console.print(
            f"best: {named(history.best.candidate_id)}, {history.best.timed.speedup:.3g}x over eager "
            f"({low:.3g} to {high:.3g}), {history.best.timed.latency_ms:.4g} ms",
            highlight=False,
        )
    if history.baseline:
        console.print(_second_line(history, history.baseline), highlight=False, markup=False)


def _second_line(history: History, second: BaselineMeasured) -> str:
    timed, found = second.result, over_second(history)
    if timed is None:
        return f"{printable(second.name)}: not measured: {' '.join(printable(second.failure).split())}"
    low, high = timed.speedup_interval
    over = f"; best kernel: {found.speedup:.3g}x over it ({found.low:.3g} to {found.high:.3g})" if found else ""
    return (
        f"{printable(second.name)}: {timed.speedup:.3g}x over eager ({low:.3g} to {high:.3g}), "
        f"{timed.latency_ms:.4g} ms{over}"
    )


def write(text: str, output: str | None) -> None:
    """To a file, or to standard output."""
    if output:
        Path(output).write_text(text, encoding="utf-8")
    else:
        print(text, end="")
