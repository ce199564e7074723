"""Everything that happened in a run: as sentences in one order, and as states, problems and journal lines."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from storage.index.database import Database
from storage.index.fold import begun
from storage.index.queries import fetch
from storage.index.queries.attempts import RISING
from storage.index.queries.commands import CommandRow, commands, in_force
from storage.index.queries.steps import NEWEST, StepRow, measured_speedup, steps
from storage.results import relative
from storage.results.in_words import latency, quantity
from storage.results.vocabulary import Verdict
from storage.run.events import (
    ApprovalAsked,
    ApprovalSettled,
    BaselineMeasured,
    BudgetChanged,
    BudgetWarned,
    CallFailed,
    ClassProposed,
    CommandAcknowledged,
    CommandEffective,
    CommandRefused,
    DepthFinished,
    Diverged,
    EngineStarted,
    Imported,
    LimitMeasured,
    PatchTried,
    QuestionAsked,
    RunEnded,
    RunStarted,
    StateChanged,
)
from storage.run.journal import FaultKind
from storage.run.method_words import AS_STORED, MethodWords
from storage.run.settings import Budget, DepthOutcome, RunState, StepKind
from storage.run.steering import command_arguments
from storage.run.steering.verbs import VERBS, Result, verbs_with


class FeedKind(StrEnum):
    """Where a feed item comes from."""

    STEP = "step"
    DEPTH = "depth"
    BASE = "base"
    COMMAND = "command"
    STATE = "state"
    WARNING = "warning"
    CALL = "call"
    BASELINE = "baseline"
    LIMIT = "limit"
    CLASS = "class"
    BUDGET = "budget"
    QUESTION = "question"
    APPROVAL = "leave"
    REPLAY = "replay"
    IMPORT = "import"
    PATCH = "patch"


@dataclass(frozen=True, slots=True)
class FeedRow:
    """One item. `at` is when it came about: a step's result, its start while it has none. `outcome` is the step's, the
    depth's, the command's phase or the state. A depth whose kernel is the fastest so far has the outcome "best"; a
    timing that worked has "timed", which does not say that the kernel is fast."""

    seq: int
    at: float
    kind: FeedKind
    step: int | None
    depth: int | None
    candidate_id: str | None
    outcome: str | None
    text: str


# What happens beside the steps. The states of a run come of four kinds of events.
_STATES = (EngineStarted, RunStarted, StateChanged, RunEnded)
_NEWS = (
    *_STATES, DepthFinished, CommandAcknowledged, CommandEffective, CommandRefused, BudgetWarned, CallFailed,
    BaselineMeasured, LimitMeasured, ClassProposed, BudgetChanged, QuestionAsked, ApprovalAsked, ApprovalSettled,
    Diverged, Imported, PatchTried,
)  # fmt: skip


def feed(
    db: Database, run_id: str, after_seq: int = 0, limit: int = 200, words: MethodWords = AS_STORED
) -> list[FeedRow]:
    """The newest items after a journal line, newest first. A step's item appears when it starts, and moves to the time
    of its result."""
    rows = [
        FeedRow(
            s.seq,
            s.ended_at or s.started_at,
            FeedKind.STEP,
            s.step,
            s.depth,
            s.made_id or s.candidate_id,
            _outcome(s),
            s.text,
        )
        for s in steps(db, run_id, after_seq, max(limit, NEWEST), words=words)
    ]
    asked = commands(db, run_id)
    # A command stands at its asking, before the line that tells of it: so many more lines may lead to an item.
    most = limit + len(asked)
    which = "seq > $after AND (kind <> 'PatchTried' OR contains(json, '\"is_applied\":false'))"
    news = fetch.events(db, run_id, *_NEWS, where=which, parameters={"after": after_seq}, newest=most)
    rising = _rising(db, run_id) if any(isinstance(entry.event, DepthFinished) for entry in news) else []
    teller = _Teller(db, run_id, words, {row.command_id: row for row in asked}, _kernels(db, run_id, news), rising)
    rows += [row for entry in news for row in teller.rows(entry)]
    rows += _bases(db, run_id, after_seq, words)
    return sorted(rows, key=lambda row: (row.at, row.seq), reverse=True)[:limit]


@dataclass(slots=True)
class _Teller:
    """Events as items of one run's feed."""

    db: Database
    run_id: str
    words: MethodWords
    commands: Mapping[str, CommandRow]
    kernels: Mapping[str | None, tuple[int, float | None, float | None]]
    rising: list[tuple[int, str, float, float]]

    def rows(self, entry: fetch.RunEntry[Any]) -> Iterator[FeedRow]:
        """No item for what says nothing to people."""
        event = entry.event
        match event:
            case DepthFinished():
                outcome, text = self._depth(entry.seq, event)
                yield self._row(entry, FeedKind.DEPTH, outcome, text, event.step, event.depth, event.candidate_id)
            case CommandAcknowledged() | CommandEffective() | CommandRefused():
                yield self._command(entry)
            case EngineStarted() | RunStarted() | StateChanged() | RunEnded():
                row = _state(entry)
                yield self._row(entry, FeedKind.STATE, str(row.state), _moved(row, event))
            case BudgetWarned():
                used, allowed = _plain(event.used), _plain(event.allowed)
                text = f"80 % of the limit on {event.limit.replace('_', ' ')} used: {used} of {allowed}"
                yield self._row(entry, FeedKind.WARNING, event.limit, text)
            case CallFailed():
                again = "" if event.retry_in_s is None else f"; retrying in {_up(event.retry_in_s):.0f} s"
                text = f"Model call failed (try {event.attempt + 1}): {event.reason}{again}"
                yield self._row(entry, FeedKind.CALL, event.failure, text, step=event.step)
            case BaselineMeasured():
                yield self._row(entry, FeedKind.BASELINE, "measured" if event.result else "failed", _baseline(event))
            case LimitMeasured():
                yield self._row(entry, FeedKind.LIMIT, "measured", self._limit(entry.seq, event))
            case ClassProposed():
                text = f"Kernel class, named in the first reply: {event.kernel_class}"
                yield self._row(entry, FeedKind.CLASS, event.kernel_class, text)
            case BudgetChanged():
                yield self._row(entry, FeedKind.BUDGET, "changed", self._budget(event.budget))
            case _:
                yield from self._of_step(entry)

    def _of_step(self, entry: fetch.RunEntry[Any]) -> Iterator[FeedRow]:
        event = entry.event
        match event:
            case QuestionAsked():
                text = f"Waiting for a reply by hand: {event.role}"
                yield self._row(entry, FeedKind.QUESTION, "asked", text, event.step, event.depth, event.candidate_id)
            case ApprovalAsked():
                silence = "" if event.fallback == "never" else (
                    f"; {event.fallback} after {event.after_s:.0f} s without an answer")  # fmt: skip
                text = f"Waiting for approval of the step: {event.kind}{silence}"
                yield self._row(entry, FeedKind.APPROVAL, "asked", text, event.step, event.depth, event.candidate_id)
            case ApprovalSettled():
                outcome = "given" if event.is_given else "refused"
                text = f"{'Step approved' if event.is_given else 'Step skipped'}: {event.reason}"
                yield self._row(entry, FeedKind.APPROVAL, outcome, text, event.step)
            case Diverged():
                lost = "" if event.is_bridged else "; no reply found"
                text = f"Replies differ from the recording: {event.reason}{lost}"
                outcome = "bridged" if event.is_bridged else "lost"
                yield self._row(entry, FeedKind.REPLAY, outcome, text, event.step, candidate_id=event.candidate_id)
            case Imported():
                status = f", status there: {event.status}" if event.status else ""
                text = f"Kernel {self._number(event.candidate_id)} imported from {event.file}{status}"
                yield self._row(entry, FeedKind.IMPORT, event.status, text, candidate_id=event.candidate_id)
            case PatchTried(is_applied=False):
                reason = f": {event.reason}" if event.reason else ""
                kernel = self._number(event.candidate_id)
                text = f"The reply's {_offered(event.form)} did not apply to kernel {kernel}{reason}"
                yield self._row(
                    entry, FeedKind.PATCH, "patch_failed", text, event.step, candidate_id=event.candidate_id
                )

    def _row(
        self,
        entry: fetch.RunEntry[Any],
        kind: FeedKind,
        outcome: str,
        text: str,
        step: int | None = None,
        depth: int | None = None,
        candidate_id: str | None = None,
    ) -> FeedRow:
        return FeedRow(entry.seq, entry.at, kind, step, depth, candidate_id, outcome, text)

    def _number(self, candidate_id: str | None) -> int:
        """0 for a kernel that this run has not."""
        return self.kernels[candidate_id][0] if candidate_id in self.kernels else 0

    def _depth(self, seq: int, event: DepthFinished) -> tuple[str, str]:
        title = f"{self.words.title} {event.depth}"
        if event.outcome is DepthOutcome.IMPORTED:
            return event.outcome, f"{title} is {event.reason}"
        if event.outcome is not DepthOutcome.ACCEPTED:
            return event.outcome, f"{title} given up" + (f": {event.reason}" if event.reason else "")
        text = f"{title} ends with kernel {self._number(event.candidate_id)}"
        _, its_speedup, its_noise = self.kernels.get(event.candidate_id, (0, None, None))
        if its_speedup is None or its_noise is None:
            return event.outcome, text
        text += f" at {measured_speedup(its_speedup, its_noise)}"
        best = next((row for row in reversed(self.rising) if row[0] <= seq), None)
        if best is None:
            return event.outcome, text
        _, name, speedup, noise = best
        if name == event.candidate_id:
            return "best", f"{text}, the best so far"
        if not relative.between_sessions(speedup, noise, its_speedup, its_noise).is_faster:
            return event.outcome, f"{text}, no measurable difference from the best"
        return event.outcome, f"{text}, {100 * (1 - its_speedup / speedup):.0f} % slower than the best"

    def _command(self, entry: fetch.RunEntry[Any]) -> FeedRow:
        event = entry.event
        is_asked = isinstance(event, CommandAcknowledged)
        command = self.commands.get(event.command.command_id if is_asked else event.command_id)
        asked_by = (command.asked_by if command else "") or "Someone"
        named = VERBS[command.kind].name if command else "a command"
        argument = command_arguments.readable(command.argument) if command else ""
        note = "" if is_asked else event.reason if isinstance(event, CommandRefused) else event.note
        opening = f"{asked_by} asked for: " if is_asked else "In effect: "
        opening = "Rejected: " if isinstance(event, CommandRefused) else opening
        text = opening + named + (f" {argument}" if argument else "") + (f" ({note})" if note else "")
        phases = {CommandAcknowledged: "acknowledged", CommandEffective: "effective", CommandRefused: "refused"}
        at = command.asked_at if is_asked and command else entry.at
        return FeedRow(entry.seq, at, FeedKind.COMMAND, event.step, None, None, phases[type(event)], text)

    def _limit(self, seq: int, event: LimitMeasured) -> str:
        limit = event.limit
        first = fetch.events(self.db, self.run_id, LimitMeasured)[:1]
        is_again = bool(first) and seq > first[0].seq
        opening = "Hardware limit measured again, since a kernel was faster" if is_again else "Hardware limit measured"
        bandwidth = quantity(1e9 * limit.bandwidth_gb_s, "B/s")
        return f"{opening}: {limit.device}, {bandwidth}, {quantity(1e9 * limit.peak_gflop_s, 'FLOP/s')}"

    def _budget(self, budget: Budget) -> str:
        steps = self.words.steps
        limits = {
            "{} " + steps: budget.depths,
            "{:,} model calls": budget.model_calls,
            "{:,} tokens": budget.tokens,
            "${:.2f}": budget.cost_usd,
            "{:.0f} s": budget.wall_s,
            "target {:.2f}×": budget.target_speedup,
            "stop after {} " + steps + " without gain": budget.stagnation_depths,
        }
        return "Limits changed: " + ", ".join(form.format(value) for form, value in limits.items() if value is not None)


