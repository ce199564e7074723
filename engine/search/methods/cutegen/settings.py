"""What can be set of CuTeGen. Knows words and limits, not what is done with them."""

from __future__ import annotations

from dataclasses import dataclass

from engine.search.methods.options import Choice, option, read_often
from storage.run import exposure
from storage.run.settings import RunSettings

POLICIES = (
    Choice("patience", "latest kernel; back to the best after some depths without progress", "Depths without progress"),
    Choice("latest", "always the latest correct kernel"),
    Choice("best", "always the best kernel"),
)

SCHEDULES = (
    Choice(exposure.FIXED, "at every depth from that one on"),
    Choice(
        exposure.ADAPTIVE, "only after some depths in a row without a gain; on auto from depth 1 on",
        "Depths without a gain", exposure.PATIENCE,
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class CuteGenSettings:
    """Settings of the method. `expose_from_depth` None: by kernel class, or from depth 1 where `profile_schedule` is
    adaptive."""

    # A recording follows one line of kernels; a policy that reacts to timing noise would leave it.
    base_policy: str = option(
        "patience=2", "base kernel policy", label="Each depth starts from", choices=POLICIES, recorded="latest"
    )
    max_repairs: int = option(5, "patches per generated kernel", label="Maximum repairs per kernel", least=0)
    max_regenerations: int = option(
        2, "new kernels per depth after failed patches", label="Maximum restarts per depth", least=0
    )
    expose_from_depth: int | None = option(
        None, "first depth at which the model is shown profiles", label="Show profiles to the model", least=0,
        automatic="auto, by kernel class", is_index=True,
    )  # fmt: skip
    profile_schedule: str = option(
        exposure.FIXED, "at which of these depths the model is shown one", label="Profile schedule", choices=SCHEDULES
    )


def settings_of(settings: RunSettings) -> CuteGenSettings:
    """CuTeGen's part of a run's settings."""
    return read_often(CuteGenSettings, settings.strategy_options)
