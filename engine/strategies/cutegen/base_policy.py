"""Which correct kernel the next depth starts from. Knows the accepted line, not why a kernel is fast."""

from __future__ import annotations

import re

from engine.errors import EngineError
from engine.strategies.cutegen.state import CuteGenState
from storage.records import RunSettings

POLICIES = "latest, best, or patience=K (latest, but back to the best after K depths without improvement)"


def check_policy(policy: str) -> None:
    """Raises EngineError for a policy nobody knows."""
    if policy not in ("latest", "best") and not re.fullmatch(r"patience=[1-9]\d*", policy):
        raise EngineError(f"unknown base policy {policy!r}: use {POLICIES}")


def choose_base(settings: RunSettings, state: CuteGenState) -> str:
    """Candidate id of the next base kernel. The line must hold at least one kernel.

    A depth that has begun keeps its base. A person's choice for the next depth outranks a pin, a pin the policy.
    """
    if state.base_id is not None:
        return state.base_id
    if chosen := state.next_base or state.pinned:
        return chosen
    return _by_policy(settings.base_policy, state)


def _by_policy(policy: str, state: CuteGenState) -> str:
    latest = state.line[-1]
    best = state.line_best_id or latest
    if policy == "latest":
        return latest
    if policy == "best":
        return best
    patience = int(policy.partition("=")[2])
    # After each return to the best the count starts again, so a two-step detour from it stays possible.
    return best if state.fruitless and state.fruitless % patience == 0 else latest
