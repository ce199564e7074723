"""From which depth on a model is shown a profile unless somebody says otherwise. Knows the kernel class only."""

from __future__ import annotations

import math
from collections.abc import Mapping

from storage.records import KernelClass, RunSettings

# First depth, of ten, at which the model is shown a profile: late where structure decides, early where tuning does
# (CuTeGen section 3.3 and figure 5).
OF_TEN: Mapping[KernelClass, int] = {
    KernelClass.MATMUL: 6,
    KernelClass.ATTENTION: 6,
    KernelClass.CONVOLUTION: 6,
    KernelClass.REDUCTION: 5,
    KernelClass.LOSS: 3,
    KernelClass.ACTIVATION: 2,
    KernelClass.OTHER: 5,
}

# What a strategy that shows profiles from some depth on calls that option.
OPTION = "expose_from_depth"


def never(depths: int) -> int:
    """The first depth of a run of so many whose model is to be shown no profile."""
    return depths + 1


def first_depth(kernel_class: KernelClass, depths: int, asked: int | None = None) -> int:
    """As set for the run, else by class, scaled to the run's depths."""
    return asked if asked is not None else max(1, math.ceil(OF_TEN[kernel_class] * depths / 10))


def asked_depth(settings: RunSettings) -> int | None:
    """The first depth as set for a run; None where its kernel class decides, or its strategy has no such option."""
    asked = settings.strategy_options.get(OPTION)
    return asked if isinstance(asked, int) else None
