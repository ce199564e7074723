"""Who waited for what: spans of a run's time by who had the work, folded from its journal. Decides nothing, touches no
file.

A span's end is the moment of an event. What an event tells as durations alone, the parts of an evaluation, is placed
before that moment in the order in which an evaluation goes: what is prepared, the build, the wait for the device, the
time that it was held, the rest. Several builds or turns on the device stand as one. Where the parts are longer than the
step had, as in a replay at another speed, they are shortened alike; else those of DEVICE add up to `Usage.device_s`.
What an evaluation has done without telling how long stands as EVALUATOR.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from enum import StrEnum

from storage import device_use
from storage.results.timeline import Part, Timeline
from storage.run import events as ev
from storage.run.journal import Entry
from storage.run.settings import LEFT, RunState, StepKind
from storage.run.steering.command_arguments import is_call

_PREPARED = (Part.STARTING, Part.PROBING, Part.FORKING, Part.SCREENING)


class Lane(StrEnum):
    """Who had the work, in the words shown on screen."""

    MODEL = "model"
    COMPILER = "compiler"
    EVALUATOR = "evaluator"
    """What an evaluation does beside the device: processes, screening, files; and what it did not tell apart."""
    LEASE = "waiting for the device"
    """Another run, suite or command line held it."""
    DEVICE = "device"
    PERSON = "person"
    PAUSED = "paused"
    OFF = "no engine"


@dataclass(frozen=True, slots=True)
class Span:
    """From `began` to `ended`, epoch seconds; `what` is the role of a call, the stage of an evaluation, or a reason.
    Of one that goes on `ended` is when it began. `device` is its id where the host has several."""

    lane: Lane
    began: float
    ended: float
    what: str
    step: int = 0
    candidate_id: str | None = None
    outcome: str = ""
    device: str = ""


@dataclass(slots=True)
class _Step:
    """A step in flight; what it did until `until` has its spans."""

    kind: str
    candidate_id: str | None
    until: float


_RESULTS = {
    ev.Compiled: "compile", ev.Checked: "check", ev.Timed: "time", ev.Profiled: "profile",
    ev.VariantCompiled: "compile a variant", ev.VariantChecked: "check a variant", ev.VariantTimed: "time a variant",
    ev.BaselineMeasured: "time a baseline", ev.ProfileFailed: "profile",
}  # fmt: skip
_BESIDE = {
    ev.LimitMeasured: "hardware limit", ev.CompilerShown: "torch.compile's kernel",
    ev.DeploymentSeen: "what callers rely on",
}  # fmt: skip


@dataclass(slots=True)
class Waiting:
    """The fold: takes entries in their order and gives each span when it ends."""

    steps: dict[int, _Step] = field(default_factory=dict)
    sent: dict[tuple[int, int], tuple[float, str]] = field(default_factory=dict)
    """When calls in flight were sent, and their roles, by step and call."""
    held: Span | None = None
    """What a person is waited for, or the pause."""
    until: float = 0.0
    """What was done outside steps until then has its spans."""
    last: float = 0.0
    is_off: bool = True
    number: int = 0
    """The step of the last evaluation, as long as it has not ended."""
    unused_since: float = 0.0
    """When the last span ended that was none of a model."""

    def apply(self, entry: Entry) -> Iterator[Span]:
        """Take one event; yields the spans that it ends."""
        at = max(entry.time, self.last)
        for span in self._take(entry.event, at):
            if span.ended > span.began:
                if span.lane is not Lane.MODEL:
                    self.unused_since = max(self.unused_since, span.ended)
                yield span
        self.last = at

    def _take(self, event: ev.Event, at: float) -> Iterator[Span]:
        match event:
            case ev.EngineStarted():
                yield from self._begin(at)
            case ev.StateChanged():
                yield from self._hold(event.state, event.reason, at)
            case ev.RunEnded():
                yield from self._end(event, at)
            case ev.StepStarted():
                self.steps[event.step] = _Step(event.kind, event.candidate_id, at)
            case ev.StepFinished():
                yield from self._finish(event, at)
            case ev.CallSent():
                yield from self._send(event, at)
            case ev.ModelCalled():
                yield self._call(event, event.finish_reason, at)
            case ev.CallFailed():
                yield self._call(event, str(event.failure), at)
            case ev.ToolAnswered():
                began = max(at - event.seconds, self._step(event.step).until)
                yield Span(Lane.EVALUATOR, began, at, f"{event.tool} for the model", event.step, None, event.outcome)
            case _ if type(event) in _RESULTS or type(event) in _BESIDE:
                yield from self._evaluated(event, at)

    def _begin(self, at: float) -> Iterator[Span]:
        if self.held is not None and self.held.lane is Lane.PERSON:
            yield self._let_go(self.held, at)
        elif self.unused_since:
            yield Span(Lane.OFF, self.last, at, "no engine was at work")
        self.steps, self.sent, self.held = {}, {}, None
        self.until, self.is_off, self.unused_since = at, False, max(at, self.unused_since)

    def _hold(self, state: RunState, reason: str, at: float) -> Iterator[Span]:
        if self.held is not None:
            yield self._let_go(self.held, at)
        lane = {RunState.PAUSED: Lane.PAUSED, RunState.WAITING: Lane.PERSON}.get(state)
        self.held = Span(lane, at, at, reason) if lane else None

    def _let_go(self, held: Span, at: float) -> Span:
        """What was held back until now is no time of the steps in flight."""
        self.held = None
        for step in self.steps.values():
            step.until = at
        self.until = at
        return replace(held, ended=at)

    def _end(self, event: ev.RunEnded, at: float) -> Iterator[Span]:
        """What was in flight ends; a run that its engine has left because it waits for a person goes on waiting."""
        ended = [] if self.held else self.open_spans
        yield from (replace(span, ended=at, outcome="broken off") for span in ended)
        if event.reason.startswith(LEFT):
            self.held = self.held or Span(Lane.PERSON, at, at, event.reason.removeprefix(LEFT))
        elif self.held is not None:
            yield self._let_go(self.held, at)
        self.steps, self.sent, self.is_off = {}, {}, True

    def _send(self, event: ev.CallSent, at: float) -> Iterator[Span]:
        step = self._step(event.step)
        if event.attempt:
            yield Span(Lane.MODEL, step.until, at, f"{event.role}: before it is asked again", event.step)
            step.until = at
        self.sent[event.step, event.call] = at, event.role

    def _call(self, event: ev.ModelCalled | ev.CallFailed, outcome: str, at: float) -> Span:
        """A reply that nobody was paid for has no CallSent in its journal."""
        step = self._step(event.step)
        began, _ = self.sent.pop((event.step, event.call), (max(at - event.seconds, step.until), ""))
        step.until = at
        return Span(Lane.MODEL, began, at, event.role, event.step, event.candidate_id, outcome)

    def _evaluated(self, event: ev.Event, at: float) -> Iterator[Span]:
        # What is measured beside a kernel names no step: it is of the one in flight, or of the one that an engine goes
        # on with, which it does not begin anew.
        number = self.number = getattr(event, "step", next(reversed(self.steps), self.number))
        step, result = self._step(number), getattr(event, "result", None)
        timeline: Timeline | None = getattr(result, "timeline", None)
        began, step.until = step.until, at
        self.until = at
        name = getattr(event, "candidate_id", None) or step.candidate_id
        about = (
            number,
            name,
            str(getattr(result, "verdict", "")),
            getattr(result, "evidence", {}).get(device_use.DEVICE, ""),
        )
        what = _RESULTS.get(type(event)) or _BESIDE[type(event)]
        if timeline is None:
            is_build = isinstance(event, ev.Compiled | ev.VariantCompiled)
            yield Span(Lane.COMPILER if is_build else Lane.EVALUATOR, began, at, what, *about)
            return
        scale = min(1.0, (at - began) / timeline.total_s) if timeline.total_s else 0.0
        start = at - scale * timeline.total_s
        yield Span(Lane.EVALUATOR, began, start, what, *about)
        parts = _placed(timeline)
        for lane, seconds in parts[:-1]:
            yield Span(lane, start, start + scale * seconds, what, *about)
            start += scale * seconds
        yield Span(parts[-1][0], start, at, what, *about)

    def _finish(self, event: ev.StepFinished, at: float) -> Iterator[Span]:
        step, self.number = self.steps.pop(event.step, None), 0
        if step is not None and not is_call(step.kind):
            yield Span(Lane.EVALUATOR, step.until, at, step.kind, event.step, step.candidate_id, event.outcome)
        self.until = at

    def _step(self, number: int) -> _Step:
        return self.steps.get(number) or _Step("", None, self.until or self.last)

    @property
    def open_spans(self) -> list[Span]:
        """What goes on now, by what the journal says: who waits for a person waits for nothing else."""
        if self.held is not None:
            return [self.held]
        return [] if self.is_off else [self._open(number, step) for number, step in self.steps.items()]

    def _open(self, number: int, step: _Step) -> Span:
        sent = min((at for (of, _), (at, _) in self.sent.items() if of == number), default=step.until)
        lane = Lane.MODEL if is_call(step.kind) else Lane.EVALUATOR
        lane = Lane.COMPILER if step.kind == StepKind.COMPILE else lane
        began = sent if lane is Lane.MODEL else step.until
        return Span(lane, began, began, step.kind, number, step.candidate_id)

    @property
    def idle_since(self) -> float | None:
        """Since when nothing but the model has the work; None where something else has, or nothing."""
        now = self.open_spans
        return self.unused_since if now and all(span.lane is Lane.MODEL for span in now) else None


def _placed(timeline: Timeline) -> list[tuple[Lane, float]]:
    """An evaluation's time by lane, in its order. The device comes first where parts and lease overlap: some languages
    build while they hold it."""
    held_s = min(timeline.lease_s, timeline.total_s)
    waited_s = min(timeline.parts.get(Part.LEASE, 0.0), timeline.total_s - held_s)
    built_s = min(timeline.parts.get(Part.BUILDING, 0.0), timeline.total_s - held_s - waited_s)
    left_s = max(0.0, timeline.total_s - held_s - waited_s - built_s)
    prepared_s = min(sum(timeline.parts.get(part, 0.0) for part in _PREPARED), left_s)
    return [(Lane.EVALUATOR, prepared_s), (Lane.COMPILER, built_s), (Lane.LEASE, waited_s), (Lane.DEVICE, held_s),
            (Lane.EVALUATOR, left_s - prepared_s)]  # fmt: skip


def spans(entries: list[Entry]) -> list[Span]:
    """Of a whole journal, what goes on at its end left out."""
    waiting = Waiting()
    return [span for entry in entries for span in waiting.apply(entry)]
