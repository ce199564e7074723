"""When profiles are collected and when the model is shown one. Knows the kernel class, not the profiler."""

from __future__ import annotations

from engine.history import History
from storage import exposure
from storage.records import Switch


def exposure_depth(history: History) -> int:
    """First depth whose prompt carries a profile."""
    settings = history.settings
    return exposure.first_depth(history.kernel_class, settings.budget.depths, settings.expose_from_depth)


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
