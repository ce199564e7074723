"""Which correct kernel the next depth starts from. Knows the accepted line, not why a kernel is fast."""

from __future__ import annotations

import re

from engine.errors import EngineError
from engine.record import Record

POLICIES = "latest, best, or patience=K (latest, but back to the best after K depths without improvement)"


def check_policy(policy: str) -> None:
    """Raises EngineError for a policy nobody knows."""
    if policy not in ("latest", "best") and not re.fullmatch(r"patience=[1-9]\d*", policy):
        raise EngineError(f"unknown base policy {policy!r}: use {POLICIES}")


def choose_base(record: Record) -> str:
    """Candidate id of the next base kernel. The line must hold at least one kernel.

    A depth that has begun keeps its base. A person's choice for the next depth outranks a pin, a pin the policy.
    """
    if record.depth_base is not None:
        return record.depth_base
    if chosen := record.steering.next_base or record.steering.pinned:
        return chosen
    return _by_policy(record)


def _by_policy(record: Record) -> str:
    policy, latest = record.settings.base_policy, record.line[-1]
    best = record.line_best_id or latest
    if policy == "latest":
        return latest
    if policy == "best":
        return best
    patience = int(policy.partition("=")[2])
    # After each return to the best the count starts again, so a two-step detour from it stays possible.
    return best if record.fruitless and record.fruitless % patience == 0 else latest
