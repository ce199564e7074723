"""Which share of a task's operations a profile shows to be executed, and what that makes of the run's limit."""

from __future__ import annotations

from dataclasses import replace

import pytest

from storage.results import counters
from storage.results.evaluation_results import CheckResult
from storage.results.hardware_limit import HardwareLimit
from storage.results.policy import Policy
from storage.results.profile_results import LAUNCHES, Metric, ProfileResult, executed_share
from storage.results.vocabulary import Verdict
from storage.run import events as ev
from storage.run.record import Record
from storage.run.settings import Origin
from tests.samples import sample_settings

# Kernel 3 of the example 72_ConvTranspose3d_BatchNorm_AvgPool_AvgPool on an H200: pooled before it is multiplied.
RATES = {"memory": 4.27e12, "fp32": 65.98e12, "tf32": 439.1e12, "bf16": 869.5e12, "fp8": 1.69e15}
LIMIT = HardwareLimit("NVIDIA H200", 8017.1, 289845.8, 38_995_336, 5_435_817_984)
POOLED = {
    "device time": 6.18e-5, counters.TENSOR_BUSY: 0.08, "fp32 operations": 1.2434e9, "fp16 operations": 3.06e6,
    "fp64 operations": 1.47e7,
}  # fmt: skip


def profile_of(values: dict[str, float], evidence: dict[str, str] | None = None) -> ProfileResult:
    metrics = tuple(Metric(name, "1", value) for name, value in values.items())
    return ProfileResult("h", metrics, "latency", "", ceilings=RATES, evidence=evidence or {})


def test_what_a_profile_counts_is_told_by_the_operations_of_the_task() -> None:
    assert executed_share(profile_of(POOLED), LIMIT.min_flop) == pytest.approx(0.232, abs=0.001)
    split = {"device time": 5e-4, counters.TENSOR_BUSY: 70.0, "fp32 operations": 1e9, "tf32 operations": 1.6e10}
    assert executed_share(profile_of(split), LIMIT.min_flop) == pytest.approx(3.13, abs=0.01)
    triangle = {"device time": 2.6e-4, counters.TENSOR_BUSY: 70.75, "fp32 operations": 5e8, "tf32 operations": 7.7e10}
    assert executed_share(profile_of(triangle), 137_438_953_472) == pytest.approx(0.564, abs=0.001)


@pytest.mark.parametrize(
    "values",
    [
        POOLED | {counters.TENSOR_BUSY: 52.0},  # busy tensor cores of which the profiler counted nothing
        {name: value for name, value in POOLED.items() if name != counters.TENSOR_BUSY},
        {name: value for name, value in POOLED.items() if not name.endswith("operations")},
    ],
)
def test_nothing_is_known_of_a_profile_that_may_have_missed_operations(values: dict[str, float]) -> None:
    assert executed_share(profile_of(values), LIMIT.min_flop) is None
    assert executed_share(profile_of(POOLED, {LAUNCHES: "only the first 32 were profiled"}), LIMIT.min_flop) is None
    assert executed_share(profile_of(POOLED), 0) is None


def run_of(*profiles: ProfileResult, verdict: Verdict = Verdict.PASSED, is_thin: bool = False) -> Record:
    record = Record.at_start(sample_settings("r"), is_thin)
    record.apply(ev.LimitMeasured(LIMIT))
    for number, profile in enumerate(profiles, 1):
        name = f"c{number:03}"
        record.apply(ev.CandidateCreated(number, name, None, None, 0, 0, 0, Origin.SYNTHESIS, "blob", None, 1, 0, "s"))
        record.apply(ev.Profiled(number, name, profile, None))
        record.apply(ev.Checked(number, name, CheckResult(verdict, 1.0)))
    return record


@pytest.mark.parametrize("is_thin", [True, False])
def test_a_limit_is_not_known_once_a_correct_kernel_does_without_part_of_its_operations(is_thin: bool) -> None:
    whole = profile_of(POOLED | {"fp32 operations": 5.0e9})
    for profiles, is_known in (((whole,), True), ((whole, profile_of(POOLED)), False)):
        limit = run_of(*profiles, is_thin=is_thin).limit
        assert limit is not None
        assert (limit.is_known, limit.is_undercut) == (is_known, not is_known)
        assert limit.reached_at(0.0625) == (pytest.approx(0.3, abs=0.001) if is_known else None)
    record = run_of(whole, profile_of(POOLED), is_thin=is_thin)
    record.apply(ev.LimitMeasured(LIMIT))
    assert record.limit
    assert record.limit.executed_share == pytest.approx(0.232, abs=0.001), "one that is measured again is held against"


def test_a_limit_stands_that_bytes_set_or_that_only_a_wrong_kernel_undercuts() -> None:
    wrong = run_of(profile_of(POOLED), verdict=Verdict.INCORRECT).limit
    assert wrong
    assert wrong.is_known
    assert replace(LIMIT, min_bytes=10**12, executed_share=0.2).is_known
    several = Record.at_start(replace(sample_settings("r"), policy=Policy(workloads=({"N": 8}, {"N": 1024}))))
    several.apply(ev.LimitMeasured(LIMIT))
    several.apply(ev.CandidateCreated(1, "c001", None, None, 0, 0, 0, Origin.SYNTHESIS, "blob", None, 1, 0, "s"))
    several.apply(ev.Profiled(1, "c001", profile_of(POOLED), None))
    assert several.candidates["c001"].executed_share is None, "of several workloads one alone is profiled"
