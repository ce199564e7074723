"""Where today's code is meant to differ from what is saved: (run, query) and the reason. All else is a fault."""

from __future__ import annotations

from collections.abc import Mapping

from tests.guard.saved import NAMES

_LIMIT = "the limit is drawn against eager as timed with the best kernel, not with the first"
_TIMES = "a step stands at its result and a command at its asking; a speed-up has the digits that were measured"
_PATCHES = "a step with patches counts once by when one applied and once by its form"
_ORDER = "figures of two kernels with one name stand as the profiler told them, no longer in any order"
_LOOKS = "what could change the verdict is counted, no longer what a busy machine leaves"
_LYING = "a limit tells which weights lie in another order than the usual one"
_SIZES = "a run that is offered for comparison has its sizes"
_ALL_DONE = "a run that has done all its depths says which of them made no kernel"
_AS_MADE = "trials that were left out are not counted as made, and what the noise of the pairs alone is says so"
_CUT_OFF = "work in a step that was cut off counts"
_TIED = "what is faster and what is tied is asked of the newer of two kernels, by one rule on every page"
_OF_ALL = {
    "limit_speedup": _LIMIT, "standing_counts": _LOOKS, "feed": _TIMES, "steps": _TIMES, "patch_rates": _PATCHES,
    "limit": _LYING, "comparable_runs": _SIZES, "proofs": _AS_MADE,
}  # fmt: skip
INTENDED: Mapping[tuple[str, str], str] = {
    **{(name, query): why for name in NAMES for query, why in _OF_ALL.items()},
    **dict.fromkeys((("replayed", "run"), ("replayed", "overview")), "a replay is called after the run it plays back"),
    **{(name, query): _ALL_DONE for name in ("given_up", "other_models") for query in ("run", "overview")},
    ("over_budget", "reached"): _CUT_OFF,
    ("over_budget", "timed_kernels"): _CUT_OFF,
    **{
        (name, query): _TIED
        for name in ("demo", "finished", "replayed", "rolled_back")
        for query in ("attempts", "candidate", "family", "kernels", "lineage", "overview", "points", "rises", "run")
        if (name, query) not in (("replayed", "run"), ("replayed", "overview"))
    },
    ("demo", "metrics"): _ORDER,
    ("demo", "metric_changes"): _ORDER,
    (
        "approval",
        "open_leave",
    ): "a step that has its yes or no is not asked about until the state changes, as in the record",
}
REWORDED: Mapping[str, str] = {
    "all 1 depths are done": "its one depth is done",
    "all 3 depths are done": "3 depths are done; 2 of them made no kernel",
    "no correct kernel after 2 generations with all their repairs": "the model gave no kernel in 2 calls",
    "no correct kernel after 2 attempts with their repairs": "no correct kernel in 2 attempts",
    "no correct kernel after 3 attempts with their repairs": "no correct kernel in 3 attempts",
}
"""Why a run ends, in the words of then and of today."""
TIMED_AGAIN: Mapping[tuple[str, int], list[object]] = {
    ("softmax", events): ["step", "time", 5, "c007"] for events in (141, 142)
}
"""Where a run times a kernel today and once ended, by the events so far: two kernels whose latencies and speed-ups name
different best ones are timed once more before the end, each at its own step index."""
