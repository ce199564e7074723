"""Everything that happened in a run, in one order; and its states, problems and journal lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from storage.index.database import Database
from storage.index.queries import fetch
from storage.index.queries.attempts import RISING
from storage.index.queries.commands import CommandRow, commands, in_force
from storage.index.queries.steps import NEWEST, StepRow, steps
from storage.run import events as ev
from storage.run.journal import FaultKind
from storage.run.steering.command_arguments import NO_CALLS
from storage.run.steering.verbs import Result, verbs_with


@dataclass(frozen=True, slots=True)
class FeedKernel:
    """A kernel of the run; `speedup` with its relative `noise` and 95 % interval once it is timed."""

    candidate_id: str
    number: int
    speedup: float | None
    noise: float | None
    low: float | None
    high: float | None
    latency_ms: float | None


@dataclass(frozen=True, slots=True)
class BaseChange:
    """A step index began from another kernel than `newest`, the newest accepted one, by the run's rule alone."""

    step: int
    depth: int
    candidate_id: str
    number: int
    newest: int
    policy: str


@dataclass(frozen=True, slots=True)
class FeedRow:
    """What happened: a step, a change of the base kernel, or an event beside the steps."""

    seq: int
    at: float
    """When it came about: a step's result, its start while it has none; a command's asking."""
    what: StepRow | BaseChange | ev.Event
    kernel: FeedKernel | None = None
    """The one that an event is about, if this run has it."""
    best: FeedKernel | None = None
    """The fastest by the end of a step index."""
    before: FeedKernel | None = None
    """The fastest before that one."""
    command: CommandRow | None = None
    is_again: bool = False
    """The hardware limit had been measured before."""


# What happens beside the steps. The states of a run come of four kinds of events.
_STATES = (ev.EngineStarted, ev.RunStarted, ev.StateChanged, ev.RunEnded)
_NEWS = (
    *_STATES, ev.DepthFinished, ev.CommandAcknowledged, ev.CommandEffective, ev.CommandRefused, ev.BudgetWarned,
    ev.CallFailed, ev.BaselineMeasured, ev.LimitMeasured, ev.ClassProposed, ev.BudgetChanged, ev.QuestionAsked,
    ev.ApprovalAsked, ev.ApprovalSettled, ev.Diverged, ev.Imported, ev.PatchTried, ev.DeploymentSeen,
    ev.ToolAnswered,
)  # fmt: skip
# Steps that no step index begins with that starts from an accepted kernel.
_NOT_FROM_A_BASE = [*NO_CALLS, "synthesise", "diagnose", "repair"]


def feed(db: Database, run_id: str, after_seq: int = 0, limit: int = 200) -> list[FeedRow]:
    """The newest items after a journal line, newest first. A step's item appears when it starts, and moves to the time
    of its result."""
    rows = [FeedRow(step.seq, step.ended_at or step.started_at, step)
            for step in steps(db, run_id, after_seq, max(limit, NEWEST))]  # fmt: skip
    asked = {command.command_id: command for command in commands(db, run_id)}
    # A command stands at its asking, before the line that tells of it: so many more lines may lead to an item.
    most = limit + len(asked)
    which = "seq > $after AND (kind <> 'PatchTried' OR contains(json, '\"is_applied\":false'))"
    news = fetch.events(db, run_id, *_NEWS, where=which, parameters={"after": after_seq}, newest=most)
    news = _ended(db, run_id, news)
    kinds, kernels = {type(entry.event) for entry in news}, _kernels(db, run_id, news)
    rising = _rising(db, run_id) if ev.DepthFinished in kinds else []
    limits = fetch.events(db, run_id, ev.LimitMeasured) if ev.LimitMeasured in kinds else []
    rows += [_row(entry, asked, kernels, rising, limits) for entry in news]
    rows += _base_changes(db, run_id, after_seq)
    return sorted(rows, key=lambda row: (row.at, row.seq), reverse=True)[:limit]


def _row(
    entry: fetch.RunEntry[Any],
    commands: Mapping[str, CommandRow],
    kernels: Mapping[str | None, FeedKernel],
    rising: Sequence[tuple[int, FeedKernel]],
    limits: Sequence[fetch.RunEntry[ev.LimitMeasured]],
) -> FeedRow:
    event, seq, at = entry.event, entry.seq, entry.at
    kernel = kernels.get(getattr(event, "candidate_id", None))
    match event:
        case ev.CommandAcknowledged():
            command = commands.get(event.command.command_id)
            return FeedRow(seq, command.asked_at if command else at, event, command=command)
        case ev.CommandEffective() | ev.CommandRefused():
            return FeedRow(seq, at, event, command=commands.get(event.command_id))
        case ev.DepthFinished():
            risen = [fastest for since, fastest in rising if since <= seq][-2:]
            return FeedRow(seq, at, event, kernel, risen[-1] if risen else None, risen[0] if risen[1:] else None)
        case ev.LimitMeasured():
            return FeedRow(seq, at, event, is_again=any(limit.seq < seq for limit in limits))
        case _:
            return FeedRow(seq, at, event, kernel)


