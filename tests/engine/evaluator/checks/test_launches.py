"""Whose the kernels are that ran on a GPU, and what the driver's records of them say about a timing. Needs no GPU."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from torch._C._autograd import DeviceType

from engine.evaluator.build.device import installation
from engine.evaluator.checks import timing_checks
from engine.evaluator.checks.candidate_failures import Failure
from engine.evaluator.checks.clock import Call, DeviceClock, Session, TracedCall
from engine.evaluator.checks.launches import Launched, Launches, Trace, kernel_names
from engine.evaluator.processes import observer
from storage.results.check_records import MORE_THAN_THE_CALL, OTHER_PAIRS, CheckOutcome, CheckRecord, as_told
from storage.results.evaluation_results import TimedWorkload, TimingResult, is_improvement
from storage.results.policy import EVERYTHING, Policy
from storage.results.vocabulary import Verdict
from tests.engine.evaluator.build.test_device_build import has_nvcc
from tests.engine.evaluator.checks.test_clock import SETTING, US, calls, session

SOURCE = """
namespace { template <int N> __global__ void scaled(const float* x, float* y) { y[0] = N * x[0]; } }
static __global__ void hidden(float* y) { y[0] = 1; }
extern "C" __global__ void plain(float* y) { y[0] = 2; }
extern "C" void run(float* x) { scaled<3><<<1, 1>>>(x, x); hidden<<<1, 1>>>(x); plain<<<1, 1>>>(x); }
"""
SCALED = "void (anonymous namespace)::scaled<3>(float const*, float*)"
GEMM = "sm80_xmma_gemm_f32f32_tilesize128x64x8_execute_kernel__5x_cublas"
OWN = 1 << 20


@dataclass(frozen=True)
class Event:
    """As the profiler tells one; figures as read on an H200."""

    named: str
    correlation: int = 0
    linked: int = 0
    took: int = 0
    shape: tuple[int, ...] = ()
    is_on_device: bool = False
    began: int = 0

    def device_type(self) -> DeviceType:
        kind = DeviceType.CUDA if self.is_on_device else DeviceType.CPU
        return DeviceType(int(kind))  # type: ignore[call-overload, no-any-return, unused-ignore]  # as a real one, new

    def name(self) -> str:
        return self.named

    def correlation_id(self) -> int:
        return self.correlation

    def linked_correlation_id(self) -> int:
        return self.linked

    def start_ns(self) -> int:
        return self.began

    def duration_ns(self) -> int:
        return self.took

    def shapes(self) -> Sequence[Sequence[int]]:
        return [self.shape]

    def dtypes(self) -> Sequence[str]:
        return ["float"]


HOST = [
    Event("aten::fill_", 1538, shape=(OWN,)),
    Event("aten::mm", 1544, shape=(8, 8)),
    Event("aten::copy_", 1547, shape=(8,)),
    Event("cudaLaunchKernel", 537, linked=1538),
]
DEVICE = [
    Event("fill_kernel", 537, 1538, 38_080, is_on_device=True),
    Event(SCALED, 552, 0, 4_927, is_on_device=True),
    Event(SCALED, 553, 0, 5_073, is_on_device=True),
    Event(GEMM, 567, 0, 60_000, is_on_device=True),
    Event(GEMM, 579, 1544, 56_000, is_on_device=True),
    Event("Memcpy DtoD (Device -> Device)", 591, 1547, 2_000, is_on_device=True),
]


def trace(*events: Event) -> Trace:
    return Trace.read({"kernels": observer.launches([*HOST, *events], OWN)})


@pytest.mark.skipif(not has_nvcc(), reason="no nvcc here")
def test_names_are_those_under_which_a_library_registers_its_kernels(tmp_path: Path) -> None:
    source, library = tmp_path / "a.cu", tmp_path / "a.so"
    source.write_text(SOURCE)
    nvcc = installation.find("sm_90a").nvcc
    subprocess.run(
        [nvcc, "-arch=sm_90a", "-Xcompiler", "-fPIC", "-shared", str(source), "-o", str(library)], check=True
    )
    names = kernel_names(library)
    assert {SCALED, "hidden(float*)", "plain"} <= names
    assert GEMM not in names


def test_what_the_worker_overwrites_itself_is_counted_apart() -> None:
    found = trace(*DEVICE)
    assert found.attached
    assert [(row.name, row.by, row.launches, row.nanoseconds) for row in found.rows] == [
        (SCALED, "", 2, 10_000),
        (GEMM, "", 1, 60_000),
        (GEMM, "aten::mm", 1, 56_000),
        ("Memcpy DtoD (Device -> Device)", "aten::copy_", 1, 2_000),
    ]
    assert (found.launches, found.nanoseconds) == (5, 128_000)
    assert found.calls == ((5, 128_000),)


def turn(*calls: Sequence[int]) -> Trace:
    """A turn of calls, each with kernels that take so many nanoseconds, as the driver tells it: in any order."""
    flushes = [Event("aten::zero_", 100 + number, shape=(OWN,)) for number in range(len(calls))]
    ran = []
    for number, kernels in enumerate(calls):
        began = 1_000_000 * number
        ran.append(Event("memset", 0, 100 + number, 40_000, is_on_device=True, began=began))
        ran += [
            Event(SCALED, 0, 0, took, is_on_device=True, began=began + 50_000 + 10 * place)
            for place, took in enumerate(kernels)
        ]
    return Trace.read({"kernels": observer.launches([*flushes, *reversed(ran)], OWN)})


def test_what_each_call_of_a_turn_launched_is_told_apart() -> None:
    assert turn([5_000, 1_000], [], [7_000]).calls == ((2, 6_000), (0, 0), (1, 7_000))


@pytest.mark.parametrize(
    ("calls", "reference", "is_ahead"),
    [
        ([[30_000]] + [[]] * 7, [[4_000]] * 8, True),
        ([[30_000]] + [[1_500]] * 7, [[4_000]] * 8, True),
        ([[30_000]] + [[6_000]] * 7, [[12_000]] + [[4_000]] * 7, False),
        ([[4_000]] * 8, [[4_000]] * 8, False),
        ([[]] * 8, [[4_000]] * 8, False),
        ([[30_000], [], []], [[4_000]] * 3, False),
    ],
    ids=["one launch for all", "with launches that do nothing", "a slow start of both", "alike", "none", "few calls"],
)
def test_a_first_call_that_does_the_work_of_a_turn_is_seen(
    calls: list[list[int]], reference: list[list[int]], is_ahead: bool
) -> None:
    sides = [
        [TracedCall(Call(60 * US, 0, sharing=8), True, 5_000, 1, turn(*side).calls)] * 5 for side in (calls, reference)
    ]
    assert DeviceClock.of(short(), *sides).computes_ahead is is_ahead


def on_host(*names: str) -> Failure | None:
    rows = tuple(Launched(name, "aten::copy_", 1, 2_000) for name in names)
    return Launches(Policy(), own={SCALED}).add(Trace(True, rows), 1, "forward")


def test_a_result_that_comes_from_the_host_is_refused() -> None:
    there, back = "Memcpy DtoH (Device -> Pageable)", "Memcpy HtoD (Pageable -> Device)"
    failure = on_host(there, back)
    assert failure is not None
    assert "computed on the host" in failure.message
    assert on_host(there) is None
    assert on_host(back) is None
    assert on_host(there, back, SCALED) is None


def test_a_kernel_that_no_operator_launched_and_no_own_library_holds_is_refused() -> None:
    seen = Launches(Policy(), own={SCALED})
    failure = seen.add(trace(*DEVICE), 1, "forward")
    assert failure is not None
    assert failure.verdict is Verdict.REFUSED
    assert f"{GEMM} (47% of the device's time)" in failure.message
    assert SCALED not in failure.message
    assert [(row.origin, row.by) for row in seen.table] == [
        ("foreign", ""),
        ("PyTorch", "aten::mm"),
        ("own", ""),
        ("PyTorch", "aten::copy_"),
    ]


def test_own_kernels_and_what_operators_launch_pass_here() -> None:
    seen = Launches(Policy(), own={SCALED})
    held = [event for event in DEVICE if event.correlation != 567]
    assert seen.add(trace(*held), 2, "forward") is None
    assert seen.detail == "own kernels: 15% of the device's time in 2 traced calls"
    assert seen.table[1] == replace(seen.table[1], name=SCALED, launches=1.0, microseconds=5.0)


def test_one_trial_on_a_path_of_its_own_does_not_make_a_kernels_time() -> None:
    seen = Launches(Policy(), own={SCALED})
    for took in (5_000, 6_000, 8_000_000, 4_000):  # the third has infinities
        assert seen.add(trace(DEVICE[0], Event(SCALED, 552, 0, took, is_on_device=True)), 1, "forward") is None
    (row,) = seen.table
    assert (row.launches, row.microseconds, row.share) == (1.0, 5.5, 1.0)


def test_where_everything_is_left_to_pytorch_no_kernel_is_foreign_enough() -> None:
    assert Launches(Policy(library_operators=(EVERYTHING,))).add(trace(*DEVICE), 1, "forward") is None


def test_records_that_do_not_come_are_told_and_no_zero() -> None:
    seen = Launches(Policy())
    assert seen.add(trace(), 1, "forward") is None
    assert "cannot be had here" in seen.detail
    assert seen.table == ()


@pytest.mark.parametrize(
    "told",
    [{"rows": []}, {"overwrites": 1, "rows": [[1, 2]]}, {"overwrites": "x", "rows": []}],
)
def test_a_malformed_tale_is_named(told: object) -> None:
    with pytest.raises(ValueError, match="malformed"):
        Trace.read({"kernels": told})


@pytest.mark.parametrize("seen", [None, {}, {"kernels": None}])
def test_who_was_to_be_recorded_and_tells_nothing_is_no_gap(seen: object) -> None:
    with pytest.raises(ValueError, match="malformed"):
        Trace.read(seen)


def device(
    mine_us: float, theirs_us: float, launches: float = 1, traced_us: float = 0, slower: float = 1
) -> DeviceClock:
    """A second clock over a session of 60 us and 120 us a call."""
    mine = Call(round((traced_us or 62) * US), 0, sharing=16)
    theirs = Call(round(120 * slower * US), 0, sharing=16)
    return DeviceClock.of(
        short(),
        [TracedCall(mine, mine_us > 0, mine_us * US, launches)] * 3,
        [TracedCall(theirs, True, theirs_us * US, 1)] * 3,
    )


def short() -> Session:
    """Calls of 60 us against 120 us, a question's cost of 5 us in both."""
    return session(calls(55 * US, 5 * US), calls(115 * US, 5 * US))


