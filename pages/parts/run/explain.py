"""Where a kernel goes wrong and what it has cost, in words and figures. Pure: knows rows of the index."""

from __future__ import annotations

from pages.parts import wording
from storage.queries import CorrectnessErrorRow, CostRow


def where_wrong(error: CorrectnessErrorRow) -> str:
    """Where a result goes wrong first, and by how much; empty where nothing could be compared."""
    if not error.total_count:
        return ""
    place = f"[{', '.join(map(str, error.first_index))}]"
    values = f"expected {_value(error.expected)}, got {_value(error.actual)}"
    return f"First wrong index {place}: {values}. {error.wrong_count or 0:,} of {error.total_count:,} values are wrong."


def _value(value: float | None) -> str:
    return wording.NONE if value is None else f"{value:.6g}"


def cost(found: CostRow) -> str:
    """What the kernel has cost, on one line."""
    calls = wording.counted(found.calls, "model call")
    spent = f"{wording.tokens(found.tokens)} tokens · {wording.cost(found.cost_usd)}"
    took = f"written in {wording.seconds(found.writing_s)} · judged in {wording.seconds(found.judging_s)}"
    return f"{calls} · {spent} · {took}"
