"""A person's change to a run's limits as text: `calls=40 cost=5`. Knows the limits, not what was spent."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from storage.run.settings import Budget

FIELDS = {
    "depths": "depths",
    "calls": "model_calls",
    "tokens": "tokens",
    "cost": "cost_usd",
    "minutes": "wall_s",
    "target": "target_speedup",
    "stagnation": "stagnation_depths",
    "limit": "limit_share",
}
_WHOLE = ("depths", "calls", "tokens", "stagnation")
LIFTED = "none"


def share(text: str) -> float:
    """A share of the hardware limit: a percentage such as 90%, or a number from above 0 to 1.

    Raises:
        ValueError: anything else; says what would do.
    """
    try:
        number = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        number = math.nan
    if not 0 < number <= 1:
        raise ValueError(f"{text!r} is no share of the hardware limit: give a percentage up to 100%, such as 90%")
    return number


def fault(budget: Budget) -> str:
    """What is wrong with a run's limits, as a sentence; empty where each is a number from 0 on."""
    for word, name in FIELDS.items():
        value = getattr(budget, name)
        if value is not None and not 0 <= value < math.inf:
            return f"the limit {word} is {value}: give a number from 0 on, or leave it out"
    if budget.limit_share is not None and budget.limit_share > 1:
        return f"the limit limit is {budget.limit_share:g}: give a share of the hardware limit up to 1, such as 0.9"
    return ""


def changed(budget: Budget, text: str) -> Budget:
    """The budget with the limits named in the text; `none` lifts one.

    Raises:
        ValueError: an unknown name or a number that no limit can be; the message says what would do.
    """
    changes: dict[str, Any] = {}
    for word in text.replace(",", " ").split():
        name, equals, value = word.partition("=")
        if not equals or name not in FIELDS:
            raise ValueError(f"expected NAME=NUMBER with one of {', '.join(FIELDS)}, got {word!r}")
        changes[FIELDS[name]] = _limit(name, value)
    if not changes:
        raise ValueError(f"name at least one limit: {', '.join(FIELDS)}")
    return replace(budget, **changes)


def _limit(name: str, value: str) -> float | int | None:
    if value == LIFTED and name != "depths":
        return None
    if name == "limit":
        return share(value)
    try:
        number: float | int = int(value) if name in _WHOLE else float(value)
    except ValueError:
        number = math.nan
    if not (math.isfinite(number) and number > 0):
        lifted = "" if name == "depths" else f" or {LIFTED}"
        raise ValueError(f"{name} takes a {'whole ' if name in _WHOLE else ''}number above 0{lifted}, not {value!r}")
    return number * 60 if name == "minutes" else number
