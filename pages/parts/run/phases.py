"""The phases of a run along its depths: structural while the model sees no profile, then profile-guided. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from storage.queries import ExposureRow
from storage.records import Switch


@dataclass(frozen=True, slots=True)
class Phase:
    """Depths `first` to `last`; a planned phase has not been reached, and follows from what is set now."""

    first: int
    last: int
    is_profile_guided: bool
    is_planned: bool = False

    @property
    def name(self) -> str:
        """What the phase is called on the curve."""
        return "profile-guided phase" if self.is_profile_guided else "structural phase"


def phases(seen: Sequence[ExposureRow], switch: Switch, expose_from: int | None, last: int) -> list[Phase]:
    """Phases reached, from what the prompts showed; then those that the switch or the settings promise up to `last`.

    A switch on auto promises only what `expose_from`, the run's own first depth with profiles, says.
    """
    found = [Phase(row.first, row.last, row.is_exposed) for row in seen]
    ahead = found[-1].last + 1 if found else 0
    if ahead <= last:
        found += _promised(ahead, last, switch, expose_from)
    return found


def _promised(ahead: int, last: int, switch: Switch, expose_from: int | None) -> list[Phase]:
    if switch is not Switch.AUTO:
        return [Phase(ahead, last, switch is Switch.ON, is_planned=True)]
    if expose_from is None:
        return []
    turn = min(max(ahead, expose_from), last + 1)
    planned = [Phase(ahead, turn - 1, False, is_planned=True), Phase(turn, last, True, is_planned=True)]
    return [phase for phase in planned if phase.first <= phase.last]
