"""8-bit floats: an output is right when it is what a number near enough to the answer rounds to."""

from __future__ import annotations

import pytest
import torch

from engine.evaluator.checks import comparison, distributions, float8, poison, tolerance
from engine.evaluator.checks.contents import Kind, kind_of
from engine.evaluator.checks.poison import Poison
from engine.evaluator.checks.trials import PLAN, Style
from engine.evaluator.checks.widening import InDouble

BOTH = (torch.float8_e4m3fn, torch.float8_e5m2)


def every_code(dtype: torch.dtype) -> torch.Tensor:
    return torch.arange(256, dtype=torch.uint8).view(dtype)


def finite_numbers(dtype: torch.dtype) -> torch.Tensor:
    numbers = every_code(dtype).double()
    return torch.tensor(sorted(set(numbers[numbers.isfinite()].tolist())), dtype=torch.float64)


@pytest.mark.parametrize("dtype", BOTH)
def test_what_a_number_rounds_to_is_at_no_distance_from_it_and_its_neighbours_are(dtype: torch.dtype) -> None:
    numbers = (torch.randn(20_000, dtype=torch.float64) * 10 ** torch.empty(20_000).uniform_(-4, 2)).double()
    rounded = numbers.to(dtype)
    assert float(float8.distance(rounded, numbers).max()) < 1e-7 * float(numbers.abs().max())
    finite = finite_numbers(dtype)
    at = torch.searchsorted(finite, rounded.double())
    above = finite[(at + 1).clamp(max=len(finite) - 1)]
    nearest = (numbers - rounded.double()).abs() <= (numbers - above).abs()
    assert bool(nearest.all())
    apart = float8.distance(above.to(dtype), numbers)
    assert bool((apart[above != rounded.double()] > 0).all())
    assert float(float8.distance(above.to(dtype), rounded).max()) == 0.0  # both may be rounded from one number


def test_the_largest_number_stands_for_all_beyond_it_where_there_are_no_infinities() -> None:
    most = torch.tensor([448.0, 416.0]).to(torch.float8_e4m3fn)
    assert float8.distance(most, torch.tensor([9e9, 448.0])).tolist() == [0.0, 16.0]
    assert float8.distance(torch.tensor([57344.0]).to(torch.float8_e5m2), torch.tensor([7e4])).item() == 7e4 - 61440


@pytest.mark.parametrize("dtype", float8.FORMATS)
def test_what_is_not_finite_is_as_the_reference_has_it(dtype: torch.dtype) -> None:
    codes = every_code(dtype)
    answer = codes.double()
    assert comparison.errors(codes, answer, codes, 1.0).relative == 0.0
    lost = torch.where(codes.float().isfinite(), codes.float(), 1.0).to(dtype)
    difference, mask = comparison.difference(lost, answer, codes, 1.0, 0.1)
    assert difference.lost_nan == int(codes.float().isnan().sum()) > 0
    assert int(mask.sum()) == int((~codes.float().isfinite()).sum())
    assert comparison.errors(lost, answer, codes, 1.0).relative == float("inf")


@pytest.mark.parametrize("style", [trial.style for trial in PLAN if trial.style is not Style.OWN] + [Style.SPECIAL])
@pytest.mark.parametrize("dtype", BOTH)
def test_every_distribution_has_numbers_of_the_format(dtype: torch.dtype, style: Style) -> None:
    torch.manual_seed(1)
    tensor = torch.randn(64, 96).to(dtype)
    fresh = distributions.restyle(tensor, style)
    assert (fresh.dtype, fresh.shape) == (dtype, tensor.shape)
    assert not float8.equal(fresh, tensor)
    numbers = fresh.float()
    assert bool(numbers.isfinite().all()) is (style is not Style.SPECIAL)
    assert (float(numbers.nan_to_num().abs().max()) >= torch.finfo(dtype).max) is (style in (Style.HUGE, Style.SPECIAL))
    if style is Style.TINY:
        assert 0.3 < float((numbers.abs() < torch.finfo(dtype).tiny).float().mean()) < 0.9


def test_scales_of_blocks_and_whole_numbers_stay_as_they_were_drawn() -> None:
    scales = (2.0 ** torch.randint(-4, 4, (8, 8)).float()).to(torch.float8_e8m0fnu)
    assert distributions.restyle(scales, Style.HUGE) is scales
    whole = torch.randint(-8, 8, (8, 8)).float().to(torch.float8_e4m3fn)
    assert distributions.restyle(whole, Style.NORMAL) is whole


def test_fresh_contents_of_8_bits_are_mixed_and_unwritten_memory_is_told_by_nan_alone() -> None:
    assert kind_of([torch.randn(16, 16).to(torch.float8_e5m2) for _ in range(3)]) is Kind.MIXED
    memory = torch.empty(8, dtype=torch.float8_e4m3fn)
    poison.fill([memory], Poison.NAN)
    assert poison.count(memory, Poison.NAN) == 8
    poison.fill([memory], Poison.HIGH)
    assert poison.count(memory, Poison.HIGH) == 0
    assert len(set(memory.float().tolist())) == 1


def test_an_error_of_sums_is_allowed_and_another_rounding_is_not() -> None:
    answer = torch.randn(1000, 64, dtype=torch.float64)
    scale = comparison.scale_of(answer)
    right = (answer * (1 + 1e-6)).to(torch.float8_e4m3fn)
    finite = finite_numbers(torch.float8_e4m3fn)
    toward_zero = torch.where(
        answer > 0,
        finite[torch.searchsorted(finite, answer, right=True) - 1],
        finite[torch.searchsorted(finite, answer)],
    ).to(torch.float8_e4m3fn)
    allowed = tolerance.allowed("float8_e4m3fn", 0.0, 64.0)
    own = answer.to(torch.float8_e4m3fn)
    assert comparison.errors(right, answer, own, scale).relative <= allowed
    assert comparison.errors(toward_zero, answer, own, scale).relative > 100 * allowed
    assert not comparison.is_close(toward_zero, (answer * 1.3).to(torch.float8_e4m3fn), 2 * allowed)
    assert comparison.is_close(right, own, 2 * allowed)


def test_in_double_precision_only_what_is_stated_of_8_bits_is_rounded() -> None:
    x = torch.randn(32, 64, dtype=torch.float64) * 100
    with InDouble() as mode:
        middle = (x.float() / 3).to(torch.bfloat16)
        quantised = middle.clamp(-448, 448).to(torch.float8_e4m3fn)
        result = quantised.view(64, 32).contiguous()
        after = quantised.to(torch.float32) * 2
        product = torch._scaled_mm(quantised, quantised.t(), torch.ones(32, 1), torch.full((1, 32), 0.5),
                                   out_dtype=torch.bfloat16)  # fmt: skip
    exact = (x / 3).clamp(-448, 448)
    assert torch.equal(middle, x / 3)
    assert torch.equal(mode.unrounded(result), exact.view(64, 32))
    stated = exact.to(torch.float8_e4m3fn).double()
    assert torch.equal(after, 2 * stated)
    assert torch.allclose(product, stated @ stated.T * 0.5, rtol=1e-12)
