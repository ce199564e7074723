"""Which regions of a network are worth a kernel: what each takes of the whole, what the hardware would allow, and how
fast the whole could be. Pure figures; knows no file.

Times are those of one call of every workload, times its weight. A region stands against the best that the user could
run instead, in place: where the network is faster under torch.compile, or as a CUDA graph of what that gives, against
the compiler's kernels there. Kernels that also do work of other places count whole, so such a saving is at most what is
told.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from storage.knowledge.records import Evidence, Outcome
from storage.networks.records import (
    COMPILED,
    CUDA_GRAPH,
    EAGER,
    MAX_AUTOTUNE,
    TUNED_GRAPH,
    Form,
    Network,
    Region,
    RegionLimited,
    RegionUse,
    WorkloadFacts,
)

REACHED_SHARE = 0.9
"""Of its limit that a kernel is taken to reach."""
LEAST_SAVING = 0.01
"""Of the whole: less than that nobody can measure in a network."""
NOISE_FACTOR = 2.0
"""Sums that differ by more than this many times the spread of the calls are told."""
LEAST_GAP = 0.05
"""Of the whole: a smaller difference of the sums is not told."""


@dataclass(frozen=True, slots=True)
class Experience:
    """What the knowledge base has seen of kernels of one class."""

    tries: int
    gained: int
    tokens_per_try: float | None = None

    @property
    def words(self) -> str:
        """What a gain has cost, for people."""
        if not self.tries:
            return ""
        counted = f"{self.tries} earlier attempts faster"
        if not self.gained:
            return f"none of {counted}"
        if self.tokens_per_try is None:
            return f"{self.gained} of {counted}"
        tokens = self.tokens_per_try * self.tries / self.gained
        return f"about {tokens:,.0f} tokens a gain ({self.gained} of {counted})"


def experience(rows: Iterable[Evidence]) -> dict[str, Experience]:
    """What attempts of the knowledge base say, by kernel class."""
    by_class: dict[str, list[Evidence]] = {}
    for row in rows:
        by_class.setdefault(row.kernel_class, []).append(row)
    return {name: _experience(tries) for name, tries in by_class.items()}


def _experience(rows: list[Evidence]) -> Experience:
    tokens = [row.tokens for row in rows if row.tokens]
    gained = sum(row.outcome is Outcome.FASTER for row in rows)
    return Experience(len(rows), gained, statistics.median(tokens) if tokens else None)


@dataclass(frozen=True, slots=True)
class Whole:
    """The network: what one call of every workload takes, weighted, by its best alternative."""

    eager_ms: float
    compiled_ms: float | None
    """None where one workload or more could not be compiled."""
    replayed_ms: float | None
    """As CUDA graphs of the compiled network; None on a processor, and where a workload cannot be captured."""
    attributed_ms: float
    """What places take together in the calls that were watched."""
    watched_ms: float
    other_ms: Mapping[str, float] = field(default_factory=dict)
    """By way, of those that were timed with every workload."""

    @property
    def alternative(self) -> str:
        """What a user would rather run."""
        return min(self._ways, key=lambda way: self._ways[way])

    @property
    def best_ms(self) -> float:
        """The time of that."""
        return min(self._ways.values())

    @property
    def is_compiled(self) -> bool:
        """Whether the compiler's kernels run in it."""
        return self.alternative != EAGER

    @property
    def _ways(self) -> dict[str, float]:
        ways = {EAGER: self.eager_ms, COMPILED: self.compiled_ms, CUDA_GRAPH: self.replayed_ms, **self.other_ms}
        return {way: ms for way, ms in ways.items() if ms is not None}


@dataclass(frozen=True, slots=True)
class Ranked:
    """One region, with what a kernel for it could do. Milliseconds are of one call of every workload, weighted."""

    region: Region
    share: float
    """Of the whole as it is, from 0 to 1."""
    calls: float
    in_place_ms: float
    """By the whole's best alternative."""
    alternative: str
    is_at_most: bool
    """Whether `in_place_ms` holds work of other places too."""
    limit_ms: float | None
    """None where it is not measured."""
    saving_ms: float | None
    ceiling: float | None
    """The whole's speed-up over its best alternative if the region alone reached REACHED_SHARE of its limit."""
    is_worth_it: bool
    reason: str
    """Why it is not worth it."""
    cost: str = ""
    """What a gain on kernels of its class has cost so far."""


def in_words(alternative: str) -> str:
    """A way to call a network within a sentence."""
    words = {EAGER: "eager PyTorch", CUDA_GRAPH: "a CUDA graph of what torch.compile gives"}
    return {**words, TUNED_GRAPH: "a CUDA graph of what max-autotune gives"}.get(alternative, alternative)


