"""The state of a kernel: a name for the pattern of its profile, by rules; and what a model says where the rules are not
sure.

A rule names a state and the figures that show it, each with the value at which it begins to hold (confidence 0.6) and
the one at which it is sure (0.95); a rule is as sure as the least of its signs. The first rule of the table that holds
names the state, causes before symptoms: an access pattern that wastes sectors comes before the saturated memory that
it leads to. The other rules that hold are its secondary characteristics. Where none holds, the larger share of the two
peaks points at a state, by less than `SURE`, and the choice is left to a model. A disturbed profile says nothing.

Sources: the 16 states and the comparison at 1.2 are those of KernelBlaster's released code (arXiv 2602.14293); busy
from 60 % of a peak on is KernelAgent's rule, saturated at 80 to 85 % KernelSkill's; stall reasons, sectors and bank
conflicts are read as Nsight Compute's Kernel Profiling Guide explains them; waves and the limiter of occupancy are
CUDA's occupancy calculation. No counter that is taken shows copies over the link to the host, so no rule names
`transfer_bandwidth_limited`; a model may. Shares are in per cent.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from engine.knowledge import readings
from storage.knowledge.records import Bottleneck, State
from storage.results.profile_results import ProfileResult

SURE = 0.6  # below it a state is not matched: a model is asked, and below it a model's word makes a new state
MOST = 0.95
GUESS = 0.4
APART = 1.2  # KernelBlaster's factor between the shares of a kernel that is bound by one of them
SECONDARY = 4
DISCOVERED = "discovered"

MEMORY, COMPUTE, LATENCY = Bottleneck.MEMORY, Bottleneck.COMPUTE, Bottleneck.LATENCY
HYBRID, OVERHEAD = Bottleneck.HYBRID, Bottleneck.OVERHEAD

# The states that Tilewright knows, with what holds such a kernel back.
STATES: Mapping[str, Bottleneck] = {
    "high_level_inefficiency": HYBRID,
    "memory_bandwidth_saturated": MEMORY,
    "memory_latency_bound": MEMORY,
    "memory_bank_conflicts": MEMORY,
    "cache_inefficient": MEMORY,
    "compute_throughput_saturated": COMPUTE,
    "instruction_mix_suboptimal": COMPUTE,
    "thread_divergence_high": COMPUTE,
    "low_occupancy_register_pressure": LATENCY,
    "low_occupancy_shared_memory": LATENCY,
    "insufficient_parallelism": LATENCY,
    "hybrid_bound": HYBRID,
    "memory_compute_balanced": HYBRID,
    "latency_memory_bound": LATENCY,
    "api_overhead_dominant": OVERHEAD,
    "transfer_bandwidth_limited": OVERHEAD,
}


@dataclass(frozen=True, slots=True)
class Found:
    """A kernel's state and the figures that decided it. `state` is empty where nothing is known, and `why` says so."""

    state: str
    bottleneck: Bottleneck | None
    confidence: float
    why: str
    secondary: tuple[str, ...] = ()
    metrics: Mapping[str, float] = field(default_factory=dict)

    @property
    def is_sure(self) -> bool:
        """Whether the rules have spoken; else a model may be asked."""
        return bool(self.state) and self.confidence >= SURE


@dataclass(frozen=True, slots=True)
class Sign:
    """A figure that begins to show a state at `at` and is sure at `sure`: low values show it where `sure` is less."""

    figure: str
    at: float
    sure: float

    def confidence(self, figures: Mapping[str, float]) -> float:
        """From 0.6 to 0.95; 0 where the figure is not known or does not reach."""
        value = figures.get(self.figure)
        if value is None or (value < self.at if self.sure >= self.at else value > self.at):
            return 0.0
        span = self.sure - self.at
        reached = 1.0 if math.isinf(value) or not span else min(1.0, (value - self.at) / span)
        return SURE + (MOST - SURE) * reached

    def in_words(self, value: float) -> str:
        """The figure in words."""
        return f"{self.figure} {value:.3g} ({self.at:g} or {'more' if self.sure >= self.at else 'less'})"


