"""One run as the index keeps it: its record, as rows of the wide tables. What the record does not say is not worked out
here either; beside it stand moments, places in the journal and what a page lists of a kernel or a step.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import io
import itertools
import pickle
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, is_dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Any

from storage import codec
from storage.index.rows import Row, StateRow, TableRow, fields_of, storable
from storage.results import relative
from storage.results.check_records import CheckOutcome, StandingChecks, as_limited
from storage.results.evaluation_results import TimingFigures, headline
from storage.results.flags import to_look_at
from storage.results.profile_results import DISTURBED
from storage.results.vocabulary import Verdict
from storage.run import events as ev
from storage.run import exposure, folder
from storage.run.call_outcomes import CallOutcome, CallOutcomes, OutcomeRow, of_kernel
from storage.run.journal import Entry
from storage.run.record import Record, Usage, is_wasted, take_checks
from storage.run.settings import DepthOutcome, Origin, RunSettings, RunState, StepKind
from storage.run.waiting import Waiting

SNAPSHOT_EVENTS = 5_000
"""A journal of at least so many events is not folded from its beginning when a server starts again."""


@dataclass(slots=True)
class StepResult:
    """What came of a step, as far as a sentence about it needs. Numbers are those of kernels."""

    number: int | None = None
    made_id: str | None = None
    made_number: int | None = None
    summary: str | None = None
    predicted: float | None = None
    verdict: Verdict | None = None
    message: str | None = None
    max_error: float | None = None
    tolerance: float | None = None
    timed: TimingFigures | None = None
    untrusted: str = ""
    bound: str | None = None
    failure: str | None = None
    patch_reason: str | None = None
    said: str | None = None
    said_problem: str | None = None
    is_profile_exposed: bool = False
    state: str | None = None
    techniques: int = 0
    is_by_base: bool = False
    lesson: str | None = None


@dataclass(slots=True)
class _Step:
    """A step begun at `time`, with line `seq` of the journal; `first_seq`: where it began before an engine's death."""

    started: ev.StepStarted
    seq: int
    time: float
    first_seq: int
    first_time: float
    result: StepResult
    ended: ev.StepFinished | None = None
    ended_at: float | None = None
    cut_off_s: float = 0.0


@dataclass(slots=True)
class _Kernel:
    """What stands in a kernel's row beside what its record says."""

    seq: int
    time: float
    number: int
    is_profile_exposed: bool
    predictions: tuple[int, ...]
    checks: StandingChecks
    judged_seq: int | None = None
    built: Verdict | None = None
    timed_seq: int | None = None
    first_timed_seq: int | None = None
    timed_at: float | None = None
    is_accepted: bool = False
    is_tied: bool = False
    profiled_seq: int | None = None
    profiled_ms: float | None = None
    disturbed: str | None = None


@dataclass(frozen=True, slots=True)
class _Review:
    """A reply about a kernel that is no kernel; `prediction` is its line where it foretells a gain."""

    step: int
    depth: int
    prediction: int | None


