"""Fresh contents: never seen before, never a multiple of what was, and still valid inputs."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest
import torch

from engine.evaluator.checks.contents import Contents, Kind, kind_of
from engine.evaluator.machine.shared_tensors import TensorSpec

Draw = Callable[[], list[torch.Tensor]]


def made(draw: Draw) -> Contents:
    return Contents(draw, [TensorSpec.of(tensor) for tensor in draw()])


def drawn(make: Callable[[], torch.Tensor]) -> tuple[torch.Tensor, Kind]:
    contents = made(lambda: [make()])
    return contents.fresh()[0], contents.kinds[0]


def sorted_rows() -> torch.Tensor:
    return torch.randn(30, 50).sort(dim=1).values


def symmetric() -> torch.Tensor:
    square = torch.randn(40, 40)
    return square @ square.T


def test_no_two_calls_share_contents_and_none_is_a_multiple_of_another() -> None:
    contents = made(lambda: [torch.rand(32, 256) + 0.1])
    calls = [contents.fresh()[0] for _ in range(12)]
    for one, other in itertools.combinations(calls, 2):
        assert not torch.equal(one, other)
        assert float((one / other).std()) > 0.05


def test_a_call_is_no_combination_of_the_calls_before_it() -> None:
    contents = made(lambda: [torch.rand(8, 512)])
    *before, last = [contents.fresh()[0].flatten().double() for _ in range(20)]
    basis = torch.stack(before, dim=1)
    solved = torch.linalg.lstsq(basis, last[:, None], driver="gelsd").solution
    assert float((basis @ solved - last[:, None]).abs().max()) > 0.05


def test_bounds_and_zero_patterns_stay() -> None:
    def lower() -> torch.Tensor:
        return torch.rand(64, 48).tril()

    fresh, kind = drawn(lower)
    assert kind is Kind.MIXED
    assert torch.equal(fresh, fresh.tril())
    assert 0.0 <= float(fresh.min()) <= float(fresh.max()) < 1.0


def test_a_symmetric_positive_matrix_stays_so() -> None:
    fresh, kind = drawn(symmetric)
    assert kind is Kind.BLENDED
    assert torch.equal(fresh, fresh.T)
    assert float(torch.linalg.eigvalsh(fresh).min()) > -1e-4


def test_sorted_rows_stay_sorted_and_probabilities_still_sum_to_one() -> None:
    fresh, kind = drawn(sorted_rows)
    assert kind is Kind.BLENDED
    assert bool((fresh.diff(dim=1) >= 0).all())
    fresh, kind = drawn(lambda: torch.softmax(torch.randn(20, 30), dim=0))
    assert kind is Kind.BLENDED
    torch.testing.assert_close(fresh.sum(dim=0), torch.ones(30))


def test_whole_numbers_are_taken_whole_and_not_always_the_same() -> None:
    contents = made(lambda: [torch.rand(4, 10), torch.randint(0, 10, (4,)), (torch.rand(4, 9) > 0.5).float()])
    assert contents.kinds == [Kind.MIXED, Kind.TAKEN, Kind.TAKEN]
    calls = [contents.fresh() for _ in range(40)]
    assert len({tuple(call[1].tolist()) for call in calls}) > 1
    assert all(set(call[2].flatten().tolist()) <= {0.0, 1.0} for call in calls)


def test_inputs_of_whole_numbers_alone_are_drawn_anew_for_every_call() -> None:
    contents = made(lambda: [torch.randint(0, 1000, (50,))])
    assert not contents.is_mixed
    assert len({tuple(contents.fresh()[0].tolist()) for _ in range(20)}) == 20


def test_a_mask_with_infinities_and_unit_vectors_are_not_mixed() -> None:
    assert drawn(lambda: torch.rand(6, 6).masked_fill(torch.rand(6, 6) > 0.5, -torch.inf))[1] is Kind.TAKEN
    assert drawn(lambda: torch.nn.functional.normalize(torch.randn(16, 64)))[1] is Kind.TAKEN


def test_inputs_that_never_vary_are_told() -> None:
    contents = made(lambda: [torch.ones(5, 5)])
    assert not contents.can_vary
    assert "the same in every draw" in contents.describe()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_other_dtypes_and_strides_are_kept(dtype: torch.dtype) -> None:
    contents = made(lambda: [torch.randn(6, 5, 4, 3).to(dtype).contiguous(memory_format=torch.channels_last)])
    (fresh,) = contents.fresh()
    assert fresh.dtype is dtype
    assert fresh.is_contiguous(memory_format=torch.channels_last)


def test_a_number_alone_is_blended_too() -> None:
    fresh, kind = drawn(lambda: torch.rand(()))
    assert kind_of([torch.rand(()), torch.rand(())]) is kind
    assert 0 <= float(fresh) < 1


def level_by_level(make: Callable[[], torch.Tensor]) -> tuple[Draw, list[torch.Tensor]]:
    """Sets that lie far apart, each on a level of its own, and what was drawn so far."""
    kept: list[torch.Tensor] = []

    def draw() -> list[torch.Tensor]:
        kept.append(make() + 10.0 * len(kept))
        return [kept[-1]]

    return draw, kept


def test_single_elements_of_a_call_come_from_a_third_set() -> None:
    draw, _ = level_by_level(lambda: torch.rand(16, 512))
    contents = made(draw)
    assert contents.kinds == [Kind.MIXED]
    for _ in range(5):
        rows = contents.fresh()[0]
        assert float((rows.amax(1) - rows.amin(1)).max()) > 3, "a row of two sets alone stays on its level"


def test_a_blend_is_neither_of_its_two_sets_and_not_the_same_twice() -> None:
    draw, kept = level_by_level(sorted_rows)
    contents = made(draw)
    assert contents.kinds == [Kind.BLENDED]
    means = [float(contents.fresh()[0].mean()) for _ in range(12)]
    levels = [float(one.mean()) for one in kept]
    assert sum(min(abs(mean - level) for level in levels) > 0.5 for mean in means) > 6
    assert len(set(means)) == 12


def test_complex_numbers_are_taken_whole() -> None:
    assert kind_of([torch.randn(4, 4, dtype=torch.complex64) for _ in range(2)]) is Kind.TAKEN
