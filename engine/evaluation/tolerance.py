"""How much error is allowed and what an error says about the arithmetic used. Pure functions; knows no tensor."""

from __future__ import annotations

import math
from collections.abc import Mapping

# Relative to |answer| + rms(answer). Honest float32 kernels measure 4e-8 to 4e-6, float16-rounded operands 3e-5.
BY_DTYPE: Mapping[str, float] = {
    "float64": 1e-12,
    "float32": 8e-6,
    "float16": 4e-3,
    "bfloat16": 2e-2,
}
TF32 = 2e-3
OWN_ERROR_FACTOR = 8.0
FULL_PRECISION = 1e-5
TF32_CLASS = 4e-4


def allowed(dtype: str, own_error: float, depth: float, precision: str = "fp32") -> float:
    """Tolerance for one trial.

    Args:
        dtype: of the output; integers and booleans must be exact.
        own_error: of the reference in the task's dtype against float64.
        depth: how many products are summed into one element, 0 when unknown; error grows with its root.
        precision: the task's policy; `tf32` allows what tensor cores round away.
    """
    if dtype not in BY_DTYPE:
        return 0.0
    floor = max(BY_DTYPE[dtype], TF32) if precision == "tf32" else BY_DTYPE[dtype]
    return max(floor * _growth(depth), OWN_ERROR_FACTOR * own_error)


def label(error: float, depth: float) -> str:
    """The precision class a measured error belongs to."""
    growth = _growth(depth)
    if error <= FULL_PRECISION * growth:
        return "fp32-exact"
    return "tf32-class" if error <= TF32_CLASS * growth else "half-class"


def _growth(depth: float) -> float:
    """Rounding errors of a sum add up like a random walk."""
    return math.sqrt(max(1.0, depth / 1000.0))
