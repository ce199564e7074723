"""What a prompt advises: the guide of a class, how faults are found, and an example of a structure that a kernel lacks.
Knows a run's class, device and policy."""

from __future__ import annotations

from engine import exemplars, prompting
from engine.context import RunContext
from engine.record import Candidate


def guide(context: RunContext) -> str:
    """How a kernel of the run's class is made faster on its device: structure first, then tuning."""
    folder = prompting.for_toolchain("guides", context.toolchain.name)
    return prompting.for_class(folder, context.record.kernel_class, ".md").strip()


def debugging(context: RunContext) -> str:
    """How the cause of a failure is found and its mend proved, on the run's device."""
    device = prompting.text(prompting.for_toolchain("debugging", context.toolchain.name)).strip()
    return prompting.fill("debugging.md", device=device).strip()


def lacking(context: RunContext, candidate: Candidate) -> str:
    """An example of the first structure of its class that a kernel does not have; empty where it has them all."""
    record = context.record
    limit, policy = record.limit, context.task.policy
    need = exemplars.Need(
        record.kernel_class,
        exemplars.architecture_of(limit),
        policy.precision,
        is_memory_bound=limit is not None and limit.memory_ms >= limit.limit_ms,
    )
    return exemplars.lacking(context.toolchain.name, need, context.source(candidate)).strip()
