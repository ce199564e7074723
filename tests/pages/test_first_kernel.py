"""What stands in place of the curve until its first point is there."""

from __future__ import annotations

from pages.parts.run import first_kernel
from storage.index.queries import StepRow
from storage.run.settings import StepKind


def step(seq: int, kind: StepKind, candidate_id: str | None, *, is_in_flight: bool = False) -> StepRow:
    seconds = None if is_in_flight else float(seq)
    return StepRow(seq, seq, kind, 0, candidate_id, 0.0, seconds, None, is_in_flight)


def test_after_a_failed_kernel_the_stages_are_those_of_the_next() -> None:
    failed = [step(2, StepKind.COMPILE, "c001"), step(1, StepKind.SYNTHESISE, None)]
    explaining = [step(3, StepKind.DIAGNOSE, "c001", is_in_flight=True), *failed]
    repaired = [step(5, StepKind.COMPILE, "c002", is_in_flight=True), step(4, StepKind.REPAIR, "c001"),
                step(3, StepKind.DIAGNOSE, "c001"), *failed]  # fmt: skip
    shown = {
        name: [stage["state"] for stage in first_kernel.stages(first_kernel.steps_after(steps, "c001"), True, None)]
        for name, steps in (("explaining", explaining), ("repaired", repaired))
    }
    assert shown == {
        "explaining": ["done", "active", "waiting", "waiting", "waiting"],
        "repaired": ["done", "done", "active", "waiting", "waiting"],
    }
