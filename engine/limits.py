"""Budgets and other reasons to stop. Pure: knows what was spent, not who spends it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from engine.history import History
from engine.llm import Terms
from storage.records import REACHED

WARNING_SHARE = 0.8
AT_THE_LIMIT = 1.05


def spent(history: History) -> Iterator[tuple[str, float, float]]:
    """(limit, used, allowed) for every limit that is set and can be spent before a model call."""
    budget, usage = history.budget, history.usage
    pairs = (
        ("model calls", usage.model_calls, budget.model_calls),
        ("tokens", usage.tokens + usage.assumed_tokens, budget.tokens),
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
            return f"limit reached: {used:g} of {allowed:g} {name}"
    if history.budget.cost_usd is not None and history.usage.cost_usd is None:
        return (
            "the cost of a call is unknown, so the cost limit cannot be enforced: add its price to prices.toml, "
            "or remove the limit"
        )
    return None


def forbids(history: History, terms: Terms, expected_tokens: int, step_s: float) -> str | None:
    """Why a call with a prompt of so many tokens may not be sent, as a sentence, or None. `step_s`: time in this step.

    A reply's length cannot be known before it is there, so tokens and money may be overrun by the last reply alone.
    """
    if reason := exhausted(history):
        return reason
    budget, usage = history.budget, history.usage
    cost = terms.cost(expected_tokens, 0)
    if budget.cost_usd is not None and cost is None:
        return (
            f"the price of {terms.model} is unknown, so the cost limit cannot be enforced: "
            "add it to prices.toml, or remove the limit"
        )
    if budget.tokens is not None and usage.tokens + usage.assumed_tokens + expected_tokens > budget.tokens:
        return f"limit reached: the next prompt would exceed the {budget.tokens:g} tokens of the run"
    if budget.cost_usd is not None and (usage.cost_usd or 0.0) + (cost or 0.0) > budget.cost_usd:
        return f"limit reached: the next prompt would exceed the {budget.cost_usd:g} US dollars of the run"
    if budget.wall_s is not None and usage.engine_s + step_s >= budget.wall_s:
        return f"limit reached: {usage.engine_s + step_s:.0f} of {budget.wall_s:g} seconds of work"
    return None


def warnings(history: History) -> Iterator[tuple[str, float, float]]:
    """Limits that are four fifths used and have not been warned about."""
    yield from nearly(history, spent(history))


def nearly(history: History, shares: Iterable[tuple[str, float, float]]) -> Iterator[tuple[str, float, float]]:
    """Those of some limits (name, used, allowed) that are four fifths used and have not been warned about."""
    for name, used, allowed in shares:
        if name not in history.warned and used >= WARNING_SHARE * allowed:
            yield name, used, allowed


def reason_to_stop(history: History) -> str | None:
    """Why no further depth should begin, or None."""
    budget = history.budget
    if history.depth > budget.depths:
        return f"all {budget.depths} depths are done"
    return exhausted(history) or _good_enough(history)


def _good_enough(history: History) -> str | None:
    budget, best = history.budget, history.best.timed if history.best else None
    if best is None:
        return None
    if budget.target_speedup is not None and best.speedup_interval[0] >= budget.target_speedup:
        return f"target reached: {best.speedup:.3g}x (target {budget.target_speedup:g}x)"
    is_reached = history.limit is not None and history.limit.device.endswith(REACHED)
    if history.limit and not is_reached and best.latency_ms <= AT_THE_LIMIT * history.limit.limit_ms:
        return f"within 5 % of the hardware limit ({best.latency_ms:.3g} ms of {history.limit.limit_ms:.3g} ms)"
    if budget.stagnation_depths and history.fruitless >= budget.stagnation_depths:
        return f"no improvement in the last {history.fruitless} depths"
    return None