class RunFold:
    """A run's record and which of its rows have changed. `seq` is the last event taken."""

    def __init__(self, settings: RunSettings) -> None:
        self.record = Record.at_start(settings, is_thin=True)
        self._run_id = settings.run_id
        self.seq = 0
        self._snapshot_seq = 0
        self._state_reason = ""
        self._started_at: float | None = None
        self._ended_at: float | None = None
        self._began_at: float | None = None
        self._running_at: float | None = None
        self._asked_at: float | None = None
        self._last_at: float | None = None
        self._deepest: int | None = None
        self._completed: set[int] = set()
        self._settled_seq: int | None = None
        self._is_imported = False
        self._warned: dict[str, int] = {}
        self._waiting = Waiting()
        self._call_outcomes = CallOutcomes()
        self._kernels: dict[str, _Kernel] = {}
        self._reviews: dict[str, list[_Review]] = {}
        self._steps: dict[int, _Step] = {}
        self._exposed: set[int] = set()
        self._best: tuple[str, TimingFigures] | None = None
        self._is_run_changed = True
        self._changed_kernels: dict[str, None] = {}
        self._decided: list[str] = []
        self._changed_steps: dict[int, None] = {}
        self._is_written = False
        self._written_seq = 0
        self._last_run_row: Row = {}

    @property
    def is_over(self) -> bool:
        """Whether nothing more is to come, unless somebody resumes the run."""
        return self.record.state.is_finished

    def apply(self, entry: Entry) -> Iterator[TableRow]:
        """Take one event; yields the rows that it makes by itself.

        Raises:
            ValueError: a command that is in force though nobody could have given it.
        """
        event = entry.event
        self.seq, self._last_at = entry.seq, max(self._last_at or 0.0, entry.time)
        known_s, at_work, cut_off_s = self.record.usage.in_step_s, self.record.cut_off.step, 0.0
        try:
            number, cut_off_s = self.record.take(entry)
        finally:
            if cut_off_s and (step := self._steps.get(number)):
                step.cut_off_s += cut_off_s
            if self.record.usage.in_step_s != known_s:
                self._changed_steps.update(dict.fromkeys((at_work, self.record.cut_off.step)))
            yield from self._take(entry)
            self._call_outcomes.take(event)
            for span in self._waiting.apply(entry):
                yield "spans", fields_of(span) | self._head(entry) | {"number": self._number(span.candidate_id)}

    def _take(self, entry: Entry) -> Iterator[TableRow]:
        event = entry.event
        match event:
            case ev.CandidateCreated() | ev.Compiled() | ev.Checked() | ev.Timed() | ev.Profiled() | ev.ReviewWritten():
                yield from self._take_of_kernel(entry)
            case ev.LimitMeasured():  # a kernel that was beyond the limit before may not be now
                held_against_it = [name for name, kernel in self._kernels.items() if kernel.checks.is_re_measured]
                self._changed_kernels |= dict.fromkeys(held_against_it)
                self._take_of_run(entry)
            case ev.StepStarted() | ev.StepFinished():
                self._take_step(entry)
            case ev.DepthFinished():
                yield "depths", fields_of(event) | self._head(entry) | _spent(self.record.usage)
                self._completed.add(event.depth)
                self._accept(event)
                self._decided += self._pending()
                self._settled_seq, self._is_run_changed = entry.seq, True
            case ev.ModelCalled():
                yield from self._called(entry, event)
            case ev.CallFailed() if event.is_charged:
                row = {"finish_reason": event.failure, "is_profile_exposed": False}
                yield "calls", fields_of(event) | self._head(entry) | row
                self._is_run_changed = True
            case ev.PatchTried():
                yield "patches", fields_of(event) | self._head(entry)
            case _:
                self._take_of_run(entry)
        self._tell_step(event)

    def _head(self, entry: Entry) -> Row:
        return {"run_id": self._run_id, "seq": entry.seq, "time": entry.time}

    def _take_of_run(self, entry: Entry) -> None:
        event, at = entry.event, entry.time
        match event:
            case ev.RunStarted():
                self._started_at = at if self._started_at is None else min(self._started_at, at)
                self._state_reason = ""
            case ev.EngineStarted():
                self._state_reason = event.reason
                self._began_at = max(self._began_at or 0.0, at)
                self._runs_on(at)
            case ev.StateChanged():
                self._state_reason = event.reason
                if event.state is RunState.RUNNING:
                    self._runs_on(at)
            case ev.RunEnded():
                reason = self.record.ended.reason if self.record.ended else event.reason
                self._state_reason, self._ended_at = reason, max(self._ended_at or 0.0, at)
                self._changed_steps.update(dict.fromkeys(self.record.open_steps))
            case ev.ApprovalAsked():
                self._asked_at = at
            case ev.Imported():
                self._is_imported = True
            case ev.BudgetWarned():
                self._warned[event.limit] = entry.seq
            case ev.BudgetChanged():
                self._warned = {}
            case ev.PlaceTaken() | ev.CallSent() | ev.DiagnosisWritten():
                return
        self._is_run_changed = True

    def _runs_on(self, at: float) -> None:
        """The clocks of the steps in flight begin again."""
        self._running_at = max(self._running_at or 0.0, at)
        self._changed_steps.update(dict.fromkeys(self.record.open_steps))

    def _called(self, entry: Entry, event: ev.ModelCalled) -> Iterator[TableRow]:
        yield "calls", fields_of(event) | self._head(entry) | {"is_estimated": False}
        self._is_run_changed = True
        if event.is_profile_exposed:
            self._exposed.add(event.step)

    def _take_of_kernel(self, entry: Entry) -> Iterator[TableRow]:
        event = entry.event
        match event:
            case ev.CandidateCreated():
                yield from self._foretold(entry, event)
                self._create(entry, event)
            case ev.ReviewWritten():
                yield from self._foretold(entry, event)
                prediction = entry.seq if _foretells(event) else None
                self._reviews.setdefault(event.candidate_id, []).append(_Review(event.step, event.depth, prediction))
                if not event.problem and (kernel := self._kernels.get(event.candidate_id)):
                    take_checks(kernel.checks, event)
                    self._changed_kernels[event.candidate_id] = None
            case ev.Compiled() | ev.Checked() | ev.Timed():
                self._judge(entry, event)
            case ev.Profiled() if kernel := self._kernels.get(event.candidate_id):
                whole = [m for m in event.result.metrics if m.name == "latency" and m.launch < 0]
                first = min(whole, key=lambda m: m.kernel, default=None)
                kernel.profiled_seq, kernel.profiled_ms = entry.seq, 1e3 * first.value if first else None
                kernel.disturbed = event.result.evidence.get(DISTURBED)
                self._changed_kernels[event.candidate_id] = None

    def _create(self, entry: Entry, event: ev.CandidateCreated) -> None:
        name = event.candidate_id
        reviews = [review for review in self._reviews.get(event.parent_id or "", ()) if review.depth == event.depth]
        predictions = {review.prediction for review in reviews if review.prediction is not None}
        predictions |= {entry.seq} if _foretells(event) else set()
        parent = self._kernels.get(event.parent_id or "")
        if parent is not None and event.origin is Origin.REPAIR:
            predictions |= set(parent.predictions)
        is_exposed = event.step in self._exposed or any(review.step in self._exposed for review in reviews)
        number = self.record.number(name)
        limit = self.record.limit
        checks = StandingChecks(is_thin=True, limit_ms=limit.as_measured_ms if limit else None)
        told = tuple(sorted(predictions))
        self._kernels[name] = kernel = _Kernel(entry.seq, entry.time, number, is_exposed, told, checks)
        take_checks(kernel.checks, event)
        if parent is not None and event.origin is Origin.TUNED:
            kernel.checks.take_reviews_of(parent.checks)
        self._changed_kernels[name] = None

    def _judge(self, entry: Entry, event: ev.Compiled | ev.Checked | ev.Timed) -> None:
        kernel = self._kernels.get(event.candidate_id)
        if kernel is None:
            return
        kernel.judged_seq = entry.seq
        if isinstance(event, ev.Compiled) and kernel.built is None:
            kernel.built = event.result.verdict
        if isinstance(event, ev.Timed):
            kernel.timed_seq, kernel.timed_at = entry.seq, entry.time
            if kernel.first_timed_seq is None and not event.result.untrusted:
                kernel.first_timed_seq = entry.seq
        take_checks(kernel.checks, event)
        self._changed_kernels[event.candidate_id] = None

    def _foretold(self, entry: Entry, event: ev.CandidateCreated | ev.ReviewWritten) -> Iterator[TableRow]:
        if _foretells(event):
            row = {"step": event.step, "technique": event.technique, "gain": event.predicted_gain}
            is_kernel = isinstance(event, ev.CandidateCreated)
            row |= {"candidate_id": event.candidate_id if is_kernel else None}
            yield "predictions", self._head(entry) | row

    def _accept(self, event: ev.DepthFinished) -> None:
        if event.outcome is not DepthOutcome.ACCEPTED or event.candidate_id is None:
            return
        candidate = self.record.candidates.get(event.candidate_id)
        for name in {event.candidate_id, candidate.written_as if candidate else None}:
            if name is not None and (kernel := self._kernels.get(name)):
                kernel.is_accepted = True
                self._changed_kernels[name] = None

    def _pending(self) -> list[str]:
        """The kernels whose depth has not ended."""
        return list(itertools.takewhile(self._is_pending, reversed(self._kernels)))

    def _is_pending(self, name: str) -> bool:
        return self._kernels[name].seq > (self._settled_seq or 0)

    def _follow_best(self) -> None:
        """A new best kernel changes what every other one is beside it; any other news only the kernel's own place. Once
        for all that is written together: it looks at every kernel."""
        best = self.record.best
        standing = (best.candidate_id, best.standing) if best and best.standing else None
        names: Iterable[str] = self._changed_kernels
        if standing != self._best:
            self._changed_kernels.update(dict.fromkeys(pair[0] for pair in (standing, self._best) if pair))
            self._best, names = standing, self._kernels
            self._is_run_changed = True
        for name in list(names):
            candidate = self.record.candidates.get(name)
            is_tied = candidate is not None and self._is_tied(name, candidate.standing)
            if is_tied is not self._kernels[name].is_tied:
                self._kernels[name].is_tied = is_tied
                self._changed_kernels[name] = None

    def _is_tied(self, name: str, figures: TimingFigures | None) -> bool:
        """Whether the best is not faster beyond the noise."""
        if self._best is None or figures is None or name == self._best[0]:
            return False
        is_newer = self._kernels[self._best[0]].number > self._kernels[name].number
        is_on_gpu = self.record.settings.toolchain != "cpu"
        return not relative.is_ahead(self._best[1], figures, is_newer=is_newer, is_on_gpu=is_on_gpu)

    def _take_step(self, entry: Entry) -> None:
        event = entry.event
        if isinstance(event, ev.StepStarted):
            event = self._at_its_depth(event)
            before = self._steps.get(event.step)
            self._changed_steps.update(dict.fromkeys(self._steps))  # what was in flight may be so no longer
            result = before.result if before else StepResult(self._number(event.candidate_id))
            first = (before.first_seq, before.first_time) if before else (entry.seq, entry.time)
            cut_off_s = before.cut_off_s if before else 0.0
            self._steps[event.step] = _Step(event, entry.seq, entry.time, *first, result, cut_off_s=cut_off_s)
            self._changed_steps[event.step] = None
            self._deepest = max(event.depth, self._deepest or 0)
        elif isinstance(event, ev.StepFinished) and (step := self._steps.get(event.step)):
            step.ended, step.ended_at = event, entry.time
            self._changed_steps[event.step] = None
        self._is_run_changed = True

    def _at_its_depth(self, event: ev.StepStarted) -> ev.StepStarted:
        """A step that times a kernel of an earlier depth once more begins no depth: it is of the last one begun. In
        older journals it has the depth that would have come next, in today's the kernel's own."""
        about = self.record.candidates.get(event.candidate_id or "")
        is_again = event.kind == StepKind.TIME and about is not None and about.created.depth < event.depth
        return replace(event, depth=min(event.depth, self._deepest or 0)) if is_again else event

    def _number(self, candidate_id: str | None) -> int | None:
        kernel = self._kernels.get(candidate_id or "")
        return kernel.number if kernel else None

    def _tell_step(self, event: ev.Event) -> None:
        """What the event says of the step that it is of."""
        step = self._steps.get(getattr(event, "step", -1))
        if step is None or isinstance(event, ev.StepStarted):
            return
        outcome = step.result
        match event:
            case ev.CandidateCreated():
                outcome.made_id, outcome.made_number = event.candidate_id, self._number(event.candidate_id)
                outcome.summary, outcome.predicted = event.summary, event.predicted_gain
            case ev.Compiled():
                outcome.verdict, outcome.message = event.result.verdict, headline(event.result)
            case ev.Checked(result=result):
                outcome.verdict, outcome.message = result.verdict, headline(result)
                outcome.max_error = outcome.max_error if result.max_error is None else result.max_error
                outcome.tolerance = outcome.tolerance if result.tolerance is None else result.tolerance
            case ev.Timed():
                outcome.verdict, outcome.message, outcome.timed = Verdict.PASSED, "", event.result.figures
                outcome.untrusted = event.result.untrusted
            case ev.Profiled():
                outcome.bound, outcome.failure = event.result.bound, ""
            case ev.ProfileFailed():
                outcome.bound, outcome.failure = "", event.reason
            case ev.PatchTried(is_applied=False):
                outcome.patch_reason = event.reason
            case ev.ReviewWritten():
                outcome.said, outcome.said_problem = event.summary, event.problem
            case ev.Consulted():
                outcome.state, outcome.techniques = event.state, outcome.techniques + len(event.found)
                outcome.is_by_base = bool(event.mark)
            case ev.Taught():
                outcome.lesson = event.summary
            case ev.ModelCalled():
                outcome.is_profile_exposed = outcome.is_profile_exposed or event.is_profile_exposed
            case _:
                return
        self._changed_steps[step.started.step] = None

    def rows(self) -> Iterator[StateRow]:
        """The rows that have changed since the last call, and whether each is the first of its key."""
        self._follow_best()
        is_first, since = not self._is_written, self._written_seq
        for name in self._changed_kernels:
            yield "kernels", storable(self._kernel_row(name)), self._kernels[name].seq > since
        for number in self._changed_steps:
            if step := self._steps.get(number):
                yield "steps", storable(self._step_row(step)), step.first_seq > since
        if self._is_run_changed and (row := storable(self._run_row())) != self._last_run_row:
            yield "runs", row, is_first
            self._last_run_row = row
        yield "progress", storable(self._progress_row()), is_first
        self._settle()

    def _settle(self) -> None:
        """What has changed so far is in the index."""
        self._steps = {n: step for n, step in self._steps.items() if n in self.record.open_steps}
        self._changed_kernels, self._changed_steps, self._is_run_changed, self._decided = {}, {}, False, []
        self._is_written, self._written_seq = True, self.seq

    def follow(self, entries: Iterable[Entry]) -> None:
        """Take events whose rows are in the index already."""
        for entry in entries:
            with contextlib.suppress(ValueError):  # it was told when the event came
                for _ in self.apply(entry):
                    pass
        self._follow_best()
        self._outcomes()
        self._settle()

    def _progress_row(self) -> Row:
        outcomes, cut_off = self._outcomes(), self.record.cut_off
        return {
            "run_id": self._run_id, "last_seq": self.seq, "last_event_at": self._last_at, "depth": self._deepest,
            "engine_s": self.record.usage.worked_s,
            "counted_until": None if cut_off.since is None else cut_off.until, "device_s": self.record.usage.device_s,
            "finished_steps": self.record.steps_finished, "completed": len(self._completed),
            "idle_since": self._waiting.idle_since,
            "open_spans": [codec.dumps(span) for span in self._waiting.open_spans],
            "call_outcomes": [codec.dumps(row) for row in outcomes],
        }  # fmt: skip

    def _outcomes(self) -> list[OutcomeRow]:
        return self._call_outcomes.rows([*self._changed_kernels, *self._decided], self._came_to)

    def _came_to(self, name: str) -> CallOutcome:
        kernel, made = self._kernels.get(name), self.record.candidates[name]
        if kernel is None:
            return of_kernel(made, is_accepted=False, is_best=False, is_pending=True)
        is_best = self._best is not None and self._best[0] == name
        return of_kernel(made, kernel.is_accepted, is_best, self._is_pending(name))

    def _kernel_row(self, name: str) -> Row:
        kernel, candidate = self._kernels[name], self.record.candidates[name]
        standing = candidate.standing
        timed = fields_of(standing) if standing else {}
        limit = self.record.limit.as_measured_ms if self.record.limit else None
        checks = [as_limited(check_record, limit) for check_record in kernel.checks.worst()]
        spent = _spent(candidate.spent) if candidate.spent else {}
        of_kernel = {name: value for name, value in fields_of(kernel).items() if name != "checks"}
        return fields_of(candidate.created) | of_kernel | timed | spent | {
            "run_id": self._run_id,
            "is_compiled": candidate.compiled is not None and candidate.compiled.is_ok,
            "verdict": candidate.verdict,
            "is_try": candidate.is_try,
            "message": candidate.failure,
            "measured_ms": candidate.figures.latency_ms if candidate.figures else None,
            "timed_seq": kernel.timed_seq if standing else None,
            "is_best": self._best is not None and self._best[0] == name,
            "looks": to_look_at(checks),
            "broken": sum(check_record.standing is CheckOutcome.BROKEN for check_record in checks),
        }  # fmt: skip

    def _step_row(self, step: _Step) -> Row:
        is_in_flight = step.started.step in self.record.open_steps and self.record.ended is None
        is_again = is_in_flight and self._running_at is not None
        outcome = step.ended.outcome if step.ended else None if is_in_flight else "interrupted"
        cut_off = self.record.cut_off
        return fields_of(step.started) | {
            "run_id": self._run_id,
            "seq": step.seq,
            "first_seq": step.first_seq,
            "first_time": step.first_time,
            "started_at": max(step.time, self._running_at or 0.0) if is_again else step.time,
            "ended_at": step.ended_at,
            "seconds": step.ended.seconds if step.ended else None,
            "cut_off_s": step.cut_off_s + (cut_off.known_s if cut_off.step == step.started.step else 0.0),
            "ended_as": step.ended.kind if step.ended else None,
            "outcome": outcome,
            "is_in_flight": is_in_flight,
            "made_id": step.result.made_id,
            "is_try": step.ended is not None and is_wasted(step.ended, step.result.made_id is not None),
            "result": codec.dumps(step.result),
        }

    def _run_row(self) -> Row:
        record, settings = self.record, self.record.settings
        options = {name: settings.strategy_options.get(name) for name in (*folder.FORMER_OPTIONS, exposure.SCHEDULE)}
        fork = settings.forked_from
        asked = record.human.open_approval
        named = {name: getattr(settings, name) for name in _OF_SETTINGS} | options
        return named | _limits(record) | _second(record.baseline) | {
            "sizes": dict(settings.sizes),
            "precision": settings.policy.measured,
            "has_recording": settings.recording is not None,
            "asked_depths": settings.budget.depths,
            "forked_run": fork.run_id if fork else None,
            "forked_number": fork.number if fork else None,
            "is_imported": self._is_imported and fork is None,
            "kernel_class": record.kernel_class,
            "state": record.state,
            "state_reason": self._state_reason,
            "started_at": self._started_at,
            "ended_at": self._ended_at if record.state.is_finished else None,
            "engine_began_at": self._began_at,
            "device": record.limit.device if record.limit else "",
            "device_model": record.limit.model if record.limit else "",
            "hardware_limit": codec.dumps(record.limit) if record.limit else None,
            "steering": codec.dumps(record.steering),
            "question": codec.dumps(record.human.question) if record.human.question else None,
            "approval": codec.dumps(asked) if asked else None,
            "approval_asked_at": self._asked_at if asked else None,
            "model_calls": record.usage.model_calls,
            "tokens": record.usage.tokens,
            "uncounted_calls": record.usage.uncounted,
            "cost_usd": record.usage.cost_usd,
            "warned": sorted(self._warned),
            "warned_seq": max(self._warned.values(), default=None),
            "settled_seq": self._settled_seq,
        }  # fmt: skip

    def is_snapshot_due(self) -> bool:
        """Rarer the more a snapshot holds: most of a long run's is written again each time."""
        return self.seq - self._snapshot_seq >= max(SNAPSHOT_EVENTS, self._snapshot_seq // 32)

    def snapshot(self) -> bytes:
        """The fold as it stands, behind the code that it is made by: that of another version is not read."""
        self._snapshot_seq = self.seq
        return code_version() + pickle.dumps(self, protocol=5)

    @classmethod
    def restored(cls, data: bytes) -> RunFold:
        """A fold as it stood.

        Raises:
            pickle.UnpicklingError: it is none, or of another version of the code.
        """
        code = code_version()
        if not data.startswith(code):
            raise pickle.UnpicklingError("it is of another version")
        try:
            fold = _Unpickler(io.BytesIO(data[len(code) :])).load()
        except (ValueError, TypeError, LookupError, AttributeError, ImportError, EOFError) as error:
            raise pickle.UnpicklingError(f"{error}") from error
        if not isinstance(fold, cls):
            raise pickle.UnpicklingError("it holds no run")
        return fold


@functools.cache
def code_version() -> bytes:
    """A digest of the texts that say what a fold is made of."""
    here = Path(__file__).resolve().parent.parent
    files = [
        Path(__file__),
        *sorted(path for name in ("run", "results", "knowledge") for path in (here / name).rglob("*.py")),
    ]
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in files)).digest()


