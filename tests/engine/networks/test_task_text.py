"""Inputs that are drawn like those that were recorded: each expression gives what it stands for."""

from collections.abc import Callable

import pytest
import torch

from engine.networks import task_text

CASES: dict[str, Callable[[], torch.Tensor]] = {
    "torch.ones((4,))": lambda: torch.ones(4),
    "torch.zeros((2, 3), dtype=torch.int64)": lambda: torch.zeros(2, 3, dtype=torch.int64),
    "torch.full((2,), 0.25)": lambda: torch.full((2,), 0.25),
    "torch.ones((3, 3), dtype=torch.bool).tril()": lambda: torch.ones(3, 3, dtype=torch.bool).tril(),
    "torch.arange(0, 12, 3)": lambda: torch.arange(0, 12, 3),
    "torch.arange(2, 6).expand((2, 4)).clone()": lambda: torch.arange(2, 6).expand(2, 4).clone(),
    'torch.full((3, 3), float("-inf")).triu(1)': lambda: torch.full((3, 3), float("-inf")).triu(1),
}  # fmt: skip


@pytest.mark.parametrize("text", CASES)
def test_what_has_a_structure_is_drawn_with_it(text: str) -> None:
    example = CASES[text]()
    drawn = eval(task_text.drawn(example))
    assert torch.equal(drawn, example)
    assert drawn.dtype == example.dtype
    assert eval(text).shape == example.shape


@pytest.mark.parametrize(
    ("example", "part"),
    [
        (torch.randn(64, 64) * 0.02, "torch.randn((64, 64)) * 0.0"),
        (torch.rand(512) * 3, "torch.rand((512,)) *"),
        (torch.rand(512) + 7, "torch.rand((512,)) * "),
        (torch.randn(512) - 7, "torch.randn((512,)) + -"),
        (torch.randn(8, 4).to(torch.bfloat16), ".to(torch.bfloat16)"),
        (torch.tensor([3, 9, 4, 7]), "torch.randint(3, 10, (4,))"),
        (torch.tensor([0, 2, 3, 9]), ".sort(-1).values.index_fill(-1, torch.tensor([0]), 0)"),
        ((torch.randn(3, 8, 4) * 5).transpose(1, 2), ".permute(0, 2, 1)"),
        (
            torch.where(torch.eye(16) > 0, 0.0, float("-inf")),
            'torch.where(torch.rand((16, 16)) < 0.0625, 0.0, float("-inf"))',
        ),
    ],
)
def test_other_numbers_keep_sign_range_dtype_and_order_in_memory(example: torch.Tensor, part: str) -> None:
    text = task_text.drawn(example)
    assert part in text
    drawn = eval(text)
    assert (drawn.shape, drawn.dtype, drawn.stride()) == (example.shape, example.dtype, example.stride())
    if bool((example >= 0).all()):
        assert bool((drawn >= 0).all())