@dataclass(frozen=True, slots=True)
class Rule:
    """A state is shown where all signs hold, at most as sure as `most`. `name` is what it is called beside another."""

    state: str
    name: str
    signs: tuple[Sign, ...]
    most: float = MOST

    def confidence(self, figures: Mapping[str, float]) -> float:
        """The confidence of its least sign."""
        return min(self.most, *(sign.confidence(figures) for sign in self.signs))


def _rule(state: str, name: str, *signs: tuple[str, float, float], most: float = MOST) -> Rule:
    return Rule(state, name, tuple(Sign(*sign) for sign in signs), most)


NOT_BUSY = (readings.BUSIEST, 60.0, 40.0)
# On a GPU. Those that end in "at least" are lower bounds, of a profile without hardware counters.
DEVICE_RULES: tuple[Rule, ...] = (
    _rule("api_overhead_dominant", "most of the call is spent outside of kernels", (readings.ON_DEVICE, 50, 25)),
    _rule("api_overhead_dominant", "launches of a few microseconds", (readings.PER_LAUNCH, 5, 2.5)),
    _rule("high_level_inefficiency", "several passes over memory", (readings.LAUNCHES, 3, 6), (readings.TRAFFIC, 2, 4)),
    _rule("cache_inefficient", "uncoalesced access", (readings.SECTORS, 50, 25), (readings.MEMORY, 20, 50)),
    _rule("cache_inefficient", "memory is read again", (readings.TRAFFIC, 2, 5), (readings.DRAM, 40, 70)),
    _rule("memory_bank_conflicts", "bank conflicts", (readings.CONFLICTS, 20, 50), (readings.SHARED_WAITS, 15, 30)),
    _rule("low_occupancy_register_pressure", "register spills", (readings.SPILLS, 1, 5), NOT_BUSY),
    _rule("low_occupancy_register_pressure", "few warps for want of registers",
          (readings.OCCUPANCY, 50, 25), (readings.BY_REGISTERS, 1, 1), NOT_BUSY),
    _rule("low_occupancy_shared_memory", "few blocks for want of shared memory",
          (readings.OCCUPANCY, 50, 25), (readings.BY_SHARED, 1, 1), NOT_BUSY),
    _rule("insufficient_parallelism", "less than one wave of blocks", (readings.WAVES, 0.9, 0.5), NOT_BUSY),
    _rule("insufficient_parallelism", "a ragged last wave", (readings.TAIL, 25, 45), NOT_BUSY, most=0.8),
    _rule("thread_divergence_high", "few active threads in a warp", (readings.LANES, 24, 16)),
    _rule("memory_compute_balanced", "near both peaks", (readings.LESSER, 60, 75), (readings.CLOSENESS, 80, 95)),
    _rule("memory_bandwidth_saturated", "device memory busy", (readings.DRAM, 60, 85), (readings.LEAD, 1, 1.5)),
    _rule("instruction_mix_suboptimal", "integer pipe busy", (readings.INTEGER, 40, 65), (readings.USEFUL, 40, 20)),
    _rule("instruction_mix_suboptimal", "special function unit busy", (readings.SPECIAL, 40, 65),
          (readings.USEFUL, 50, 25)),
    _rule("memory_bank_conflicts", "waits at the shared-memory pipe", (readings.SHARED_WAITS, 40, 70), most=0.75),
    _rule("cache_inefficient", "caches busy", (readings.MEMORY, 60, 85), (readings.DRAM, 40, 20), most=0.75),
    _rule("compute_throughput_saturated", "arithmetic near its peak", (readings.COMPUTE, 60, 85),
          (readings.LEAD, 1, 0.7)),
    _rule("hybrid_bound", "memory and arithmetic take turns", (readings.LESSER, 40, 55), (readings.CLOSENESS, 50, 80),
          most=0.85),
    _rule("high_level_inefficiency", "far from every limit", (readings.BUSIEST, 10, 5), most=0.85),
    _rule("memory_latency_bound", "waits for loads from memory", (readings.MEMORY_WAITS, 40, 65),
          (readings.BUSIEST, 60, 40)),
    _rule("latency_memory_bound", "waits for each other or for short chains", (readings.CHAIN_WAITS, 40, 65),
          (readings.BUSIEST, 60, 40)),
    _rule("memory_bandwidth_saturated", "the least bytes alone fill the memory's time", (readings.LEAST_MEMORY, 60, 85),
          most=0.9),
    _rule("compute_throughput_saturated", "the least operations alone fill the time", (readings.LEAST_COMPUTE, 60, 85),
          most=0.9),
    _rule("insufficient_parallelism", "less than one wave of blocks", (readings.WAVES, 0.9, 0.5),
          (readings.LEAST_BUSIEST, 60, 40), most=0.75),
    _rule("low_occupancy_register_pressure", "few warps fit for want of registers", (readings.FITS, 50, 25),
          (readings.BY_REGISTERS, 1, 1), (readings.LEAST_BUSIEST, 60, 40), most=0.7),
    _rule("low_occupancy_shared_memory", "few blocks fit for want of shared memory", (readings.FITS, 50, 25),
          (readings.BY_SHARED, 1, 1), (readings.LEAST_BUSIEST, 60, 40), most=0.7),
)  # fmt: skip
# On a processor, whose profiles are coarser: shares follow from the task's least bytes and operations.
HOST_RULES: tuple[Rule, ...] = (
    _rule("api_overhead_dominant", "a call of a few microseconds", (readings.PER_CALL, 30, 10)),
    _rule("api_overhead_dominant", "memory is mapped anew in every call", (readings.FAULTS, 30, 60)),
    _rule("insufficient_parallelism", "idle processors", (readings.PROCESSORS, 2, 2), (readings.WORKING, 60, 50),
          NOT_BUSY),
    _rule("insufficient_parallelism", "processors often idle", (readings.PROCESSORS, 2, 2), (readings.AWAKE, 60, 40),
          NOT_BUSY, most=0.7),
    _rule("cache_inefficient", "more cache lines fetched than needed", (readings.REFETCHED, 2, 4)),
    _rule("memory_compute_balanced", "near both limits", (readings.LESSER, 60, 75), (readings.CLOSENESS, 80, 95)),
    _rule("memory_bandwidth_saturated", "memory near its copy bandwidth", (readings.MEMORY, 60, 85)),
    _rule("compute_throughput_saturated", "arithmetic near its peak", (readings.COMPUTE, 60, 85)),
    _rule("instruction_mix_suboptimal", "scalar code", (readings.PACKED, 50, 20), NOT_BUSY),
    _rule("instruction_mix_suboptimal", "scalar library calls", (readings.LIBRARY_CALLS, 1, 4), NOT_BUSY, most=0.8),
    _rule("hybrid_bound", "memory and arithmetic take turns", (readings.LESSER, 40, 55), (readings.CLOSENESS, 50, 80),
          most=0.85),
    _rule("high_level_inefficiency", "far from every limit", (readings.BUSIEST, 10, 5), most=0.75),
    _rule("memory_latency_bound", "few instructions per cycle", (readings.PER_CYCLE, 1, 0.5), NOT_BUSY, most=0.8),
)  # fmt: skip