def test_on_short_calls_the_devices_clock_decides_where_the_evaluators_leaves_it_open() -> None:
    found = short()
    assert timing_checks.by_device(found, replace(SETTING, device=device(50, 104))) == [(0.05, 0.104)] * 3
    agreed = second(device(50, 104))
    assert agreed.standing is CheckOutcome.HELD
    assert "the device's clock decides" in agreed.detail
    assert timing_checks.device_interval(found, replace(SETTING, device=device(50, 104))) is None
    proofs = timing_checks.of(found, replace(SETTING, device=device(50, 104)))
    assert next(one for one in proofs if one.check == "noise").detail.startswith(
        "the pairs of this timing alone tell the speed-up within 0.0%"
    )


def test_where_the_two_clocks_disagree_the_interval_covers_both() -> None:
    found, setting = short(), replace(SETTING, device=device(50, 150))
    assert timing_checks.by_device(found, setting) == []
    assert second(device(50, 150)).standing is CheckOutcome.FLAGGED
    bounds = timing_checks.device_interval(found, setting)
    assert bounds is not None
    assert bounds == pytest.approx((3.0, 3.0))
    mine, theirs = zip(*found.pairs, strict=True)
    timed = TimingResult(mine, theirs, device_interval=bounds)
    plain = TimingResult(mine, theirs)
    assert plain.speedup_interval[1] < 2.5
    assert timed.speedup_interval == (plain.speedup_interval[0], bounds[1])
    assert timed.speedup == plain.speedup
    assert timed.speedup * (1 + timed.noise) == pytest.approx(bounds[1])
    by_the_devices_clock = TimingResult((0.05,) * 20, (0.15,) * 20)  # the same kernel, timed once more
    assert by_the_devices_clock.speedup == pytest.approx(3.0)
    assert not is_improvement(by_the_devices_clock, timed)
    workloads = tuple(TimedWorkload({"rows": rows}, timed) for rows in (1, 2))
    of_two = TimingResult(mine, theirs, workloads=workloads)
    assert of_two.speedup * (1 + of_two.noise) == pytest.approx(of_two.speedup_interval[1])


