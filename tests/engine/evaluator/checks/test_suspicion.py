"""Timings too good to be believed at once: when they are repeated, and what two of them are worth."""

from __future__ import annotations

from dataclasses import replace

import pytest

from engine.evaluator.checks import timing_checks
from engine.evaluator.checks.timing_checks import Bounds
from engine.evaluator.tasks import workloads
from storage.results.check_records import CheckOutcome, CheckRecord, Group, as_told
from storage.results.evaluation_results import CheckResult, TimedWorkload, TimingResult
from storage.results.flags import counted, decided, flags
from storage.results.hardware_limit import DeviceFacts, HardwareLimit
from storage.results.policy import Policy
from storage.results.vocabulary import Verdict

# 1 ms for the bytes, nothing for operations.
LIMIT = HardwareLimit("some machine", 10.0, 100.0, 10_000_000, 0)
BOUNDS = Bounds(Policy(), LIMIT)


def timed(latency_ms: float, speedup: float, proofs: tuple[CheckRecord, ...] = ()) -> TimingResult:
    samples = tuple(latency_ms * (1 + 0.001 * n) for n in range(-10, 11))
    return TimingResult(samples, tuple([latency_ms * speedup] * 21), proofs=proofs)


def again(
    first: TimingResult, second: TimingResult | CheckResult, bounds: Bounds = BOUNDS
) -> tuple[CheckRecord, object]:
    result = timing_checks.settled(first, second, bounds, "it is fast")
    return result.proofs[-1], result


def test_a_plain_speed_up_is_not_repeated() -> None:
    assert BOUNDS.reason(timed(2.0, 1.8)) == ""
    assert timing_checks.unsuspicious(timed(2.0, 1.8), BOUNDS).proofs[-1].standing is CheckOutcome.ABSENT


@pytest.mark.parametrize(("latency_ms", "speedup"), [(2.0, 10.5), (0.9, 2.0)])
def test_a_great_speed_up_or_one_beyond_the_hardware_is(latency_ms: float, speedup: float) -> None:
    assert BOUNDS.reason(timed(latency_ms, speedup))


def test_a_confirmed_speed_up_holds_with_both_figures() -> None:
    check_record, result = again(timed(2.0, 12.0), timed(2.0, 11.9999))
    assert check_record.standing is CheckOutcome.HELD
    assert "12x" in check_record.detail
    assert isinstance(result, TimingResult)


def test_of_two_that_differ_the_lower_is_kept_and_flagged() -> None:
    check_record, result = again(timed(2.0, 106.0), timed(2.0, 1.1))
    assert check_record.standing is CheckOutcome.FLAGGED
    assert "106x" in check_record.detail
    assert "1.1x" in check_record.detail
    assert isinstance(result, TimingResult)
    assert result.speedup == pytest.approx(1.1)


def test_confirmation_on_a_disturbed_machine_is_flagged() -> None:
    crowded = (CheckRecord(Group.TIMING, "machine", CheckOutcome.FLAGGED, "busy"),)
    spoilt, calm = timed(2.0, 12.0, crowded), timed(2.0, 12.0)
    for which, first, second in (("first", spoilt, calm), ("second", calm, spoilt)):
        check_record, _ = again(first, second)
        assert check_record.standing is CheckOutcome.FLAGGED
        why = f"in the {which} timing the check “machine” was flagged: busy"
        assert check_record.detail.endswith(f"; confirmed, but {why}")


@pytest.mark.parametrize(
    ("first", "second", "told"),
    [
        (timed(2.0, 12.0), timed(2.0, 12.0),
         "The two agree and neither was spoilt by noise or a busy machine: confirmed."),
        (timed(2.0, 106.0), timed(2.0, 12.0),
         "Their intervals do not meet: the two are 8.8 times apart, so neither confirms the other and it is to look "
         "at; the lower one is kept, with all of its interval, 11.9 to 12.1×."),
        (timed(2.0, 12.0), timed(2.0, 13.0),
         "The two agree, so it is confirmed, though known less well than usual: their intervals do not meet. "
         "Measure again on a quiet machine to know it better."),
        (timed(0.6, 12.0), timed(0.6, 12.0),
         "The two agree, but it is faster than the limit of 1 ms; so it is to look at."),
        (timed(2.0, 12.0, (CheckRecord(Group.TIMING, "noise", CheckOutcome.FLAGGED, "12.2 %; skewed"),)),
         timed(2.0, 12.0),
         "The two agree, so it is confirmed, though known less well than usual: in the first timing the check “noise” "
         "was flagged: 12.2 %; skewed. Measure again on a quiet machine to know it better."),
    ],
)  # fmt: skip
def test_what_decided_about_a_great_speed_up_is_told(first: TimingResult, second: TimingResult, told: str) -> None:
    reason = BOUNDS.reason(first)
    result = timing_checks.settled(first, second, BOUNDS, reason)
    assert isinstance(result, TimingResult)
    a, b = (f"{timing.speedup:.3g}×" for timing in (first, second))
    opening = f"{a} is above 10×, so the kernel was timed again in fresh processes: {a}, then {b}. "
    assert decided(result.proofs) == opening + told


