"""How much error is allowed and what an error says about the arithmetic used. Pure functions; knows no tensor."""

from __future__ import annotations

import math
from collections.abc import Mapping

EIGHT_BITS = ("float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu")
# Relative to |answer| + rms(answer). Honest float32 kernels measure 4e-8 to 4e-6, float16-rounded operands 3e-5.
BY_DTYPE: Mapping[str, float] = {
    "float64": 1e-12,
    "float32": 8e-6,
    "float16": 4e-3,
    "bfloat16": 2e-2,
    # An output of 8 bits is as far off as the answer is from all that rounds to it: by what its arithmetic is off.
    **dict.fromkeys(EIGHT_BITS, 8e-6),
}
UNITS: Mapping[str, float] = {"float64": 2.0**-52, **dict.fromkeys(("float32", *EIGHT_BITS), 2.0**-23)}
ONE_WAY = 0.5
TF32 = 2e-3
# An operand of 8 bits is off by at most 4e-3; the largest of many errors of products measures up to 1.2e-2.
HALF = 2e-2
# By the policy's class.
FLOORS: Mapping[str, float] = {"tf32": TF32, "half": HALF}
OWN_ERROR_FACTOR = 8.0
# There the reference's own error is one rounding or a few, not a sum's noise: who is several times as far off is wrong.
NARROW_FACTOR = 3.0
NARROW = ("float16", "bfloat16")
# Where the reference is this far off its float64 self, a trial can no longer tell right from wrong.
ILL_CONDITIONED = 0.02
# Zeros in place of any answer are off by a half, half of a sum by a quarter: what is allowed stays well below both.
MOST = OWN_ERROR_FACTOR * ILL_CONDITIONED
# Below what operands of 11 bits cost on normal inputs, so that sensitivity never hides them.
MOST_FOR_SENSITIVITY = 5e-4
# A sum or a loss is one number, and cancels by chance: no other elements stand beside it to give it a scale.
FEW_OUTPUTS = 16
MOST_FOR_FEW = 5e-2
# Of the typical (root mean square) error. Operands rounded to 11 bits (tf32, float16) leave 1e-4 to 5e-4, to 8 bits
# (bfloat16) 2e-3: rounding operands costs the same however many are summed, while float32's own error grows with it.
FULL_PRECISION = 1e-5
TF32_CLASS = 1e-3


def allowed(dtype: str, own_error: float, summed: float, precision: str = "fp32") -> float:
    """Tolerance for one trial.

    Args:
        dtype: of the output; integers and booleans must be exact.
        own_error: of the reference in the task's dtype against float64.
        summed: numbers summed into one element, 0 when unknown; the error of a float32 or float64 sum grows
            with its root. Sums of float16 and bfloat16 numbers belong in float32 and are rounded once; so do those
            of 8-bit floats, whose last rounding is no part of the error.
        precision: the task's policy; `tf32` and `half` allow what rounding a product's operands costs.
    """
    if dtype not in BY_DTYPE:
        return 0.0
    is_narrow = dtype in NARROW
    floor = min(BY_DTYPE[dtype] * (1.0 if is_narrow else _growth(summed)), MOST)
    if precision in FLOORS:
        floor = max(floor, FLOORS[precision])
    factor = NARROW_FACTOR if is_narrow or dtype in EIGHT_BITS else OWN_ERROR_FACTOR
    return max(floor, factor * own_error) if math.isfinite(own_error) else floor


def of_one_way_rounding(dtype: str, length: int) -> float:
    """Tolerance where all roundings of a sum may go one way: many equal terms, or small ones after a large one.

    Half a unit per term is the most that a plain loop can lose. Measured for float32 over 4,096 to 393,216 terms:
    0.04 to 0.07 units with equal terms, 0.24 with small ones that vanish beside a large one.
    """
    return min(ONE_WAY * UNITS[dtype] * length, MOST) if dtype in UNITS else 0.0


def is_ill_conditioned(dtype: str, own_error: float) -> bool:
    """True where the reference's own rounding leaves an answer too blurred to compare with."""
    return not own_error <= max(ILL_CONDITIONED, 2 * BY_DTYPE.get(dtype, 0.0))


def raised(tolerance: float, change: float, summed: float, outputs: int) -> float:
    """The tolerance where the task itself is sensitive.

    Args:
        tolerance: allowed so far.
        change: of the float64 answer, relative as errors are, when every input moves by half a unit in its last place,
            all up, or neighbours against each other: what cancels in a sum or a difference then adds up.
        summed: as above.
        outputs: number of elements.
    """
    if not math.isfinite(change):
        return tolerance
    most = MOST_FOR_FEW if outputs < FEW_OUTPUTS else MOST_FOR_SENSITIVITY
    return max(tolerance, min(OWN_ERROR_FACTOR * _growth(summed) * change, most))


def label(error: float, summed: float) -> str:
    """The precision class a typical error belongs to."""
    if error <= FULL_PRECISION * _growth(summed):
        return "fp32-exact"
    return "tf32-class" if error <= TF32_CLASS else "half-class"


def _growth(summed: float) -> float:
    """Rounding errors of a sum add up like a random walk."""
    return math.sqrt(max(1.0, summed / 1000.0))
