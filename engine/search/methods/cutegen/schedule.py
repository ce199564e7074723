"""When profiles are collected and when the model is shown one. Knows the kernel class and what the last depths brought,
not the profiler."""

from __future__ import annotations

from engine.search.methods.cutegen.state import CuteGenState
from storage.run import exposure
from storage.run.record import Record
from storage.run.settings import Switch


def is_exposed(record: Record, state: CuteGenState) -> bool:
    """Whether the next optimisation prompt carries the base kernel's profile."""
    match record.steering.expose:
        case Switch.ON:
            return True
        case Switch.OFF:
            return False
        case Switch.AUTO:
            return _is_due(record, state, ahead=0)


def is_collected(record: Record, state: CuteGenState) -> bool:
    """Whether a kernel that just passed is profiled at once, for the person who watches.

    On auto the starting point is, and every kernel after which the next depth could be exposed; the base of an exposed
    depth is profiled later in any case.
    """
    match record.steering.collect:
        case Switch.ON:
            return True
        case Switch.OFF:
            return False
        case Switch.AUTO:
            return record.step_index == 0 or _is_due(record, state, ahead=1)


def _is_due(record: Record, state: CuteGenState, ahead: int) -> bool:
    """Whether a profile is shown so many depths from now, provided that none of them brings a gain."""
    planned = exposure.of_run(record.settings, record.kernel_class)
    is_stuck = planned.patience is None or state.fruitless + ahead >= planned.patience
    return is_stuck and record.step_index + ahead >= planned.first
