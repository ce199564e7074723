"""What the calls of a run came to, and what they cost by that, folded from its events. Each call is one outcome."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import StrEnum

from storage.results.vocabulary import Verdict
from storage.run import events as ev
from storage.run.models import CallFailure
from storage.run.record import Candidate
from storage.run.settings import Origin

_REPAIR = "repair"  # the kind of a step
_FAILURES = frozenset(CallFailure)


class CallOutcome(StrEnum):
    """What the reply to a call came to, in the words shown on screen; each call is one of them."""

    KEPT = "kernel that was kept"
    BEST = "correct, the best"
    """The fastest of the run, though its step did not end with it, or has not ended."""
    UNDECIDED = "correct, not decided"
    """Its step has not ended: not yet, or the run ended before."""
    CORRECT = "correct, not kept"
    UNREADABLE = "no usable reply"
    """Nothing could be made of it: it did not parse, its edits did not apply, it was cut off, or the call failed."""
    NOT_COMPILED = "did not compile, or refused"
    """Refused before it was built, for its text."""
    WRONG = "wrong result or crash"
    REPAIR = "repairs"
    """Of failed kernels, whatever came of them."""
    TEXT = "diagnosis, judge, plan"
    """Replies that are no kernel."""
    OPEN = "not judged"
    """The kernel has no verdict, or the step has not ended: not yet, or the run ended before."""


@dataclass(frozen=True, slots=True)
class OutcomeRow:
    """Calls of one outcome. `tokens` are those that were counted, `uncounted` calls have none; `cost_usd` None means
    that the cost of any of them is unknown."""

    outcome: CallOutcome
    calls: int
    uncounted: int
    tokens: int
    cost_usd: float | None


@dataclass(slots=True)
class _Sums:
    calls: int = 0
    uncounted: int = 0
    tokens: int = 0
    cost_usd: float = 0.0
    unpriced: int = 0

    def add(self, other: _Sums, sign: int = 1) -> None:
        self.calls += sign * other.calls
        self.uncounted += sign * other.uncounted
        self.tokens += sign * other.tokens
        self.cost_usd += sign * other.cost_usd
        self.unpriced += sign * other.unpriced


@dataclass(slots=True)
class _Step:
    """The calls of a step: number, whether its reply was of no use, what it took. In `missed` are those whose edits did
    not apply; `told` is how they are counted at present."""

    is_repair: bool = False
    outcome: str | None = None
    made_id: str | None = None
    calls: list[tuple[int, bool, _Sums]] = field(default_factory=list)
    missed: set[int] = field(default_factory=set)
    told: list[tuple[CallOutcome, _Sums]] = field(default_factory=list)

    def by_outcome(self, of_kernel: Callable[[str], CallOutcome]) -> list[tuple[CallOutcome, _Sums]]:
        if self.is_repair:
            return [(CallOutcome.REPAIR, sums) for _, _, sums in self.calls]
        is_lost = self.outcome in ("patch_failed", "unreadable")
        came_to = of_kernel(self.made_id) if self.made_id else CallOutcome.OPEN
        came_to = CallOutcome.TEXT if self.outcome == "written" else came_to
        return [
            (CallOutcome.UNREADABLE if is_lost or is_useless or number in self.missed else came_to, sums)
            for number, is_useless, sums in self.calls
        ]


def of_kernel(made: Candidate, is_accepted: bool, is_best: bool, is_pending: bool) -> CallOutcome:
    """What a call came to that a kernel was made of, not to repair another; `is_pending`: its depth has not ended."""
    if made.verdict is None:
        return CallOutcome.OPEN
    if is_accepted:
        return CallOutcome.KEPT
    if made.verdict is Verdict.PASSED:
        return CallOutcome.BEST if is_best else CallOutcome.UNDECIDED if is_pending else CallOutcome.CORRECT
    is_compiled = made.compiled is not None and made.compiled.is_ok
    return CallOutcome.WRONG if is_compiled else CallOutcome.NOT_COMPILED


@dataclass(slots=True)
class CallOutcomes:
    """The fold. Beside its sums it keeps the steps that have not ended, and those that made a kernel: more may become
    known of it."""

    open_steps: dict[int, _Step] = field(default_factory=dict)
    by_kernel: dict[str, _Step] = field(default_factory=dict)
    changed: list[_Step] = field(default_factory=list)
    sums: dict[CallOutcome, _Sums] = field(default_factory=lambda: {outcome: _Sums() for outcome in CallOutcome})

    def take(self, event: ev.Event) -> None:
        """Take one event."""
        match event:
            case ev.StepStarted():
                self._step(event.step).is_repair = event.kind == _REPAIR
            case ev.ModelCalled():
                self._called(event, event.finish_reason in _FAILURES)
            case ev.CallFailed() if event.is_charged:
                self._called(event, True)
            case ev.PatchTried(is_applied=False):
                self._step(event.step).missed.add(event.call)
            case ev.CandidateCreated():
                step = self.by_kernel[event.candidate_id] = self._step(event.step)
                step.made_id, step.is_repair = event.candidate_id, step.is_repair or event.origin is Origin.REPAIR
            case ev.StepFinished():
                self._step(event.step).outcome = event.outcome
                del self.open_steps[event.step]

    def _step(self, number: int) -> _Step:
        step = self.open_steps.setdefault(number, _Step())
        self.changed.append(step)
        return step

    def _called(self, event: ev.ModelCalled | ev.CallFailed, is_useless: bool) -> None:
        counts = event.input_tokens, event.output_tokens
        tokens, cost = sum(count or 0 for count in counts), event.cost_usd
        sums = _Sums(1, int(None in counts), tokens, cost or 0.0, int(cost is None))
        self._step(event.step).calls.append((event.call, is_useless, sums))

    def rows(self, kernels: Iterable[str], of_kernel: Callable[[str], CallOutcome]) -> list[OutcomeRow]:
        """What all calls so far came to, in the order of CallOutcome; outcomes of no call are left out. `kernels` are
        those of which something has become known since the last time, `of_kernel` says what is known."""
        for step in [*self.changed, *(self.by_kernel[name] for name in kernels if name in self.by_kernel)]:
            before, step.told = step.told, step.by_outcome(of_kernel)
            for told, sign in ((before, -1), (step.told, 1)):
                for outcome, sums in told:
                    self.sums[outcome].add(sums, sign)
        self.changed = []
        return [
            OutcomeRow(outcome, s.calls, s.uncounted, s.tokens, None if s.unpriced else round(s.cost_usd, 12))
            for outcome, s in self.sums.items()
            if s.calls
        ]
