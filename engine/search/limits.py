"""Budgets and other reasons to stop, and how many tokens a text will be. Pure: knows what was spent, not who spends it.

A tokenizer is not asked: three characters of code are one token. The rule is put right by what the endpoint itself
counted for the run's earlier prompts to the same model, with a margin of five per cent.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from engine.search.daily import Spent
from engine.search.llm import Terms
from storage.results import relative
from storage.results.hardware_limit import AT_THE_LIMIT
from storage.run.models import CHARACTERS_PER_TOKEN
from storage.run.record import Record

WARNING_SHARE = 0.8


def spent(record: Record) -> Iterator[tuple[str, float, float]]:
    """(limit, used, allowed) for every limit that is set and can be spent before a model call."""
    budget, usage = record.budget, record.usage
    pairs = (
        ("model calls", usage.model_calls, budget.model_calls),
        ("tokens", usage.tokens + usage.assumed_tokens, budget.tokens),
        ("cost in USD", usage.cost_usd or 0.0, budget.cost_usd),
        ("seconds of work", usage.engine_s, budget.wall_s),
    )
    for name, used, allowed in pairs:
        if allowed is not None:
            yield name, float(used), float(allowed)


def exhausted(record: Record) -> str | None:
    """The first limit that is used up, as a sentence, or None."""
    for name, used, allowed in spent(record):
        if used >= allowed:
            return f"limit reached: {used:g} of {allowed:g} {name}"
    if record.budget.cost_usd is not None and record.usage.cost_usd is None:
        return (
            "the cost of a call is unknown, so the cost limit cannot be enforced: add its price to prices.toml, "
            "or remove the limit"
        )
    return None


def out_of_time(record: Record, step_s: float) -> str | None:
    """That the time limit is used up, with so many seconds of the step at work, as a sentence, or None."""
    used, allowed = record.usage.engine_s + step_s, record.budget.wall_s
    if allowed is None or used < allowed:
        return None
    return f"limit reached: {used:.0f} of {allowed:g} seconds of work"


def has_no_room(record: Record, held: Spent, more: Spent) -> bool:
    """Whether a limit could be exceeded by one more call if calls at work take all that is reserved for them."""
    budget, usage = record.budget, record.usage
    tokens, cost = usage.tokens + usage.assumed_tokens, usage.cost_usd or 0.0
    return (
        (budget.model_calls is not None and usage.model_calls + held.calls >= budget.model_calls)
        or (budget.tokens is not None and tokens + held.tokens + more.tokens > budget.tokens)
        or (budget.cost_usd is not None and cost + held.cost + more.cost > budget.cost_usd)
    )


def forbids(record: Record, terms: Terms, expected_tokens: int, step_s: float) -> str | None:
    """Why a call with a prompt of so many tokens may not be sent, as a sentence, or None. `step_s`: time in this step.

    A reply's length cannot be known before it is there, so tokens and money may be overrun by the last reply alone.
    """
    if reason := exhausted(record):
        return reason
    budget, usage = record.budget, record.usage
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
    return out_of_time(record, step_s)


def warnings(record: Record) -> Iterator[tuple[str, float, float]]:
    """Limits that are four fifths used and have not been warned about."""
    yield from nearly(record, spent(record))


def nearly(record: Record, shares: Iterable[tuple[str, float, float]]) -> Iterator[tuple[str, float, float]]:
    """The limits (name, used, allowed) that are four fifths used and have not been warned about."""
    for name, used, allowed in shares:
        if name not in record.warned and used >= WARNING_SHARE * allowed:
            yield name, used, allowed


def reason_to_stop(record: Record, without_gain: int, word: str = "step") -> str | None:
    """Why no further step index should begin, or None. `without_gain`: how many brought nothing since the last gain;
    `word`: what the method calls a step index."""
    budget = record.budget
    if record.step_index > budget.depths:
        if not budget.depths:
            return f"no {word}s beyond the first kernel were asked for"
        return record.all_done(budget.depths, word, one="its one")
    return exhausted(record) or _good_enough(record, without_gain, word)


def is_within_noise(share: float, noise: float) -> bool:
    """Whether a kernel that had all of the limit could not be told from one with this share of it and this noise."""
    return not relative.between_sessions(1 / share, 0.0, 1.0, noise).is_faster


def _good_enough(record: Record, without_gain: int, word: str) -> str | None:
    budget, best = record.budget, record.best.timed if record.best else None
    if best is None:
        return None
    if budget.target_speedup is not None and best.speedup_interval[0] >= budget.target_speedup:
        return f"target reached: {best.speedup:.3g}x (target {budget.target_speedup:g}x)"
    share = record.limit.reached_at(best.latency_ms) if record.limit else None
    if record.limit and share is not None and best.latency_ms <= AT_THE_LIMIT * record.limit.limit_ms:
        return f"within 5 % of the hardware limit ({best.latency_ms:.3g} ms of {record.limit.limit_ms:.3g} ms)"
    if budget.limit_share is not None and share is not None:
        if share >= budget.limit_share:
            return f"{share:.0%} of the hardware limit reached (to stop at {budget.limit_share:.0%})"
        if is_within_noise(share, best.noise):
            return f"what is left to the hardware limit ({share:.0%} of it reached) is below the noise of a timing"
    if budget.stagnation_depths and without_gain >= budget.stagnation_depths:
        return f"no improvement in the last {without_gain} {word}s"
    return None


RULE = CHARACTERS_PER_TOKEN
MARGIN = 0.95
ENOUGH_TOKENS = 500
_LEAST, _MOST = 0.5, 6.0


def characters_per_token(record: Record, model: str) -> float:
    """Characters per token for prompts to this model, on the safe side."""
    characters, tokens = record.counted.get(model, (0, 0))
    if tokens < ENOUGH_TOKENS:
        return RULE
    return min(_MOST, max(_LEAST, MARGIN * characters / tokens))


def estimate(record: Record, model: str, characters: int) -> int:
    """Tokens of a text of so many characters, rounded up."""
    return -int(-characters // characters_per_token(record, model))


def room(record: Record, terms: Terms) -> int:
    """Characters that a whole prompt may have, so that the reply still fits into the window."""
    return int((terms.window - terms.reply_room) * characters_per_token(record, terms.model))