def whole_of(network: Network) -> Whole:
    """The network's own figures."""
    eager = _weighted(network, lambda workload: median(workload.eager_ms))
    compiled = _of_all(network, lambda workload: workload.compiled_ms)
    replayed = _of_all(network, lambda workload: workload.replayed_ms)
    roots = {time.workload: time.inclusive_ms for time in network.times if not time.path}
    attributed = _weighted(network, lambda workload: roots.get(workload.name, 0.0))
    watched = _weighted(network, lambda workload: workload.device_ms or workload.profiled_ms)
    others = {way: _of_all(network, _other_times(way)) for way in (MAX_AUTOTUNE, TUNED_GRAPH)}
    known = {way: ms for way, ms in others.items() if ms is not None}
    return Whole(eager, compiled, replayed, attributed, watched, known)


def _other_times(way: str) -> Callable[[WorkloadFacts], tuple[float, ...]]:
    return lambda workload: workload.other_ms.get(way, ())


def ranked(
    network: Network, limits: Mapping[str, RegionLimited], experiences: Mapping[str, Experience] | None = None
) -> list[Ranked]:
    """Every region, the one whose kernel would save most first; those that are not worth it after the others."""
    whole = whole_of(network)
    rows = [_ranked(network, whole, region, limits.get(region.name), experiences or {}) for region in network.regions]
    return sorted(rows, key=lambda row: (not row.is_worth_it, -(row.saving_ms or 0.0), -row.share))


def ceiling_of(network: Network, rows: Iterable[Ranked]) -> float | None:
    """The whole's speed-up if all these regions reached REACHED_SHARE of their limits; of regions with work in common
    the one counts that saves most. None where nothing is known."""
    chosen: list[Ranked] = []
    for row in sorted(rows, key=lambda row: -(row.saving_ms or 0.0)):
        if row.saving_ms is not None and not any(overlap(row.region, other.region) for other in chosen):
            chosen.append(row)
    saved = sum(row.saving_ms or 0.0 for row in chosen)
    return _ceiling(whole_of(network).best_ms, saved) if chosen else None


def overlap(one: Region, other: Region) -> bool:
    """Whether two regions have work in common."""
    if not {use.workload for use in one.uses} & {use.workload for use in other.uses}:
        return False
    if one.form is Form.FUSED and other.form is Form.FUSED:
        return False  # an operator is in one run
    if one.form is Form.FUSED:
        return any(_is_within(part, place) for part in one.parts for place in other.places)
    if other.form is Form.FUSED:
        return overlap(other, one)
    # a place that is in both is called in two ways, and a call is of one of them
    return any(a != b and (_is_within(a, b) or _is_within(b, a)) for a in one.places for b in other.places)


def _is_within(path: str, place: str) -> bool:
    return not place or path == place or path.startswith(f"{place}.")


def of_workload(network: Network, name: str) -> Network:
    """The network as if it were called with this workload alone, once."""
    workloads = tuple(replace(workload, weight=1.0) for workload in network.workloads if workload.name == name)
    uses = ((region, tuple(use for use in region.uses if use.workload == name)) for region in network.regions)
    regions = (replace(region, uses=of_it) for region, of_it in uses if of_it)
    times = tuple(time for time in network.times if time.workload == name)
    kernels = tuple(kernel for kernel in network.kernels if kernel.workload == name)
    return replace(network, workloads=workloads, regions=tuple(regions), times=times, kernels=kernels)


def attributed_ms(network: Network, workload: WorkloadFacts) -> float:
    """What places take together in one call of a workload."""
    return sum(time.inclusive_ms for time in network.times if time.workload == workload.name and not time.path)


def gap_of(workload: WorkloadFacts, attributed_ms: float) -> str:
    """How places and everything else miss the whole, as a sentence; empty where they are it within noise."""
    if workload.device_ms is not None:
        if abs(attributed_ms - workload.device_ms) > LEAST_GAP * workload.device_ms:
            return (
                f"{workload.name}: kernels of its places take {attributed_ms:.3g} ms together and all kernels "
                f"{workload.device_ms:.3g} ms, so some run at the same time or belong to no place"
            )
        return ""
    measured = median(workload.eager_ms)
    spread = max(workload.eager_ms, default=measured) - min(workload.eager_ms, default=measured)
    if abs(workload.profiled_ms - measured) > max(NOISE_FACTOR * spread, LEAST_GAP * measured):
        return (
            f"{workload.name}: the call that was watched took {workload.profiled_ms:.3g} ms and one that was not takes "
            f"{measured:.3g} ms, so shares are those of a call that watching has slowed"
        )
    return ""


