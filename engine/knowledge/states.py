"""The state of a kernel: a name for the pattern of its profile."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from storage.knowledge.records import Bottleneck
from storage.records import ProfileResult


@dataclass(frozen=True, slots=True)
class Found:
    """A kernel's state and the metrics that decided it. `state` is empty where nothing is known, and `why` says so."""

    state: str
    bottleneck: Bottleneck | None
    confidence: float
    why: str
    secondary: tuple[str, ...] = ()
    metrics: Mapping[str, float] = field(default_factory=dict)


def of_profile(profile: ProfileResult | None) -> Found:
    """What the rules find in a profile."""
    return Found("", None, 0.0, "the kernel has no profile, so its state is not known")