def wide(latency_ms: float, speedup: float, up_to: float) -> TimingResult:
    return replace(timed(latency_ms, speedup), device_interval=(speedup, up_to))


NOISY = CheckRecord(Group.TIMING, "noise", CheckOutcome.FLAGGED, "19 %")
APART = (
    "38.2×, then 17.8×. Their intervals meet, but the two are 2.1 times apart, so neither confirms the other and it is "
    "to look at; the lower one is kept, with all of its interval, 17.7 to 38.4×."
)


@pytest.mark.parametrize(
    ("proofs", "told"),
    [((), APART), ((NOISY,), f"{APART} And in the first timing the check “noise” was flagged: 19 %.")],
)
def test_two_timings_far_apart_are_to_look_at_where_their_intervals_meet_too(
    proofs: tuple[CheckRecord, ...], told: str
) -> None:
    check_record, result = again(timed(2.0, 38.2, proofs), wide(4.0, 17.8, 38.4))
    assert isinstance(result, TimingResult)
    assert check_record.standing is CheckOutcome.FLAGGED
    assert "; their intervals meet" in check_record.detail
    assert "confirmed" not in check_record.detail
    older = replace(check_record, detail=check_record.detail.replace("their intervals meet", "confirmed"))
    for record in (check_record, older if proofs else replace(older, standing=CheckOutcome.HELD)):
        (read,) = as_told([record])
        assert (read.standing, decided([read]).endswith(told)) == (CheckOutcome.FLAGGED, True)
        assert counted([read]) == "1 check to look at"


def test_what_noise_spoilt_is_a_note_where_two_timings_agree_and_is_to_look_at_beyond_the_hardware() -> None:
    calm, noisy = timed(2.0, 12.0), timed(2.0, 12.0, (NOISY,))
    for first, second in ((noisy, calm), (calm, noisy), (noisy, noisy), (calm, timed(2.0, 13.0))):
        (flag,) = flags([again(first, second)[0]])
        assert not flag.is_look
        assert "the speed-up stands" in flag.advice
    (flag,) = flags([again(timed(0.6, 12.0, (NOISY,)), timed(0.6, 12.0))[0]])
    assert flag.is_look
    assert "what work is no longer done" in flag.advice


def test_a_kernel_beyond_a_limit_that_was_measured_again_since_is_accused_no_longer() -> None:
    fast, noisy = timed(0.6, 12.0), timed(0.6, 12.0, (NOISY,))
    settled = timing_checks.settled(fast, fast, BOUNDS, BOUNDS.reason(timed(0.6, 2.0)))
    record = settled.proofs[-1]
    for limit_ms in (None, 0.7):
        assert [flag.is_look for flag in flags(as_told([record], limit_ms))] == [True], "it is beyond that one too"
    (read,) = as_told([record], 0.5)
    assert read.standing is CheckOutcome.HELD
    assert decided([read]).startswith("0.6 ms is below the hardware limit of 1 ms (measured again since: 0.5 ms), so")
    (flag,) = flags(as_told([timing_checks.settled(noisy, noisy, BOUNDS, "it is fast").proofs[-1]], 0.5))
    assert not flag.is_look, "what the noise spoilt is left"