def of_profile(profile: ProfileResult | None, timed_ms: float | None = None, min_bytes: int = 0) -> Found:
    """What the rules find in a profile; `min_bytes` is the least that the task moves, 0 where that is not known."""
    if profile is None:
        return Found("", None, 0.0, "the kernel has no profile")
    if profile.disturbance:
        return Found("", None, 0.0, f"the kernel's profile was disturbed: {profile.disturbance}")
    is_host = readings.is_of_host(profile)
    figures = readings.of_host(profile) if is_host else readings.of_device(profile, timed_ms, min_bytes)
    return of_figures(figures, HOST_RULES if is_host else DEVICE_RULES)


def of_figures(figures: Mapping[str, float], rules: Sequence[Rule]) -> Found:
    """What a table of rules makes of these figures."""
    holding = [(rule, sure) for rule in rules if (sure := rule.confidence(figures)) >= SURE]
    if not holding:
        return _guess(figures)
    rule, sure = holding[0]
    names = dict.fromkeys(other.name for other, _ in holding[1:] if other.name != rule.name)
    decided = {sign.figure: figures[sign.figure] for sign in rule.signs}
    signs = "; ".join(sign.in_words(decided[sign.figure]) for sign in rule.signs)
    why = f"{rule.name}: {signs}"
    return Found(rule.state, STATES[rule.state], round(sure, 3), why, tuple(names)[:SECONDARY], decided)


