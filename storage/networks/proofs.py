"""What came of putting kernels back into a network, folded from its journal: what was tried, kept and measured. Figures
of the whole add up workloads by their weights. Knows no file."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from storage.networks import ranking
from storage.networks.records import (
    EAGER,
    ChosenKernel,
    Event,
    Network,
    OriginalTimed,
    PartMeasured,
    ProofEnded,
    ProofProgressed,
    ProofStarted,
    ProofStopAsked,
    RegionTried,
    Speed,
    StackMeasured,
    Verdict,
)

STOPPING = "being stopped"


@dataclass(frozen=True, slots=True)
class Proof:
    """One time that kernels were put back. `words` say what it does now; `reason` why it ended before it was whole."""

    started: ProofStarted
    originals: tuple[OriginalTimed, ...] = ()
    tried: Mapping[str, RegionTried] = field(default_factory=dict)
    """By region, in the order of the trials."""
    parts: tuple[PartMeasured, ...] = ()
    """Of trials and of the stack, one for each step and workload."""
    stack: StackMeasured | None = None
    words: str = ""
    region: str = ""
    """What is being tried now."""
    is_over: bool = False
    reason: str = ""

    @property
    def number(self) -> int:
        """From 1."""
        return self.started.number

    def part(self, step: str, workload: str) -> PartMeasured:
        """What was measured of a step with a workload so far."""
        found = (part for part in self.parts if (part.step, part.workload) == (step, workload))
        return next(found, PartMeasured(step, workload))

    @property
    def kept(self) -> tuple[str, ...]:
        """Regions whose kernels pay in the network, in the order in which they were kept."""
        return tuple(name for name, trial in self.tried.items() if trial.verdict is Verdict.KEPT)

    @property
    def kernels(self) -> dict[str, ChosenKernel]:
        """What was to be put back, by region."""
        return {kernel.region: kernel for kernel in self.started.kernels}


@dataclass(frozen=True, slots=True)
class Total:
    """All workloads by their weights: milliseconds before and after, and the speed-up with its 95 % interval."""

    before_ms: float
    after_ms: float
    speedup: float
    low: float
    high: float

    @property
    def is_faster(self) -> bool:
        """Beyond the noise."""
        return self.low > 1

    @property
    def is_slower(self) -> bool:
        """Beyond the noise."""
        return self.high < 1


def folded(proof: Proof | None, event: Event) -> Proof | None:
    """A proof after one more event."""
    if isinstance(event, ProofStarted):
        if proof is not None and proof.started == event and not proof.is_over:
            return replace(proof, reason="", words="", region="")  # it goes on
        return Proof(event)
    if proof is None:
        return None
    match event:
        case ProofProgressed(words, region):
            return replace(proof, words=words, region=region)
        case OriginalTimed():
            return replace(proof, originals=(*proof.originals, event))
        case PartMeasured(step, workload):
            before = proof.part(step, workload)
            others = (part for part in proof.parts if part is not before)
            return replace(proof, parts=(*others, _added(before, event)))
        case ProofStopAsked():
            return replace(proof, words=STOPPING)
        case RegionTried(region):
            return replace(proof, tried={**proof.tried, region: event}, region="")
        case StackMeasured():
            return replace(proof, stack=event)
        case ProofEnded(reason):
            return replace(proof, reason=reason, is_over=not reason, words="", region="")
    return proof


def _added(before: PartMeasured, part: PartMeasured) -> PartMeasured:
    return replace(
        part, engaged=before.engaged if part.engaged is None else part.engaged,
        parity=before.parity if part.parity is None else part.parity, speed=part.speed or before.speed,
    )  # fmt: skip


def total(speeds: Sequence[Speed], weights: Mapping[str, float]) -> Total | None:
    """The whole of these workloads; None where there are none. The interval adds up those of the workloads, all at
    their lower or all at their upper ends: it is rather too wide than too narrow."""
    known = [speed for speed in speeds if speed.workload in weights]
    if not known:
        return None
    before = sum(weights[speed.workload] * speed.before_ms for speed in known)
    after = sum(weights[speed.workload] * speed.paired_ms for speed in known)
    most = sum(weights[speed.workload] * speed.before_ms / speed.low for speed in known)
    least = sum(weights[speed.workload] * speed.before_ms / speed.high for speed in known)
    return Total(before, after, before / after, before / most, before / least)


def shipped(proof: Proof) -> tuple[str, ...]:
    """Regions whose kernels a package for use holds: those of the stack that was measured."""
    return proof.stack.kept if proof.stack else proof.kept


def weights_of(network: Network) -> dict[str, float]:
    """Of the workloads, by name."""
    return {workload.name: workload.weight for workload in network.workloads}


def of_way(stack: StackMeasured, way: str) -> list[Speed]:
    """What was measured of one way against the same way."""
    return [speed for speed in stack.speeds if speed.before == way]


def best_way(originals: Iterable[OriginalTimed], network: Network) -> str:
    """The fastest way to call the network as it is; eager where nothing else was measured in all workloads."""
    sums: dict[str, float] = {}
    counts: dict[str, int] = {}
    weights = weights_of(network)
    for timed in originals:
        if timed.ms is not None and timed.workload in weights:
            sums[timed.way] = sums.get(timed.way, 0.0) + weights[timed.workload] * timed.ms
            counts[timed.way] = counts.get(timed.way, 0) + 1
    whole = [way for way, count in counts.items() if count == len(weights)]
    return min(whole, key=lambda way: sums[way], default=EAGER)


def predicted(network: Network, proof: Proof, regions: Iterable[str]) -> float | None:
    """The speed-up over eager PyTorch that the kernels' gains in isolation would make of the whole."""
    whole = ranking.whole_of(network)
    by_name = {region.name: region for region in network.regions}
    factors = {
        workload.name: workload.weight * ranking.scale(workload) for workload in network.workloads
    }  # fmt: skip
    saved = 0.0
    for name in regions:
        kernel = proof.kernels.get(name)
        if kernel is None or not kernel.speedup or name not in by_name:
            continue
        took = sum(factors[use.workload] * use.eager_ms for use in by_name[name].uses)
        saved += took * (1 - 1 / kernel.speedup)
    left = whole.eager_ms - saved
    return whole.eager_ms / left if saved and left > 0 and math.isfinite(left) else None
