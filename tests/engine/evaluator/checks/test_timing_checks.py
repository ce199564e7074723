"""A second call on the same inputs: what an honest kernel, the reference and a result cache look like."""

from __future__ import annotations

from dataclasses import replace

import pytest

from engine.evaluator import tasks
from engine.evaluator.checks import timing_checks
from engine.evaluator.checks.clock import Call, Clock
from engine.evaluator.checks.timing_checks import Recall, Twice
from engine.evaluator.toolchains.cpu import CpuToolchain
from storage.results.check_records import DEVICE_TIME, CheckOutcome, CheckRecord, Group
from storage.results.evaluation_results import CheckResult, TimingResult, is_improvement
from storage.results.vocabulary import Verdict
from tests.engine.evaluator.toolchains.kernels import forward

CLOCK = Clock(cost_ns=100_000, spread_ns=10_000)


def twice(first_ms: float, second_ms: float) -> list[Twice]:
    return [(call(first_ms, more), call(second_ms, more)) for more in (0.1, 0.11, 5.0)]


def call(work_ms: float, question_ms: float) -> Call:
    return Call(int((work_ms + question_ms) * 1e6), max(1, int(work_ms * 1e6)))


@pytest.mark.parametrize(
    ("candidate", "reference", "remembers"),
    [
        ((8.0, 7.5), (4.0, 3.9), False),
        ((8.0, 0.5), (4.0, 3.9), True),
        ((8.0, 2.0), (4.0, 1.1), False),
        ((0.01, 0.0), (4.0, 3.9), False),
        ((1.0, 0.1), (1.0, 8.0), True),
        ((8.0, 7.2), (4.0, 12.0), False),
    ],
)
def test_a_second_call_that_work_cannot_explain_is_a_memory(
    candidate: tuple[float, float], reference: tuple[float, float], remembers: bool
) -> None:
    assert Recall.of(CLOCK, twice(*candidate), twice(*reference), []).remembers is remembers


def test_load_that_only_the_first_calls_met_is_no_memory() -> None:
    probes = twice(2.0, 0.14), twice(2.0, 0.5)
    assert Recall.of(CLOCK, *probes, []).remembers
    timed = [call(0.15, more) for more in (0.1, 1.0, 3.0)]
    assert not Recall.of(CLOCK, *probes, timed).remembers
    slow = [call(1.8, more) for more in (0.1, 1.0)]
    assert Recall.of(CLOCK, *probes, slow).remembers


def test_a_question_that_costs_less_the_second_time_is_no_memory() -> None:
    """Microseconds as a real session of a short kernel had them; its calls before the probes met more load."""
    clock = Clock(cost_ns=175_000, spread_ns=28_000)
    timed = [call(0.070, question) for question in (0.230, 0.260)]
    reference = [(call(0.040, 0.130), call(0.024, question)) for question in (0.109, 0.118, 0.130)]
    candidate = [(call(0.075, 0.210), call(0.036, question)) for question in (0.144, 0.153, 0.164)]
    honest = Recall.of(clock, candidate, reference, timed)
    assert not honest.remembers
    assert honest.share > 0.5


def test_what_the_clock_cannot_resolve_is_no_memory() -> None:
    probes = twice(0.3, 0.02), twice(0.3, 0.25)
    assert Recall.of(CLOCK, *probes, []).remembers
    blurred = Recall.of(Clock(cost_ns=100_000, spread_ns=120_000), *probes, [])
    assert not blurred.is_telling
    assert not blurred.remembers


