"""The state of a kernel: each rule alone, whole profiles as the toolchains give them, and the model's word."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from engine.evaluator.profiling.device.profile import profile
from engine.evaluator.sandbox.child import Done
from engine.knowledge import readings as figure
from engine.knowledge import states
from engine.knowledge.states import DEVICE_RULES, HOST_RULES, STATES, Found, Rule
from storage.knowledge.records import Bottleneck
from storage.results import counters
from storage.results.profile_results import DISTURBED, LAUNCHES, Metric, ProfileResult
from tests.engine.evaluator.profiling.sessions import NCU, RecordedRun, recorded, subject

RULES = [(table, number) for table in (DEVICE_RULES, HOST_RULES) for number in range(len(table))]


def signed(rule: Rule, *, how_far: float) -> dict[str, float]:
    """The figures of a rule's signs, so far on the way from where it begins to hold to where it is sure."""
    return {sign.figure: sign.at + how_far * (sign.sure - sign.at) for sign in rule.signs}


@pytest.mark.parametrize(("table", "number"), RULES)
def test_a_rule_holds_from_its_threshold_on_and_is_surer_further_on(table: tuple[Rule, ...], number: int) -> None:
    rule = table[number]
    begins, is_sure = (states.of_figures(signed(rule, how_far=far), [rule]) for far in (0.0, 1.0))
    assert (begins.state, begins.confidence) == (rule.state, states.SURE)
    assert (is_sure.state, is_sure.confidence) == (rule.state, rule.most)
    assert begins.bottleneck is STATES[rule.state]
    assert set(begins.metrics) == {sign.figure for sign in rule.signs}
    assert begins.why.startswith(rule.name)


@pytest.mark.parametrize(("table", "number"), RULES)
def test_a_rule_does_not_hold_where_one_sign_is_short_of_it_or_not_known(table: tuple[Rule, ...], number: int) -> None:
    rule = table[number]
    for sign in rule.signs:
        whole = signed(rule, how_far=1.0)
        short = sign.at * 0.99 if sign.sure >= sign.at else sign.at * 1.01
        assert rule.confidence(whole | {sign.figure: short}) == 0.0
        assert rule.confidence({name: value for name, value in whole.items() if name != sign.figure}) == 0.0


def test_every_state_but_the_one_without_a_counter_has_a_rule() -> None:
    named = {rule.state for rule in (*DEVICE_RULES, *HOST_RULES)}
    assert set(STATES) - named == {"transfer_bandwidth_limited"}
    assert len(STATES) == 16


def test_the_first_rule_names_the_state_and_the_others_are_beside_it() -> None:
    figures = {figure.SECTORS: 25.0, figure.MEMORY: 92.0, figure.DRAM: 91.0, figure.LEAD: 3.0, figure.COMPUTE: 30.0}
    found = states.of_figures(figures, DEVICE_RULES)
    assert (found.state, found.secondary) == ("cache_inefficient", ("device memory busy",))
    good = states.of_figures(figures | {figure.SECTORS: 100.0}, DEVICE_RULES)
    assert (good.state, good.confidence, good.is_sure) == ("memory_bandwidth_saturated", states.MOST, True)


def test_nothing_is_known_without_a_profile_or_with_a_disturbed_one() -> None:
    none = states.of_profile(None)
    assert (none.state, none.bottleneck, none.confidence) == ("", None, 0.0)
    assert "no profile" in none.why
    disturbed = states.of_profile(replace(host(memory=0.9), evidence={DISTURBED: "others ran beside it"}))
    assert (disturbed.state, disturbed.why) == ("", "the kernel's profile was disturbed: others ran beside it")
    empty = states.of_profile(ProfileResult("h", (), "unknown", ""))
    assert (empty.state, empty.bottleneck) == ("", None)


@pytest.mark.parametrize(
    ("memory", "compute", "state"),
    [(50.0, 20.0, "memory_latency_bound"), (20.0, 50.0, "instruction_mix_suboptimal"),
     (30.0, 28.0, "latency_memory_bound")],
)  # fmt: skip
def test_where_no_rule_holds_the_larger_share_points_at_a_state_and_is_not_sure(
    memory: float, compute: float, state: str
) -> None:
    found = states.of_figures({figure.MEMORY: memory, figure.COMPUTE: compute}, DEVICE_RULES)
    assert (found.state, found.confidence, found.is_sure) == (state, states.GUESS, False)


