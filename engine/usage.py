"""What a run has spent, folded from its journal. A part of History; touches no file."""

from __future__ import annotations

from dataclasses import dataclass

from storage import events as ev


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

    def count(self, event: ev.ModelCalled | ev.CallFailed) -> None:
        """Add one call that may have cost something."""
        self.model_calls += 1
        self.tokens += (event.input_tokens or 0) + (event.output_tokens or 0)
        self.assumed_tokens += event.assumed_tokens if isinstance(event, ev.ModelCalled) else 0
        known = self.cost_usd is not None and event.cost_usd is not None
        self.cost_usd = (self.cost_usd or 0.0) + (event.cost_usd or 0.0) if known else None