def test_a_busy_host_makes_longer_calls_short_for_the_evaluators_clock() -> None:
    """A call of 47 us that shows as 130 us, by a clock whose questions cost 5 to 45 us."""
    theirs = [Call(680 * US + gap, 680 * US) for gap in (5 * US, 25 * US, 45 * US) * 4]
    blurred = session(calls(110 * US, 20 * US, count=12), theirs)
    device = DeviceClock([(0.047, 0.68)] * 3)
    assert timing_checks.device_interval(blurred, replace(SETTING, device=device)) == pytest.approx(
        (14.47, 14.47), 0.01
    )


def test_where_the_driver_gives_no_records_the_interval_is_widened_by_the_clocks_resolution() -> None:
    found, setting = short(), replace(SETTING, device=DeviceClock([]))
    bounds = timing_checks.device_interval(found, setting)
    assert bounds is not None
    mine, theirs = found.pairs[0]
    assert bounds[0] < theirs / mine < bounds[1]
    assert second(DeviceClock([])).standing is CheckOutcome.ABSENT
    assert "widened" in second(DeviceClock([])).detail


def test_long_calls_and_the_cpu_keep_the_interval_of_the_pairs() -> None:
    long = session(calls(1000 * US), calls(2000 * US))
    assert timing_checks.device_interval(long, replace(SETTING, device=DeviceClock([(1.0, 2.0)]))) is None
    assert timing_checks.by_device(long, replace(SETTING, device=DeviceClock([(1.0, 2.0)]))) == []
    assert timing_checks.device_interval(short(), SETTING) is None
    assert not [one for one in timing_checks.of(short(), SETTING) if one.check == "device time"]