def host(memory: float, compute: float | None = None, **more: float) -> ProfileResult:
    """As the cpu toolchain gives it, of a call of 10 ms on two processors."""
    found = {
        "latency": 0.01,
        "memory throughput": 8e9,
        "memory throughput share": memory,
        "working threads": 2.0,
        "processors available": 2.0,
        "processors busy": 1.9,
        "page faults per call": 3.0,
        "packed instructions": 40.0,
        "scalar instructions": 4.0,
        **({} if compute is None else {"arithmetic throughput share": compute}),
        **{name.replace("_", " "): value for name, value in more.items()},
    }
    return ProfileResult("h", tuple(Metric(name, "1", value) for name, value in found.items()), "memory", "")


HOSTS: Mapping[str, tuple[ProfileResult, str]] = {
    "copy": (host(0.9, 0.05), "memory_bandwidth_saturated"),
    "copy on one thread": (host(0.4, working_threads=1.0), "insufficient_parallelism"),
    "threads that end with the call": (
        replace(host(0.4), metrics=tuple(
            Metric(m.name, "1", 1.0 if m.name == "processors busy" else m.value)
            for m in host(0.4).metrics if m.name != "working threads"
        )),
        "insufficient_parallelism",
    ),
    "packed product": (host(0.05, 0.8), "compute_throughput_saturated"),
    "near both": (host(0.7, 0.65), "memory_compute_balanced"),
    "by turns": (host(0.45, 0.5), "hybrid_bound"),
    "scalar loop": (host(0.2, 0.3, packed_instructions=2.0, scalar_instructions=30.0), "instruction_mix_suboptimal"),
    "calls of expf": (host(0.3, libm_calls_instructions=3.0), "instruction_mix_suboptimal"),
    "naive": (host(0.02, 0.04), "high_level_inefficiency"),
    "mapped anew": (host(0.3, page_faults_per_call=9000.0), "api_overhead_dominant"),
    "tiny": (host(0.3, latency=1e-5), "api_overhead_dominant"),
    "columns": (host(0.3, **{"cache-misses_per_call": 5e6}), "cache_inefficient"),
    "chased": (host(0.3, cycles_per_call=3e7, instructions_per_call=1e7), "memory_latency_bound"),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTS)
def test_the_state_of_a_kernel_on_a_processor(name: str) -> None:
    taken, state = HOSTS[name]
    found = states.of_profile(taken)
    assert found.state == state
    assert found.is_sure
    assert found.metrics


def device(*, waves: float = 8.0, registers: float = 8.0, shared: float = 8.0, **more: float) -> ProfileResult:
    """As Nsight Compute gives it, of one launch that is busy with nothing in particular."""
    whole = {
        "device time": 1e-3,
        "launches": 1.0,
        counters.MEMORY: 30.0,
        counters.COMPUTE: 30.0,
        counters.DRAM: 30.0,
        counters.ACHIEVED: 80.0,
        **{known: more[name] for name, known in NAMES.items() if name in more},
    }
    stalls = {counters.stall_counter(name): more.get(name, 1.0) for name in counters.STALLS if name != "gmma"}
    launch = {
        counters.TIME: 1e-3,
        counters.WAVES: waves,
        counters.THEORETICAL: more.get("fits", 100.0),
        f"{counters.OCCUPANCY_LIMIT}registers": registers,
        f"{counters.OCCUPANCY_LIMIT}shared_mem": shared,
        f"{counters.OCCUPANCY_LIMIT}warps": 8.0,
    }
    metrics = [Metric(name, "%", value) for name, value in (whole | stalls).items()]
    metrics += [Metric(name, "1", value, "k", 0) for name, value in launch.items()]
    return ProfileResult("h", tuple(metrics), "latency", "")


