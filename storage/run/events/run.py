"""What happens to a run as a whole: its engines, its steps and depths, its state and its limits."""

from __future__ import annotations

from dataclasses import dataclass

from storage.knowledge.records import WeighedEdge
from storage.results.evaluation_results import TimingResult
from storage.results.hardware_limit import HardwareLimit
from storage.run.settings import Budget, DepthOutcome, RunState


@dataclass(frozen=True, slots=True)
class RunStarted:
    """First event of every run; the settings themselves are in run.json."""

    run_id: str
    task_name: str


@dataclass(frozen=True, slots=True)
class EngineStarted:
    """An engine process took the run's lock. `lost_events` were written after the last one it found in the journal."""

    pid: int
    is_resumed: bool
    lost_events: int = 0

    @property
    def reason(self) -> str:
        """Why the run is running."""
        began = "Run resumed" if self.is_resumed else "Run started"
        lost = f"; {self.lost_events:,} earlier events are missing from the journal" if self.lost_events else ""
        return f"{began}{lost}"


@dataclass(frozen=True, slots=True)
class LimitMeasured:
    """The task's speed of light on this machine."""

    limit: HardwareLimit


@dataclass(frozen=True, slots=True)
class BaselineMeasured:
    """Another baseline, timed against eager in one session: `result` has it in the candidate's place.

    `result` is None where it cannot be had; `failure` says why.
    """

    name: str
    result: TimingResult | None
    failure: str = ""


@dataclass(frozen=True, slots=True)
class CompilerShown:
    """What torch.compile writes for the task, shown to the model from here on; `failure` says why there is nothing.

    `kernel_blob` is the candidate made of it, where the run begins with that; without one `failure` says why.
    """

    source_blob: str | None
    failure: str = ""
    kernel_blob: str | None = None


@dataclass(frozen=True, slots=True)
class StepStarted:
    """A move of the loop began. After a crash the same step number starts again."""

    step: int
    kind: str
    depth: int
    candidate_id: str | None


@dataclass(frozen=True, slots=True)
class PlaceTaken:
    """What a step index takes for itself while others are at work beside it, which leave it alone: a trajectory, say.

    `place` is in the method's own words. Only where a run has a width, and again where the step index takes another.
    """

    depth: int
    place: str


@dataclass(frozen=True, slots=True)
class StepFinished:
    """A step ended. `outcome` of a call: created, written; patch_failed, unreadable where the reply could not be used.

    Of a submission it is created, of a compile, a check or a timing a Verdict value, of a profile profiled or
    unavailable, of a consultation answered, of teaching taught. dropped and skipped: a person broke the step off, or
    said no to it. `seconds` add up to the run's time of work: beside others at work those that no other has counted.
    """

    step: int
    kind: str
    seconds: float
    outcome: str


@dataclass(frozen=True, slots=True)
class DepthFinished:
    """A step index ended."""

    step: int
    depth: int
    outcome: DepthOutcome
    candidate_id: str | None
    """The accepted kernel; when it was given up, the last attempt (or None)."""
    base_id: str | None
    """The kernel that it started from; it stays when the step index was given up."""
    is_profile_exposed: bool
    is_best: bool
    """Whether the accepted kernel is the fastest of the run so far. Readers work out the best from the timings instead,
    since older engines wrote it only for a gain beyond the noise."""
    reason: str
    reward: float | None = None
    """What it is worth by the method's own measure."""
    weighed: tuple[WeighedEdge, ...] = ()
    """The edges that led to it, and their rivals, in a method that walks the graph of techniques."""


@dataclass(frozen=True, slots=True)
class StateChanged:
    """The run moved to another state. `reason` is written for the person who looks at the run."""

    state: RunState
    reason: str


@dataclass(frozen=True, slots=True)
class BudgetWarned:
    """Four fifths of a limit are used."""

    limit: str
    used: float
    allowed: float


@dataclass(frozen=True, slots=True)
class BudgetChanged:
    """A person set other limits; they hold from here on."""

    budget: Budget


@dataclass(frozen=True, slots=True)
class RunEnded:
    """Final event of an engine's work: FINISHED, STOPPED or FAILED. A resume may follow it.

    `best_id` is the fastest correct kernel; as for `is_best` of a depth, readers work it out from the timings.
    """

    state: RunState
    reason: str
    best_id: str | None
    error_blob: str | None = None