def _guess(figures: Mapping[str, float]) -> Found:
    """By the larger share alone, which is too little to be sure."""
    shares = {name: figures[name] for name in (readings.MEMORY, readings.COMPUTE) if name in figures}
    if not shares:
        return Found("", None, 0.0, "the profile has nothing that the rules could read")
    memory, compute = (shares.get(name, 0.0) for name in (readings.MEMORY, readings.COMPUTE))
    state = "latency_memory_bound"
    if memory > APART * compute:
        state = "memory_latency_bound"
    elif compute > APART * memory:
        state = "instruction_mix_suboptimal"
    known_figures = ", ".join(f"{name} {value:.3g}" for name, value in shares.items())
    return Found(
        state, STATES[state], GUESS, f"no rule holds; only the shares of the peaks speak: {known_figures}", (), shares
    )


@dataclass(frozen=True, slots=True)
class Settled:
    """A state with the model's word on it. `new` is a state to be taught, None where a known one was matched."""

    found: Found
    new: State | None = None


def settle(
    rules: Found, answer: Mapping[str, object], known: Mapping[str, Bottleneck], taken: Sequence[str]
) -> Settled:
    """What a model's object with `state`, `confidence` and `why` makes of what the rules found.

    A known state that the model is sure of is matched. Otherwise the kernel is in a state of its own, named
    `discovered_<bottleneck>_<n>`, n being the first number that no name of `taken` has, which inherits the nearest
    known state: the one that the model names, else the rules' own. A reply that names nothing, where the rules have
    nothing either, leaves the state unknown.
    """
    word, sure, why = _word(answer.get("state")), read_confidence(answer.get("confidence")), _line(answer.get("why"))
    named = next((state for state in known if _word(state) == word), word)  # a person may name a state in any words
    if named in known and sure >= SURE:
        return Settled(replace(rules, state=named, bottleneck=known[named], confidence=sure, why=f"the model: {why}"))
    nearest = named if named in known else rules.state
    if nearest not in known:
        return Settled(replace(rules, why=f"neither the rules nor the model know its state: {rules.why}"))
    bottleneck = known[nearest]
    name = next_name(bottleneck, taken)
    about = f"{why} Nearest to {nearest}." if why else f"Nearest to {nearest}."
    new = State(name, bottleneck, about, rules.secondary, is_discovered=True, inherits=nearest)
    settled = replace(rules, state=name, bottleneck=bottleneck, confidence=sure, why=f"the model: {why}")
    return Settled(settled, new)


def next_name(bottleneck: Bottleneck, taken: Sequence[str]) -> str:
    """The name of the next discovered state."""
    number = 1
    while f"{DISCOVERED}_{bottleneck}_{number}" in taken:
        number += 1
    return f"{DISCOVERED}_{bottleneck}_{number}"


def read_confidence(value: object) -> float:
    """From 0 to 1, of a number or of a text such as `0.8` or `80 %`; 0 where it says nothing."""
    text = f"{value}".strip().lower()
    is_percent = text.endswith("%")
    try:
        number = float(text.rstrip("% "))
    except ValueError:
        return 0.0
    number = number / 100 if is_percent or number > 1 else number
    return min(1.0, max(0.0, number)) if math.isfinite(number) else 0.0


def _word(value: object) -> str:
    return "_".join(f"{value or ''}".strip(" `\"'.").lower().replace("-", " ").split())


def _line(value: object) -> str:
    return " ".join(f"{value or ''}".split())[:400]
