"""What a person may do about a region, or what came of it, in a word: the same in its row and where its places are
drawn."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from pages.parts import wording
from storage.networks.proofs import Proof
from storage.networks.ranking import Ranked
from storage.networks.records import Verdict


class RegionState(StrEnum):
    """Each has a colour, which never stands alone."""

    KEPT = "kept"
    REVERTED = "reverted"
    FALLS_BACK = "falls back"
    SEARCHING = "searching"
    HAS_RUN = "has a run"
    WORTH_IT = "worth it"
    NOT_WORTH_IT = "not worth it"
    NO_TASK = "no task"


TONES: dict[RegionState, wording.Tone] = {
    RegionState.KEPT: "green",
    RegionState.REVERTED: "orange",
    RegionState.FALLS_BACK: "red",
    RegionState.SEARCHING: "blue",
    RegionState.HAS_RUN: "violet",
    RegionState.WORTH_IT: "green",
    RegionState.NOT_WORTH_IT: "yellow",
    RegionState.NO_TASK: "gray",
}
ICONS = {RegionState.KEPT: "finished", RegionState.REVERTED: "undo", RegionState.FALLS_BACK: "failed",
         RegionState.SEARCHING: "running"}  # fmt: skip
SIGNS = {RegionState.KEPT: ":material/check: ", RegionState.REVERTED: ":material/undo: ",
         RegionState.FALLS_BACK: ":material/close: ", RegionState.SEARCHING: ":material/play_arrow: "}  # fmt: skip
"""The same where words are Markdown."""
ABOUT = {
    RegionState.KEPT: "its kernel was put back, and the network is faster with it",
    RegionState.REVERTED: "its kernel was put back and taken out again: it brought nothing, or changed results",
    RegionState.FALLS_BACK: "its kernel does not work in the network, which uses PyTorch's own code there",
    RegionState.SEARCHING: "a run searches a kernel for it now",
    RegionState.HAS_RUN: "a run was started for it",
    RegionState.WORTH_IT: "a kernel for it could save what can be measured in the network",
    RegionState.NOT_WORTH_IT: "whatever kernel it had, the network would not be faster measurably",
    RegionState.NO_TASK: "no task could be made of it",
}
OF_VERDICT = {
    Verdict.KEPT: RegionState.KEPT,
    Verdict.NO_GAIN: RegionState.REVERTED,
    Verdict.WRONG: RegionState.REVERTED,
    Verdict.NOT_ENGAGED: RegionState.FALLS_BACK,
    Verdict.UNFIT: RegionState.FALLS_BACK,
    Verdict.CRASHED: RegionState.FALLS_BACK,
}
IN_NETWORK = tuple(OF_VERDICT.values())
NO_LIMIT = "its limit is not measured yet"


@dataclass(frozen=True, slots=True)
class Done:
    """What was done about the regions of a network, by their names."""

    searched: Collection[str] = ()
    """A run is at work on them."""
    verdicts: Mapping[str, Verdict] = field(default_factory=dict)
    """What came of their kernels in the network."""


NOTHING_DONE = Done()


def done(proof: Proof | None, searched: Collection[str]) -> Done:
    """With what a proof says of them."""
    return Done(searched, {name: trial.verdict for name, trial in proof.tried.items()} if proof else {})


def why(row: Ranked) -> str:
    """Why it is not worth a kernel, or what is not known; empty where nothing is to be said."""
    return row.reason or (NO_LIMIT if row.limit_ms is None else "")


def told(row: Ranked, state: RegionState) -> str:
    """Why it stands so, where the word alone does not say it."""
    return ABOUT[state] if state in (*IN_NETWORK, RegionState.SEARCHING) else why(row) or ABOUT[state]


def state_of(row: Ranked, so_far: Done = NOTHING_DONE, with_runs: Collection[str] = ()) -> RegionState:
    """Where a region stands; `with_runs` names those that a run was started for, where that is to be told before what
    may be done."""
    name = row.region.name
    if name in so_far.searched:
        return RegionState.SEARCHING
    if (verdict := so_far.verdicts.get(name)) in OF_VERDICT:
        return OF_VERDICT[verdict]
    if name in with_runs:
        return RegionState.HAS_RUN
    if not row.region.task:
        return RegionState.NO_TASK
    return RegionState.WORTH_IT if row.is_worth_it else RegionState.NOT_WORTH_IT
