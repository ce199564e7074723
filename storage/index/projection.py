"""One journal line to the rows it stands for. A pure function of the line: knows no file and no database."""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Iterator, Mapping
from typing import Any

from storage import codec
from storage.codec import DecodeError
from storage.results.evaluation_results import TimingResult, headline
from storage.results.timeline import Timeline
from storage.results.vocabulary import Verdict
from storage.run import events, exposure, folder
from storage.run.journal import Entry, kind_of
from storage.run.labels import Labels
from storage.run.settings import Budget, RunSettings, RunState
from storage.run.steering.verbs import Command

Rows = Iterator[tuple[str, dict[str, Any]]]
_Judged = events.Compiled | events.Checked | events.Timed


def rows_of_settings(settings: RunSettings) -> Rows:
    """The run itself."""
    row = {f.name: getattr(settings, f.name) for f in dataclasses.fields(settings)}
    for name in (
        "model_options",
        "device",
        "tune",
        "compiler_hint",
        "start",
        "width",
        "weight",
        "suite",
        "forked_from",
        "strategy_options",
        "prompts",
    ):
        del row[name]  # they stand in run.json alone
    row |= {name: settings.strategy_options.get(name) for name in (*folder.FORMER_OPTIONS, exposure.SCHEDULE)}
    row |= _fork(settings)
    row |= {"sizes": dict(settings.sizes), "precision": settings.policy.measured} | _limits(settings.budget)
    yield "runs", storable(row)


def rows_of_command(run_id: str, seq: int, command: Command) -> Rows:
    """A line of commands.jsonl; `seq` is its line number."""
    head = {"run_id": run_id, "seq": seq, "time": command.asked_at, "phase": "asked"}
    yield "commands", storable(head | _fields(command))


def rows_of_labels(run_id: str, seq: int, labels: Labels) -> Rows:
    """A line of labels.jsonl; `seq` is its line number."""
    yield "labels", storable({"run_id": run_id, "seq": seq} | _fields(labels))


def rows_of_entry(run_id: str, entry: Entry, line: str) -> Rows:
    """A line of journal.jsonl.

    Raises:
        DecodeError: a number that no column can hold.
    """
    head = {"run_id": run_id, "seq": entry.seq, "time": entry.time}
    yield "events", storable(head | {"kind": kind_of(entry.event), "json": line})
    for table, row in project(entry.event):
        yield table, storable(head | row)


def storable(row: Mapping[str, Any]) -> dict[str, Any]:
    """The row with what DuckDB cannot take put right.

    Raises:
        DecodeError: an integer of more than 64 bits.
    """
    return {name: _storable(value) for name, value in row.items()}


def _storable(value: Any) -> Any:
    if value is None or type(value) is float:
        return value
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "replace").decode()
    if isinstance(value, (tuple, list)):
        return [_storable(item) for item in value]
    if isinstance(value, Mapping):
        return _storable(json.dumps(dict(value), ensure_ascii=False))
    if isinstance(value, Timeline):
        return _storable(codec.dumps(value))
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise DecodeError(f"{value} does not fit into 64 bits")
    return value


@functools.singledispatch
def project(event: events.Event) -> Rows:
    """Rows of one event, without run, seq and time."""
    raise TypeError(f"no table for {type(event).__name__}")


@project.register(events.EngineStarted)
def _(event: events.EngineStarted) -> Rows:
    reason = "Run resumed" if event.is_resumed else "Run started"
    if event.lost_events:
        reason += f"; {event.lost_events:,} earlier events are missing from the journal"
    yield "states", {"state": RunState.RUNNING, "reason": reason, "is_start": False, "is_final": False}
    yield "steps", {"phase": "resumed"}


@project.register(events.RunStarted)
def _(event: events.RunStarted) -> Rows:
    yield "states", {"state": RunState.STARTING, "reason": "", "is_start": True, "is_final": False}


@project.register(events.StateChanged)
def _(event: events.StateChanged) -> Rows:
    yield "states", {"state": event.state, "reason": event.reason, "is_start": False, "is_final": False}


@project.register(events.RunEnded)
def _(event: events.RunEnded) -> Rows:
    yield "states", _fields(event) | {"is_start": False, "is_final": True}
    yield "steps", {"phase": "ended"}


@project.register(events.CompilerShown)
def _(event: events.CompilerShown) -> Rows:
    yield from ()  # pages show it where the model saw it, in the first kernel's prompt


@project.register(events.LimitMeasured)
def _(event: events.LimitMeasured) -> Rows:
    yield "limits", _fields(event.limit)


@project.register(events.BaselineMeasured)
def _(event: events.BaselineMeasured) -> Rows:
    yield "baselines", {"name": event.name, "failure": event.failure} | (_derived(event.result) if event.result else {})


@project.register(events.PlaceTaken)
def _(event: events.PlaceTaken) -> Rows:
    yield from ()  # pages show it by what comes of it: a kernel with its trajectory, an expansion with its walk


@project.register(events.StepStarted)
def _(event: events.StepStarted) -> Rows:
    yield "steps", _fields(event) | {"phase": "started"}


