"""The sources of random numbers that a module may draw from, seeded alike on both sides."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from typing import Any

import torch

_has_device: Callable[[], bool] = torch.cuda.is_initialized


def seed(number: int) -> None:
    """Seed torch, `random`, and NumPy where it is imported."""
    torch.manual_seed(number)
    random.seed(number)
    if numpy := sys.modules.get("numpy"):
        numpy.random.seed(number % (1 << 32))


def state() -> list[Any]:
    """Where each source stands: two that are equal say that nothing was drawn between them."""
    numpy = sys.modules.get("numpy")
    drawn = numpy.random.get_state(legacy=False)["state"] if numpy else {}
    return [
        torch.get_rng_state().tolist(),
        torch.cuda.get_rng_state().tolist() if _has_device() else [],
        random.getstate(),
        {name: value.tolist() if hasattr(value, "tolist") else value for name, value in drawn.items()},
    ]
