"""The same candidate at the task's other sizes, each on workers of its own. Knows no trial and no comparison."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from engine import tasks
from engine.errors import TaskError
from engine.evaluation.bench import Case
from engine.evaluation.findings import OTHER_SHAPES
from engine.evaluation.reference import UnusableTask
from storage.proof import Group, Proof, Standing
from storage.records import CheckResult, Verdict

ONE_SHAPE = "one shape tested: the task names no other sizes"


def with_other_sizes(result: CheckResult, case: Case, check: Callable[[Case], CheckResult]) -> CheckResult:
    """A passed result, extended by a short check at each of the policy's other sizes; the first failure decides.

    Raises:
        UnusableTask: the task cannot be had at a size.
    """
    sizes = case.policy.other_sizes
    if result.verdict is not Verdict.PASSED or not sizes:
        return _with(result, Standing.ABSENT, ONE_SHAPE if not sizes else "not reached")
    for one in sizes:
        found = check(_resized(case, one))
        if found.verdict is not Verdict.PASSED:
            message = f"right at the task's own sizes, but not with {_named(one)}: {found.message}"
            failed = replace(
                result, verdict=found.verdict, message=message, mismatch=found.mismatch, precision="",
                max_error=found.max_error, max_abs_error=found.max_abs_error, tolerance=found.tolerance,
                reference_error=found.reference_error, seconds=result.seconds + found.seconds,
            )  # fmt: skip
            return _with(failed, Standing.BROKEN, message)
        result = replace(result, seconds=result.seconds + found.seconds)
    return _with(result, Standing.HELD, "; ".join(_named(one) for one in sizes))


def _resized(case: Case, sizes: Mapping[str, int | float]) -> Case:
    try:
        source = tasks.set_constants(case.task_source, sizes)
    except TaskError as error:
        raise UnusableTask(f"other_sizes of the task's policy: {error}") from error
    return replace(case, task_source=source, policy=replace(case.policy, other_sizes=()))


def _named(sizes: Mapping[str, int | float]) -> str:
    return ", ".join(f"{name}={value}" for name, value in sizes.items())


def _with(result: CheckResult, standing: Standing, detail: str) -> CheckResult:
    return replace(result, proofs=(*result.proofs, Proof(Group.CORRECTNESS, OTHER_SHAPES, standing, detail)))