@project.register(events.StepFinished)
def _(event: events.StepFinished) -> Rows:
    yield "steps", _fields(event) | {"phase": "finished"}


@project.register(events.ModelCalled)
def _(event: events.ModelCalled) -> Rows:
    yield "model_calls", _fields(event) | {"is_estimated": False}


@project.register(events.CallSent)
def _(event: events.CallSent) -> Rows:
    yield "calls_sent", _fields(event)  # what came of it is told by the event that ends it


@project.register(events.CallFailed)
def _(event: events.CallFailed) -> Rows:
    yield "call_failures", _fields(event)
    if event.is_charged:
        yield "model_calls", _fields(event) | {"finish_reason": event.failure, "is_profile_exposed": False}


@project.register(events.BudgetChanged)
def _(event: events.BudgetChanged) -> Rows:
    yield "budgets", _limits(event.budget)


@project.register(events.ClassProposed)
def _(event: events.ClassProposed) -> Rows:
    yield "classes", _fields(event)


@project.register(events.CandidateCreated)
def _(event: events.CandidateCreated) -> Rows:
    yield "candidates", _fields(event)
    yield "diffs", _fields(event)
    yield from _prediction(event, event.candidate_id)


@project.register(events.PatchTried)
def _(event: events.PatchTried) -> Rows:
    yield "patches", _fields(event)


@project.register(events.AttemptFailed)
def _(event: events.AttemptFailed) -> Rows:
    # No kernel came of it, so it is among the predictions of none; the steps and patches tell of it.
    yield from ()


@project.register(events.QuestionAsked)
def _(event: events.QuestionAsked) -> Rows:
    yield "questions", _fields(event)


@project.register(events.ApprovalAsked)
def _(event: events.ApprovalAsked) -> Rows:
    yield "leaves", _fields(event)


@project.register(events.ApprovalSettled)
def _(event: events.ApprovalSettled) -> Rows:
    yield "leaves", _fields(event)


@project.register(events.Diverged)
def _(event: events.Diverged) -> Rows:
    yield "divergences", _fields(event)


@project.register(events.Imported)
def _(event: events.Imported) -> Rows:
    yield "imports", _fields(event)


@project.register(events.DiagnosisWritten)
def _(event: events.DiagnosisWritten) -> Rows:
    yield "diagnoses", _fields(event)


@project.register(events.ReviewWritten)
def _(event: events.ReviewWritten) -> Rows:
    yield "reviews", _fields(event)
    yield from _prediction(event, None)


@project.register(events.Compiled)
def _(event: events.Compiled) -> Rows:
    result = event.result
    row = _fields(result) | {"log_blob": event.log_blob, "detail": result.diagnostics}
    row |= {"message": headline(result)}
    yield "evaluations", _stage(event, "compile") | row
    yield from _proofs(event, "compile")


@project.register(events.Checked)
def _(event: events.Checked) -> Rows:
    result = event.result
    row = _fields(result) | {"detail": result.message, "message": headline(result)}
    yield "evaluations", _stage(event, "check") | row
    if result.verdict is not Verdict.PASSED:
        yield "correctness_errors", _mismatch(event)
    yield from _proofs(event, "check")


@project.register(events.Timed)
def _(event: events.Timed) -> Rows:
    result = event.result
    row = _stage(event, "time") | _fields(result) | _derived(result)
    yield "evaluations", row | {"verdict": Verdict.PASSED, "message": ""}
    for number, one in enumerate(result.workloads):
        head = {"candidate_id": event.candidate_id, "number": number, "sizes": _storable(codec.dumps(one.sizes))}
        yield "workloads", head | _derived(one.timing)
    yield from _proofs(event, "time")


@project.register(events.Profiled)
def _(event: events.Profiled) -> Rows:
    result = event.result
    blobs = {"raw_blob": event.raw_blob, "report_blob": event.report_blob, "sass_blob": event.sass_blob}
    yield "profiles", _stage(event, "profile") | _fields(result) | blobs
    for m in result.metrics:
        yield (
            "profile_metrics",
            {"candidate_id": event.candidate_id, "kernel_hash": result.kernel_hash, "metric": m.name} | _fields(m),
        )
    for number, one in enumerate(result.advice):
        yield "profile_advice", {"candidate_id": event.candidate_id, "number": number} | _fields(one)
    for number, line in enumerate(result.lines):
        yield "profile_lines", {"candidate_id": event.candidate_id, "number": number} | _fields(line)


@project.register(events.ProfileFailed)
def _(event: events.ProfileFailed) -> Rows:
    yield "profiles", _stage(event, "profile") | {"failure": event.reason}


@project.register(events.SweepStarted)
def _(event: events.SweepStarted) -> Rows:
    yield "sweeps", _fields(event) | {"tunables": _storable(codec.dumps(event.tunables))}


@project.register(events.VariantCompiled)
def _(event: events.VariantCompiled) -> Rows:
    yield "variants", _variant(event, "compile") | {"numbers": dict(event.values), "verdict": event.result.verdict}


