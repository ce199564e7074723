"""The sources of random numbers that a module may draw from, seeded alike on both sides."""

from __future__ import annotations

import random
import sys
from typing import Any

import torch


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
        torch.cuda.get_rng_state().tolist() if torch.cuda.is_initialized() else [],
        random.getstate(),
        {name: value.tolist() if hasattr(value, "tolist") else value for name, value in drawn.items()},
    ]
