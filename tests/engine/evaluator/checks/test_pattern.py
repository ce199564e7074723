"""What wrong elements have in common, in words."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from engine.evaluator.checks import comparison
from engine.evaluator.checks.weighing import looks_rounded, of_precision, pattern


def said(change: Callable[[torch.Tensor], torch.Tensor], shape: tuple[int, ...] = (64, 100)) -> str:
    """The sentence about an output that is a changed copy of the right one."""
    torch.manual_seed(0)
    given = torch.randn(shape) * 10
    answer = given.double() * 2 + 1
    out = change(answer.float().clone())
    mask = comparison.wrong(out, answer, answer.float(), comparison.scale_of(answer), 1e-5)
    return pattern(out, answer, mask, [given])


def spoil(rows: object, columns: object) -> Callable[[torch.Tensor], torch.Tensor]:
    def change(out: torch.Tensor) -> torch.Tensor:
        out[rows, columns] += 50 * torch.rand(out[rows, columns].shape) + 1  # type: ignore[index]
        return out

    return change


ALL = slice(None)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (spoil(ALL, slice(93, None)), "the last 7 of 100 columns: a remainder"),
        (spoil(slice(60, None), ALL), "the last 4 of 64 rows: a remainder"),
        (spoil(slice(0, 8), ALL), "the first 8 of 64 rows."),
        (spoil(slice(8, 16), slice(90, None)), "rows 8 to 15 of 64 and the last 10 of 100 columns"),
        (spoil(slice(3, None, 32), ALL), ""),
        (spoil(slice(3, None, 16), ALL), "every 16th row, from 3 on"),
        (spoil(ALL, slice(1, None, 2)), "every 2nd column, from 1 on"),
        (spoil(5, ALL), "row 5 of 64"),
        (lambda out: out * 2, "one factor: 2"),
        (lambda out: -out, "wrong sign"),
        (lambda out: out + 0.5, "one addend: 0.5"),
        (torch.zeros_like, "Every element is zero"),
        (lambda out: torch.full_like(out, 3.5), "Every element is 3.5"),
        (lambda out: out.t().contiguous().view(out.shape), "transposed"),
        (lambda out: torch.where(out < 1, out + torch.rand(out.shape) + 1, out), "only where the input is negative"),
        (lambda out: torch.where(out > 41, out + torch.rand(out.shape) + 1, out), "only where the input is 20."),
        (lambda out: torch.where((out - 1).abs() > 40, 7.0, out), "or more in magnitude"),
        (lambda out: out, ""),
    ],
)
def test_a_pattern_is_named(change: Callable[[torch.Tensor], torch.Tensor], words: str) -> None:
    assert words in said(change) if words else not said(change) or "every" not in said(change)


def test_a_tail_in_memory_order_is_named() -> None:
    def change(out: torch.Tensor) -> torch.Tensor:
        out.view(-1)[-150:] = torch.nan
        return out

    assert "the last 150 in memory order" in said(change)


def test_numbers_that_are_looked_at_in_pieces_have_the_pattern_of_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    def change(out: torch.Tensor) -> torch.Tensor:
        return torch.where(out > 41, out + torch.rand(out.shape) + 1, out)

    at_once = said(change)
    monkeypatch.setattr(comparison, "CHUNK", 700)
    assert said(change) == at_once
    assert "only where the input is 20." in at_once


def test_scattered_errors_have_no_pattern() -> None:
    def change(out: torch.Tensor) -> torch.Tensor:
        places = torch.randperm(out.numel(), generator=torch.Generator().manual_seed(1))[:40]
        out.view(-1)[places] += torch.rand(40) + 1
        return out

    assert said(change) == ""


def test_a_scalar_and_an_output_without_errors_have_no_pattern() -> None:
    one = torch.ones((), dtype=torch.float64)
    assert pattern(one.float(), one, torch.tensor(True), []) == ""
    assert pattern(torch.ones(3), torch.ones(3).double(), torch.zeros(3, dtype=torch.bool), []) == ""


def test_many_small_errors_look_rounded_and_are_named_by_their_class() -> None:
    mask = torch.rand(1000) < 0.5
    small, large = comparison.Errors(1e-3, 1e-3, 2e-4), comparison.Errors(1.0, 1.0, 0.3)
    assert looks_rounded(torch.rand(1000), mask, small)
    assert not looks_rounded(torch.rand(1000), mask, large)
    assert not looks_rounded(torch.rand(1000).half(), mask, small)
    assert not looks_rounded(torch.rand(1000), torch.arange(1000) == 3, small)
    assert "sums rounded to half" in of_precision("half-class", 5e-3, "half")
    assert "11 bits" in of_precision("tf32-class", 2e-4, "fp32")
    assert "8 bits" in of_precision("half-class", 2e-3, "fp32")
    assert of_precision("fp32-exact", 1e-6, "fp32") == ""
