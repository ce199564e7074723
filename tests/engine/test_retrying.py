import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import CallError
from engine.search.llm.retrying import LONGEST_S, PATIENCE_S, pause_before_next
from storage.run.models import CallFailure


def failed(kind: CallFailure, times: int, **facts: object) -> list[CallError]:
    return [CallError(kind, "m", **facts) for _ in range(times)]  # type: ignore[arg-type]


def test_pauses_double_up_to_a_limit_and_jitter_only_shortens_them() -> None:
    pauses = [pause_before_next(failed(CallFailure.SERVER_ERROR, n), 0.999) for n in range(1, 6)]
    assert pauses == pytest.approx([1, 2, 4, 8, 16], rel=0.01)
    assert pause_before_next(failed(CallFailure.SERVER_ERROR, 1), 0.0) == 0.5
    assert pause_before_next(failed(CallFailure.SERVER_ERROR, 6), 0.0) is None


@given(st.floats(0, PATIENCE_S), st.floats(0, 0.999))
def test_no_try_comes_earlier_than_the_endpoint_asks(asked: float, chance: float) -> None:
    pause = pause_before_next(failed(CallFailure.RATE_LIMITED, 1, retry_after_s=asked), chance)
    assert pause is not None
    assert asked <= pause <= asked + 1


@pytest.mark.parametrize("asked", [0.0, 0.01])
def test_an_endpoint_that_asks_for_no_wait_is_left_alone_as_long_as_one_that_says_nothing(asked: float) -> None:
    for times in range(1, 8):
        silent, hasty = (failed(CallFailure.RATE_LIMITED, times, retry_after_s=wait) for wait in (None, asked))
        assert pause_before_next(hasty, 0.5) == pause_before_next(silent, 0.5)


def test_a_wait_that_nobody_would_sit_through_is_left_to_a_person() -> None:
    assert pause_before_next(failed(CallFailure.RATE_LIMITED, 1, retry_after_s=PATIENCE_S + 1), 0.5) is None


def test_a_failure_that_lasts_is_not_tried_again() -> None:
    assert pause_before_next(failed(CallFailure.REJECTED, 1, is_lasting=True), 0.5) is None
    assert pause_before_next(failed(CallFailure.REFUSED, 1), 0.5) is None


@pytest.mark.parametrize("kind", CallFailure)
def test_what_may_cost_is_sent_twice_at_most_whatever_fails(kind: CallFailure) -> None:
    once = failed(CallFailure.DROPPED, 1, is_charged=True)
    assert pause_before_next([*once, *failed(kind, 1, is_charged=True)], 0.5) is None
    assert (pause_before_next(once, 0.5) or 0) <= LONGEST_S
