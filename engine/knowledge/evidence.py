"""Attempts that are over, as rows of the knowledge base. Pure: from a record and the texts it refers to.

An attempt is a change of a correct, timed kernel (its parent) under a technique's name: the kernel that was written and
the repairs of it. What it came to is that of its last correct and timed kernel, by the rule by which a kernel is told
faster anywhere: beyond the noise of both timings and of two sessions. A reply of which no kernel could be made is an
attempt, too. Attempts whose technique nobody named are left out, since a name made up for them would be evidence of
nothing: first kernels, kernels by hand or from elsewhere, and replies that name none. So are kernels that were left
before they were judged, or whose parent has no timing. A run that plays back another measures nothing and adds nothing.

An attempt is over when its step index is concluded and, where it failed, the run has gone on to something else than
repairing it; at the end of a run also when it has been timed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from engine.knowledge import readings, states
from engine.search.patching.prediction import Prediction, read_prediction
from storage.knowledge.records import Evidence, Outcome
from storage.results import relative
from storage.results.profile_results import ProfileResult
from storage.results.vocabulary import Verdict
from storage.run import events as ev
from storage.run.record import Candidate, Record
from storage.run.settings import Origin

# Figures of a profile that are kept before and after.
KEPT = (
    readings.MEMORY, readings.COMPUTE, readings.DRAM, readings.OCCUPANCY, readings.WAVES, readings.SECTORS,
    readings.CONFLICTS, readings.MEMORY_WAITS, readings.SHARED_WAITS, readings.CHAIN_WAITS, readings.TRAFFIC,
    readings.WORKING, readings.PACKED, readings.PER_CYCLE, readings.FAULTS,
)  # fmt: skip
LATENCY = "latency in ms"
FAILURES: Mapping[Verdict, Outcome] = {Verdict.COMPILE_ERROR: Outcome.NOT_COMPILED}


@dataclass(slots=True)
class Attempt:
    """A change under a technique's name. `line`: the kernel that was written and its repairs; none of a reply that
    brought none. `name` tells it from the run's other attempts."""

    name: str
    index: int
    parent_id: str | None
    prediction: Prediction
    line: list[str] = field(default_factory=list)
    tokens: int = 0
    model: str = ""
    error: str = ""
    is_left: bool = False


def rows(record: Record, text: Callable[[str], str], at: float, *, is_ending: bool = False) -> list[Evidence]:
    """Evidence of the attempts that are over; `text` reads a blob, `at` is when they are told."""
    return AttemptFold(record, text).rows(at, is_ending=is_ending)


def _is_over(record: Record, attempt: Attempt, concluded: set[int], is_ending: bool = False) -> bool:
    is_timed = any(record.candidates[name].trusted is not None for name in attempt.line)
    if attempt.index in concluded:
        return is_timed or not attempt.line or attempt.is_left or is_ending
    return is_timed and is_ending


