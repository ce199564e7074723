"""How many tokens a text will be, from its characters. Knows a rule and what endpoints counted, no tokenizer.

The rule: three characters of code are one token. It is put right by what the endpoint itself counted for the run's
earlier prompts to the same model, with a margin of five per cent.
"""

from __future__ import annotations

from engine.llm import Terms
from engine.record import Record

RULE = 3.0
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
