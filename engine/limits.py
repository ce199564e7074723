"""Budgets and other reasons to stop. Pure: knows what was spent, not who spends it."""

from __future__ import annotations

from collections.abc import Iterator

from engine.history import History
from storage.records import REACHED

WARNING_SHARE = 0.8
AT_THE_LIMIT = 1.05


def spent(history: History) -> Iterator[tuple[str, float, float]]:
    """(limit, used, allowed) for every limit that is set and can be spent before a model call."""
    budget, usage = history.settings.budget, history.usage
    pairs = (
        ("model calls", usage.model_calls, budget.model_calls),
        ("tokens", usage.tokens, budget.tokens),
        ("cost in USD", usage.cost_usd or 0.0, budget.cost_usd),
        ("seconds of work", usage.engine_s, budget.wall_s),
    )
    for name, used, allowed in pairs:
        if allowed is not None:
            yield name, float(used), float(allowed)


def exhausted(history: History) -> str | None:
    """The first limit that is used up, as a sentence, or None."""
    for name, used, allowed in spent(history):
        if used >= allowed:
            return f"budget used up: {used:g} of {allowed:g} {name}"
    if history.settings.budget.cost_usd is not None and history.usage.cost_usd is None:
        return "the cost of a call is unknown, so the money budget cannot be kept: set a price or lift the budget"
    return None


def warnings(history: History) -> Iterator[tuple[str, float, float]]:
    """Limits that are four fifths used and have not been warned about."""
    for name, used, allowed in spent(history):
        if name not in history.warned and used >= WARNING_SHARE * allowed:
            yield name, used, allowed


def reason_to_stop(history: History) -> str | None:
    """Why no further depth should begin, or None."""
    budget = history.settings.budget
    if history.depth > budget.depths:
        return f"all {budget.depths} depths are done"
    return exhausted(history) or _good_enough(history)


def _good_enough(history: History) -> str | None:
    budget, best = history.settings.budget, history.best.timed if history.best else None
    if best is None:
        return None
    if budget.target_speedup is not None and best.speedup_interval[0] >= budget.target_speedup:
        return f"target reached: {best.speedup:.3g}x, wanted {budget.target_speedup:g}x"
    is_reached = history.limit is not None and history.limit.device.endswith(REACHED)
    if history.limit and not is_reached and best.latency_ms <= AT_THE_LIMIT * history.limit.limit_ms:
        return f"within 5 % of the hardware limit ({best.latency_ms:.3g} ms of {history.limit.limit_ms:.3g} ms)"
    if budget.stagnation_depths and history.fruitless >= budget.stagnation_depths:
        return f"no improvement over {history.fruitless} depths"
    return None
