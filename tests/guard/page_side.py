"""What the pages' queries answer after the first k events of a run, as values without the names of their fields."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pages.parts.status import step_sentences
from pages.parts.steering import command_list
from storage.index import queries
from storage.index.database import Database, index_file, open_database
from storage.index.ingest import Ingest
from storage.index.queries import KernelFilter, fetch
from storage.results.hardware_limit import HardwareLimit
from storage.run import events as ev
from storage.run.folder import RunFolder
from storage.run.settings import StepKind
from storage.run.steering.steering_state import SteeringState

# The family tree as a query of its own told it.
LINEAGE = (
    "candidate_id", "number", "parent_id", "base_id", "depth", "generation", "repair", "origin", "verdict", "speedup",
    "is_accepted", "is_pending", "is_best", "is_tied",
)  # fmt: skip
Ask = Callable[[Database, str], Any]
# What rows tell today beside what they told: Compare has model calls as an axis, a limit may say what the device is and
# what a call of the reference runs, a method may have several lines of kernels, two parents and a reward of its own,
# people label runs, profiles have samples by source line, a speed-up its noise, a baseline its cost, a step its end and
# a question what its answer has to be; a run has held its device so long, and a timing may decide nothing.
NEW = (
    *((queries.TimedRow, name) for name in ("calls", "device_s", "latency_ms", "low", "high")),
    *((kind, "device_s") for kind in (queries.ReachedRow, queries.ConditionsRow)),
    *((queries.RiseRow, name) for name in ("number", "is_gain")),
    (queries.EvaluationRow, "untrusted"),
    *(
        (queries.PredictionRow, name)
        for name in ("low", "high", "base_low", "base_high", "latency_ms", "base_latency_ms", "is_on_gpu")
    ),
    *((queries.BaselineRow, name) for name in ("seconds", "is_on_gpu")),
    *((HardwareLimit, name) for name in ("facts", "signature", "operators")),
    (queries.AttemptRow, "trajectory"),
    (queries.AttemptRow, "second_parent_id"),
    (queries.CommandRow, "effective_seq"),
    (queries.CandidateRow, "second_parent_number"),
    (queries.DepthRow, "reward"),
    (queries.RunRow, "language"),
    *(
        (queries.RunRow, name)
        for name in ("strategy", "label", "tags", "note", "is_archived", "is_example", "best_looks", "completed")
    ),
    *((queries.Choices, name) for name in ("strategies", "tags", "archived")),
    (queries.RunChoice, "language"),
    (queries.RunChoice, "device"),
    *((queries.MetricChangeRow, name) for name in ("kind", "previous_kind", "is_within_noise")),
    (queries.ConditionsRow, "language"),
    (queries.ProfileRow, "sass_blob"),
    (queries.ProfileRow, "samples"),
    (queries.DepthRow, "best_noise"),
    (queries.ReachedRow, "best_noise"),
    *((queries.FamilyRow, name) for name in ("low", "high", "noise", "latency_ms", "second_parent_id")),
    (queries.QuestionRow, "expects"),
)
EXPOSED_AT = 8  # so many values of a run's conditions come before its last step index
KERNELS = 4  # of a run, the newest: what is asked about one kernel is asked about these


def _set(steering: SteeringState) -> list[Any]:
    return [steering.next_base, steering.pinned, steering.rules, steering.model and steering.model.model]


def _switches(steering: SteeringState, hints: tuple[str, ...]) -> list[Any]:
    return [steering.collect, steering.expose, hints]


def _started_with(db: Database, run_id: str, column: str) -> Any:
    with db.reader() as cursor:
        found = cursor.execute(f"SELECT {column} FROM runs WHERE run_id = ?", [run_id]).fetchone()
    return found[0] if found else None


def _states(db: Database, run_id: str) -> list[list[Any]]:
    began = {ev.RunStarted: "starting", ev.EngineStarted: "running"}
    return [
        [e.seq, e.at, began.get(kind := type(e.event)) or e.event.state, getattr(e.event, "reason", ""),
         kind is ev.RunEnded, getattr(e.event, "error_blob", None)]
        for e in queries.states(db, run_id)
    ]  # fmt: skip


def _divergences(db: Database, run_id: str) -> list[list[Any]]:
    entries = fetch.events(db, run_id, ev.Diverged)
    return [[e.seq, d.step, d.role, d.candidate_id, d.is_bridged, d.reason] for e in entries for d in [e.event]]


def _current_step(db: Database, run_id: str) -> list[Any] | None:
    step = queries.current_step(db, run_id)
    return None if step is None else [
        step.seq, step.step, step.kind, step.depth, step.candidate_id, step.made_id, step.started_at, step.seconds,
        step.outcome, step.is_in_flight, step_sentences.sentence(step),
    ]  # fmt: skip


def _conditions(db: Database, run_id: str) -> list[list[Any]]:
    """With the last finished step index, which Compare told of its own and now takes from the run."""
    with db.reader() as cursor:
        last = (cursor.execute("SELECT max(depth) FROM depths WHERE run_id = ?", [run_id]).fetchone() or [None])[0]
    rows = [values(replace(row, engine_s=_ended_s(db, run_id))) for row in queries.conditions(db, [run_id])]
    return [[*row[:EXPOSED_AT], last, *row[EXPOSED_AT:]] for row in rows]


def _ended_s(db: Database, run_id: str) -> float:
    """The engine time in steps that ended, which was all that was counted. `test_waiting.py` has the rest."""
    return sum((entry.event.seconds or 0.0 for entry in fetch.events(db, run_id, ev.StepFinished)), 0.0)


def _run(db: Database, run_id: str) -> queries.RunRow | None:
    row = queries.run(db, run_id)
    return row and replace(row, engine_s=_ended_s(db, run_id))


def _allowance(db: Database, run_id: str) -> queries.AllowanceRow | None:
    row = queries.allowance(db, run_id)
    return row and replace(row, spent_s=_ended_s(db, run_id))


OF_A_RUN: Mapping[str, Ask] = {
    "allowance": _allowance,
    "asked_depths": lambda db, run: _started_with(db, run, "asked_depths"),
    "asked_exposure": lambda db, run: _started_with(db, run, "expose_from_depth"),
    "attempts": queries.attempts,
    "baseline": queries.baseline,
    "beam": queries.depth_spread,
    "commands": queries.commands,
    "count_error_groups": queries.count_error_groups,
    "count_kernels": lambda db, run: queries.count_kernels(db, run, KernelFilter()),
    "current_step": _current_step,
    "depths": queries.depths,
    "divergences": _divergences,
    "effects": command_list.effects,
    "engine_began": queries.engine_began,
    "error_groups": queries.error_groups,
    "exposures": queries.exposures,
    "failures": queries.failures,
    "family": queries.family,
    "feed": queries.feed,
    "kernels": lambda db, run: queries.kernels(db, run, KernelFilter(), 50),
    "last_seq": queries.last_seq,
    "limit": queries.limit,
    "limit_speedup": queries.limit_speedup,
    "lineage": lambda db, run: [[getattr(row, name) for name in LINEAGE] for row in queries.attempts(db, run)],
    "model_calls": queries.model_calls,
    "open_leave": queries.open_approval,
    "open_question": queries.open_question,
    "orders": lambda db, run: _set(queries.steering_state(db, run)),
    "points": queries.points,
    "problems": queries.problems,
    "rises": queries.rises,
    "roll_backs": queries.roll_backs,
    "run": _run,
    "spending": queries.spending,
    "standing_counts": queries.outcome_counts,
    "states": _states,
    # Where a mark stands on the curve is its last field, and came later.
    "steering_marks": lambda db, run: [values(mark)[:-1] for mark in queries.steering_marks(db, run)],
    "steps": queries.steps,
    "switches": lambda db, run: _switches(queries.steering_state(db, run), queries.pending_hints(db, run)),
    "typical_seconds": lambda db, run: [queries.typical_seconds(db, run, kind) for kind in StepKind],
    "unapplied": queries.unapplied,
    "conditions": _conditions,
    "reached": lambda db, run: queries.reached(db, [run]),
    "timed_kernels": lambda db, run: queries.timed_kernels(db, [run]),
    "best_speedups": lambda db, run: queries.best_speedups(db, [run]),
}
OF_ALL_RUNS: Mapping[str, Callable[[Database], Any]] = {
    "choices": queries.choices,
    "comparable_runs": queries.comparable_runs,
    "count_runs": queries.count_runs,
    "listing": queries.listing,
    "overview": lambda db: [replace(row, engine_s=_ended_s(db, row.run_id)) for row in queries.overview(db)],
    "patch_rates": queries.patch_rates,
    "state_counts": queries.state_counts,
    "totals": queries.totals,
    "unfinished_runs": queries.unfinished_runs,
    "waiting_runs": queries.waiting_runs,
}
OF_A_KERNEL: Mapping[str, Callable[[Database, str, str], Any]] = {
    "advice": queries.advice,
    "candidate": queries.candidate,
    "conversation": queries.conversation,
    "correctness_errors": queries.correctness_errors,
    "diagnoses": queries.diagnoses,
    "evaluation": queries.evaluation,
    "failed_tries": queries.failed_tries,
    "imported": queries.imported,
    "kernel_cost": queries.kernel_cost,
    "metric_changes": queries.metric_changes,
    "metrics": queries.metrics,
    "neighbours": queries.neighbours,
    "patches": queries.patches,
    "profile": queries.profile,
    "profiled_ancestor": queries.profiled_ancestor,
    "proofs": queries.check_records,
    "timing_samples": queries.timing_samples,
}


def moments(folder: Path, home: Path, places: Callable[[int], bool]) -> Iterator[tuple[int, dict[str, Any]]]:
    """The answers after those numbers of events that `places` takes, from an index that follows the journal."""
    lines = RunFolder(folder).journal_file.read_bytes().splitlines(keepends=True)
    growing = home / "runs" / folder.name
    growing.mkdir(parents=True)
    for name in ("run.json", "commands.jsonl"):
        if (folder / name).exists():
            (growing / name).write_bytes((folder / name).read_bytes())
    with open_database(index_file(home)) as db:
        ingest = Ingest(db, home / "runs")
        for count in range(len(lines) + 1):
            if count:
                with open(growing / "journal.jsonl", "ab") as file:
                    file.write(lines[count - 1])
            if places(count) or count == len(lines):
                ingest.catch_up()
                yield count, answers(db, folder.name)


def answers(db: Database, run_id: str) -> dict[str, Any]:
    """Every query's answer, by name, in plain values."""
    found = {name: ask(db, run_id) for name, ask in OF_A_RUN.items()}
    found |= {name: ask(db) for name, ask in OF_ALL_RUNS.items()}
    newest = [row.candidate_id for row in queries.attempts(db, run_id)][-KERNELS:]
    for name, of_kernel in OF_A_KERNEL.items():
        found[name] = [of_kernel(db, run_id, candidate_id) for candidate_id in newest]
    return {name: values(answer) for name, answer in found.items()}


def values(answer: Any) -> Any:
    """Rows as lists of values in the order of their fields; what is not JSON becomes its text. A run's title has a
    capital today."""
    if isinstance(answer, queries.RunRow):
        answer = replace(answer, title=answer.title[:1].lower() + answer.title[1:])
    if dataclasses.is_dataclass(answer) and not isinstance(answer, type):
        names = [one.name for one in dataclasses.fields(answer)]
        new = {name for kind, name in NEW if isinstance(answer, kind)}
        return [values(getattr(answer, name)) for name in names if name not in new]
    if isinstance(answer, enum.Enum):
        return answer.value
    if isinstance(answer, Mapping):
        return {str(key): values(value) for key, value in answer.items()}
    if isinstance(answer, (list, tuple, set, frozenset)):
        return [values(one) for one in (sorted(answer, key=str) if isinstance(answer, (set, frozenset)) else answer)]
    return answer if isinstance(answer, (str, int, float, bool, type(None))) else str(answer)
