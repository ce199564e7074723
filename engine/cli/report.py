"""Runs told from their folders: list, show. Reads journals only, so it works beside a running dashboard."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from engine import run_options
from engine.cli import tuned
from engine.cli.live import attempts_table, named
from engine.cli.terminal import printable, widen
from engine.errors import EngineError
from engine.exporting import kernel_of as kernel_of
from engine.search.methods import catalogue
from storage import codec, files
from storage.knowledge.choice import in_words
from storage.results import deployment, relative
from storage.results.check_records import CheckOutcome, StandingChecks
from storage.results.policy import kept_rules
from storage.results.relative import Relative
from storage.run import damage, journal, labels, liveness
from storage.run.events import BaselineMeasured
from storage.run.folder import RunFolder
from storage.run.journal import Entry
from storage.run.record import Candidate, Record
from storage.run.settings import LEFT, RunState


def load(folder: RunFolder) -> Record:
    """A run's record, with `lost` as its state when its engine is gone without a final event.

    Raises:
        EngineError: run.json cannot be read, or the events do not fit together.
    """
    return _folded(folder, list(journal.read(folder.journal_file)))


def _folded(folder: RunFolder, entries: list[Entry]) -> Record:
    try:
        record = Record.of(folder.read_settings(), entries)
    except codec.DecodeError as error:
        raise EngineError(f"run.json cannot be read, restore it from a backup: {error}") from error
    except (LookupError, ValueError, TypeError, ArithmeticError, AttributeError) as error:
        raise EngineError(
            f"the events in {folder.journal_file} do not fit together ({error!r}): restore it from a backup"
        ) from error
    if not record.state.is_finished and not liveness.is_held(folder):
        record.state = RunState.LOST
    return record


def was_left(record: Record) -> bool:
    """Whether its engine has ended because the run waits for a person."""
    return record.state is RunState.STOPPED and record.ended is not None and record.ended.reason.startswith(LEFT)


def summary(folder: RunFolder) -> dict[str, Any]:
    """One run as plain values; only `run`, `state` and `damage` where nothing else can be told of it."""
    try:
        return _summary(folder)
    except Exception as error:  # noqa: BLE001 - whatever one run's files say, the others are listed as ever
        message = f"{error}" if isinstance(error, EngineError) else repr(error)
        return {"run": folder.run_id, "state": "unreadable", "damage": [f"This run cannot be shown: {message}"]}


def _summary(folder: RunFolder) -> dict[str, Any]:
    read = journal.survey(folder.journal_file)
    findings = damage.examine(folder, read=read)
    if findings.settings:
        return {"run": folder.run_id, "state": "unreadable", "damage": damage.sentences(findings)}
    record = _folded(folder, read[0])
    best, noted = record.best, labels.read(folder)
    return {
        "run": folder.run_id,
        "name": noted.name,
        "tags": list(noted.tags),
        "note": noted.note,
        "archived": noted.is_archived,
        "task": record.settings.task_name,
        "state": str(RunState.WAITING if was_left(record) else record.state),
        "reason": record.ended.reason if record.ended else "",
        "class": str(record.kernel_class),
        "toolchain": record.settings.toolchain,
        "model": record.settings.model,
        "depth": max(record.step_index - 1, 0),
        "depths": record.budget.depths,
        "best": best.candidate_id if best else None,
        "speedup": best.timed.speedup if best and best.timed else None,
        "speedup_interval": list(best.timed.speedup_interval) if best and best.timed else None,
        "second_baseline": _over(record, record.baseline),
        "baselines": [_over(record, measured) for measured in record.baselines.values()],
        "model_calls": record.usage.model_calls,
        "tokens": record.usage.tokens,
        "cost_usd": record.usage.cost_usd,
        "engine_s": record.usage.engine_s,
        "damage": damage.sentences(findings) if findings.is_damaged else [],
        "rules": record.settings.policy.rules,
        "judged": kept_rules(record.settings.policy.rules),
    }


def _over(record: Record, measured: BaselineMeasured | None) -> dict[str, Any] | None:
    """A baseline against eager, and the best kernel over it; None before it was measured."""
    if measured is None:
        return None
    timed, over = measured.result, best_over(record, measured)
    return {
        "name": measured.name,
        "failure": measured.failure,
        "speedup": timed.speedup if timed else None,
        "speedup_interval": list(timed.speedup_interval) if timed else None,
        "latency_ms": timed.latency_ms if timed else None,
        "best_speedup": over.speedup if over else None,
        "best_speedup_interval": [over.low, over.high] if over else None,
    }


def best_over(record: Record, measured: BaselineMeasured) -> Relative | None:
    """The best kernel over a baseline; None where either is not known."""
    best, timed = record.best, measured.result
    if best is None or best.timed is None or timed is None:
        return None
    return relative.over(best.timed.speedup, best.timed.noise, timed.speedup, timed.noise)


def _flags(record: Record, candidate: Candidate) -> list[str]:
    """What a person should look at: in the edit itself, and by the last word of a judge."""
    flags_by_label = {
        review.label: review.flags for review in record.reviews.values() if review.candidate_id == candidate.written_as
    }
    return [*candidate.created.flags, *(flag for flags in flags_by_label.values() for flag in flags)]


def details(folder: RunFolder) -> dict[str, Any]:
    """One run with its attempts as plain values."""
    record = load(folder)
    rows = [
        {
            "candidate": a.candidate_id,
            "parent": a.created.parent_id,
            "depth": a.created.depth,
            "origin": str(a.created.origin),
            "verdict": str(a.verdict) if a.verdict else None,
            "speedup": a.trusted.speedup if a.trusted else None,
            "speedup_interval": list(a.trusted.speedup_interval) if a.trusted else None,
            "latency_ms": a.trusted.latency_ms if a.trusted else None,
            "summary": a.created.summary,
            "flags": _flags(record, a),
            "flagged": _checks(a, CheckOutcome.FLAGGED),
            "broken": _checks(a, CheckOutcome.BROKEN),
        }
        for a in record.candidates.values()
    ]
    settings = {"strategy": record.settings.strategy, "strategy_options": dict(record.settings.strategy_options)}
    settings |= {"prompts": record.settings.prompts.hash, "prompt_pack": record.settings.prompts.name}
    settings |= {"knowledge": record.settings.knowledge}
    sweeps = [tuned.plain(name, sweep) for name, sweep in record.sweeps.items()]
    more = {
        **{option.name: getattr(record.settings, option.name) for option in run_options.OPTIONS},
        "deployment": codec.to_plain(record.deployments.get(record.best_id or "")),
        "sweeps": sweeps,
        "attempts": rows,
    }
    return summary(folder) | settings | more | {"finished_depths": codec.to_plain(record.concluded)}


def _checks(candidate: Candidate, outcome: CheckOutcome) -> list[str]:
    checks = StandingChecks()
    for stage, result in (("compile", candidate.compiled), ("check", candidate.checked), ("time", candidate.timed)):
        checks.take(stage, result.proofs if result else ())
    return [f"{check.check}: {check.detail}" for check in checks.worst() if check.standing is outcome]


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
        f"{label[:1].lower()}{label[1:]}: {value}" for label, value in catalogue.in_words(record.settings)
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
        for note in (*_flags(record, candidate), *_checks(candidate, CheckOutcome.FLAGGED)):
            console.print(f"{named(candidate.candidate_id)}: flagged: {printable(note)}", highlight=False, markup=False)
    if record.best and record.best.timed:
        low, high = record.best.timed.speedup_interval
        console.print(
            f"best: {named(record.best.candidate_id)}, {record.best.timed.speedup:.3g}x over eager "
            f"({low:.3g} to {high:.3g}), {record.best.timed.latency_ms:.4g} ms",
            highlight=False,
        )
    for measured in record.baselines.values():
        console.print(_baseline_line(record, measured), highlight=False, markup=False)
    for candidate_id, seen in record.deployments.items():
        told = f"deployment of {named(candidate_id)}: {printable(deployment.line(seen))}"
        console.print(told, highlight=False, markup=False)


def _baseline_line(record: Record, measured: BaselineMeasured) -> str:
    timed, ratio = measured.result, best_over(record, measured)
    if timed is None:
        return f"{printable(measured.name)}: not measured: {' '.join(printable(measured.failure).split())}"
    low, high = timed.speedup_interval
    over = f"; best kernel: {ratio.speedup:.3g}x over it ({ratio.low:.3g} to {ratio.high:.3g})" if ratio else ""
    return (
        f"{printable(measured.name)}: {timed.speedup:.3g}x over eager ({low:.3g} to {high:.3g}), "
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
