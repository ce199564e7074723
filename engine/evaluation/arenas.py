"""Which kind of shared memory a device needs. Knows no worker."""

from __future__ import annotations

from engine.evaluation.arena import Arena
from engine.evaluation.device.arena import DeviceArena


def new(name: str, device: str) -> Arena:
    """An arena that has not been sized. Touches no GPU: a process forked afterwards could not use it."""
    return Arena(name) if device == "cpu" else DeviceArena(name)