def _kernels(
    db: Database, run_id: str, news: list[fetch.RunEntry[Any]]
) -> dict[str | None, tuple[int, float | None, float | None]]:
    """Number, speed-up and noise of the kernels that these events are about."""
    names = {name for entry in news if (name := getattr(entry.event, "candidate_id", None)) is not None}
    sql = """SELECT candidate_id, number, speedup, noise FROM kernels
        WHERE run_id = ? AND list_contains(?::VARCHAR[], candidate_id)"""
    return {name: (number, *figures) for name, number, *figures in fetch.tuples(db, sql, [run_id, sorted(names)])}


def _rising(db: Database, run_id: str) -> list[tuple[int, str, float, float]]:
    """Every kernel that was the fastest when it was timed: (seq, candidate, speed-up, noise), oldest first."""
    sql = f"SELECT seq, candidate_id, speedup, noise FROM {RISING.format(which='run_id = ?')} ORDER BY seq"
    return fetch.tuples(db, sql, [run_id])


def _moved(row: StateRow, event: object) -> str:
    if row.reason.startswith("Run "):
        return row.reason
    opening = "Run created" if isinstance(event, RunStarted) else f"Run {row.state}"
    return f"{opening}: {row.reason}" if row.reason else opening


def _up(seconds: float) -> float:
    return math.ceil(seconds) if math.isfinite(seconds) else seconds


