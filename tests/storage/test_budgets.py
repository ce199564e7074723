import pytest

from storage.run.budgets import changed
from storage.run.settings import Budget

BUDGET = Budget(depths=3, model_calls=10, cost_usd=5.0)


def test_only_what_is_named_changes() -> None:
    assert changed(BUDGET, "calls=20, minutes=2 cost=none") == Budget(depths=3, model_calls=20, wall_s=120.0)


@pytest.mark.parametrize("text", ["", "calls", "calls=0", "calls=1.5", "cost=-1", "cost=nan", "depths=none", "hope=1"])
def test_what_no_limit_can_be_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="NAME=NUMBER|above 0|at least one"):
        changed(BUDGET, text)