def _ended(db: Database, run_id: str, news: list[fetch.RunEntry[Any]]) -> list[fetch.RunEntry[Any]]:
    """The same, with the end of the run in the words that its head has for it."""
    states = [entry for entry in news if isinstance(entry.event, _STATES)]
    last = max(states, key=lambda entry: entry.seq, default=None)
    if last is None or not isinstance(last.event, ev.RunEnded):
        return news
    told = fetch.of_run(db, run_id, "state_reason")
    event = replace(last.event, reason=told[0] if told else last.event.reason)
    return [replace(entry, event=event) if entry is last else entry for entry in news]


_KERNEL = "candidate_id, number, speedup, noise, low, high, latency_ms"


def _kernels(db: Database, run_id: str, news: list[fetch.RunEntry[Any]]) -> dict[str | None, FeedKernel]:
    """The kernels that these events are about."""
    names = {name for entry in news if (name := getattr(entry.event, "candidate_id", None)) is not None}
    sql = f"SELECT {_KERNEL} FROM kernels WHERE run_id = ? AND list_contains(?::VARCHAR[], candidate_id)"
    return {kernel.candidate_id: kernel for kernel in fetch.rows(db, FeedKernel, sql, [run_id, sorted(names)])}


def _rising(db: Database, run_id: str) -> list[tuple[int, FeedKernel]]:
    """Every kernel that was the fastest when it was timed, and since which line, oldest first."""
    sql = f"SELECT seq, {_KERNEL} FROM {RISING.format(which='run_id = ?')} ORDER BY seq"
    return [(seq, FeedKernel(*kernel)) for seq, *kernel in fetch.tuples(db, sql, [run_id])]


def _base_changes(db: Database, run_id: str, after_seq: int) -> Iterator[FeedRow]:
    """Step indexes that start from another kernel than the newest accepted one by the run's rule alone."""
    (policy,) = fetch.of_run(db, run_id, "base_policy") or ("",)
    policy = policy or ""
    if policy != "best" and not policy.startswith("patience="):
        return
    sql = """
    WITH begun AS (SELECT depth, min(first_seq) AS seq, arg_min(first_time, first_seq) AS time,
        arg_min(step, first_seq) AS step, arg_min(candidate_id, first_seq) AS candidate_id FROM steps
        WHERE run_id = $run AND NOT list_contains($without::VARCHAR[], kind) AND first_seq > $after GROUP BY depth),
     numbers AS (SELECT candidate_id, number FROM kernels WHERE run_id = $run)
    SELECT b.seq, b.time, b.step, b.depth, b.candidate_id, n.number, o.number
    FROM begun b ASOF JOIN (SELECT seq, candidate_id FROM depths WHERE run_id = $run AND outcome = 'accepted') d
        ON b.seq > d.seq
    JOIN numbers n ON n.candidate_id = b.candidate_id JOIN numbers o ON o.candidate_id = d.candidate_id
    WHERE b.candidate_id <> d.candidate_id ORDER BY b.seq"""
    asked = in_force(db, run_id, *verbs_with(Result.DEPTH))
    about = {"run": run_id, "after": after_seq, "without": _NOT_FROM_A_BASE}
    for seq, at, step, depth, name, number, newest in fetch.tuples(db, sql, about):
        if not any(command.argument.strip() == name and (command.effective_seq or 0) < seq for command in asked):
            yield FeedRow(seq, at, BaseChange(step, depth, name, number, newest, policy))


@dataclass(frozen=True, slots=True)
class ProblemRow:
    """A line that could not be read and was left out, or events missing before it. `position` is its byte offset."""

    run_id: str
    file: str
    position: int
    kind: FaultKind
    message: str


@dataclass(frozen=True, slots=True)
class EventRow:
    """One journal line as it was written."""

    seq: int
    at: float
    kind: str
    json: str


def states(db: Database, run_id: str) -> list[fetch.RunEntry[Any]]:
    """Every change of state, oldest first."""
    return fetch.events(db, run_id, *_STATES)


def problems(db: Database, run_id: str | None = None) -> list[ProblemRow]:
    """What is wrong with the files of one run, or of all."""
    # One query for all runs of a page: there are few such lines, mostly none.
    sql = "SELECT run_id, file, position, kind, message FROM problems ORDER BY run_id, file, position"
    return [row for row in fetch.rows(db, ProblemRow, sql) if run_id in (None, row.run_id)]


def events(db: Database, run_id: str, after_seq: int = 0, limit: int = 500) -> list[EventRow]:
    """Raw journal lines after one, oldest first."""
    sql = "SELECT seq, time AS at, kind, json FROM events WHERE run_id = ? AND seq > ? ORDER BY seq LIMIT ?"
    return fetch.rows(db, EventRow, sql, [run_id, after_seq, limit])