def _plain(value: float) -> str:
    return f"{round(value):,}" if 1e5 <= value <= 1e15 else f"{value:.6g}"


def _baseline(event: BaselineMeasured) -> str:
    if event.result is None:
        return f"Baseline {event.name} not measured: {event.failure or 'no reason was recorded'}"
    speedup, ms = event.result.speedup, event.result.latency_ms
    return f"Baseline {event.name} measured: {speedup:.2f}× over eager, {latency(ms)}"


def _offered(form: str) -> str:
    if form.startswith("rewrite"):
        return "whole file"
    return "SEARCH/REPLACE blocks" if form.startswith("SEARCH/REPLACE") else "line edits" if form else "patch"


def _bases(db: Database, run_id: str, after_seq: int, words: MethodWords) -> Iterator[FeedRow]:
    """Step indexes that start from another kernel than the newest accepted one by the run's rule alone."""
    policy = next(
        (text or "" for (text,) in fetch.tuples(db, "SELECT base_policy FROM runs WHERE run_id = ?", [run_id])), ""
    )
    if policy != "best" and not policy.startswith("patience="):
        return
    sql = """
    WITH begun AS (SELECT depth, min(first_seq) AS seq, arg_min(first_time, first_seq) AS time,
        arg_min(step, first_seq) AS step, arg_min(candidate_id, first_seq) AS candidate_id FROM steps
        WHERE run_id = $run AND kind = 'optimise' AND first_seq > $after GROUP BY depth),
     numbers AS (SELECT candidate_id, number FROM kernels WHERE run_id = $run)
    SELECT b.seq, b.time, b.step, b.depth, b.candidate_id, n.number, o.number
    FROM begun b ASOF JOIN (SELECT seq, candidate_id FROM depths WHERE run_id = $run AND outcome = 'accepted') d
        ON b.seq > d.seq
    JOIN numbers n ON n.candidate_id = b.candidate_id JOIN numbers o ON o.candidate_id = d.candidate_id
    WHERE b.candidate_id <> d.candidate_id ORDER BY b.seq"""
    asked = in_force(db, run_id, *verbs_with(Result.DEPTH))
    why = "the rule of this run is to start from the best" if policy == "best" else (
        f"by the rule of this run, since {policy.partition('=')[2]} {words.steps} in a row brought no gain "
        "beyond the noise"
    )  # fmt: skip
    for seq, at, step, depth, name, number, other in fetch.tuples(db, sql, {"run": run_id, "after": after_seq}):
        if not any(command.argument.strip() == name and (command.effective_seq or 0) < seq for command in asked):
            text = f"{words.title} {depth} starts from kernel {number} again, not from kernel {other}: {why}"
            yield FeedRow(seq, at, FeedKind.BASE, step, depth, name, None, text)


