"""Profiles of real kernels, and the pure parts behind them."""

from __future__ import annotations

import json

import pytest

from engine import tasks
from engine.errors import ProfileUnavailable
from engine.profiling import bound, counters, instructions
from engine.profiling.bound import Bound
from engine.profiling.roof import Roof
from engine.tasks import Task
from engine.toolchains.cpu import CpuToolchain
from tests.engine.toolchains import kernels


def test_a_scalar_kernel_is_recognised_by_its_instructions_and_its_one_thread(cpu: CpuToolchain) -> None:
    task = tasks.find("swish").task("cpu", {"batch_size": 64, "dim": 16384})
    assert cpu.compile(task, kernels.SWISH).is_ok
    result = cpu.profile(task, kernels.SWISH)
    metrics = {metric.name: metric.value for metric in result.metrics}
    assert result.bound == "compute"
    assert metrics["scalar instructions"] > metrics["packed instructions"]
    assert metrics["libm calls instructions"] >= 1
    assert "expf" in result.summary
    assert metrics["memory throughput"] == pytest.approx(2 * 64 * 16384 * 4 / metrics["latency"])
    assert len(result.summary.split("\n")) <= 25
    assert json.loads(result.raw)["roof"]["peak_gflop_s"] > 0
    assert not {metric.name.removesuffix(" per call") for metric in result.metrics} & set(result.missing)


def test_a_vector_kernel_shows_packed_instructions(cpu: CpuToolchain) -> None:
    task = tasks.find("swish").task("cpu", {"batch_size": 64, "dim": 16384})
    result = cpu.profile(task, kernels.swish(loop=kernels.FAST_LOOP))
    metrics = {metric.name: metric.value for metric in result.metrics}
    assert metrics["packed instructions"] > metrics["scalar instructions"]
    assert metrics["libm calls instructions"] == 0


def test_a_candidate_that_does_not_run_has_no_profile(cpu: CpuToolchain, small_swish: Task) -> None:
    with pytest.raises(ProfileUnavailable, match="SIGSEGV"):
        cpu.profile(small_swish, kernels.swish(loop="  volatile float* p = nullptr; *p = 1.f;\n"))


def test_a_second_look_at_the_machine_never_lowers_its_limits(cpu: CpuToolchain, small_swish: Task) -> None:
    first, second = cpu.limit(small_swish), cpu.limit(small_swish)
    assert second.peak_gflop_s >= first.peak_gflop_s
    assert second.bandwidth_gb_s >= first.bandwidth_gb_s
    assert first.min_bytes == 2 * 16 * 4096 * 4
    assert first.min_flop == 0
    assert first.limit_ms > 0


def test_a_limit_that_a_kernel_has_beaten_is_raised_to_that_kernel(cpu: CpuToolchain, small_swish: Task) -> None:
    limit = cpu.limit(small_swish)
    raised = limit.raised_to(limit.limit_ms / 2).raised_to(limit.limit_ms / 4)
    assert raised.limit_ms == pytest.approx(limit.limit_ms / 4)
    assert raised.device.count("raised to what a kernel reached") == 1


def test_a_working_set_gets_the_rate_of_the_largest_measured_size_it_covers() -> None:
    roof = Roof("d", 2, {"1000": 400.0, "10000": 100.0, "100000": 40.0}, 1.0)
    assert roof.bandwidth_gb_s(10) == 400.0
    assert roof.bandwidth_gb_s(15000) == 100.0
    assert roof.bandwidth_gb_s(10**9) == 40.0


@pytest.mark.parametrize(
    ("memory", "compute", "latency_ms", "faults", "packed", "expected"),
    [
        (0.8, 0.1, 5.0, 0, 1.0, Bound.MEMORY),
        (0.1, 0.9, 5.0, 0, 1.0, Bound.COMPUTE),
        (0.1, 0.0, 5.0, 0, 0.0, Bound.COMPUTE),
        (0.1, 0.1, 5.0, 0, 1.0, Bound.LATENCY),
        (0.9, 0.1, 0.01, 0, 1.0, Bound.OVERHEAD),
        (0.3, 0.1, 10.0, 16000, 1.0, Bound.OVERHEAD),
    ],
)
def test_bound_follows_the_nearest_roof(
    memory: float, compute: float, latency_ms: float, faults: float, packed: float, expected: Bound
) -> None:
    assert bound.of(memory, compute, latency_ms, faults, packed) is expected


def test_unsupported_counters_are_left_out_instead_of_zero() -> None:
    text = "<not supported>,,cycles,0,0.00,,\n1234,,instructions:u,10,100.00,,\n<not counted>,,cache-misses,0,0.00,,\n"
    assert counters._counts(text) == {"instructions": 1234.0}


def test_instructions_are_counted_in_the_candidates_own_functions_only() -> None:
    listing = (
        "0000000000001000 <kernel(float*)>:\n"
        "    1000:\tvfmadd231ps %zmm0,%zmm1,%zmm2\n"
        "    1006:\tvdivss %xmm0,%xmm1,%xmm2\n"
        "    100a:\tvmovaps %zmm3,-0x40(%rbp)\n"
        "    1010:\tcall   4060 <expf@plt>\n"
        "0000000000002000 <std::string::append()>:\n"
        "    2000:\tvaddps %ymm0,%ymm1,%ymm2\n"
    )
    found = instructions._counted(listing)
    assert (found.packed, found.scalar, found.fma, found.divides) == (1, 1, 1, 1)
    assert (found.spills, found.libm_calls, found.libm_names) == (1, 1, ("expf",))
    assert found.ymm == 0
    assert found.packed_share == 0.5