class AttemptFold:
    """Reads a record's events in order, each once. Tokens count for the kernel that a call is about while that is being
    repaired, else for the next attempt. A row that was told stays as it was told."""

    def __init__(self, record: Record, text: Callable[[str], str]) -> None:
        self.record, self.text = record, text
        self._read, self._rows = 0, dict[str, Evidence | None]()
        self.found: list[Attempt] = []
        self.of_kernel: dict[str, Attempt] = {}
        self.waiting = 0
        self.step = ev.StepStarted(0, "", 0, None)
        self.called: ev.ModelCalled | None = None

    def rows(self, at: float, *, is_ending: bool = False) -> list[Evidence]:
        """Evidence of the attempts that are over, oldest first."""
        record = self.record
        if record.settings.replay_of is not None:
            return []
        self._read_on()
        concluded = {done.depth for done in record.concluded}
        for attempt in self.found:
            if attempt.name not in self._rows and attempt.prediction.technique and _is_over(record, attempt, concluded):
                self._rows[attempt.name] = _row(record, attempt, at)
        rows = dict(self._rows)
        if is_ending:
            last = (attempt for attempt in self.found if attempt.name not in rows and attempt.prediction.technique)
            rows |= {
                attempt.name: _row(record, attempt, at)
                for attempt in last
                if _is_over(record, attempt, concluded, True)
            }
        return [row for attempt in self.found if (row := rows.get(attempt.name)) is not None]

    def _read_on(self) -> None:
        new = self.record.events[self._read :]
        self._read += len(new)
        for event in new:
            match event:
                case ev.StepStarted():
                    self._begin(event)
                case ev.ModelCalled() | ev.CallFailed():
                    self._call(event)
                case ev.CandidateCreated():
                    self._create(event)
                case ev.AttemptFailed(step=step):
                    prediction = Prediction(event.technique, event.predicted_gain)
                    self._fail(f"step {step}", event.depth, event.candidate_id, prediction, event.reason)
                case ev.StepFinished(outcome="patch_failed", step=step) if self.step.candidate_id is not None:
                    about = self.record.candidates.get(self.step.candidate_id)
                    if about is not None and not about.has_failed and not self._is_kept(step):
                        prediction = self._prediction_of(step, about.candidate_id)
                        self._fail(
                            f"step {step}", self.step.depth, about.candidate_id, prediction, self._last_reason(step)
                        )
                case _:
                    pass

    def _begin(self, event: ev.StepStarted) -> None:
        self.step, self.called = event, None
        subject = self.of_kernel.get(event.candidate_id or "")
        for attempt in self.found:
            if attempt is not subject and event.depth > attempt.index:
                attempt.is_left = True

    def _call(self, event: ev.ModelCalled | ev.CallFailed) -> None:
        spent = (event.input_tokens or 0) + (event.output_tokens or 0)
        self.called = event if isinstance(event, ev.ModelCalled) else self.called
        subject = self.record.candidates.get(event.candidate_id or "")
        mended = self.of_kernel.get(event.candidate_id or "") if subject and subject.has_failed else None
        if mended is not None:
            mended.tokens += spent
        else:
            self.waiting += spent

    def _create(self, event: ev.CandidateCreated) -> None:
        if event.origin is Origin.TUNED:  # an attempt is judged by the kernel that was written
            return
        if event.origin is Origin.REPAIR:
            if (mended := self.of_kernel.get(event.parent_id or "")) is not None:
                mended.line.append(event.candidate_id)
                self.of_kernel[event.candidate_id] = mended
            return
        prediction = Prediction(event.technique, event.predicted_gain)
        if not prediction.technique:
            prediction = self._advised(event.step, event.depth, event.parent_id) or prediction
        attempt = Attempt(event.candidate_id, event.depth, event.base_id, prediction, [event.candidate_id])
        self._keep(attempt)
        self.of_kernel[event.candidate_id] = attempt

    def _fail(self, name: str, index: int, parent_id: str | None, prediction: Prediction, reason: str) -> None:
        self._keep(Attempt(name, index, parent_id, prediction, error=reason.partition("\n")[0]))

    def _keep(self, attempt: Attempt) -> None:
        attempt.tokens, self.waiting = self.waiting, 0
        attempt.model = self.called.model if self.called else self.record.settings.model
        self.found.append(attempt)

    def _is_kept(self, step: int) -> bool:
        return any(attempt.name == f"step {step}" for attempt in self.found)

    def _prediction_of(self, step: int, about: str) -> Prediction:
        """Of a reply that could not be used: its own words, else those of the review that it follows."""
        reply = self.text(self.called.reply_blob) if self.called else ""
        prediction = read_prediction(reply)
        return prediction if prediction.technique else self._advised(step, self.step.depth, about) or prediction

    def _advised(self, step: int, index: int, about: str | None) -> Prediction | None:
        """What was advised about a kernel at this step index before this step."""
        reviews = [
            review for review in self.record.reviews.values()
            if (review.candidate_id, review.depth) == (about, index) and review.step < step
            and review.technique and not review.problem
        ]  # fmt: skip
        return Prediction(reviews[-1].technique, reviews[-1].predicted_gain) if reviews else None

    def _last_reason(self, step: int) -> str:
        tried = (event for event in self.record.events if isinstance(event, ev.PatchTried) and event.step == step)
        reasons = [patch.reason for patch in tried if not patch.is_applied]
        return reasons[-1] if reasons else "the reply holds no kernel"


