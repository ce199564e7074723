"""Profiles of real kernels, and the pure parts behind them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from engine.evaluator import tasks
from engine.evaluator.processes import observing
from engine.evaluator.profiling import cpu_profile, perf, sampled_lines
from engine.evaluator.profiling.cpu_profile import Bound, Observation, Report
from engine.evaluator.profiling.roof import Roof
from engine.evaluator.tasks import Task
from engine.evaluator.toolchains.cpu import CpuToolchain
from storage.results.hardware_limit import HardwareLimit
from storage.results.profile_results import ProfileResult
from tests.engine.evaluator.toolchains import kernels


def test_a_scalar_kernel_is_recognised_by_its_instructions_and_its_one_thread(cpu: CpuToolchain) -> None:
    task = tasks.find("swish").task("cpu", {"batch_size": 64, "dim": 16384})
    assert cpu.compile(task, kernels.SWISH).is_ok
    result = cpu.profile(task, kernels.SWISH)
    metrics = {metric.name: metric.value for metric in result.metrics}
    assert result.bound == "compute"
    assert metrics["scalar instructions"] > metrics["packed instructions"]
    assert metrics["libm calls instructions"] >= 1
    assert "expf" in result.summary
    assert "runs on one thread" in result.summary
    assert metrics["working threads"] == 1
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


def test_a_limit_that_a_kernel_has_beaten_is_raised_to_that_kernel() -> None:
    limit = HardwareLimit("d", bandwidth_gb_s=20.0, peak_gflop_s=100.0, min_bytes=2 * 4 * 16 * 4096, min_flop=0)
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
    assert cpu_profile.bound_of(memory, compute, latency_ms, faults, packed) is expected


def test_unsupported_counters_are_left_out_instead_of_zero() -> None:
    text = "<not supported>,,cycles,0,0.00,,\n1234,,instructions:u,10,100.00,,\n<not counted>,,cache-misses,0,0.00,,\n"
    assert perf._counts(text) == {"instructions": 1234.0}


@pytest.mark.skipif(shutil.which("perf") is None or shutil.which("addr2line") is None, reason="no perf here")
def test_samples_fall_on_the_lines_of_the_loop_that_takes_the_time(cpu: CpuToolchain) -> None:
    task, source = tasks.find("swish").task("cpu", {"batch_size": 64, "dim": 16384}), kernels.swish()
    result = cpu.profile(task, source)
    texts = source.splitlines()
    assert result.samples >= sum(line.samples for line in result.lines) > 0
    assert "std::exp(-X(i))" in texts[result.lines[0].line - 1]
    assert {(line.file, line.stall) for line in result.lines} == {("", "")}


def test_a_sample_outside_the_candidates_libraries_is_of_no_line(tmp_path: Path) -> None:
    (tmp_path / "own.so").write_bytes(b"no library")
    mapping = "PERF_RECORD_MMAP2 7/7: [0x7000(0x1000) @ 0x2000 fe:00 1 0]: r-xp {}\n"
    script = mapping.format("/w/1.so") + mapping.format("/usr/libm.so").replace("7000", "9000") + " 7010\n 9010\n"
    assert sampled_lines.of(script, {"/w/1.so": str(tmp_path / "own.so")}) == ([], 2)
    assert sampled_lines.of("", {}) == ([], 0)


def test_symbols_that_are_called_alike_are_one_function() -> None:
    rows = [(0.5, "1.so", "gemm"), (0.3, "libc.so", "malloc"), (0.2, "1.so", "gemm"), (0.1, "2.so", "gemm")]
    assert perf._added_up(rows) == [(0.7, "1.so", "gemm"), (0.3, "libc.so", "malloc"), (0.1, "2.so", "gemm")]


@pytest.mark.skipif(shutil.which("perf") is None, reason="no perf here")
def test_sampling_copies_no_libraries_to_the_users_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as busy:
        for seconds in (0.5, 2.0, 8.0):  # perf itself starts late on a busy machine
            sampling = perf.Sampling(busy.pid, tmp_path, ())
            time.sleep(seconds)
            shares, _ = sampling.finish()
            if shares:
                break
        busy.kill()
    assert shares
    assert {path.name for path in tmp_path.iterdir()} <= {"perf.data", "perf.data.old"}


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
    found = perf._counted(listing)
    assert (found.packed, found.scalar, found.fma, found.divides) == (1, 1, 1, 1)
    assert (found.spills, found.libm_calls, found.libm_names) == (1, 1, ("expf",))
    assert found.ymm == 0
    assert found.packed_share == 0.5


OPENMP = kernels.SWISH.replace(
    "  for (int i = 0", "#pragma omp parallel for\n  for (int i = 0"
)  # a team of threads that share the loop


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one processor: a team of one")
def test_an_openmp_kernel_is_known_to_use_its_threads_on_a_busy_machine(cpu: CpuToolchain) -> None:
    task = tasks.find("swish").task("cpu", {"batch_size": 64, "dim": 16384})
    assert cpu.compile(task, OPENMP).is_ok
    busy = [subprocess.Popen([sys.executable, "-c", "while 1: pass"]) for _ in os.sched_getaffinity(0)]
    try:
        result = cpu._profile(task, OPENMP, None)  # once: it is disturbed, of course
    finally:
        for child in busy:
            child.kill()
            child.wait()
    metrics = {metric.name: metric.value for metric in result.metrics}
    assert metrics["working threads"] == len(os.sched_getaffinity(0))
    assert "one thread" not in result.summary


def test_threads_are_counted_by_who_worked_and_not_by_how_much() -> None:
    assert observing.ran_threads([900, 850, 0, 3], 1753) == 2
    assert observing.ran_threads([500, 480], 980) == 2, "half of each went to other programs"
    assert observing.ran_threads([1000], 1000) == 1
    assert observing.ran_threads([1000], 1900) is None, "a thread has ended that did as much"


SEEN = Observation(
    calls=40, latency_ms=24.6, wall_ms=25.0, processor_ms=26.0, waited_share=0.9, ran=2, system_share=0.0,
    minor_faults=0, major_faults=0, voluntary_switches=0, involuntary_switches=0, threads=2, min_bytes=300_000_000,
    min_flop=0,
)  # fmt: skip
ROOF = Roof("d", 2, {"1000": 40.0}, 100.0)


def test_a_call_has_one_time_and_one_share_of_the_limit_that_of_the_timing() -> None:
    result = Report(SEEN, None, ROOF, timed_ms=20.0).result("source", 1.0)
    metrics = {metric.name: metric.value for metric in result.metrics}
    assert metrics["latency"] == 0.02
    assert metrics["memory throughput share"] == pytest.approx(300e6 / 0.02 / 40e9)
    assert "Latency 20 ms" in result.summary
    assert result.evidence == {"profiled call": "24.6 ms; timed without the profiler: 20 ms"}
    assert not result.disturbance


@pytest.mark.parametrize(("ran", "processors", "bound"), [(1, 2, "one thread"), (2, 2, "latency"), (1, 1, "latency")])
def test_work_on_one_of_several_processors_is_bound_by_its_one_thread(ran: int, processors: int, bound: str) -> None:
    report = Report(replace(SEEN, ran=ran, threads=processors), None, ROOF)
    assert report.bound == bound
    assert report.result("source", 1.0).summary.startswith(f"Bound: {bound}. ")


def test_a_profile_much_slower_than_the_timing_was_disturbed() -> None:
    apart = Report(SEEN, None, ROOF, timed_ms=15.0).result("source", 1.0)
    assert apart.disturbance == "the profiled call took 24.6 ms, the timed one 15 ms"
    alone = Report(SEEN, None, ROOF).result("source", 1.0)
    assert alone.disturbance == "threads waited for a processor during 90% of the calls' time"


class Unquiet(CpuToolchain):
    """Its first profiles are disturbed."""

    def __init__(self, scratch: Path, disturbed: int) -> None:
        super().__init__(scratch)
        self.disturbed, self.taken = disturbed, 0

    def _profile(self, task: Task, source: str, timed_ms: float | None) -> ProfileResult:
        self.taken += 1
        evidence = {"disturbed": "by something"} if self.taken <= self.disturbed else {}
        return ProfileResult("h", (), "memory", "s", evidence=evidence)


@pytest.mark.parametrize(("disturbed", "taken", "is_told"), [(0, 1, False), (1, 2, False), (9, 2, True)])
def test_a_disturbed_profile_is_taken_once_more(
    tmp_path: Path, small_swish: Task, disturbed: int, taken: int, is_told: bool
) -> None:
    toolchain = Unquiet(tmp_path, disturbed)
    assert bool(toolchain.profile(small_swish, "s").disturbance) is is_told
    assert toolchain.taken == taken
