"""When profiles are collected and when the model is shown one. Knows the kernel class, not the profiler."""

from __future__ import annotations

import math
from collections.abc import Mapping

from engine.history import History
from storage.records import KernelClass, Switch

# First depth, of ten, at which the model is shown a profile: late where structure decides, early where tuning does
# (CuTeGen section 3.3 and figure 5).
EXPOSURE_DEPTH: Mapping[KernelClass, int] = {
    KernelClass.MATMUL: 6,
    KernelClass.ATTENTION: 6,
    KernelClass.CONVOLUTION: 6,
    KernelClass.REDUCTION: 5,
    KernelClass.LOSS: 3,
    KernelClass.ACTIVATION: 2,
    KernelClass.OTHER: 5,
}


def exposure_depth(history: History) -> int:
    """First depth whose prompt carries a profile: as set for the run, else by class, scaled to the run's depths."""
    if history.settings.expose_from_depth is not None:
        return history.settings.expose_from_depth
    return max(1, math.ceil(EXPOSURE_DEPTH[history.kernel_class] * history.settings.budget.depths / 10))


def is_exposed(history: History) -> bool:
    """Whether the next optimisation prompt carries the base kernel's profile."""
    match history.steering.expose:
        case Switch.ON:
            return True
        case Switch.OFF:
            return False
        case Switch.AUTO:
            return history.depth >= exposure_depth(history)


def is_collected(history: History) -> bool:
    """Whether a kernel that just passed is profiled at once, for the person who watches.

    On auto the starting point and every kernel from the depth before exposure are; the base of an exposed depth is
    profiled later in any case.
    """
    match history.steering.collect:
        case Switch.ON:
            return True
        case Switch.OFF:
            return False
        case Switch.AUTO:
            return history.depth == 0 or history.depth >= exposure_depth(history) - 1