@project.register(events.VariantChecked)
def _(event: events.VariantChecked) -> Rows:
    yield "variants", _variant(event, "check") | {"verdict": event.result.verdict}


@project.register(events.VariantTimed)
def _(event: events.VariantTimed) -> Rows:
    row = _variant(event, "time") | _derived(event.result)
    yield "variants", row | {"verdict": Verdict.PASSED, "is_brief": event.is_brief}


def _variant(event: events.VariantCompiled | events.VariantChecked | events.VariantTimed, stage: str) -> dict[str, Any]:
    result = event.result
    failed = None if isinstance(result, TimingResult) or result.verdict is Verdict.PASSED else headline(result)
    head = {"step": event.step, "candidate_id": event.candidate_id, "number": event.number}
    return head | {"stage": stage, "seconds": result.seconds, "message": failed or ""}


@project.register(events.Consulted)
def _(event: events.Consulted) -> Rows:
    head = _fields(event)
    yield "consultations", head
    for place, one in enumerate(event.found):
        yield "consulted", {"candidate_id": event.candidate_id, "step": event.step, "place": place} | _fields(one)


@project.register(events.Ranked)
def _(event: events.Ranked) -> Rows:
    yield "rankings", _fields(event)


@project.register(events.ToolCalled)
def _(event: events.ToolCalled) -> Rows:
    yield "tool_calls", _fields(event)


@project.register(events.ToolAnswered)
def _(event: events.ToolAnswered) -> Rows:
    yield "tool_calls", _fields(event)


@project.register(events.RulesTold)
def _(event: events.RulesTold) -> Rows:
    yield "tellings", _fields(event)
    for place, one in enumerate(event.rules):
        yield "told_rules", {"place": place} | _fields(one)


@project.register(events.Taught)
def _(event: events.Taught) -> Rows:
    yield "taught", _fields(event)


@project.register(events.DepthFinished)
def _(event: events.DepthFinished) -> Rows:
    yield "depths", _fields(event)
    for place, one in enumerate(event.weighed):
        yield "weighed", {"depth": event.depth, "place": place} | _fields(one)


@project.register(events.CommandAcknowledged)
def _(event: events.CommandAcknowledged) -> Rows:
    yield "commands", _fields(event.command) | {"phase": "acknowledged", "step": event.step}


@project.register(events.CommandEffective)
def _(event: events.CommandEffective) -> Rows:
    yield "commands", _fields(event) | {"phase": "effective"}


@project.register(events.CommandRefused)
def _(event: events.CommandRefused) -> Rows:
    yield "commands", _fields(event) | {"phase": "refused", "note": event.reason}


@project.register(events.BudgetWarned)
def _(event: events.BudgetWarned) -> Rows:
    yield "warnings", _fields(event) | {"budget": event.limit}


def _limits(budget: Budget) -> dict[str, Any]:
    renamed = {
        "model_calls": "max_model_calls",
        "tokens": "max_tokens",
        "cost_usd": "max_cost_usd",
        "wall_s": "max_wall_s",
    }
    return {renamed.get(name, name): value for name, value in _fields(budget).items()}


def _derived(result: TimingResult) -> dict[str, Any]:
    low, high = result.speedup_interval
    return {
        "speedup": result.speedup,
        "speedup_low": low,
        "speedup_high": high,
        "noise": result.noise,
        "latency_ms": result.latency_ms,
        "baseline_latency_ms": result.baseline_latency_ms,
    }


def _fields(record: Any) -> dict[str, Any]:
    """A record's own fields; those that the table has no column for are left out when the row is written."""
    return {name: getattr(record, name) for name in _names(record.__class__)}


def _fork(settings: RunSettings) -> dict[str, Any]:
    fork = settings.forked_from
    if fork is None:
        return {}
    return {"forked_run": fork.run_id, "forked_candidate": fork.candidate_id, "forked_number": fork.number}


@functools.cache
def _names(kind: Any) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(kind))


def _stage(event: _Judged | events.Profiled | events.ProfileFailed, stage: str) -> dict[str, Any]:
    return {"step": event.step, "candidate_id": event.candidate_id, "stage": stage}


def _proofs(event: _Judged, stage: str) -> Rows:
    for number, check_record in enumerate(event.result.proofs):
        row = {"candidate_id": event.candidate_id, "stage": stage, "number": number, "allowed": check_record.limit}
        yield (
            "proofs",
            row | _fields(check_record) | {"check_group": check_record.group, "check_name": check_record.check},
        )


def _prediction(event: events.CandidateCreated | events.ReviewWritten, candidate_id: str | None) -> Rows:
    if event.technique or event.predicted_gain is not None:
        row = {"step": event.step, "candidate_id": candidate_id, "technique": event.technique}
        yield "predictions", row | {"gain": event.predicted_gain}


def _mismatch(event: events.Checked) -> dict[str, Any]:
    result, wrong = event.result, event.result.mismatch
    row = {"candidate_id": event.candidate_id, "verdict": result.verdict, "message": result.message}
    if wrong is None:
        return row | {"trial": "", "first_index": [], "shape": [], "heat": []}
    return row | _fields(wrong) | {"first_index": wrong.index}
