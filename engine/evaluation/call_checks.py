"""The checks beside the values of one call: results held, weights kept, special values, a task that says something."""

from __future__ import annotations

from typing import Any

import torch

from engine.evaluation import comparison, contract, failures, poison, special, tolerance
from engine.evaluation.bench import Bench
from engine.evaluation.calling import call_candidate
from engine.evaluation.failures import CandidateFailed, Failure, WorkerEnded
from engine.evaluation.pattern import pattern
from engine.evaluation.poison import Poison
from engine.evaluation.values import Style
from storage.policy import SpecialValues
from storage.proof import Standing
from storage.records import Verdict

HARDLY = 0.01
Ending = tuple[Failure | None, Standing, str]


def held_failure(bench: Bench, first: list[torch.Tensor]) -> Failure | None:
    """The first result, copied out again now: nothing that was called since may have changed it."""
    poison.fill(bench.shared["own"], Poison.NAN)
    bench.ask_candidate("recall", "a result held")
    if all(map(contract.is_same, bench.shared["own"], first)):
        return None
    return Failure(
        Verdict.INCORRECT,
        "the result of an earlier call changed when forward was called again; allocate a new tensor in every call",
    )


def weights_failure(bench: Bench) -> Ending:
    """Parameters must be as they were handed over. Buffers may change: the reference's do too."""
    if bench.weights != "taken over":
        kind = "the task has none" if bench.weights == "none" else "the candidate names its weights differently"
        return None, Standing.ABSENT, kind
    poison.fill(bench.shared["weights"], Poison.NAN)
    kept = set(bench.ask_candidate("state", "its weights", names=bench.weight_names)["names"])
    pairs = zip(bench.weight_names, bench.shared["weights"], bench.trusted["weights"], strict=True)
    parameters = set(bench.parameter_names)
    changed = [
        name
        for name, now, before in pairs
        if name in parameters and not (name in kept and contract.is_same(now, before))
    ]
    if not changed:
        return None, Standing.HELD, f"{len(parameters)} parameters, bit by bit, after all trials"
    failure = Failure(Verdict.INCORRECT, f"forward changed the model's parameter {changed[0]!r}; work on a copy of it")
    return failure, Standing.BROKEN, failure.message


def special_failure(bench: Bench, seed: int) -> Ending:
    """NaN and infinities at secret places. They decide only where the task's policy requires it."""
    is_required = bench.case.policy.special_values is SpecialValues.REQUIRED
    made = bench.ask_reference("make", seed=seed, style=str(Style.SPECIAL))
    if not made["is_styled"]:
        return None, Standing.ABSENT, "no input can hold them"
    leaves = made["leaves"]
    told = bench.ask_reference("answer", leaves=leaves, seed=bench.call_seed, may_refuse=True)
    if "refused" in told:
        return None, Standing.ABSENT, f"the reference does not take them: {told['refused']}"
    try:
        failure, detail = _compare_special(bench, leaves)
    except (CandidateFailed, WorkerEnded) as error:
        failure = failures.of_error(error, bench.stage, bench.failed_build)
        detail = f"forward failed on them: {failure.message[:200]}"
    if failure is None:
        return None, Standing.HELD, detail
    return (failure, Standing.BROKEN, detail) if is_required else (None, Standing.FLAGGED, detail)


def varies_note(bench: Bench, leaves: Any, seed: int) -> tuple[Standing, str]:
    """Whether a right answer on this task shows anything. Looks at the first trial, now in the arenas."""
    reasons = []
    if all(_is_constant(answer) for answer in bench.trusted["answer"]):
        reasons.append("all its elements are about the same")
    changes = bench.ask_reference("vary", leaves=leaves, seed=bench.call_seed, other_seed=seed)
    reasons += [f"other {what} give about the same" for what, by in changes.items() if by and max(by) <= HARDLY]
    if reasons:
        return Standing.FLAGGED, f"the task's answer hardly varies: {' and '.join(reasons)}"
    return Standing.HELD, "the answer depends on the inputs" + (" and the weights" if changes["weights"] else "")


def _compare_special(bench: Bench, leaves: Any) -> tuple[Failure | None, str]:
    answer = call_candidate(bench, leaves, str(Style.SPECIAL))
    if fault := contract.first_fault(bench.expected, answer):
        return contract.wrong_output(bench.expected, fault, str(Style.SPECIAL)), fault.reason
    details = []
    for out, own, right in zip(bench.shared["own"], bench.trusted["own"], bench.trusted["answer"], strict=True):
        scale = comparison.scale_of(right, own)
        own_error = comparison.errors(own, right, own, scale).relative
        allowed = 2 * tolerance.allowed(comparison.dtype_of(own), own_error, bench.summed, bench.case.policy.precision)
        found, mask = special.difference(out, right, own, scale, allowed)
        details.append(str(found))
        if found.count:
            words = pattern(out, right, mask, ())
            return Failure(Verdict.INCORRECT, f"NaN and infinities among the inputs: {found}. {words}".strip()), str(
                found
            )
    return None, "; ".join(details)


def _is_constant(answer: torch.Tensor) -> bool:
    numbers = comparison.real(answer)
    if numbers.numel() < 2:
        return not bool(numbers.any())
    low, high = (float(value) for value in numbers.to(torch.float64).aminmax())
    return high - low <= HARDLY * max(abs(low), abs(high))