def _outcome(step: StepRow) -> str | None:
    return "timed" if step.kind == StepKind.TIME and step.outcome == Verdict.PASSED else step.outcome


@dataclass(frozen=True, slots=True)
class StateRow:
    """The run moved to a state; `reason` is written for people. `error_blob` has the traceback of a failed engine."""

    seq: int
    at: float
    state: RunState
    reason: str
    is_final: bool
    error_blob: str | None


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


def states(db: Database, run_id: str) -> list[StateRow]:
    """Every change of state, oldest first."""
    return [_state(entry) for entry in fetch.events(db, run_id, *_STATES)]


def _state(entry: fetch.RunEntry[Any]) -> StateRow:
    event, head = entry.event, (entry.seq, entry.at)
    match event:
        case EngineStarted():
            return StateRow(*head, RunState.RUNNING, begun(event), False, None)
        case RunStarted():
            return StateRow(*head, RunState.STARTING, "", False, None)
        case RunEnded():
            return StateRow(*head, event.state, event.reason, True, event.error_blob)
        case _:
            return StateRow(*head, event.state, event.reason, False, None)


def problems(db: Database, run_id: str | None = None) -> list[ProblemRow]:
    """What is wrong with the files of one run, or of all."""
    # One query for all runs of a page: there are few such lines, mostly none.
    sql = "SELECT run_id, file, position, kind, message FROM problems ORDER BY run_id, file, position"
    return [row for row in fetch.rows(db, ProblemRow, sql) if run_id in (None, row.run_id)]


def events(db: Database, run_id: str, after_seq: int = 0, limit: int = 500) -> list[EventRow]:
    """Raw journal lines after one, oldest first."""
    sql = "SELECT seq, time AS at, kind, json FROM events WHERE run_id = ? AND seq > ? ORDER BY seq LIMIT ?"
    return fetch.rows(db, EventRow, sql, [run_id, after_seq, limit])
