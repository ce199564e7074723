"""What the check proves beyond one set of right values, shown on candidates wrong in one way each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from engine.errors import TaskError
from engine.evaluator.checks import findings
from engine.evaluator.checks.poison import poison_of
from engine.evaluator.checks.trials import ESSENTIAL, PLAN, ordered
from engine.evaluator.machine.worker_limits import Times
from engine.evaluator.toolchains.cpu import CpuToolchain
from storage.results.check_records import CheckOutcome, CheckRecord, Group
from storage.results.evaluation_results import CheckResult
from storage.results.policy import Policy, SpecialValues, Weights
from storage.results.vocabulary import Verdict
from tests.engine.evaluator.processes.probes import candidate, task

RELU = candidate("return ext.relu(x, True, True)")
MATMUL: dict[str, Any] = {"answer": "a @ b", "inputs": "torch.rand(N, 96), torch.rand(96, N)", "arguments": "a, b"}


def multiply(bits: int) -> str:
    return candidate(f"return ext.multiply(a, b, {bits})", arguments="a, b")


def check_of(result: CheckResult, check: str) -> CheckRecord:
    return next(one for one in result.proofs if one.check == check)


def standings(result: CheckResult) -> dict[str, CheckOutcome]:
    return {one.check: one.standing for one in result.proofs if one.group is Group.CORRECTNESS}


def test_every_check_made_on_an_honest_kernel_is_a_proof_that_held(cpu: CpuToolchain, tmp_path: Path) -> None:
    result = cpu.check(task(tmp_path, "torch.relu(x)"), RELU)
    assert result.verdict is Verdict.PASSED, result.message
    found = standings(result)
    assert list(found)[: len(PLAN)] == [f"trial {trial.name}" for trial in PLAN]
    absent = {check for check, standing in found.items() if standing is CheckOutcome.ABSENT}
    assert absent == {findings.WEIGHTS, findings.OTHER_WEIGHTS, findings.STATE_AFTER, findings.OTHER_SHAPES}
    assert set(found.values()) == {CheckOutcome.ABSENT, CheckOutcome.HELD}
    assert all(one.detail for one in result.proofs)
    assert "allowed" in check_of(result, "trial mixed magnitudes").detail
    assert "bit-identical" in check_of(result, findings.REPEAT_RESULT).detail
    assert check_of(result, findings.OTHER_SHAPES).detail.startswith("one shape tested")


def test_after_a_failure_the_remaining_checks_are_absent(cpu: CpuToolchain, tmp_path: Path) -> None:
    result = cpu.check(task(tmp_path, "torch.relu(x)"), candidate("return ext.relu(x, True, True) * 2"))
    assert result.verdict is Verdict.INCORRECT
    assert "one factor: 2" in result.message
    found = standings(result)
    assert found["trial own 1"] is CheckOutcome.BROKEN
    assert {standing for check, standing in found.items() if check != "trial own 1"} == {CheckOutcome.ABSENT}


@pytest.mark.parametrize("rows", [64, 300_000])
def test_an_element_never_written_is_found_though_zero_would_be_right(
    cpu: CpuToolchain, tmp_path: Path, rows: int
) -> None:
    """Large outputs too: memory fresh from the system is zero, and zero is the right answer here."""
    result = cpu.check(task(tmp_path, "torch.relu(x)", n=rows), candidate("return ext.relu(x, False, False)"))
    assert result.verdict is Verdict.INCORRECT, result.message
    if rows > 64:
        assert check_of(result, findings.UNWRITTEN).standing is CheckOutcome.BROKEN


def test_a_maximum_over_unwritten_memory_is_found_though_it_drops_nan(cpu: CpuToolchain, tmp_path: Path) -> None:
    reference = task(tmp_path, "x.max(dim=1).values", n=70_000)
    assert cpu.check(reference, candidate("return ext.row_max(x, True)")).verdict is Verdict.PASSED
    assert cpu.check(reference, candidate("return ext.row_max(x, False)")).verdict is Verdict.INCORRECT


@pytest.mark.parametrize(
    ("bits", "precision", "said"),
    [
        (24, "fp32", ""),
        (11, "fp32", "11 bits"),
        (8, "fp32", "8 bits"),
        (11, "tf32", ""),
        (8, "tf32", "allowed"),
        (24, "half", ""),
        (11, "half", ""),
        (8, "half", ""),
        (5, "half", "allowed"),
    ],
)
def test_operands_rounded_to_fewer_bits_than_the_policy_asks_for_are_refused(
    cpu: CpuToolchain, tmp_path: Path, bits: int, precision: str, said: str
) -> None:
    result = cpu.check(task(tmp_path, **MATMUL, policy=Policy(precision=precision)), multiply(bits))
    if said:
        assert result.verdict is Verdict.INCORRECT
        assert said in result.message
    else:
        assert result.verdict is Verdict.PASSED, result.message
        assert result.precision == {24: "fp32-exact", 11: "tf32-class", 8: "half-class"}[bits]


@pytest.mark.parametrize("inputs", ["torch.randn(1500000)", "torch.randn(200000, 8)"])
def test_no_more_error_is_allowed_for_a_long_dimension_that_nothing_is_summed_along(
    cpu: CpuToolchain, tmp_path: Path, inputs: str
) -> None:
    result = cpu.check(task(tmp_path, "torch.relu(x)", inputs), candidate("return ext.relu(x, True, True) * 1.0001"))
    assert result.verdict is Verdict.INCORRECT
    assert "allowed 8e-06" in result.message


@pytest.mark.parametrize(("precision", "is_rounded"), [("fp32", False), ("tf32", True)])
def test_what_a_candidate_leaves_to_pytorch_is_computed_in_the_precision_class_of_the_task(
    cpu: CpuToolchain, tmp_path: Path, precision: str, is_rounded: bool
) -> None:
    source = candidate(f"assert torch.backends.cudnn.allow_tf32 is {is_rounded}", "return ext.relu(x, True, True)")
    result = cpu.check(task(tmp_path, "torch.relu(x)", policy=Policy(precision=precision)), source)
    assert result.verdict is Verdict.PASSED, result.message


def test_a_lost_nan_is_reported_or_refused_as_the_policy_says(cpu: CpuToolchain, tmp_path: Path) -> None:
    source = candidate("return ext.relu(x, True, False)")
    told = cpu.check(task(tmp_path, "torch.relu(x)"), source)
    assert told.verdict is Verdict.PASSED
    assert check_of(told, findings.SPECIAL_VALUES).standing is CheckOutcome.FLAGGED
    assert "2 of 2 NaN" in check_of(told, findings.SPECIAL_VALUES).detail
    strict = Policy(special_values=SpecialValues.REQUIRED)
    refused = cpu.check(task(tmp_path, "torch.relu(x)", policy=strict), source)
    assert refused.verdict is Verdict.INCORRECT
    assert check_of(refused, findings.SPECIAL_VALUES).standing is CheckOutcome.BROKEN
    assert cpu.check(task(tmp_path, "torch.relu(x)", policy=strict), RELU).verdict is Verdict.PASSED


def test_a_candidate_that_dies_of_nan_passes_with_a_flag_unless_it_must_not(cpu: CpuToolchain, tmp_path: Path) -> None:
    source = candidate("assert bool((x == x).all()), 'no NaN'", "return ext.relu(x, True, True)")
    told = cpu.check(task(tmp_path, "torch.relu(x)"), source)
    assert told.verdict is Verdict.PASSED, told.message
    assert "forward failed" in check_of(told, findings.SPECIAL_VALUES).detail
    strict = Policy(special_values=SpecialValues.REQUIRED)
    assert cpu.check(task(tmp_path, "torch.relu(x)", policy=strict), source).verdict is Verdict.RUNTIME_ERROR


def test_a_kernel_made_for_one_size_fails_at_another_that_the_policy_names(cpu: CpuToolchain, tmp_path: Path) -> None:
    other = Policy(other_sizes=({"N": 50}, {"N": 7}))
    right = cpu.check(task(tmp_path, "torch.relu(x)", policy=other), RELU)
    assert right.verdict is Verdict.PASSED, right.message
    assert check_of(right, findings.OTHER_SHAPES) == CheckRecord(
        Group.CORRECTNESS, findings.OTHER_SHAPES, CheckOutcome.HELD, "N=50; N=7"
    )
    tiled = candidate("y = ext.relu(x, True, True)", "y[len(x) // 8 * 8:] = 0", "return y")
    result = cpu.check(task(tmp_path, "torch.relu(x)", policy=other), tiled)
    assert result.verdict is Verdict.INCORRECT
    assert "with N=50" in result.message
    assert "last 2 of 50 rows" in result.message
    assert check_of(result, findings.OTHER_SHAPES).standing is CheckOutcome.BROKEN
    with pytest.raises(TaskError, match="other_sizes"):
        cpu.check(task(tmp_path, "torch.relu(x)", policy=Policy(other_sizes=({"M": 1},))), RELU)


def test_a_forward_that_spoils_its_weights_is_incorrect(cpu: CpuToolchain, tmp_path: Path) -> None:
    weight = "self.w = torch.nn.Parameter(torch.rand(48, N))"
    reference = task(tmp_path, "x @ self.w", init=weight, policy=Policy(weights=Weights.FIXED))
    made = "self.w = torch.nn.Parameter(torch.rand(48, 64))"
    honest = cpu.check(reference, candidate("return ext.multiply(x, self.w, 24)", init=made))
    assert honest.verdict is Verdict.PASSED, honest.message
    assert check_of(honest, findings.WEIGHTS).standing is CheckOutcome.HELD
    spoiling = candidate(
        "w = self.w.detach().clone() if not hasattr(self, 'old') else self.old",
        "self.old = w",
        "ext.spoil(self.w.detach())",
        "return ext.multiply(x, w, 24)",
        init=made,
    )
    result = cpu.check(reference, spoiling)
    assert result.verdict is Verdict.INCORRECT
    assert "parameter 'w'" in result.message


def test_a_result_that_a_later_call_overwrites_is_found_by_its_values(cpu: CpuToolchain, tmp_path: Path) -> None:
    source = candidate(
        "y = ext.relu(x, True, True)",
        "self.turn = getattr(self, 'turn', 0) + 1",
        "if self.turn > 1: self.first.copy_(y)",
        "if self.turn == 1: self.first = y",
        "return y",
    )
    result = cpu.check(task(tmp_path, "torch.relu(x)"), source)
    assert result.verdict is Verdict.INCORRECT, result.message
    assert check_of(result, findings.HELD_RESULT).standing is CheckOutcome.BROKEN
    assert "earlier call" in result.message


def test_a_strided_result_is_accepted_and_flagged(cpu: CpuToolchain, tmp_path: Path) -> None:
    result = cpu.check(
        task(tmp_path, "torch.relu(x)"), candidate("return ext.relu(x.t().contiguous(), True, True).t()")
    )
    assert result.verdict is Verdict.PASSED, result.message
    assert check_of(result, findings.LAYOUT).standing is CheckOutcome.FLAGGED
    assert "(1, 64)" in check_of(result, findings.LAYOUT).detail


@pytest.mark.parametrize("answer", ["torch.relu(x) * 0", "torch.relu(x) * 0 + x.new_tensor(3.0)"])
def test_on_a_task_whose_answer_is_constant_nothing_is_judged(cpu: CpuToolchain, tmp_path: Path, answer: str) -> None:
    with pytest.raises(TaskError, match="Nothing to do: the answer to other inputs is right as well"):
        cpu.check(task(tmp_path, answer), RELU)


def test_a_task_whose_answer_hardly_varies_is_flagged(cpu: CpuToolchain, tmp_path: Path) -> None:
    result = cpu.check(
        task(tmp_path, "torch.relu(x) * 1e-3 + 3"), candidate("return ext.relu(x, True, True) * 1e-3 + 3")
    )
    assert result.verdict is Verdict.PASSED, result.message
    flagged = check_of(result, findings.VARIES)
    assert flagged.standing is CheckOutcome.FLAGGED
    assert "hardly varies" in flagged.detail
    assert "other inputs" in flagged.detail


def test_a_plain_sum_whose_terms_cancel_is_not_held_against_a_kernel(cpu: CpuToolchain, tmp_path: Path) -> None:
    """One float after the other: its error against the sum is large when the sum is small by chance."""
    reference = task(tmp_path, "x.sum()", n=2000)
    for _ in range(3):
        result = cpu.check(reference, candidate("return ext.total(x)"))
        assert result.verdict is Verdict.PASSED, result.message


@pytest.mark.parametrize(
    ("answer", "inputs", "lines"),
    [
        ("torch.relu(x).double()", "torch.randn(N, 4)", "return ext.relu(x, True, True).double()"),
        ("torch.relu(x).bfloat16()", "torch.randn(N, 4)", "return ext.relu(x, True, True).bfloat16()"),
        ("torch.relu(x) > 1", "torch.randn(N, 4)", "return ext.relu(x, True, True) > 1"),
        ("torch.complex(x, torch.relu(x))", "torch.randn(N, 4)", "return torch.complex(x, ext.relu(x, True, True))"),
        ("torch.log(x)", "torch.rand(N, 4) + 1", "return torch.log(ext.relu(x, True, True) + (x * 0).nan_to_num(0))"),
        ("[x + 1, x.argmax()]", "torch.randn(N, 4)", "return (ext.relu(x, True, True) * 0 + x + 1, x.argmax())"),
    ],
)
def test_every_kind_of_output_has_its_honest_kernel(
    cpu: CpuToolchain, tmp_path: Path, answer: str, inputs: str, lines: str
) -> None:
    result = cpu.check(task(tmp_path, answer, inputs), candidate(lines))
    assert result.verdict is Verdict.PASSED, result.message


def test_inputs_outside_the_references_domain_are_left_out_not_held_against_the_task(
    cpu: CpuToolchain, tmp_path: Path
) -> None:
    answer = "torch.nn.functional.binary_cross_entropy(torch.relu(x), torch.relu(x).round(), reduction='none')"
    source = candidate(
        "y = ext.relu(x, True, True)",
        "return torch.nn.functional.binary_cross_entropy(y, y.round(), reduction='none')",
    )
    result = cpu.check(task(tmp_path, answer, "torch.rand(N, 48)"), source)
    assert result.verdict is Verdict.PASSED, result.message
    assert "does not take such inputs" in check_of(result, "trial wide").detail


def test_the_order_of_further_trials_is_secret_and_the_repeat_meets_other_memory() -> None:
    orders = {ordered(PLAN, seed) for seed in range(20)}
    assert len(orders) > 10
    assert all(order[: len(ESSENTIAL)] == ESSENTIAL and set(order) == set(PLAN) for order in orders)
    first, repeat = (number for number, trial in enumerate(PLAN) if trial.seed_name == "own 1")
    assert poison_of(first) is not poison_of(repeat)


def test_trials_that_the_time_does_not_allow_are_told_apart_from_those_that_passed(
    cpu_home: None, tmp_path: Path
) -> None:
    with CpuToolchain(times=Times(check_s=1e-6)) as hurried:
        result = hurried.check(task(tmp_path, "torch.relu(x)"), RELU)
    assert result.verdict is Verdict.PASSED, result.message
    assert result.made_trials == tuple(trial.name for trial in ESSENTIAL)
    count, reason = len(PLAN) - len(ESSENTIAL), "the time for checks was used up"
    assert set(result.left_out.values()) == {reason}
    told = f"the {len(ESSENTIAL)} trials that were run; {count} were left out, {reason}"
    assert result.in_trials == told
    for check in (findings.CONTRACT, findings.INPUTS):
        assert check_of(result, check).detail.endswith(f"in {told}")
