"""What a check has shown so far: the worst figures and one record per check made. Decides nothing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from engine.evaluator.checks import operators
from engine.evaluator.checks.comparison import Errors
from storage.results.check_records import TRIAL, CheckOutcome, CheckRecord, Group
from storage.results.evaluation_results import Mismatch

CONTRACT = "output contract"
LAYOUT = "output layout"
INPUTS = "inputs unchanged"
MEMORY = "memory of its own"
HELD_RESULT = "results held"
REPEAT_RESULT = "repeat"
UNWRITTEN = "unwritten memory"
STATE = "state_dict"
OTHER_WEIGHTS = "other weights"
STATE_AFTER = "state after a call"
WEIGHTS = "weights unchanged"
PRECISION = "precision"
VARIES = "task varies"
SPECIAL_VALUES = "special values"
OTHER_SHAPES = "other shapes"
THROUGHOUT = (
    CONTRACT,
    LAYOUT,
    INPUTS,
    MEMORY,
    HELD_RESULT,
    REPEAT_RESULT,
    UNWRITTEN,
    STATE,
    OTHER_WEIGHTS,
    STATE_AFTER,
    WEIGHTS,
    PRECISION,
    VARIES,
    operators.CHECK,
)
NOT_REACHED = "not reached"


@dataclass(slots=True)
class Findings:
    """Figures over all trials; the worst trial is the one nearest to or furthest over its tolerance."""

    trials: list[str] = field(default_factory=list)
    max_error: float = 0.0
    tolerance: float = 0.0
    max_abs_error: float = 0.0
    reference_error: float = 0.0
    typical_error: float = 0.0
    mismatch: Mismatch | None = None

    def add(self, figures: Errors, allowed: float, own_error: float) -> None:
        """Count one trial's figures in."""
        is_worst = (
            figures.relative * (self.tolerance or 1.0) >= self.max_error * (allowed or 1.0) or self.tolerance == 0.0
        )
        if is_worst:
            self.max_error, self.tolerance, self.reference_error = figures.relative, allowed, own_error
        self.max_abs_error = max(self.max_abs_error, figures.absolute)


class Ledger:
    """One record per check, in the order they were announced; a check nobody noted was not reached."""

    def __init__(self, checks: Iterable[str]) -> None:
        self._checks = {
            check: CheckRecord(Group.CORRECTNESS, check, CheckOutcome.ABSENT, NOT_REACHED) for check in checks
        }

    def note(
        self, check: str, outcome: CheckOutcome, detail: str, value: float | None = None, limit: float | None = None
    ) -> None:
        """How a check ended, and what was measured against what where it was a figure."""
        self._checks[check] = CheckRecord(Group.CORRECTNESS, check, outcome, detail, value, limit)

    def settle(self, check: str, detail: str) -> None:
        """A check that nothing spoke against has held."""
        if self._checks[check].detail == NOT_REACHED:
            self.note(check, CheckOutcome.HELD, detail)

    @property
    def checks(self) -> tuple[CheckRecord, ...]:
        """All of them."""
        return tuple(self._checks.values())


def trial_check(name: str) -> str:
    """The name of a trial's check."""
    return f"{TRIAL}{name}"