@pytest.mark.parametrize(
    "lines",
    [
        (
            "key = (x.data_ptr(), x._version, tuple(x.shape))",
            "if getattr(self, 'key', None) != key:",
            "    self.key, self.result = key, [ext.swish(x) for _ in range(4)][0]",
            "return self.result.clone()",
        ),
        (
            "key = float(x[0, 0]) + float(x[-1, -1])",
            "if getattr(self, 'key', None) != key:",
            "    self.key, self.result = key, [ext.swish(x) for _ in range(4)][0]",
            "return self.result.clone()",
        ),
    ],
)
def test_a_result_kept_under_any_key_is_refused(cpu: CpuToolchain, lines: tuple[str, ...]) -> None:
    # Long beside what the clock resolves and what a copy takes on a busy machine: a shorter call may pass, at its true
    # speed.
    swish = tasks.find("swish").task("cpu", {"batch_size": 256, "dim": 4096})
    for _ in range(4):
        result = cpu.time(swish, forward(*lines))
        if isinstance(result, CheckResult):
            break
        # Other load made a copy take as long as the work, and the time it took is what it is credited with.
    assert isinstance(result, CheckResult), result.proofs
    assert result.verdict is Verdict.REFUSED, result.message
    assert "remembers" in result.message


REMEMBERED, HONEST, BLURRED = (Recall(10.0, *rest) for rest in ((0.1, 1.0, 0.01), (1.0, 1.0, 0.01), (0.1, 1.0, 9.0)))


@pytest.mark.parametrize(
    ("rounds", "decides"),
    [
        ([HONEST], HONEST),
        ([BLURRED], BLURRED),
        ([REMEMBERED, REMEMBERED], REMEMBERED),
        ([REMEMBERED, HONEST], HONEST),
        ([REMEMBERED, BLURRED, HONEST], HONEST),
        ([REMEMBERED, BLURRED, BLURRED, BLURRED], REMEMBERED),
    ],
)
def test_a_suspicion_is_decided_by_the_next_round_that_can_tell(rounds: list[Recall], decides: Recall) -> None:
    left = list(rounds)
    assert (Recall.confirmed(lambda: left.pop(0)), left) == (decides, [])
    assert decides.remembers is (decides is REMEMBERED)


def busy(low: float, high: float, waited: float) -> TimingResult:
    """A timing whose interval is that, while the reference's threads waited for this share of its calls' time."""
    ratios = [low] * 10 + [(low + high) / 2] + [high] * 10
    return TimingResult((1.0,) * 21, tuple(ratios), evidence={timing_checks.WAITED: f"{waited}"})


def test_of_several_timings_the_first_that_nobody_disturbed_counts_alone() -> None:
    calm = busy(0.98, 1.02, 0.01)
    together = timing_checks.of_sessions([busy(2.0, 2.4, 0.7), calm])
    assert together.speedup_interval == calm.speedup_interval
    assert not together.untrusted
    assert timing_checks.of_sessions([calm]) == calm


def test_clocks_that_differ_because_a_candidate_computes_on_the_host_do_not_show_a_busy_machine() -> None:
    apart = CheckRecord(Group.TIMING, DEVICE_TIME, CheckOutcome.FLAGGED, "the device's does not decide")
    timed = replace(busy(0.2, 0.3, 0.01), proofs=(apart,), device_interval=(0.2, 40.0))
    assert timing_checks.is_disturbed(timed)
    assert not timing_checks.is_disturbed(replace(timed, evidence={timing_checks.COPIED: "yes"}))


def test_timings_on_a_busy_machine_cover_each_other_and_decide_nothing_where_that_is_wide() -> None:
    agreeing = timing_checks.of_sessions([busy(1.0, 1.1, 0.7), busy(1.02, 1.15, 0.6), busy(1.05, 1.12, 0.8)])
    assert agreeing.speedup_interval == (1.0, 1.15)
    assert not agreeing.untrusted
    apart = timing_checks.of_sessions([busy(2.1, 2.3, 0.7), busy(0.6, 1.0, 0.6), busy(0.9, 1.1, 0.8)])
    assert apart.speedup_interval == (0.6, 2.3)
    assert apart.untrusted == "the machine is busy"
    assert not is_improvement(apart, agreeing)
    assert "waited for 80% of its calls' time" in apart.proofs[-1].detail
    assert "nothing is decided by it" in apart.proofs[-1].detail
