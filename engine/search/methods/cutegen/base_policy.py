"""Which correct kernel the next depth starts from. Knows the accepted line, not why a kernel is fast."""

from __future__ import annotations

from engine.search.methods.cutegen.settings import settings_of
from engine.search.methods.cutegen.state import CuteGenState
from storage.run.record import Record


def choose_base(record: Record, state: CuteGenState) -> str:
    """Candidate id of the next base kernel. The line must hold at least one kernel.

    A depth that has begun keeps its base. A person's choice for the next depth outranks a pin, a pin the policy.
    """
    if state.base_id is not None:
        return state.base_id
    if chosen := record.steering.next_base or record.steering.pinned:
        return chosen
    return _by_policy(settings_of(record.settings).base_policy, state)


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