def test_of_several_workloads_what_is_to_look_at_stands_before_a_note() -> None:
    noted = timing_checks.settled(timed(2.0, 12.0, (NOISY,)), timed(2.0, 12.0), BOUNDS, "12x is above 10x")
    apart = timing_checks.settled(timed(2.0, 38.2), wide(4.0, 17.8, 38.4), BOUNDS, "38.2x is above 10x")
    assert isinstance(noted, TimingResult)
    assert isinstance(apart, TimingResult)
    for order in ([noted, apart], [apart, noted]):
        result = workloads.together([TimedWorkload({"M": n}, timing) for n, timing in enumerate(order)])
        said = decided(result.proofs)
        assert said.startswith(f"At M={order.index(apart)}, 38.2× is above 10×, so the kernel")
        assert said.endswith(APART)


def test_older_engines_did_not_write_which_timing_was_spoilt() -> None:
    both = "first 13.7x (13.7 to 13.7) at 0.03 ms, then 13.8x (13.7 to 13.8) at 0.03 ms"
    detail = f"because 13.7x is above 10x: {both}; confirmed"
    flagged = CheckRecord(Group.TIMING, "re-measured", CheckOutcome.FLAGGED, detail)
    noisy = CheckRecord(Group.TIMING, "noise", CheckOutcome.FLAGGED, "within 12.2%")
    less = "13.7×, then 13.8×. The two agree, so it is confirmed, though known less well than usual: "
    measure = ". Measure again on a quiet machine to know it better."
    other = "noise or a busy machine spoilt the timing that is not kept (the second)"
    assert decided(as_told([flagged])).endswith(f"{less}{other}{measure}")
    kept = "in the timing that is kept (the first) the check “noise” was flagged: within 12.2%"
    assert decided(as_told([noisy, flagged])).endswith(f"{less}{kept}{measure}")
    assert as_told(as_told([noisy, flagged])) == as_told([noisy, flagged])
    assert counted(as_told([noisy, flagged])) == "2 checks noted"
    assert decided([replace(flagged, standing=CheckOutcome.ABSENT, detail="not needed: 5x is not above 10x")]) == ""


def test_a_little_beyond_the_hardware_is_flagged_and_less_than_half_its_time_is_refused() -> None:
    assert again(timed(0.6, 2.0), timed(0.6, 2.0))[0].standing is CheckOutcome.FLAGGED
    check_record, result = again(timed(0.4, 20.0), timed(0.4, 20.0))
    assert check_record.standing is CheckOutcome.BROKEN
    assert isinstance(result, CheckResult)
    assert result.verdict is Verdict.REFUSED
    assert "less than 50% of what this machine's memory takes" in result.message


def test_one_timing_of_two_that_is_below_half_the_limit_is_not_refused() -> None:
    check_record, result = again(timed(0.4, 20.0), timed(0.9, 9.0))
    assert check_record.standing is CheckOutcome.FLAGGED
    assert isinstance(result, TimingResult)
    assert result.latency_ms == pytest.approx(0.9)


def test_what_caches_can_hold_may_take_a_third() -> None:
    """50 MB of a cache hold 10 MB that were just written, and the outputs of a call that has ended."""
    facts = DeviceFacts("sm_90a", 132, 3350.0, l2_bytes=50 << 20)
    cached = Bounds(Policy(), replace(LIMIT, facts=facts))
    assert again(timed(0.4, 20.0), timed(0.4, 20.0), cached)[0].standing is CheckOutcome.FLAGGED
    assert again(timed(0.3, 20.0), timed(0.3, 20.0), cached)[0].standing is CheckOutcome.BROKEN


def test_fewer_operations_or_inputs_that_need_not_be_read_are_no_reason_to_refuse() -> None:
    counted = Bounds(Policy(), HardwareLimit("some machine", 10.0, 1.0, 1_000_000, 100_000_000))
    assert again(timed(2.0, 50.0), timed(2.0, 50.0), counted)[0].standing is CheckOutcome.FLAGGED
    partly_read = again(timed(0.1, 4.0), timed(0.1, 4.0))
    assert partly_read[0].standing is CheckOutcome.FLAGGED


def test_a_failure_of_the_second_timing_counts() -> None:
    wrong = CheckResult(Verdict.INCORRECT, 1.0, message="wrong values")
    settled = timing_checks.settled(timed(2.0, 12.0), wrong, BOUNDS, "it is fast")
    assert isinstance(settled, CheckResult)
    assert settled.verdict is Verdict.INCORRECT
    assert "it is fast" in settled.message
