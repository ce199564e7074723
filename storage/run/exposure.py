"""From when on a model is shown a profile unless somebody says otherwise. Knows a run's settings and class only."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from storage.results.vocabulary import KernelClass
from storage.run.settings import SETTINGS_VERSION, RunSettings

# First depth, of ten, at which the model is shown a profile: late where structure decides, early where tuning does
# (CuTeGen section 3.3 and figure 5; its released code exposes from the depth after the one that it names).
OF_TEN: Mapping[KernelClass, int] = {
    KernelClass.MATMUL: 7,
    KernelClass.ATTENTION: 7,
    KernelClass.CONVOLUTION: 7,
    KernelClass.REDUCTION: 6,
    KernelClass.LOSS: 4,
    KernelClass.ACTIVATION: 3,
    KernelClass.OTHER: 6,
}

# What a strategy that shows profiles from some depth on calls that option, and the one that says by which rule.
OPTION, SCHEDULE = "expose_from_depth", "profile_schedule"
FIXED, ADAPTIVE = "fixed", "adaptive"
PATIENCE = 2  # of an adaptive schedule, unless somebody says otherwise
BY_CUTEGENS_CODE = 2  # the version of a run's settings from which on the table holds; before, each depth is one less


@dataclass(frozen=True, slots=True)
class Exposure:
    """When a run on auto shows its model profiles: from depth `first` on, and of these, with a `patience`, only where
    that many depths in a row have brought nothing beyond the noise."""

    first: int
    patience: int | None = None


def never(depths: int) -> int:
    """The first depth of a run of so many whose model is to be shown no profile."""
    return depths + 1


def first_depth(kernel_class: KernelClass, depths: int, version: int = SETTINGS_VERSION) -> int:
    """The first depth of a fixed schedule, by class, scaled to a run's depths; `version` is that of its settings."""
    of_ten = OF_TEN[kernel_class] - (version < BY_CUTEGENS_CODE)
    return max(1, math.ceil(of_ten * depths / 10))


def planned(
    kernel_class: KernelClass, depths: int, asked: int | None, schedule: str | None, version: int = SETTINGS_VERSION
) -> Exposure:
    """What a run's options say, else its class. `asked` and `schedule` are the values of both options, None where the
    run has none."""
    rule, _, patience = (schedule or FIXED).partition("=")
    if rule == ADAPTIVE:
        return Exposure(1 if asked is None else asked, int(patience) if patience.isdecimal() else PATIENCE)
    return Exposure(first_depth(kernel_class, depths, version) if asked is None else asked)


def of_run(settings: RunSettings, kernel_class: KernelClass) -> Exposure:
    """That of a run whose class is now this one; its depths are those that it was started with."""
    schedule = settings.strategy_options.get(SCHEDULE)
    rule = None if schedule is None else str(schedule)
    return planned(kernel_class, settings.budget.depths, asked_depth(settings), rule, settings.version)


def promised(settings: RunSettings) -> Exposure | None:
    """When a run's options show profiles; None where the kernel class decides, or the strategy has no such option."""
    exposure = of_run(settings, settings.kernel_class)
    return None if asked_depth(settings) is None and exposure.patience is None else exposure


def asked_depth(settings: RunSettings) -> int | None:
    """The first depth as set for a run; None where its kernel class decides, or its strategy has no such option."""
    asked = settings.strategy_options.get(OPTION)
    return asked if isinstance(asked, int) else None
