"""One run for programs, from its folder: a row of `list --json`, and the form of `show --json`, which has all that it
takes to decide what to do next. Reads journals only, so it works beside a running dashboard."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from engine import run_options
from engine.errors import EngineError
from engine.evaluator import tasks
from engine.search import limits
from engine.shown import sweeps, trying
from engine.shown.sweeps import SweepForm
from engine.shown.trying import ToTry
from storage import codec
from storage.knowledge import files as knowledge_files
from storage.results import relative
from storage.results.check_records import CheckOutcome, StandingChecks
from storage.results.deployment import Deployment
from storage.results.relative import Relative
from storage.run import damage, journal, labels, liveness
from storage.run.events import BaselineMeasured
from storage.run.events.run import DepthFinished
from storage.run.folder import RunFolder
from storage.run.journal import Entry
from storage.run.record import Candidate, Record
from storage.run.settings import LEFT, RunState

SHOWN_FAILURES = 3
NEXT: Mapping[RunState, str] = {
    RunState.PAUSED: "It is paused: `python -m engine command {run} resume` lets it go on.",
    RunState.WAITING: "It waits for a person: `python -m engine answer {run}` shows the prompt and takes a reply.",
    RunState.FINISHED: "It has finished: `python -m engine export {run}` writes the best kernel, "
    '`python -m engine command {run} set_budget "depths=N"` and `resume` go on.',
    RunState.STOPPED: "It was stopped: `python -m engine resume {run}` goes on where it stopped.",
    RunState.FAILED: "Its engine failed: read the reason, mend it, then `python -m engine resume {run}`.",
    RunState.LOST: "Its engine is gone: `python -m engine resume {run}` goes on where it was.",
}
AT_WORK = (
    "An engine is at work on it: look again when a step has ended, or steer it (`python -m engine command {run}`)."
)


@dataclass(frozen=True, slots=True)
class BaselineForm:
    """What one would run instead, over eager PyTorch, and the best kernel over it. Figures are null where it could not
    be timed; `failure` says why."""

    name: str
    failure: str
    speedup: float | None
    speedup_interval: tuple[float, float] | None
    latency_ms: float | None
    best_speedup: float | None
    best_speedup_interval: tuple[float, float] | None


@dataclass(frozen=True, slots=True)
class AttemptForm:
    """One kernel. Figures are null where it was not timed, or its timing decides nothing."""

    candidate: str
    parent: str | None
    depth: int
    origin: str
    verdict: str | None
    speedup: float | None
    speedup_interval: tuple[float, float] | None
    latency_ms: float | None
    summary: str
    flags: tuple[str, ...]
    flagged: tuple[str, ...]
    broken: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FailureForm:
    """Why a kernel failed, in one line."""

    candidate: str
    verdict: str
    failure: str


@dataclass(frozen=True, slots=True)
class LimitForm:
    """A limit of the run that is set, and what is left of it."""

    limit: str
    used: float
    allowed: float
    left: float


class RunForm(msgspec.Struct, frozen=True, kw_only=True, rename={"kernel_class": "class"}):
    """One run. Times are seconds, latencies milliseconds, speed-ups ratios over eager PyTorch with their 95 %
    interval; null is unknown or not yet known."""

    version: Literal[1] = 1
    run: str
    name: str
    tags: tuple[str, ...]
    note: str
    archived: bool
    task: str
    state: str
    reason: str
    kernel_class: str
    toolchain: str
    model: str
    depth: int
    depths: int
    best: str | None
    speedup: float | None
    speedup_interval: tuple[float, float] | None
    second_baseline: BaselineForm | None
    baselines: tuple[BaselineForm, ...]
    model_calls: int
    tokens: int
    cost_usd: float | None
    engine_s: float
    damage: tuple[str, ...]
    rules: int
    judged: str
    strategy: str
    strategy_options: Mapping[str, str | int | float | bool | None]
    prompts: str
    prompt_pack: str
    knowledge: str
    tune: int
    compiler_hint: bool
    start: str
    width: int
    weight: float
    deployment: Deployment | None
    sweeps: tuple[SweepForm, ...]
    attempts: tuple[AttemptForm, ...]
    finished_depths: tuple[DepthFinished, ...]
    limit_ms: float | None
    """What no kernel can beat on the device; null before it is measured, and where a kernel was faster than that."""
    last_failures: tuple[FailureForm, ...]
    """The last of the kernels that failed, oldest first."""
    to_try: ToTry | None
    """What the knowledge base offers for the best kernel; null before there is one."""
    left: tuple[LimitForm, ...]
    next: str
    """The next sensible step, in words."""


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
    fields: dict[str, Any] = codec.to_plain(_common(folder, _folded(folder, read[0]), findings))
    return fields


def _common(folder: RunFolder, record: Record, findings: damage.Damage) -> dict[str, Any]:
    """What a row and the form have in common."""
    best, noted = record.best, labels.read(folder)
    return {
        "run": folder.run_id,
        "name": noted.name,
        "tags": noted.tags,
        "note": noted.note,
        "archived": noted.is_archived,
        "task": record.settings.task_name,
        "state": str(_state(record)),
        "reason": record.ended.reason if record.ended else "",
        "class": str(record.kernel_class),
        "toolchain": record.settings.toolchain,
        "model": record.settings.model,
        "depth": max(record.step_index - 1, 0),
        "depths": record.budget.depths,
        "best": best.candidate_id if best else None,
        "speedup": best.timed.speedup if best and best.timed else None,
        "speedup_interval": best.timed.speedup_interval if best and best.timed else None,
        "second_baseline": _over(record, record.baseline),
        "baselines": tuple(_over(record, measured) for measured in record.alternatives.values()),
        "model_calls": record.usage.model_calls,
        "tokens": record.usage.tokens,
        "cost_usd": record.usage.cost_usd,
        "engine_s": record.usage.worked_s,
        "damage": tuple(damage.sentences(findings)) if findings.is_damaged else (),
        "rules": record.settings.policy.rules,
        "judged": tasks.kept_rules(record.settings.policy.rules, record.settings.task_source),
    }


def _state(record: Record) -> RunState:
    return RunState.WAITING if was_left(record) else record.state


def _over(record: Record, measured: BaselineMeasured | None) -> BaselineForm | None:
    """A baseline against eager, and the best kernel over it; None before it was measured."""
    if measured is None:
        return None
    timed, over = measured.result, best_over(record, measured)
    return BaselineForm(
        measured.name, measured.failure,
        timed.speedup if timed else None, timed.speedup_interval if timed else None,
        timed.latency_ms if timed else None,
        over.speedup if over else None, (over.low, over.high) if over else None,
    )  # fmt: skip


def best_over(record: Record, measured: BaselineMeasured) -> Relative | None:
    """The best kernel over a baseline; None where either is not known."""
    best, timed = record.best, measured.result
    if best is None or best.timed is None or timed is None:
        return None
    return relative.over(best.timed.figures, timed.figures)


def flags(record: Record, candidate: Candidate) -> list[str]:
    """What a person should look at: in the edit itself, and by the last word of a judge."""
    flags_by_label = {
        review.label: review.flags for review in record.reviews.values() if review.candidate_id == candidate.written_as
    }
    return [*candidate.created.flags, *(flag for flags in flags_by_label.values() for flag in flags)]


def checks(record: Record, candidate: Candidate, outcome: CheckOutcome) -> list[str]:
    """The checks of a kernel that ended so, each with its detail."""
    standing = StandingChecks(limit_ms=record.limit.as_measured_ms if record.limit else None)
    for stage, result in (("compile", candidate.compiled), ("check", candidate.checked), ("time", candidate.timed)):
        standing.take(stage, result.proofs if result else ())
    return [f"{check.check}: {check.detail}" for check in standing.worst() if check.standing is outcome]


def form(folder: RunFolder) -> RunForm:
    """One run with its attempts and what to do next.

    Raises:
        EngineError: the run cannot be read.
    """
    record = load(folder)
    settings, common = record.settings, _common(folder, record, damage.examine(folder))
    return RunForm(
        kernel_class=common.pop("class"),
        **common,
        **{option.name: getattr(settings, option.name) for option in run_options.OPTIONS},
        strategy=settings.strategy,
        strategy_options=dict(settings.strategy_options),
        prompts=settings.prompts.hash,
        prompt_pack=settings.prompts.name,
        knowledge=settings.knowledge,
        deployment=record.deployments.get(record.best_id or ""),
        sweeps=tuple(sweeps.form(name, sweep) for name, sweep in record.sweeps.items()),
        attempts=tuple(_attempt(record, candidate) for candidate in record.candidates.values()),
        finished_depths=tuple(record.concluded),
        limit_ms=record.limit.known_ms if record.limit else None,
        last_failures=last_failures(record),
        to_try=trying.to_try(record, knowledge_files.load()),
        left=left(record),
        next=NEXT.get(_state(record), AT_WORK).format(run=folder.run_id),
    )


def _attempt(record: Record, candidate: Candidate) -> AttemptForm:
    created, timed = candidate.created, candidate.trusted
    return AttemptForm(
        candidate.candidate_id, created.parent_id, created.depth, str(created.origin),
        str(candidate.verdict) if candidate.verdict else None,
        timed.speedup if timed else None, timed.speedup_interval if timed else None,
        timed.latency_ms if timed else None,
        created.summary, tuple(flags(record, candidate)),
        tuple(checks(record, candidate, CheckOutcome.FLAGGED)), tuple(checks(record, candidate, CheckOutcome.BROKEN)),
    )  # fmt: skip


def last_failures(record: Record) -> tuple[FailureForm, ...]:
    """The last kernels that failed, oldest first."""
    failed = [candidate for candidate in record.candidates.values() if candidate.has_failed]
    return tuple(
        FailureForm(candidate.candidate_id, str(candidate.verdict), candidate.failure)
        for candidate in failed[-SHOWN_FAILURES:]
    )


def left(record: Record) -> tuple[LimitForm, ...]:
    """What is left of each limit that is set, that of the step indexes first."""
    depths = ("depths", float(max(record.step_index - 1, 0)), float(record.budget.depths))
    return tuple(
        LimitForm(name, used, allowed, max(0.0, allowed - used))
        for name, used, allowed in (depths, *limits.spent(record))
    )


def details(folder: RunFolder) -> dict[str, Any]:
    """The form as plain values; raises as `form`."""
    plain: dict[str, Any] = codec.to_plain(form(folder))
    return plain