def test_where_the_host_is_slower_than_the_device_for_the_reference_too_the_devices_clock_decides() -> None:
    """Calls of 15 us on the device, which the host gives it every 60 and 120 us: the evaluator times the host."""
    host_bound = replace(SETTING, device=device(15, 14.5))
    assert timing_checks.by_device(short(), host_bound) == [(0.015, 0.0145)] * 3
    assert timing_checks.device_interval(short(), host_bound) is None


def test_below_a_millisecond_the_devices_clock_decides_where_both_agree() -> None:
    medium = session(calls(400 * US), calls(800 * US))
    assert timing_checks.by_device(medium, replace(SETTING, device=DeviceClock([(0.4, 0.81)] * 3))) != []
    disagreeing = replace(SETTING, device=DeviceClock([(0.2, 0.81)] * 3, launches=40))
    assert timing_checks.by_device(medium, disagreeing) == []
    assert timing_checks.device_interval(medium, disagreeing) is None, "the evaluator's clock is sharp enough alone"


@pytest.mark.parametrize(
    "clock",
    [device(8, 100), replace(device(50, 104), asks_the_host=True)],
    ids=["launches do not explain the call", "numbers went to the host"],
)
def test_what_may_have_been_done_on_the_host_is_not_timed_by_the_devices_clock(clock: DeviceClock) -> None:
    assert timing_checks.by_device(short(), replace(SETTING, device=clock)) == []
    assert timing_checks.device_interval(short(), replace(SETTING, device=clock)) is not None
    assert "does not decide" in second(clock).detail


def second(clock: DeviceClock, host_ns: float = 0) -> CheckRecord:
    """The check of the second clock in a short session."""
    proofs = timing_checks.of(short(), replace(SETTING, device=clock, host_ns=host_ns))
    return next(one for one in proofs if one.check == "device time")


@pytest.mark.parametrize(
    ("clock", "standing"),
    [
        (device(50, 104), CheckOutcome.HELD),
        (device(8, 100), CheckOutcome.FLAGGED),
        (device(8, 17, 4), CheckOutcome.HELD),
    ],
    ids=["agree", "apart", "launches explain it"],
)
def test_a_call_that_is_longer_than_its_kernels_and_launches_is_flagged(
    clock: DeviceClock, standing: CheckOutcome
) -> None:
    assert second(clock).standing is standing, second(clock).detail


