"""Which builder makes the libraries of a candidate for a device. Starts no build."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from engine.build.device.build import DeviceBuilder
from engine.build.device.installation import DeviceInstallation
from engine.build.host.build import Builder
from engine.build.host.installation import Installation
from engine.sandbox import Isolation

AnyBuilder = Builder | DeviceBuilder


def of(device: str, here: Mapping[str, Any], cache: Path, limit_s: float, isolation: Isolation) -> AnyBuilder:
    """The builder for a device as torch names it; `here` is its installation as plain fields."""
    if device == "cpu":
        return Builder(Installation(**here), cache, limit_s, isolation)
    return DeviceBuilder(DeviceInstallation(**here), cache, limit_s, isolation)