LOADS, STORES = counters.CONFLICTS
NAMES = {
    "memory": counters.MEMORY,
    "compute": counters.COMPUTE,
    "dram": counters.DRAM,
    "achieved": counters.ACHIEVED,
    "lanes": "smsp__thread_inst_executed_per_inst_executed.ratio",
    "sectors": "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.pct",
    "conflicts": STORES,
    "turns": counters.BY_NAME[STORES].part_of,
    "spilled": counters.LOCAL_LOADS,
    "executed": counters.EXECUTED,
    "traffic": "memory traffic",
    "alu": "sm__pipe_alu_cycles_active.avg.pct_of_peak_sustained_active",
    "fma": "sm__pipe_fma_cycles_active.avg.pct_of_peak_sustained_active",
    "xu": "sm__inst_executed_pipe_xu.avg.pct_of_peak_sustained_active",
}
MIN_BYTES = 1_000_000
DEVICES: Mapping[str, tuple[ProfileResult, str]] = {
    "stream": (device(memory=92, dram=91, compute=20, long_scoreboard=40.0), "memory_bandwidth_saturated"),
    "too few bytes in flight": (device(long_scoreboard=40.0), "memory_latency_bound"),
    "barriers": (device(barrier=30.0, wait=20.0), "latency_memory_bound"),
    "conflicts": (device(conflicts=5e6, turns=1e7, mio_throttle=20.0), "memory_bank_conflicts"),
    "the shared-memory pipe": (device(memory=55, short_scoreboard=40.0), "memory_bank_conflicts"),
    "strided": (device(memory=70, dram=70, compute=10, sectors=12.5), "cache_inefficient"),
    "streamed by bulk copies, with weights read one by one": (
        device(memory=86, dram=86, compute=16, sectors=12.5, traffic=1.02e6),
        "memory_bandwidth_saturated",
    ),
    "strided, though each sector is fetched once": (
        device(memory=86, dram=40, compute=16, sectors=12.5, traffic=1.02e6),
        "cache_inefficient",
    ),
    "read again": (device(memory=70, dram=70, compute=10, traffic=4e6), "cache_inefficient"),
    "served by caches": (device(memory=88, dram=15, compute=40), "cache_inefficient"),
    "tensor product": (device(memory=40, compute=88, fma=80), "compute_throughput_saturated"),
    "index arithmetic": (device(memory=20, compute=80, alu=80, fma=15), "instruction_mix_suboptimal"),
    "exponentials": (device(memory=30, compute=75, xu=75, fma=20), "instruction_mix_suboptimal"),
    "branches": (device(lanes=9.0), "thread_divergence_high"),
    "registers": (device(achieved=22, fits=25, registers=2), "low_occupancy_register_pressure"),
    "spills": (device(spilled=8e5, executed=1e7), "low_occupancy_register_pressure"),
    "shared memory": (device(achieved=12, fits=12.5, shared=1), "low_occupancy_shared_memory"),
    "small grid": (device(waves=0.3), "insufficient_parallelism"),
    "tail": (device(waves=1.1), "insufficient_parallelism"),
    "near both": (device(memory=80, compute=78, dram=40), "memory_compute_balanced"),
    "by turns": (device(memory=52, compute=50, dram=45), "hybrid_bound"),
    "naive": (device(memory=4, compute=6, dram=2), "high_level_inefficiency"),
}


@pytest.mark.parametrize("name", DEVICES)
def test_the_state_of_a_kernel_on_a_gpu(name: str) -> None:
    taken, state = DEVICES[name]
    found = states.of_profile(taken, 1.05, MIN_BYTES)
    assert (found.state, found.is_sure) == (state, True), found


def test_a_call_whose_kernels_take_little_of_its_time_is_bound_by_its_overhead() -> None:
    assert states.of_profile(device(memory=92, dram=91, compute=20), 4.0).state == "api_overhead_dominant"
    assert states.of_profile(device(memory=92, dram=91, compute=20), 1.0).state == "memory_bandwidth_saturated"


def test_the_first_launches_tell_nothing_of_the_whole_call() -> None:
    whole = device(memory=70, dram=70, compute=10, traffic=4e6)
    cut = replace(whole, evidence={LAUNCHES: "only the first 40 were profiled"})
    assert states.of_profile(cut, 4.0, MIN_BYTES).state == "memory_bandwidth_saturated"
    assert states.of_profile(whole, 4.0, MIN_BYTES).state == "api_overhead_dominant"
    figures = figure.of_device(cut, 4.0, MIN_BYTES)
    assert not {figure.TRAFFIC, figure.LAUNCHES, figure.ON_DEVICE} & figures.keys()
    assert (figures[figure.DRAM], figures[figure.PER_LAUNCH]) == (70, 1000)