def test_kernels_that_take_longer_than_their_call_are_explained() -> None:
    timed = session(calls(1000 * US), calls(2000 * US))
    longer, shorter = (
        timing_checks.of(timed, replace(SETTING, device=DeviceClock([pair] * 3, 1)))[1]
        for pair in ((1.1, 2.1), (0.99, 2.0))
    )
    assert longer.standing is shorter.standing is CheckOutcome.HELD
    assert longer.detail.endswith(MORE_THAN_THE_CALL)
    assert MORE_THAN_THE_CALL not in shorter.detail
    of_before = replace(longer, detail=longer.detail.removesuffix(MORE_THAN_THE_CALL))
    assert as_told([of_before, longer]) == [longer, longer], "once"


def test_pairs_that_another_clock_timed_are_told_from_those_that_the_speed_up_is_of() -> None:
    timed = session(calls(50 * US), calls(110 * US))
    records = timing_checks.of(timed, replace(SETTING, device=device(50, 110)))
    order = next(record for record in records if record.check == "order")
    assert order.detail.endswith(OTHER_PAIRS)
    plural = re.search(r"pairs of (\d+) (calls?),", order.detail)
    assert plural
    assert (plural[1] == "1") is (plural[2] == "call")
    older = replace(order, detail=order.detail.removesuffix(OTHER_PAIRS).replace(plural[0], "pairs of 21 call(s),"))
    beside = [record for record in records if record.check == "device time"]
    told = order.detail.replace(plural[0], "pairs of 21 calls,")
    assert [record.detail for record in as_told([*beside, older])][-1] == told
    assert as_told([older])[0].detail == told.removesuffix(OTHER_PAIRS)


def test_a_long_call_that_is_not_explained_is_flagged_though_the_evaluators_clock_decides() -> None:
    long = session(calls(1000 * US), calls(2000 * US))
    apart, near = (
        next(
            one
            for one in timing_checks.of(long, replace(SETTING, device=DeviceClock([pair] * 3, 1)))
            if "device" in one.check
        )
        for pair in ((0.2, 2.0), (0.99, 2.0))
    )
    assert (apart.standing, near.standing) == (CheckOutcome.FLAGGED, CheckOutcome.HELD)
    assert "ms that launches do not explain" in apart.detail


@pytest.mark.parametrize(("host_ns", "is_told"), [(3_000, False), (41_000, True)])
def test_host_time_is_told_where_it_exceeds_a_tenth_of_the_call(host_ns: int, is_told: bool) -> None:
    assert (f"; forward takes {host_ns // US} us on the host" in second(device(50, 110), host_ns).detail) is is_told


def test_a_candidate_that_does_other_work_while_it_is_recorded_is_seen() -> None:
    assert device(50, 110).behaves
    assert device(50, 110, traced_us=110).behaves
    assert not device(50, 110, traced_us=600).behaves
    assert device(50, 110, traced_us=600, slower=6).behaves, "the reference is as much slower: the recording's fault"


def test_beside_others_that_use_processors_a_speed_up_is_known_less_well() -> None:
    """Caches and memory are shared whoever goes first."""
    on_cpu = session(calls(1000 * US), calls(2000 * US))
    assert timing_checks.contended(on_cpu, SETTING) is None
    busy_setting = replace(SETTING, others_share=0.6)
    low, high = timing_checks.contended(on_cpu, busy_setting) or (0.0, 0.0)
    assert (low, high) == pytest.approx((1.85, 2.15), rel=0.01)
    told = {check.check: check.detail for check in timing_checks.of(on_cpu, busy_setting)}
    assert told["noise"].startswith("the pairs of this timing alone tell the speed-up within 0.1%;")
    assert "others used 60% of the processors, which can shift all pairs alike" in told["machine"]
    assert "interval is ±7.5% at least, however well the pairs agree" in told["machine"]
    assert timing_checks.contended(on_cpu, replace(busy_setting, device=DeviceClock([(1.0, 2.0)]))) is None
