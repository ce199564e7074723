"""Which builder makes the libraries of a candidate for a device. Starts no build."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from engine.evaluation.sandbox import Walls
from engine.toolchains.device.build import DeviceBuilder
from engine.toolchains.device.installation import DeviceInstallation
from engine.toolchains.host.build import Builder
from engine.toolchains.host.installation import Installation

AnyBuilder = Builder | DeviceBuilder


def of(device: str, here: Mapping[str, Any], cache: Path, limit_s: float, walls: Walls) -> AnyBuilder:
    """The builder for a device as torch names it; `here` is its installation as plain fields."""
    if device == "cpu":
        return Builder(Installation(**here), cache, limit_s, walls)
    return DeviceBuilder(DeviceInstallation(**here), cache, limit_s, walls)
