"""A task with several workloads: the task at each of them, and one timing and one limit from those of each."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from engine.evaluator.tasks.constants import Size, set_constants
from engine.evaluator.tasks.files import Task
from storage.results import flags
from storage.results.check_records import CheckRecord
from storage.results.evaluation_results import TimedWorkload, TimingResult
from storage.results.hardware_limit import HardwareLimit
from storage.results.policy import Policy


def others(source: str, policy: Policy) -> list[Mapping[str, Size]]:
    """The workloads at which the task's module does not stand itself."""
    return [sizes for sizes in policy.workloads if set_constants(source, sizes) != source]


def each(task: Task) -> list[tuple[Mapping[str, Size], Task]]:
    """The task at each of its workloads, in their order; at its own sizes alone where it has none."""
    if not task.policy.workloads:
        return [({}, task)]
    alone = replace(task.policy, workloads=(), other_sizes=())
    return [
        (sizes, replace(task, source=set_constants(task.source, sizes), sizes={**task.sizes, **sizes}, policy=alone))
        for sizes in task.policy.workloads
    ]


def named(sizes: Mapping[str, Size]) -> str:
    """Sizes as people read them: `M=64, N=128`."""
    return ", ".join(f"{name}={value}" for name, value in sizes.items())


def together(workloads: Sequence[TimedWorkload]) -> TimingResult:
    """One timing of all workloads, at least one: pair i is the geometric mean of their pairs i."""
    timings = [workload.timing for workload in workloads]
    count = min(len(timing.candidate_ms) for timing in timings)
    pairs = range(count)
    return TimingResult(
        tuple(_mean([timing.candidate_ms[i] for timing in timings]) for i in pairs),
        tuple(_mean([timing.baseline_ms[i] for timing in timings]) for i in pairs),
        timings[0].baseline,
        sum(timing.seconds for timing in timings),
        {**timings[0].evidence, "workloads": f"{len(workloads)}, timed in turn"},
        tuple(_of_all(workloads)),
        workloads=tuple(replace(workload, timing=replace(workload.timing, proofs=())) for workload in workloads),
        rules=timings[0].rules,
        untrusted=next((timing.untrusted for timing in timings if timing.untrusted), ""),
    )


def limit_of(limits: Sequence[HardwareLimit]) -> HardwareLimit:
    """A limit of the geometric mean of latencies: that of times is the time of that of bytes over that of rates. Where
    memory limits one workload and arithmetic another, no kernel reaches it."""
    if len(limits) == 1:
        return limits[0]
    return replace(
        limits[0],
        bandwidth_gb_s=_mean([limit.bandwidth_gb_s for limit in limits]),
        peak_gflop_s=_mean([limit.peak_gflop_s for limit in limits]),
        min_bytes=round(_mean([limit.min_bytes for limit in limits])),
        min_flop=round(_mean([limit.min_flop for limit in limits])),
    )


def own_latency_ms(task: Task, timed: TimingResult) -> float:
    """The latency at the task's own sizes, at which a profile is taken."""
    stays = (
        workload.timing for workload in timed.workloads if set_constants(task.source, workload.sizes) == task.source
    )
    return next(stays, timed).latency_ms


def _of_all(workloads: Sequence[TimedWorkload]) -> list[CheckRecord]:
    """Each check once, as it stands at the workload where it stands worst: what is to be looked at before a note."""
    worst: dict[tuple[str, str], CheckRecord] = {}
    for workload in workloads:
        for proof in workload.timing.proofs:
            key = (proof.group, proof.check)
            if key not in worst or _weight(proof) > _weight(worst[key]):
                worst[key] = replace(proof, detail=f"{named(workload.sizes)}: {proof.detail}")
    return list(worst.values())


def _weight(proof: CheckRecord) -> tuple[int, int]:
    return proof.standing.severity, flags.to_look_at([proof])


def _mean(values: Sequence[float]) -> float:
    """Geometric; 0 where one of them is."""
    return math.exp(sum(map(math.log, values)) / len(values)) if all(values) else 0.0