def _row(record: Record, attempt: Attempt, at: float) -> Evidence | None:
    settings, limit = record.settings, record.limit
    parent = record.candidates.get(attempt.parent_id or "")
    last = _last(record, attempt)
    if parent is None or parent.trusted is None or (attempt.line and last is None):
        return None
    change = _change(parent, last, is_on_gpu=settings.toolchain != "cpu")
    return Evidence(
        run_id=settings.run_id,
        candidate_id=attempt.name,
        technique=attempt.prediction.technique,
        outcome=_outcome(last, change),
        at=at,
        state=state_of(record, parent, attempt.index),
        task=settings.task_name,
        kernel_class=record.kernel_class,
        language=settings.language,
        toolchain=settings.toolchain,
        device=limit.model if limit else "",
        architecture=limit.facts.architecture if limit and limit.facts else "",
        precision=settings.policy.measured,
        strategy=settings.strategy,
        model=attempt.model,
        parent_hash=parent.created.source_blob,
        child_hash=last.created.source_blob if last else "",
        predicted_gain=attempt.prediction.gain,
        gain=change.speedup if change else None,
        gain_low=change.low if change else None,
        gain_high=change.high if change else None,
        before=metrics_of(record, parent),
        after=metrics_of(record, last) if last else {},
        tokens=attempt.tokens,
        error=last.failure if last and last.has_failed else attempt.error,
        rules=_rules(record, last),
        over_eager=_over_eager(last) if last and change else None,
        over_best=_over_best(record, last) if last and change else None,
        limit_share=limit.reached_at(parent.trusted.latency_ms) if limit else None,
        task_hash=hashlib.sha256(settings.task_source.encode("utf-8", "surrogatepass")).hexdigest()[:16],
    )


def _over_eager(kernel: Candidate) -> float | None:
    return kernel.trusted.speedup if kernel.trusted else None


def _over_best(record: Record, kernel: Candidate) -> float | None:
    """Over eager or the fastest baseline beside it, whichever is faster; None where no other was timed."""
    other = record.baseline.result if record.baseline else None
    if kernel.trusted is None or other is None:
        return None
    return kernel.trusted.speedup / max(1.0, other.speedup)


def _rules(record: Record, last: Candidate | None) -> int:
    """The rules of the verdict that an attempt stands on; of a kernel that was not called, the run's."""
    verdict = (last.trusted or last.checked) if last else None
    return verdict.rules if verdict else record.settings.policy.rules


def _last(record: Record, attempt: Attempt) -> Candidate | None:
    """The kernel that an attempt is judged by: its last correct and timed one, else its last that failed."""
    line = [record.candidates[name] for name in attempt.line]
    timed = [kernel for kernel in line if kernel.trusted is not None and not kernel.has_failed]
    judged = timed or [kernel for kernel in line if kernel.has_failed]
    return judged[-1] if judged else None


def _change(parent: Candidate, last: Candidate | None, *, is_on_gpu: bool) -> relative.Relative | None:
    new, old = last.trusted if last and not last.has_failed else None, parent.trusted
    return relative.gain(new.figures, old.figures, is_on_gpu=is_on_gpu) if new and old else None


def _outcome(last: Candidate | None, change: relative.Relative | None) -> Outcome:
    if last is None:
        return Outcome.PATCH_FAILED
    if change is None:
        return FAILURES.get(last.verdict or Verdict.INCORRECT, Outcome.INCORRECT)
    return Outcome.FASTER if change.is_faster else Outcome.SLOWER if change.is_slower else Outcome.SAME


def state_of(record: Record, kernel: Candidate, index: int) -> str:
    """The state a kernel was in: as the base was asked about it at this step index, or last; else by the rules. Empty
    where neither is sure."""
    asked = [answer for (_, name), answer in record.consulted.items() if name == kernel.candidate_id]
    consulted = record.consulted.get((index, kernel.candidate_id)) or (asked[-1] if asked else None)
    if consulted is not None:
        return consulted.state if consulted.state_confidence >= states.SURE else ""
    state = states.of_profile(*profile_of(record, kernel))
    return state.state if state.is_sure else ""


def profile_of(record: Record, kernel: Candidate) -> tuple[ProfileResult | None, float | None, int]:
    """What the rules read of a kernel: its profile, its time and the least bytes of its task."""
    timed_ms = kernel.trusted.latency_ms if kernel.trusted else None
    return kernel.profiled, timed_ms, record.limit.min_bytes if record.limit else 0


def metrics_of(record: Record, kernel: Candidate) -> dict[str, float]:
    """A kernel's time and the figures of its profile that are kept."""
    profile, timed_ms, min_bytes = profile_of(record, kernel)
    figures = dict(_figures(profile, timed_ms, min_bytes)) if profile and not profile.disturbance else {}
    return figures | ({LATENCY: float(f"{timed_ms:.6g}")} if timed_ms else {})


def _figures(profile: ProfileResult, timed_ms: float | None, min_bytes: int) -> Iterator[tuple[str, float]]:
    is_host = readings.is_of_host(profile)
    figures = readings.of_host(profile) if is_host else readings.of_device(profile, timed_ms, min_bytes)
    return ((name, float(f"{figures[name]:.4g}")) for name in KEPT if name in figures)
