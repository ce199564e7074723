"""How many examples a property is tried with: a quarter in `make test`, all with HYPOTHESIS_PROFILE=long."""

from __future__ import annotations

import os

LONG = "long"
PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "tests")
USUAL = 100


def examples(count: int = USUAL) -> int:
    """Of so many."""
    return count if PROFILE == LONG else max(2, count // 4)
