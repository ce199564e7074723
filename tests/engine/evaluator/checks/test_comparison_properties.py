"""What must hold for any output: honest rounding passes, one wrong element never does, NaN is no wildcard."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from engine.evaluator.checks import comparison, tolerance

ROUNDED = [torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.complex64]
SEEDS = st.integers(0, 10_000)
MAGNITUDES = st.sampled_from([1e-3, 1.0, 1e3])
SHAPES = st.sampled_from([(), (1,), (7,), (5, 9), (2, 3, 4), (1, 300)])


def drawn(seed: int, shape: tuple[int, ...], dtype: torch.dtype, magnitude: float = 1.0) -> torch.Tensor:
    """An answer in double precision that the dtype can hold: below its least normal number it rounds more coarsely."""
    generator = torch.Generator().manual_seed(seed)
    wide = torch.complex128 if dtype.is_complex else torch.float64
    answer, least = torch.randn(shape, generator=generator, dtype=wide) * magnitude, torch.finfo(dtype).smallest_normal
    return torch.where(answer.abs() < least, least, answer)


def allowed_for(dtype: torch.dtype) -> float:
    return tolerance.allowed(comparison.dtype_of(torch.empty(0, dtype=dtype)), 0.0, 0.0)


def measured(out: torch.Tensor, answer: torch.Tensor, own: torch.Tensor) -> comparison.Errors:
    return comparison.errors(out, answer, own, comparison.scale_of(answer, own))


@pytest.mark.parametrize("dtype", ROUNDED)
@given(SEEDS, SHAPES, MAGNITUDES)
def test_rounding_noise_of_the_dtype_always_passes(
    dtype: torch.dtype, seed: int, shape: tuple[int, ...], magnitude: float
) -> None:
    answer = drawn(seed, shape, dtype, magnitude)
    own = answer.to(dtype)
    noise = 1 + torch.finfo(dtype).eps * torch.randn(shape, generator=torch.Generator().manual_seed(seed + 1))
    noisy = (answer * noise.clamp(1 - 3 * torch.finfo(dtype).eps, 1 + 3 * torch.finfo(dtype).eps)).to(dtype)
    assert measured(noisy, answer, own).relative <= allowed_for(dtype)
    assert comparison.is_close(noisy, own, 2 * allowed_for(dtype))


@pytest.mark.parametrize("dtype", ROUNDED)
@given(SEEDS, SHAPES, MAGNITUDES, st.integers(0, 10_000), st.booleans(), st.floats(10, 1e6))
def test_one_element_ten_times_over_the_tolerance_never_passes_and_is_the_one_described(
    dtype: torch.dtype, seed: int, shape: tuple[int, ...], magnitude: float, spot: int, is_up: bool, times: float
) -> None:
    answer = drawn(seed, shape, dtype, magnitude)
    own, out = answer.to(dtype), answer.to(dtype, copy=True)
    place = spot % out.numel()
    scale, allowed = comparison.scale_of(answer, own), allowed_for(dtype)
    off = min(times, 1e3) * allowed * (abs(complex(answer.flatten()[place])) + scale)
    out.view(-1)[place] = (answer.flatten()[place] + (off if is_up else -off)).to(dtype)
    found = comparison.errors(out, answer, own, scale)
    assert not found.relative <= allowed
    assert not comparison.is_close(out, own, 2 * allowed)
    mask = comparison.wrong(out, answer, own, scale, allowed)
    assert mask.shape == out.shape
    assert mask.flatten().nonzero().flatten().tolist() == [place]
    described = comparison.describe(out, answer, mask, found, "own 1")
    assert described.wrong_count == 1
    assert len(described.index) == len(shape)
    assert not shape or int(torch.arange(out.numel()).view(shape)[described.index]) == place


@given(SEEDS, st.integers(0, 299), st.sampled_from([math.nan, math.inf, -math.inf]), st.sampled_from(ROUNDED))
def test_a_value_that_is_not_finite_is_wrong_wherever_the_reference_is_finite(
    seed: int, spot: int, value: float, dtype: torch.dtype
) -> None:
    answer = drawn(seed, (300,), dtype)
    own, out = answer.to(dtype), answer.to(dtype, copy=True)
    out[spot] = value
    assert measured(out, answer, own).relative == math.inf
    assert not comparison.is_close(out, own, 1e9)
    assert comparison.wrong(out, answer, own, comparison.scale_of(answer, own), 1e9).nonzero().flatten().tolist() == [
        spot
    ]


@given(st.permutations([1.0, math.nan, math.inf, -math.inf]), st.permutations([1.0, math.nan, math.inf, -math.inf]))
def test_where_the_reference_is_not_finite_only_the_same_passes(mine: list[float], theirs: list[float]) -> None:
    out, own = torch.tensor(mine), torch.tensor(theirs)
    is_same = all(str(a) == str(b) for a, b in zip(mine, theirs, strict=True))
    assert (measured(out, own.double(), own).relative == 0) is is_same
    found, mask = comparison.difference(out, own.double(), own, 1.0, 1e-5)
    assert (found.count == 0) is is_same
    assert int(mask.sum()) == found.count == sum(str(a) != str(b) for a, b in zip(mine, theirs, strict=True))


def test_a_finite_answer_that_the_references_dtype_overflowed_on_may_be_given() -> None:
    answer, own = torch.tensor([2.0], dtype=torch.float64), torch.tensor([math.nan])
    assert measured(torch.tensor([2.0]), answer, own).relative == 0
    assert measured(torch.tensor([math.nan]), answer, own).relative == 0
    assert measured(torch.tensor([3.0]), answer, own).relative > 0.1


@given(SEEDS, st.integers(-20, 20))
def test_scaling_both_sides_by_a_power_of_two_changes_nothing(seed: int, power: int) -> None:
    answer = drawn(seed, (40,), torch.float32)
    out = (answer * (1 + 1e-4 * drawn(seed + 1, (40,), torch.float64))).float()
    factor = 2.0**power
    before = measured(out, answer, answer.float())
    after = measured(out * factor, answer * factor, answer.float() * factor)
    assert math.isclose(before.relative, after.relative, rel_tol=1e-12)
    assert math.isclose(before.typical, after.typical, rel_tol=1e-12)


@given(SEEDS)
def test_the_order_of_elements_changes_nothing(seed: int) -> None:
    answer = drawn(seed, (300,), torch.float32)
    out = answer.float() + 1e-3
    order = torch.randperm(300, generator=torch.Generator().manual_seed(seed))
    before = measured(out, answer, answer.float())
    after = measured(out[order], answer[order], answer.float()[order])
    assert math.isclose(before.relative, after.relative, rel_tol=1e-9)
    assert before.absolute == after.absolute


@given(SEEDS, st.integers(0, 99), st.floats(0, 10), st.floats(0, 10))
def test_a_larger_error_at_an_element_never_counts_for_less(seed: int, spot: int, a: float, b: float) -> None:
    answer = drawn(seed, (100,), torch.float64)
    relative = []
    for size in sorted((a, b)):
        out = answer.clone()
        out[spot] += size
        relative.append(measured(out, answer, answer).relative)
    assert relative[0] <= relative[1]


@given(SEEDS, st.integers(2, 30), st.integers(1, 30))
def test_by_rows_a_small_row_is_judged_by_its_own_size_down_to_a_hundredth(seed: int, rows: int, columns: int) -> None:
    answer = drawn(seed, (rows, columns), torch.float32)
    answer[0] *= 1e-9
    scales = comparison.row_scales(answer, answer.float())
    whole = comparison.scale_of(answer)
    assert scales.shape == (rows,)
    assert math.isclose(float(scales[0]), 0.01 * whole)
    out = answer.float()
    out[0, 0] += 0.5 * whole * 1e-4
    assert measured(out, answer, answer.float()).relative <= 1e-4
    assert comparison.errors(out, answer, answer.float(), scales).relative > 1e-3


@given(st.integers(2**53, 2**62), st.sampled_from([-1, 1]))
def test_integers_are_exact_beyond_what_double_precision_can_tell(number: int, step: int) -> None:
    own = torch.tensor([number])
    assert measured(own + step, own, own).relative == math.inf
    assert measured(own.clone(), own, own).relative == 0
    mask = comparison.wrong(own + step, own, own, 0.0, 0.0)
    assert mask.tolist() == [True]
    assert not comparison.is_close(own + step, own, 1.0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.bool, torch.complex64])
def test_an_empty_output_is_right_and_a_scalar_is_judged(dtype: torch.dtype) -> None:
    empty = torch.empty((0, 3), dtype=dtype)
    assert measured(empty, empty, empty).relative == 0
    assert comparison.is_close(empty, empty, 0.0)
    assert comparison.wrong(empty, empty, empty, 0.0, 0.0).shape == (0, 3)
    one = torch.ones((), dtype=dtype)
    assert measured(one.clone(), one, one).relative == 0
    assert measured(torch.zeros_like(one), one, one).relative >= 0.5


def test_denormal_numbers_may_be_flushed_but_not_anything_larger() -> None:
    tiny = torch.finfo(torch.float32).tiny
    answer = torch.full((4,), tiny / 4, dtype=torch.float64)
    assert measured(torch.zeros(4), answer, answer.float()).relative <= allowed_for(torch.float32)
    answer = torch.full((4,), 1e-30, dtype=torch.float64)
    assert measured(torch.zeros(4), answer, answer.float()).relative > allowed_for(torch.float32)


def test_where_the_answer_is_zero_throughout_the_references_noise_is_the_scale() -> None:
    answer, own = torch.zeros(4, dtype=torch.float64), torch.full((4,), 1e-8)
    own_error = measured(own, answer, own).relative
    assert own_error == 1.0
    assert tolerance.is_ill_conditioned("float32", own_error)
    assert not measured(torch.full((4,), 1e-3), answer, own).relative <= tolerance.allowed("float32", own_error, 0)


@given(st.floats(0, 1), st.floats(0, 1e14), st.sampled_from(["float64", "float32", "float16", "bfloat16"]))
def test_tolerance_never_falls_below_its_floor_and_never_becomes_infinite(
    own: float, summed: float, dtype: str
) -> None:
    allowed = tolerance.allowed(dtype, own, summed)
    assert tolerance.BY_DTYPE[dtype] <= allowed < math.inf
    assert tolerance.allowed(dtype, math.inf, summed) == tolerance.allowed(dtype, 0.0, summed)
    assert tolerance.is_ill_conditioned(dtype, own) or allowed <= tolerance.MOST
    assert tolerance.allowed(dtype, own, summed, "tf32") >= allowed
    assert allowed <= tolerance.raised(allowed, own, summed, 99) <= max(allowed, tolerance.MOST_FOR_SENSITIVITY)
    assert tolerance.raised(allowed, math.inf, summed, 99) == allowed


def test_a_sensitive_task_raises_the_tolerance_only_so_far() -> None:
    assert tolerance.raised(8e-6, 1e-5, 0.0, 99) == pytest.approx(8e-5)
    assert tolerance.raised(8e-6, 1.0, 0.0, 99) == tolerance.MOST_FOR_SENSITIVITY
    assert tolerance.raised(8e-6, 1.0, 0.0, 1) == tolerance.MOST_FOR_FEW


def test_rounding_operands_to_tf32_is_allowed_no_more_at_greater_depth() -> None:
    assert tolerance.allowed("float32", 0.0, 1e6, "tf32") == tolerance.TF32
    assert tolerance.label(1.5e-3, 1e4) == "half-class"
