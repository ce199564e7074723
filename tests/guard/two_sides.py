"""What the index says of a run and what the engine's record says of it, concept by concept, in the same values."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from storage.index import queries
from storage.index.database import Database, index_file, open_database
from storage.index.ingest import Ingest
from storage.results.vocabulary import Verdict
from storage.run import journal
from storage.run.folder import RunFolder
from storage.run.record import Candidate, Record
from tests.guard.saved import unpack

Side = tuple[Callable[[Database, str], Any], Callable[[Record], Any]]


def _of_run(db: Database, run_id: str) -> queries.RunRow:
    row = queries.run(db, run_id)
    assert row is not None
    return row


def _figures(kernel: Candidate | None) -> list[Any] | None:
    if kernel is None or kernel.timed is None or kernel.verdict is not Verdict.PASSED:
        return None
    timed = kernel.timed
    return [timed.speedup, *timed.speedup_interval, timed.noise, timed.latency_ms]


def _accepted(record: Record) -> set[str]:
    """Kernels that a depth ended with, and those that were tuned into one."""
    taken = [end.candidate_id for end in record.concluded if end.outcome == "accepted" and end.candidate_id]
    kernels = [kernel for name in taken if (kernel := record.candidates.get(name))]
    return {*taken, *(kernel.written_as for kernel in kernels if kernel.written_as)}


def _depths(record: Record) -> list[Any]:
    last = {end.depth: end for end in record.concluded}
    return [[end.depth, end.outcome, end.candidate_id, end.base_id, end.reason, end.reward] for end in last.values()]


def _allowed(db: Database, run_id: str) -> list[Any]:
    row = queries.allowance(db, run_id)
    assert row is not None
    limits = [row.max_model_calls, row.max_tokens, row.max_cost_usd, row.max_wall_s]
    return [row.depths, *limits, row.target_speedup]


def _limits(record: Record) -> list[Any]:
    b = record.budget
    return [b.depths, b.model_calls, b.tokens, b.cost_usd, b.wall_s, b.target_speedup]


SIDES: dict[str, Side] = {
    "state": (lambda db, run: _of_run(db, run).state, lambda record: record.state),
    "class": (lambda db, run: _of_run(db, run).kernel_class, lambda record: record.kernel_class),
    "best kernel": (lambda db, run: _of_run(db, run).best_candidate_id, lambda record: record.best_id),
    "spent": (
        lambda db, run: [(row := _of_run(db, run)).model_calls, row.tokens, row.cost_usd, round(row.engine_s, 6)],
        lambda record: [
            record.usage.model_calls, record.usage.tokens, record.usage.cost_usd, round(record.usage.worked_s, 6)
        ],
    ),
    "counts": (
        lambda db, run: [(row := _of_run(db, run)).attempts, row.passed, row.failed],
        lambda record: [
            len(record.candidates),
            sum(kernel.verdict is Verdict.PASSED for kernel in record.candidates.values()),
            sum(kernel.has_failed for kernel in record.candidates.values()),
        ],
    ),
    "limits": (_allowed, _limits),
    "verdicts": (
        lambda db, run: {row.candidate_id: row.verdict for row in queries.attempts(db, run)},
        lambda record: {name: kernel.verdict for name, kernel in record.candidates.items()},
    ),
    "figures": (
        lambda db, run: {
            row.candidate_id: row.speedup and [row.speedup, row.low, row.high, row.noise, row.latency_ms]
            for row in queries.attempts(db, run)
        },
        lambda record: {name: _figures(kernel) for name, kernel in record.candidates.items()},
    ),
    "numbers": (
        lambda db, run: {row.candidate_id: row.number for row in queries.attempts(db, run)},
        lambda record: {name: record.number(name) for name in record.candidates},
    ),
    "accepted kernels": (
        lambda db, run: {row.candidate_id for row in queries.attempts(db, run) if row.is_accepted},
        lambda record: _accepted(record) & set(record.candidates),
    ),
    "depths": (
        lambda db, run: [
            [row.depth, row.outcome, row.candidate_id, row.base_id, row.reason, row.reward]
            for row in queries.depths(db, run) if row.outcome
        ],
        _depths,
    ),
    "step in flight": (
        lambda db, run: (row := queries.current_step(db, run)) and [row.step, row.kind, row.depth, row.candidate_id],
        lambda record: None if record.ended or not (step := record.in_flight) else [
            step.step, step.kind, step.depth, step.candidate_id
        ],
    ),
    "open question": (
        lambda db, run: (row := queries.open_question(db, run)) and [row.step, row.call, row.role, row.prompt_blob],
        lambda record: (q := record.human.question) and [q.step, q.call, q.role, q.prompt_blob],
    ),
    "open approval": (
        lambda db, run: (row := queries.open_approval(db, run)) and [row.step, row.kind, row.fallback, row.after_s],
        lambda record: (asked := record.human.open_approval)
        and [asked.step, asked.kind, asked.fallback, asked.after_s],
    ),
    "steering": (queries.steering_state, lambda record: record.steering),
    "commands in force or refused": (
        lambda db, run: {row.command_id for row in queries.commands(db, run) if row.effective_at or row.refused_at},
        lambda record: record.settled_commands & set(record.commands),
    ),
    "limit": (queries.limit, lambda record: record.limit),
    "further baseline": (
        lambda db, run: (row := queries.baseline(db, run)) and [row.name, row.speedup, row.latency_ms, row.failure],
        lambda record: (base := record.baseline)
        and [base.name, base.result and base.result.speedup, base.result and base.result.latency_ms, base.failure],
    ),
}  # fmt: skip


def first_of_each_kind(names: Sequence[str]) -> dict[str, set[int]]:
    """For each saved run after how many events to look: where, over all runs, a kind of event comes first, and every
    50th."""
    seen: set[str] = set()
    places: dict[str, set[int]] = {}
    for name in names:
        with tempfile.TemporaryDirectory() as root:
            entries = list(journal.read(RunFolder(unpack(name, Path(root))).journal_file))
        kinds = [journal.kind_of(entry.event) for entry in entries]
        firsts = {kinds.index(kind) + 1 for kind in set(kinds) - seen}
        seen |= set(kinds)
        places[name] = firsts | set(range(50, len(kinds), 50))
    return places


def differences(folder: Path, home: Path, is_place: Callable[[int], bool]) -> Iterator[str]:
    """Where the two sides say different things: after those numbers of events that `is_place` takes, and in the end."""
    saved = RunFolder(folder)
    settings, entries = saved.read_settings(), list(journal.read(saved.journal_file))
    lines = saved.journal_file.read_bytes().splitlines(keepends=True)
    growing = home / "runs" / folder.name
    growing.mkdir(parents=True)
    for name in ("run.json", "commands.jsonl"):
        if (folder / name).exists():
            (growing / name).write_bytes((folder / name).read_bytes())
    written = 0
    with open_database(index_file(home)) as db:
        ingest = Ingest(db, home / "runs")
        for count in [*filter(is_place, range(len(entries))), len(entries)]:
            with open(growing / "journal.jsonl", "ab") as file:
                file.writelines(lines[written:count])
            written = count
            ingest.catch_up()
            record = Record.of(settings, entries[:count])
            for name, (of_index, of_record) in SIDES.items():
                shown, folded = of_index(db, folder.name), of_record(record)
                if shown != folded:
                    yield f"{name} after {count} events: the index says {shown}, the record {folded}"
