"""When profiles are collected and when the model is shown one. Knows the kernel class, not the profiler."""

from __future__ import annotations

from engine.record import Record
from engine.strategies.cutegen.settings import settings_of
from storage import exposure
from storage.records import Switch


def exposure_depth(record: Record) -> int:
    """First depth whose prompt carries a profile."""
    settings = record.settings
    return exposure.first_depth(record.kernel_class, settings.budget.depths, settings_of(settings).expose_from_depth)


def is_exposed(record: Record) -> bool:
    """Whether the next optimisation prompt carries the base kernel's profile."""
    match record.steering.expose:
        case Switch.ON:
            return True
        case Switch.OFF:
            return False
        case Switch.AUTO:
            return record.step_index >= exposure_depth(record)


def is_collected(record: Record) -> bool:
    """Whether a kernel that just passed is profiled at once, for the person who watches.

    On auto the starting point and every kernel from the depth before exposure are; the base of an exposed depth is
    profiled later in any case.
    """
    match record.steering.collect:
        case Switch.ON:
            return True
        case Switch.OFF:
            return False
        case Switch.AUTO:
            return record.step_index == 0 or record.step_index >= exposure_depth(record) - 1