def _member(kind: Any, name: Any) -> Any:
    """A member of an enum by its name, as Python before 3.11.4 has it in a pickle; of anything else nothing."""
    if not (isinstance(kind, type) and issubclass(kind, Enum)):
        raise pickle.UnpicklingError(f"{kind!r} is no enum")
    return kind[name]


class _Unpickler(pickle.Unpickler):
    """Makes the records of `storage` and nothing else, whatever the index is made to hold."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("builtins", "getattr"):
            return _member
        kind = super().find_class(module, name) if module.partition(".")[0] == "storage" else None
        is_record = isinstance(kind, type) and (is_dataclass(kind) or issubclass(kind, (Enum, RunFold, StandingChecks)))
        if not is_record:
            raise pickle.UnpicklingError(f"{module}.{name} is no record")
        return kind


_OF_SETTINGS = (
    "run_id", "task_name", "toolchain", "language", "model", "strategy", "version", "created_at", "is_demo",
    "is_example", "replay_of",
)  # fmt: skip


def _foretells(event: ev.CandidateCreated | ev.ReviewWritten) -> bool:
    return bool(event.technique) or event.predicted_gain is not None


def _spent(usage: Usage) -> Row:
    return {
        "spent_s": usage.engine_s, "spent_calls": usage.model_calls, "spent_tokens": usage.counted_tokens,
        "spent_usd": usage.cost_usd, "spent_device_s": usage.device_s,
    }  # fmt: skip


def _limits(record: Record) -> Row:
    """The limits in force."""
    budget = record.budget
    return {
        "depths": budget.depths, "max_model_calls": budget.model_calls, "max_tokens": budget.tokens,
        "max_cost_usd": budget.cost_usd, "max_wall_s": budget.wall_s, "target_speedup": budget.target_speedup,
        "stagnation_depths": budget.stagnation_depths,
    }  # fmt: skip


def _second(measured: ev.BaselineMeasured | None) -> Row:
    """The further baseline."""
    if measured is None:
        return {}
    figures = fields_of(measured.result.figures) if measured.result else {}
    return {
        f"second_{name}": value
        for name, value in {**figures, "name": measured.name, "failure": measured.failure}.items()
    }
