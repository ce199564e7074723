"""What a person may do about a region, in a word: the same in its row and where its places are drawn."""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum

from pages.parts import wording
from storage.networks.ranking import Ranked


class RegionState(StrEnum):
    """Each has a colour, which never stands alone."""

    HAS_RUN = "has a run"
    WORTH_IT = "worth it"
    NOT_WORTH_IT = "not worth it"
    NO_TASK = "no task"


TONES: dict[RegionState, wording.Tone] = {
    RegionState.HAS_RUN: "blue",
    RegionState.WORTH_IT: "green",
    RegionState.NOT_WORTH_IT: "yellow",
    RegionState.NO_TASK: "red",
}
ABOUT = {
    RegionState.HAS_RUN: "a run was started for it",
    RegionState.WORTH_IT: "a kernel for it could save what can be measured in the network",
    RegionState.NOT_WORTH_IT: "whatever kernel it had, the network would not be faster measurably",
    RegionState.NO_TASK: "no task could be made of it",
}


NO_LIMIT = "its limit is not measured yet"


def why(row: Ranked) -> str:
    """Why it is not worth a kernel, or what is not known; empty where nothing is to be said."""
    return row.reason or (NO_LIMIT if row.limit_ms is None else "")


def state_of(row: Ranked, with_runs: Collection[str] = ()) -> RegionState:
    """Where a region stands; `with_runs` names those that a run was started for, where that is to be told first."""
    if row.region.name in with_runs:
        return RegionState.HAS_RUN
    if not row.region.task:
        return RegionState.NO_TASK
    return RegionState.WORTH_IT if row.is_worth_it else RegionState.NOT_WORTH_IT
