"""The baseline of a task in half precision: the module as it is or under PyTorch's autocast, whichever is faster."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from operator import itemgetter
from typing import Any

import torch

from engine.evaluator.checks import structure
from engine.evaluator.checks.arguments import Arguments
from engine.evaluator.processes import model_caller

CALLS = 3
AS_IT_IS, IN_BFLOAT16 = "eager", "eager, bfloat16 autocast"
Forward = Callable[..., Any]


class UnderAutocast:
    """A module whose products PyTorch computes in bfloat16; its outputs have the dtypes that they have without it."""

    def __init__(self, forward: Forward, device: str, dtypes: Sequence[torch.dtype]) -> None:
        self._forward, self._device, self._dtypes = forward, device, dtypes

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """The module's outputs, computed under autocast to bfloat16, in the task's dtypes."""
        with torch.autocast(self._device, torch.bfloat16):
            result = self._forward(*arguments, **named)
        leaves = structure.leaves_of(result)
        return structure.with_leaves(result, [leaf.to(dtype) for leaf, dtype in zip(leaves, self._dtypes, strict=True)])


def missing(device: str) -> str:
    """Why nothing can be measured in half precision there; empty where it can."""
    if device == "cpu" or torch.cuda.is_bf16_supported(including_emulation=False):
        return ""
    return (
        f"bfloat16 needs a GPU that has it (Ampere or newer), and {torch.cuda.get_device_name()} has not: use "
        "--precision fp32 or tf32, and no --dtype bf16"
    )


def faster(
    forward: Forward,
    device: str,
    dtypes: Sequence[torch.dtype],
    arguments: Arguments,
    whole: Callable[[Forward], Forward] = lambda forward: forward,
) -> tuple[Forward, str]:
    """The faster way and its name; the module as it is where autocast does not take it.

    `whole` makes a call of a forward: with the backward pass, where that belongs to it.
    """
    as_it_is, other = whole(forward), whole(UnderAutocast(forward, torch.device(device).type, dtypes))
    return (other, IN_BFLOAT16) if fastest([as_it_is, other], arguments) is other else (as_it_is, AS_IT_IS)


def fastest(ways: Sequence[Forward], arguments: Arguments) -> Forward:
    """The fastest of several ways of one call; one that fails is left out, the first if all do."""
    seconds = list[tuple[float, Forward]]()
    for way in ways:
        with suppress(RuntimeError, TypeError, ValueError, NotImplementedError):
            seconds.append((_seconds(way, arguments), way))
    return min(seconds, key=itemgetter(0))[1] if seconds else ways[0]


def _seconds(forward: Forward, arguments: Arguments) -> float:
    """The median of a few calls after the first one."""
    seconds = []
    for _ in range(1 + CALLS):
        model_caller.settle()
        started = time.perf_counter()
        with torch.no_grad():
            arguments.passed_to(forward)
        model_caller.settle()
        seconds.append(time.perf_counter() - started)
    return statistics.median(seconds[1:])