def test_without_counters_only_what_the_least_bytes_and_the_launch_tell_is_known() -> None:
    def watched(share: float, waves: float) -> ProfileResult:
        launch = {counters.TIME: 1e-3, counters.WAVES: waves, counters.THEORETICAL: 100.0}
        whole = {
            "device time": 1e-3,
            "memory throughput at least, share": share,
            "arithmetic throughput at least, share": 0.1,
        }
        metrics = [Metric(name, "1", value) for name, value in whole.items()]
        metrics += [Metric(name, "1", value, "k", 0) for name, value in launch.items()]
        return ProfileResult("h", tuple(metrics), "unknown", "")

    assert states.of_profile(watched(0.8, 8.0)).state == "memory_bandwidth_saturated"
    assert states.of_profile(watched(0.2, 0.4)).state == "insufficient_parallelism"
    assert states.of_profile(watched(0.2, 8.0)).state == ""


def test_what_nsight_compute_printed_of_a_tiled_product_shows_its_bank_conflicts(tmp_path: Path) -> None:
    taken = profile(subject(tmp_path), NCU, RecordedRun(tmp_path, Done(0, recorded("session.txt"))))
    found = states.of_profile(taken, 0.45, 12_582_912)
    assert found.state == "memory_bank_conflicts"
    assert found.metrics[figure.CONFLICTS] == pytest.approx(100 * 32_924_822 / 102_130_838, rel=1e-3)


RULED = Found("memory_latency_bound", Bottleneck.MEMORY, states.GUESS, "no rule holds", ("narrow loads",))


def test_shares_of_the_waits_of_a_call_count_before_averages_of_cycles() -> None:
    averages = device(long_scoreboard=30.0)
    told = {"not_selected": 90.0, "long_scoreboard": 10.0}
    shares = [Metric(f"{counters.WAIT_SHARE}{reason}", "%", value) for reason, value in told.items()]
    assert figure.of_device(averages)[figure.MEMORY_WAITS] > 50
    newer = replace(averages, metrics=(*averages.metrics, *shares))
    assert figure.of_device(newer)[figure.MEMORY_WAITS] == 10.0


def test_a_known_state_that_the_model_is_sure_of_is_matched() -> None:
    said = {"state": "Memory bank conflicts", "confidence": "80 %", "why": "MIO throttle leads"}
    settled = states.settle(RULED, said, STATES, [])
    assert settled.new is None
    assert (settled.found.state, settled.found.bottleneck) == ("memory_bank_conflicts", Bottleneck.MEMORY)
    assert (settled.found.confidence, settled.found.why) == (0.8, "the model: MIO throttle leads")


def test_a_model_that_is_not_sure_discovers_a_state_that_inherits_the_nearest() -> None:
    said = {"state": "cache_inefficient", "confidence": 0.59, "why": "L2 thrashing\nbetween tiles."}
    settled = states.settle(RULED, said, STATES, ["discovered_memory_1", "discovered_latency_2"])
    assert settled.new is not None
    assert (settled.new.name, settled.new.inherits) == ("discovered_memory_2", "cache_inefficient")
    assert settled.new.is_discovered
    assert settled.new.about == "L2 thrashing between tiles. Nearest to cache_inefficient."
    assert (settled.found.state, settled.found.bottleneck) == ("discovered_memory_2", Bottleneck.MEMORY)
    unknown = states.settle(RULED, {"state": "l2 thrashing", "confidence": 0.9}, STATES, [])
    assert unknown.new is not None
    assert unknown.new.inherits == "memory_latency_bound", "the rules' own guess is nearest to a name of its own"


def test_a_word_about_nothing_leaves_the_state_unknown() -> None:
    nothing = states.of_profile(None)
    settled = states.settle(nothing, {"state": "?", "confidence": "high"}, STATES, [])
    assert (settled.found.state, settled.new) == ("", None)


@pytest.mark.parametrize(
    ("value", "confidence"),
    [
        (0.7, 0.7),
        ("0.7", 0.7),
        ("70%", 0.7),
        ("70 %", 0.7),
        (70, 0.7),
        (-1, 0.0),
        ("nan", 0.0),
        (None, 0.0),
        ("1", 1.0),
    ],
)
def test_a_confidence_is_read_leniently(value: object, confidence: float) -> None:
    assert states.read_confidence(value) == pytest.approx(confidence)
