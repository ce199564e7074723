"""When a run has come close enough to what the hardware can do."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.argument_types import share
from engine.search.limits import reason_to_stop
from storage.results.evaluation_results import TimingResult
from storage.results.hardware_limit import HardwareLimit
from storage.run import budgets
from storage.run import events as ev
from storage.run.settings import Budget
from tests.engine.contexts import add_candidate, open_context

# A gigabyte a second: a limit of half a millisecond.
LIMIT = HardwareLimit("a processor", 1.0, 1e9, 500_000, 1)


@pytest.mark.parametrize(
    ("latencies", "budget", "reason"),
    [
        ((0.7,), Budget(), None),
        ((0.7,), Budget(limit_share=0.9), None),
        ((0.7,), Budget(limit_share=0.7), "71% of the hardware limit reached (to stop at 70%)"),
        (
            (0.4, 0.7, 1.0),
            Budget(limit_share=0.9),
            "what is left to the hardware limit (71% of it reached) is below the noise of a timing",
        ),
        ((0.52,), Budget(), "within 5 % of the hardware limit (0.52 ms of 0.5 ms)"),
    ],
    ids=["no share asked for", "more to gain", "share reached", "noise as wide as what is left", "at the limit"],
)
def test_a_run_stops_at_a_share_of_the_limit_or_when_what_is_left_is_noise(
    tmp_path: Path, latencies: tuple[float, ...], budget: Budget, reason: str | None
) -> None:
    context = open_context(tmp_path, budget=budget)
    context.emit(ev.LimitMeasured(LIMIT))
    name = add_candidate(context, speedup=2.0)
    context.emit(ev.Timed(9, name, TimingResult(latencies * 7, (1.4,) * 7 * len(latencies))))
    assert reason_to_stop(context.record, 0) == reason
    context.journal.close()


@pytest.mark.parametrize(("text", "expected"), [("90%", 0.9), ("0.75", 0.75), ("100%", 1.0)])
def test_a_share_is_a_percentage_or_a_number_up_to_one(text: str, expected: float) -> None:
    assert share(text) == pytest.approx(expected)
    assert budgets.changed(Budget(), f"limit={text}").limit_share == pytest.approx(expected)
    assert budgets.changed(Budget(limit_share=0.5), "limit=none").limit_share is None


@pytest.mark.parametrize("text", ["0", "90", "-5%", "nan", "much"])
def test_what_is_no_share_is_told_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match="give a percentage up to 100%, such as 90%"):
        budgets.share(text)