def host_share(workload: WorkloadFacts) -> float:
    """Of a call on a GPU that no kernel runs; 0 on a processor."""
    eager = median(workload.eager_ms)
    return max(0.0, 1 - workload.device_ms / eager) if workload.device_ms is not None and eager else 0.0


def _ranked(
    network: Network, whole: Whole, region: Region, limit: RegionLimited | None, experiences: Mapping[str, Experience]
) -> Ranked:
    weights = {workload.name: workload.weight * scale(workload) for workload in network.workloads}
    eager_ms = sum(weights[use.workload] * use.eager_ms for use in region.uses)
    plain = {workload.name: workload.weight for workload in network.workloads}
    calls = sum(plain[use.workload] * use.calls for use in region.uses)
    in_place_ms, is_at_most = _in_place(region.uses, weights, whole)
    limit_ms = calls * limit.limit_ms if limit else None
    saving_ms = max(0.0, in_place_ms - limit_ms / REACHED_SHARE) if limit_ms is not None else None
    ceiling = None if saving_ms is None else _ceiling(whole.best_ms, saving_ms)
    share = eager_ms / whole.eager_ms if whole.eager_ms else 0.0
    reason = _why_not(region, share, in_place_ms, saving_ms, whole)
    is_worth_it = not reason
    cost = experiences.get(region.kernel_class, Experience(0, 0)).words
    return Ranked(
        region, share, calls, in_place_ms, whole.alternative, is_at_most, limit_ms, saving_ms, ceiling, is_worth_it,
        reason, cost,
    )  # fmt: skip


def scale(workload: WorkloadFacts) -> float:
    """What times of a watched call are multiplied by. On a processor watching slows all that it sees; kernels of a GPU
    take what they take."""
    if workload.device_ms is not None or not workload.profiled_ms:
        return 1.0
    return median(workload.eager_ms) / workload.profiled_ms


def _in_place(uses: Iterable[RegionUse], weights: Mapping[str, float], whole: Whole) -> tuple[float, bool]:
    """What the region takes by the whole's best alternative, and whether that may be less."""
    total, is_at_most = 0.0, False
    for use in uses:
        is_compiled = whole.is_compiled and use.compiled_ms is not None
        ms = use.compiled_ms if is_compiled and use.compiled_ms else use.eager_ms
        # Kernels that also do other work may take longer than the region did without a compiler.
        total += weights[use.workload] * (min(ms, use.eager_ms) if use.is_shared else ms)
        is_at_most |= use.is_shared if is_compiled else whole.is_compiled
    return total, is_at_most


def _why_not(region: Region, share: float, in_place_ms: float, saving_ms: float | None, whole: Whole) -> str:
    if not region.task:
        return region.reason or "it has no task"
    best_share = in_place_ms / whole.best_ms if whole.best_ms else 0.0
    if (most := max(share, best_share)) < LEAST_SAVING:
        way = "in eager PyTorch" if share >= best_share else f"by its best alternative, {whole.alternative}"
        return f"it takes {_below(most)} of the network {way}; less than {LEAST_SAVING:.0%} cannot be measured in it"
    if saving_ms is not None and saving_ms < LEAST_SAVING * whole.best_ms:
        saved = _below(saving_ms / whole.best_ms)
        return f"near its limit: a kernel at {REACHED_SHARE:.0%} of it would save {saved}"
    return ""


def _below(share: float) -> str:
    """A share below `LEAST_SAVING`, never rounded up to it."""
    return f"{100 * share:.1f} %" if share < LEAST_SAVING - 0.0005 else f"{math.floor(1e4 * share) / 100:.2f} %"


def _ceiling(whole_ms: float, saving_ms: float) -> float | None:
    return whole_ms / (whole_ms - saving_ms) if 0 <= saving_ms < whole_ms else None


def _of_all(network: Network, times_of: Callable[[WorkloadFacts], tuple[float, ...]]) -> float | None:
    """None where one workload or more has no such times."""
    if not network.workloads or not all(times_of(workload) for workload in network.workloads):
        return None
    return _weighted(network, lambda workload: median(times_of(workload)))


def _weighted(network: Network, time_of: Callable[[WorkloadFacts], float]) -> float:
    return sum(workload.weight * time_of(workload) for workload in network.workloads)


def median(values: tuple[float, ...]) -> float:
    """Of times; 0 where there are none."""
    return statistics.median(values) if values else 0.0
