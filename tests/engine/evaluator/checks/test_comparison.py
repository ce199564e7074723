"""Error, tolerance and input contents: figures that can be worked out by hand."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from engine.evaluator.checks import comparison, distributions, tolerance
from engine.evaluator.checks.comparison import nudged
from engine.evaluator.checks.trials import Style, Trial
from engine.evaluator.checks.weighing import Output, weigh


def test_error_is_relative_to_the_answer_plus_its_scale() -> None:
    answer = torch.tensor([3.0, -4.0], dtype=torch.float64)
    scale = comparison.scale_of(answer)
    assert math.isclose(scale, math.sqrt(12.5))
    found = comparison.errors(torch.tensor([3.0, -4.5]), answer, answer.float(), scale)
    assert math.isclose(found.relative, 0.5 / (4 + scale))
    assert found.absolute == 0.5


def test_nan_is_infinitely_wrong_and_matching_infinities_are_right() -> None:
    answer = torch.tensor([1.0, math.inf], dtype=torch.float64)
    own = answer.float()
    scale = comparison.scale_of(answer)
    assert comparison.errors(torch.tensor([math.nan, math.inf]), answer, own, scale).relative == math.inf
    assert comparison.errors(torch.tensor([1.0, math.inf]), answer, own, scale).relative == 0.0
    assert comparison.errors(torch.tensor([1.0, 5.0]), answer, own, scale).relative == math.inf
    mask = comparison.wrong(torch.tensor([math.nan, 5.0]), answer, own, scale, 1e-6)
    assert mask.tolist() == [True, True]


def test_an_all_zero_answer_accepts_only_zero() -> None:
    zero = torch.zeros(3, dtype=torch.float64)
    assert comparison.errors(torch.zeros(3), zero, zero.float(), 0.0).relative == 0.0
    assert comparison.errors(torch.tensor([0.0, 1e-30, 0.0]), zero, zero.float(), 0.0).relative == math.inf


@given(st.integers(1, 40), st.integers(1, 40), st.integers(0, 1599))
def test_heat_map_shows_one_wrong_element_in_one_cell(rows: int, columns: int, spot: int) -> None:
    mask = torch.zeros(rows, columns, dtype=torch.bool)
    mask.flatten()[spot % mask.numel()] = True
    cells = [cell for row in comparison.heat(mask) for cell in row]
    assert len(cells) == min(16, rows) * min(16, columns)
    assert sum(cell > 0 for cell in cells) == 1


@given(st.lists(st.floats(-1e3, 1e3, width=32), min_size=1, max_size=50), st.floats(0, 1e-2))
def test_the_quick_test_agrees_with_the_careful_one(numbers: list[float], shift: float) -> None:
    own = torch.tensor(numbers)
    out = own * (1 + shift)
    answer = own.double()
    careful = comparison.errors(out, answer, own, comparison.scale_of(answer)).relative
    if comparison.is_close(out, own, 1e-4):
        assert careful <= 1.1e-4
    elif math.isfinite(careful):
        assert careful >= 0.9e-4


def test_a_wrong_element_is_named_by_its_index() -> None:
    mask = torch.zeros(2, 3, 4, dtype=torch.bool)
    mask[1, 2, 0] = mask[1, 2, 3] = True
    values, found = torch.arange(24.0).view(2, 3, 4), comparison.Errors(1.0, 1.0)
    told = comparison.describe(values, values + 1, mask, found, "")
    assert (told.index, told.actual, told.expected) == ((1, 2, 0), 20.0, 21.0)
    alone = comparison.describe(values[0, 0, 0], values[0, 0, 1], mask[1, 2, 0], found, "")
    assert (alone.index, alone.actual, alone.expected) == ((), 0.0, 1.0)


def test_tolerance_grows_with_depth_and_with_the_references_own_error() -> None:
    assert tolerance.allowed("float32", 0.0, 0.0) == 8e-6
    assert math.isclose(tolerance.allowed("float32", 0.0, 4000.0), 16e-6)
    assert tolerance.allowed("float32", 1e-3, 0.0) == 8e-3
    assert tolerance.allowed("int64", 0.0, 0.0) == 0.0
    assert tolerance.allowed("float32", 0.0, 0.0, "tf32") == 2e-3
    assert tolerance.allowed("float32", 0.0, 0.0, "half") == tolerance.BY_DTYPE["bfloat16"]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_zero_or_half_of_a_sum_of_very_many_numbers_is_wrong(dtype: torch.dtype) -> None:
    loss = torch.tensor(1 / 3, dtype=torch.float64)
    trial = Trial("normal", Style.NORMAL, "normal")
    failures = [
        weigh(
            Output("the output", 1, (loss * part).to(dtype), loss.to(dtype), loss, (), 1e9, 2**15, "fp32"),
            trial, is_wide, lambda by_rows: 0.0,
        ).failure
        for is_wide in (True, False) for part in (0.0, 0.5, 0.999)
    ]  # fmt: skip
    assert [failure is None for failure in failures] == [False, False, True] * 2


def test_precision_labels_follow_the_measured_error() -> None:
    assert tolerance.label(1e-7, 0) == "fp32-exact"
    assert tolerance.label(2e-4, 0) == "tf32-class"
    assert tolerance.label(2e-3, 0) == "half-class"


@pytest.mark.parametrize(
    ("precision", "candidate", "label"),
    [
        ("fp32", 2e-4, "fp32-exact"),
        ("tf32", 2e-4, "tf32-class"),
        ("tf32", 1e-8, "fp32-exact"),
        ("half", 2e-4, "tf32-class"),
    ],
    ids=["an ill-conditioned task", "both round", "only the reference rounds", "both round in half"],
)
def test_a_reference_that_rounds_hides_no_rounding_where_tf32_is_allowed(
    precision: str, candidate: float, label: str
) -> None:
    answer = torch.randn(64, 64, dtype=torch.float64)
    own, out = ((answer * (1 + by * torch.randn_like(answer))).float() for by in (2e-4, candidate))
    output = Output("the output", 1, out, own, answer, (), 64.0, 64, precision)
    found = weigh(output, Trial("normal", Style.NORMAL, "normal"), True, lambda by_rows: 0.0)
    assert tolerance.label(found.typical, 64.0) == label


@pytest.mark.parametrize("style", [style for style in Style if style is not Style.SPECIAL])
def test_restyled_inputs_keep_what_a_kernel_may_rely_on(style: Style) -> None:
    lower = torch.tril(torch.rand(128, 128))
    assert torch.equal(distributions.restyle(lower, style)[lower == 0], lower[lower == 0])
    symmetric = lower + lower.T
    restyled = distributions.restyle(symmetric, style)
    assert torch.equal(restyled, restyled.T)
    ordered = torch.rand(128, 128).sort(dim=1).values
    assert bool((distributions.restyle(ordered, style).diff(dim=1) >= 0).all())


def test_restyled_inputs_have_the_range_of_their_style_and_keep_their_dtype() -> None:
    assert float(distributions.restyle(torch.rand(16, 16), Style.WIDE).std()) > 5
    assert float(distributions.restyle(torch.rand(64, 64), Style.OUTLIERS).abs().max()) > 1
    targets = torch.randint(0, 2, (100,)).float()
    assert distributions.restyle(targets, Style.NORMAL) is targets
    assert float(distributions.restyle(torch.rand(1000), Style.TINY).abs().max()) < 0.01
    rows = distributions.restyle(torch.rand(4, 8), Style.CONSTANT)
    assert torch.equal(rows, rows[:, :1].expand(4, 8))
    half = distributions.restyle(torch.rand(10).half(), Style.NORMAL)
    assert half.dtype is torch.float16


def test_outliers_stand_after_a_beginning_that_looks_as_usual() -> None:
    for _ in range(20):
        drawn = distributions.restyle(torch.rand(64, 64), Style.OUTLIERS).view(-1)
        assert bool((drawn[:64] >= 0).all() and (drawn[:64] <= 1).all())
        assert bool((drawn.abs() > 1).any())


@pytest.mark.parametrize("shape", [(64, 256), (3, 40, 32, 2), (512,), (5, 3), (1,), ()])
def test_clustered_numbers_keep_their_range_and_the_largest_of_a_row_stand_side_by_side(shape: tuple[int, ...]) -> None:
    torch.manual_seed(5)
    own = torch.randn(shape)
    drawn = distributions.restyle(own, Style.CLUSTERED)
    assert drawn.shape == own.shape
    assert float(drawn.min()) >= float(own.min())
    assert float(drawn.max()) <= float(own.max())
    if len(shape) == 2 and shape[1] > 32:
        middle = float(own.min()) + 0.9 * (float(own.max()) - float(own.min()))
        is_top = drawn > middle + 1e-6
        assert bool(((is_top != is_top.roll(1, -1)).sum(-1) == 2).all()), "one stretch, which may go on at the front"
        assert set(is_top.sum(-1).tolist()) == {shape[1] // part for part in distributions.STRETCHES}


def test_inputs_with_infinities_are_not_clustered() -> None:
    mask = torch.zeros(16, 16).masked_fill(torch.ones(16, 16).triu(1).bool(), float("-inf")) + 0.5
    assert distributions.restyle(mask, Style.CLUSTERED) is mask


def test_every_number_moves_by_half_a_unit_and_zero_stays() -> None:
    given = torch.tensor([1.0, -2.0, 0.0, 3.0])
    half = torch.finfo(torch.float32).eps / 2
    size = given.double().abs() * half
    assert torch.equal(nudged(given), given.double() + size)
    ways = torch.tensor([1.0, -1.0, 1.0, -1.0], dtype=torch.float64)
    assert torch.equal(nudged(given, alternately=True), given.double() + ways * size)


def test_differences_of_large_neighbours_move_only_when_they_move_against_each_other() -> None:
    row = torch.tensor([2500.25, 2499.5])
    exact = torch.softmax(row.double(), 0)
    upwards = (torch.softmax(nudged(row), 0) - exact).abs().max()
    against = (torch.softmax(nudged(row, alternately=True), 0) - exact).abs().max()
    assert float(against) > 1e-5 > 100 * float(upwards)
