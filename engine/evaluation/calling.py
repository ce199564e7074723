"""One call of the candidate for checking: inputs in, poison where outputs go, outputs out. Compares nothing."""

from __future__ import annotations

from typing import Any

from engine.evaluation import poison
from engine.evaluation.bench import Bench
from engine.evaluation.poison import Poison


def call_candidate(bench: Bench, leaves: Any, trial: str, poisoned: Poison = Poison.NAN) -> dict[str, Any]:
    """Hand over the inputs now in the trusted arena, call once, and return what the worker says about its outputs."""
    for mine, theirs in zip(bench.shared["inputs"], bench.trusted["inputs"], strict=True):
        mine.copy_(theirs)
    poison.fill(bench.shared["own"], poisoned)
    during = f"forward (trial {trial!r})"
    bench.ask_candidate("load", during, leaves=leaves, poison=str(poisoned), seed=bench.call_seed)
    bench.ask_candidate("go", during)
    return bench.ask_candidate("store", during, hold=True, copies=True)
