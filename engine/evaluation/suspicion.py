"""Whether a timing is too good to be believed at once, and what two timings together are worth. Pure; times nothing."""

from __future__ import annotations

from dataclasses import dataclass, replace

from storage.policy import Policy
from storage.proof import Group, Proof, Standing
from storage.records import CheckResult, HardwareLimit, TimingResult, Verdict

CHECK = "re-measured"
IMPOSSIBLE = 3.0


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a timing is held against: the task's policy, and what this machine can do at the task's size."""

    policy: Policy
    limit: HardwareLimit

    def reason(self, timed: TimingResult) -> str:
        """Why a timing must be repeated; empty when it need not be."""
        if timed.speedup > self.policy.suspicious_speedup:
            return f"{timed.speedup:.3g}x is above {self.policy.suspicious_speedup:.3g}x"
        if timed.latency_ms < self.limit.limit_ms:
            return f"{timed.latency_ms:.3g} ms is below the hardware limit of {self.limit.limit_ms:.3g} ms"
        return ""

    def is_impossible(self, timed: TimingResult) -> bool:
        """Three times faster than memory can deliver the inputs and take the outputs.

        Operations do not count here: a kernel may find a way with fewer. Nor does a limit that the reference beats,
        for then the task does not need all of its inputs.
        """
        memory_ms = self.limit.memory_ms
        return timed.latency_ms * IMPOSSIBLE < memory_ms <= timed.baseline_latency_ms


def unsuspicious(timed: TimingResult, bounds: Bounds) -> TimingResult:
    """A timing that gave no reason to repeat it."""
    detail = (
        f"not needed: {timed.speedup:.3g}x is not above {bounds.policy.suspicious_speedup:.3g}x, "
        f"{timed.latency_ms:.3g} ms not below the hardware limit of {bounds.limit.limit_ms:.3g} ms"
    )
    return with_check(timed, Standing.ABSENT, detail)


def settled(
    first: TimingResult, second: TimingResult | CheckResult, bounds: Bounds, reason: str
) -> TimingResult | CheckResult:
    """What stands after a second timing in a fresh process: the lower of two, or no result at all."""
    if isinstance(second, CheckResult):
        return replace(second, message=f"when timed again because {reason}: {second.message}")
    lower = min(first, second, key=lambda timed: timed.speedup)
    detail = f"because {reason}: first {_told(first)}, then {_told(second)}"
    if bounds.is_impossible(lower):
        return _refused(lower, bounds, detail)
    if not _overlap(first, second):
        return with_check(lower, Standing.FLAGGED, f"{detail}; not confirmed, the lower one is kept")
    is_beyond = lower.latency_ms < bounds.limit.limit_ms
    is_clean = not is_beyond and all(_is_calm(timed) for timed in (first, second))
    detail += "; confirmed" + (f", but faster than the limit of {bounds.limit.limit_ms:.3g} ms" if is_beyond else "")
    return with_check(lower, Standing.HELD if is_clean else Standing.FLAGGED, detail)


def with_check(timed: TimingResult, outcome: Standing, detail: str) -> TimingResult:
    """The same timing with what became of the question whether to repeat it."""
    return replace(timed, proofs=(*timed.proofs, Proof(Group.TIMING, CHECK, outcome, detail)))


def _refused(timed: TimingResult, bounds: Bounds, detail: str) -> CheckResult:
    message = (
        f"{timed.latency_ms:.3g} ms per call, twice, is more than {IMPOSSIBLE:.0f} times faster than this machine's "
        f"memory can deliver the inputs and take the outputs ({bounds.limit.memory_ms:.3g} ms): "
        "the work cannot have been done in that time"
    )
    proof = Proof(Group.TIMING, CHECK, Standing.BROKEN, detail)
    return CheckResult(
        Verdict.REFUSED, timed.seconds, message=message, trials=("timed calls",), proofs=(*timed.proofs, proof)
    )


def _is_calm(timed: TimingResult) -> bool:
    """False when the timing itself says that the machine or the noise spoiled it."""
    return not any(proof.check in ("noise", "machine") and proof.standing is Standing.FLAGGED for proof in timed.proofs)


def _overlap(first: TimingResult, second: TimingResult) -> bool:
    (a, b), (c, d) = first.speedup_interval, second.speedup_interval
    return a <= d and c <= b


def _told(timed: TimingResult) -> str:
    low, high = timed.speedup_interval
    return f"{timed.speedup:.3g}x ({low:.3g} to {high:.3g}) at {timed.latency_ms:.3g} ms"
