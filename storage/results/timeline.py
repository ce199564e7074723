"""Where the wall time of one evaluation went, by parts that follow each other. Knows no process and no toolchain."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

MOST, LEAST_S = 6, 0.05


class Part(StrEnum):
    """What an evaluation can spend time on, in the words shown on screen. No two run at the same time."""

    STARTING = "starting the evaluator"
    """A process that imports PyTorch, once for an engine."""
    PROBING = "probing the sandbox"
    FORKING = "starting processes"
    LEASE = "waiting for the device"
    """For its lease: another run, suite or command line holds it."""
    QUIET = "waiting for a quiet machine"
    SCREENING = "screening"
    BUILDING = "building"
    IMPORTING = "importing the kernel"
    CONTEXT = "opening the GPU"
    """The reference's CUDA context and the evaluator's, beside each other; the candidate's is opened while its model
    is made."""
    DESCRIBING = "the reference's model and first call"
    CONSTRUCTING = "the kernel's model"
    INPUTS = "making inputs"
    REFERENCE = "the reference's answers"
    """In its own dtype and in float64."""
    WEIGHTS = "loading other weights"
    CALLING = "calling the kernel"
    COMPARING = "comparing"
    TIMING = "timed calls"
    CLOSING = "checks after timing"
    """Does it rest, do the clocks agree, does it remember results."""
    PROFILING = "profiling"
    SANITIZING = "compute-sanitizer"
    """On one call of a kernel that is wrong or crashes."""
    ENDING = "ending processes"


@dataclass(frozen=True, slots=True)
class Timeline:
    """Seconds of wall time. `parts` are by name, as `Part` says, those of less than a millisecond left out.

    `lease_s` of the whole the device was held; nobody else could time or profile on it then.
    """

    total_s: float
    lease_s: float = 0.0
    parts: Mapping[str, float] = field(default_factory=dict)

    @property
    def other_s(self) -> float:
        """What no part accounts for: messages between processes, folders, our own bookkeeping."""
        return max(0.0, self.total_s - sum(self.parts.values()))

    @property
    def by_length(self) -> list[tuple[str, float]]:
        """The parts and the rest, longest first."""
        named = [*self.parts.items(), ("everything else", self.other_s)]
        return sorted((part for part in named if part[1] > 0), key=lambda part: -part[1])

    @property
    def in_words(self) -> str:
        """One line for people: the whole, its longest parts, and how long the device was held."""
        longest = [f"{name} {seconds:.1f} s" for name, seconds in self.by_length[:MOST] if seconds >= LEAST_S]
        held = f"; the device was held for {self.lease_s:.1f} s" if self.lease_s >= LEAST_S else ""
        return f"{self.total_s:.1f} s" + (f": {', '.join(longest)}" if longest else "") + held
