"""What a run has spent, folded from its journal. A part of History; touches no file."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Usage:
    """What a run has spent. `cost_usd` is None once any call's cost is unknown.

    `assumed_tokens` are an estimate for calls whose tokens nobody counted: budgets take them for spent.
    """

    model_calls: int = 0
    tokens: int = 0
    assumed_tokens: int = 0
    cost_usd: float | None = 0.0
    engine_s: float = 0.0
