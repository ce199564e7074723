"""The evaluator's clock: what a question costs, when two clocks cannot both be right, what a session makes of it."""

from __future__ import annotations

import random
import statistics
from dataclasses import replace

import pytest

from engine.evaluator.checks import clock as sessions
from engine.evaluator.checks import timing_checks
from engine.evaluator.checks.clock import Agreement, Call, Clock, Session
from engine.evaluator.checks.timing_checks import Recall, Setting
from storage.results.check_records import CheckOutcome

US, MS = 1_000, 1_000_000
RECALL = Recall(2.0, 0.98, 0.97, 0.01)
SETTING = Setting(
    3,
    243,
    "mixed",
    can_vary=True,
    is_memory_read=True,
    cache="hot",
    calls=1,
    rest="",
    load=0.1,
    recall=RECALL,
    observed="",
)


def calls(worker_ns: int, gap_ns: int = 90 * US, count: int = 40, claimed_ns: int | None = None) -> list[Call]:
    """Calls whose gaps differ a little, as real ones do."""
    noise = random.Random(worker_ns + gap_ns)
    gaps = [gap_ns + noise.randrange(8 * US) for _ in range(count)]
    return [Call(worker_ns + gap, claimed_ns or worker_ns, 60 * US) for gap in gaps]


def shared(found: list[Call]) -> list[Call]:
    """The same figures, eight calls to a question."""
    return [replace(call, sharing=8) for call in found]


def session(candidate: list[Call], reference: list[Call]) -> Session:
    found = Session()
    for mine, theirs in zip(candidate, reference, strict=True):
        found.add([mine], [theirs])
    return found


def standing(found: Session, check: str, setting: Setting = SETTING) -> CheckOutcome:
    return next(
        check_record.standing for check_record in timing_checks.of(found, setting) if check_record.check == check
    )


def test_the_question_costs_what_the_reference_did_not_need() -> None:
    found = session(calls(1 * MS), calls(2 * MS))
    mine, theirs = found.pairs[0]
    assert mine == pytest.approx(1.0, abs=0.01)
    assert theirs == pytest.approx(2.0, abs=0.01)


def test_what_the_candidate_claims_moves_no_figure() -> None:
    honest = session(calls(3 * MS), calls(4 * MS))
    lying = session(calls(3 * MS, claimed_ns=1), calls(4 * MS))
    assert honest.pairs == lying.pairs


def test_clocks_that_cannot_both_be_right_disagree() -> None:
    reference = calls(2 * MS)
    assert Agreement.between(calls(2 * MS), reference).holds
    assert not Agreement.between(calls(2 * MS, claimed_ns=5 * US), reference).holds
    assert not Agreement.between(calls(2 * MS, claimed_ns=3 * MS), reference).holds


def test_work_that_the_worker_does_not_see_shows_sooner_where_calls_share_a_question() -> None:
    """Figures of a kernel on a stream of its own, and of the honest kernel that differed most, 8 calls a question."""
    reference = shared(calls(700 * US, 160 * US))
    hidden = calls(2 * US, 305 * US)
    assert Agreement.between(hidden, calls(700 * US, 160 * US)).holds
    assert not Agreement.between(shared(hidden), reference).holds
    assert Agreement.between(shared(calls(150 * US, 198 * US)), reference).holds


def test_a_busy_machine_is_no_lie() -> None:
    disturbed = [Call(c.evaluator_ns + (5 * MS if n % 3 else 0), c.worker_ns) for n, c in enumerate(calls(2 * MS))]
    assert Agreement.between(disturbed, calls(2 * MS)).holds


def test_the_candidate_cannot_widen_the_bound_by_its_own_noise() -> None:
    reference = calls(2 * MS)
    wild = [Call(c.evaluator_ns + n * MS // 2, 5 * US) for n, c in enumerate(calls(2 * MS))]
    assert not Agreement.between(wild, reference).holds


def test_calls_shorter_than_the_clock_can_tell_are_flagged_and_show_as_noise() -> None:
    short = [Call(90 * US + n % 7 * 3 * US, 1 * US) for n in range(40)]
    found = session(short, short[::-1])
    assert standing(found, "clock") is CheckOutcome.FLAGGED
    assert standing(found, "noise") is CheckOutcome.FLAGGED
    assert all(ms > 0 for pair in found.pairs for ms in pair)
    assert Clock.of(short).cost_ns == 89 * US


def test_work_that_could_hide_in_the_time_to_stop_is_flagged_when_it_explains_the_whole_speed_up() -> None:
    assert standing(session(calls(20 * US), calls(100 * US)), "nothing finishes later") is CheckOutcome.FLAGGED
    assert standing(session(calls(2 * MS), calls(4 * MS)), "nothing finishes later") is CheckOutcome.HELD


def test_an_absurd_ratio_of_disturbed_calls_is_no_clean_number() -> None:
    disturbed = [Call(c.evaluator_ns + n % 5 * 3 * MS, c.worker_ns + n % 5 * 3 * MS, waited_ns=n % 5 * 3 * MS)
                 for n, c in enumerate(calls(100 * US))]  # fmt: skip
    found = session(calls(100 * US), disturbed)
    assert sessions.half_width(found.pairs) > 0.3
    assert standing(found, "noise") is CheckOutcome.FLAGGED
    assert standing(found, "machine") is CheckOutcome.FLAGGED


def test_the_reference_against_itself_is_about_one_even_when_the_second_of_two_turns_is_quicker() -> None:
    reference = [
        call for one in calls(2 * MS, count=20) for call in (one, Call(one.evaluator_ns * 9 // 10, one.worker_ns))
    ]
    low, high = sessions.interval(sessions.against_itself(session(calls(2 * MS), reference).pairs))
    assert low < 1 < high


def test_a_system_that_reads_no_memory_and_inputs_that_never_vary_are_said() -> None:
    found = session(calls(2 * MS), calls(2 * MS))
    poor = replace(SETTING, compared=43, contents="the same", can_vary=False, is_memory_read=False)
    assert standing(found, "nothing finishes later", poor) is CheckOutcome.ABSENT
    assert standing(found, "fresh inputs", poor) is CheckOutcome.FLAGGED


def test_a_call_too_short_to_tell_whether_it_remembers_says_which_call_that_is() -> None:
    setting = replace(SETTING, recall=Recall(0.0499, 0.9, 0.9, 0.0483))
    records = timing_checks.of(session(calls(130 * US), calls(460 * US)), setting)
    remembered = next(record for record in records if record.check == "nothing remembered")
    assert remembered.standing is CheckOutcome.ABSENT
    told = "less what asking a worker takes (the latency is the median over turns), and 0.0499 ms is too short"
    assert told in remembered.detail


def test_a_slow_call_of_a_turn_moves_the_median_of_all_calls_and_not_the_latency_which_is_said() -> None:
    found = Session()
    for quick, slow in zip(calls(50 * US), calls(90 * US), strict=True):
        found.add([slow, quick, slow], [slow, quick, slow])
    assert statistics.median(ms for ms, _ in found.pairs) == pytest.approx(0.05, rel=0.1)
    (clock,) = [record for record in timing_checks.of(found, SETTING) if record.check == "clock"]
    assert "of the calls of a turn it counts the quickest of either side" in clock.detail
    assert "over all calls: a median call takes 0.09 ms" in clock.detail
