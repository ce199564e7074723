"""Profiles on the device, from what Nsight Compute printed on an H200: an elementwise kernel and a tiled product."""

from __future__ import annotations

import base64
import csv
import io
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from engine.errors import ProfileUnavailable
from engine.evaluator.profiling.cpu_profile import Bound
from engine.evaluator.profiling.device import bottleneck, launch_counters, nsight, source_lines, without_counters
from engine.evaluator.profiling.device.bottleneck import Bottleneck
from engine.evaluator.profiling.device.profile import OUTLINE, counted, profile
from engine.evaluator.sandbox.child import Done
from storage.results import counters, kernel_names
from storage.results.profile_results import BOUNDS, ProfileResult, bound_by
from tests.engine.evaluator.profiling.sessions import H200, LIMIT, NCU, REFUSAL, RecordedRun, recorded, subject

ARGUMENTS = {"grid": [2048, 1, 1], "block": [256, 1, 1], "registers per thread": 40, "shared memory": 0}
ROOT = Path(__file__).resolve().parents[4]
CANDIDATE = """
import torch
from torch.utils.cpp_extension import load_inline

SAID = []
for _ in range(3):
    try:
        load_inline("kernel", "void f();", functions=["f"])
    except RuntimeError as error:
        SAID.append(str(error))


class ModelNew(torch.nn.Module):
    def __init__(self, factor):
        super().__init__()
        self.factor = factor

    def forward(self, x):
        return x * self.factor
"""
KERNEL = {"cat": "kernel", "name": "void swish<4>(float const*, float*)", "ts": 5.0, "dur": 12.5, "args": ARGUMENTS}
TRACE = json.dumps({"traceEvents": [{"cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": 1}, KERNEL]})


def done() -> Done:
    return Done(0, recorded("session.txt"))


def value(found: ProfileResult, name: str, launch: int = -1) -> float:
    return next(m.value for m in found.metrics if (m.name, m.launch) == (name, launch))


@pytest.fixture(name="counted")
def _counted(tmp_path: Path) -> ProfileResult:
    return profile(subject(tmp_path), NCU, RecordedRun(tmp_path, done()))


def test_every_launch_has_a_row_of_its_own_in_base_units(counted: ProfileResult) -> None:
    assert value(counted, counters.TIME, 0) == pytest.approx(4.96e-6)
    assert value(counted, counters.TIME, 1) == pytest.approx(435.072e-6)
    assert value(counted, counters.STATIC_SHARED, 1) == 8192
    kernels = {m.launch: m.kernel for m in counted.metrics if m.launch >= 0}
    assert kernels[1] == "void tiled_product<32>(const float *, const float *, float *, int)"
    units = {m.name: m.unit for m in counted.metrics}
    assert (units[counters.TIME], units[counters.BYTES_READ], units[counters.COMPUTE]) == ("s", "B", "%")


def test_the_whole_call_weighs_launches_by_their_time_and_adds_what_adds_up(counted: ProfileResult) -> None:
    seconds = 4.96e-6 + 435.072e-6
    assert value(counted, "device time") == pytest.approx(seconds)
    weighted = (26.35 * 4.96 + 62.84 * 435.072) / (4.96 + 435.072)
    assert value(counted, counters.COMPUTE) == pytest.approx(weighted, rel=1e-3)
    assert value(counted, "memory traffic") == 4_197_120 + 8_393_472
    assert value(counted, "arithmetic throughput") == pytest.approx(2 * (1_073_741_824 + 1_048_576) / seconds)


def test_loading_constants_with_half_precision_instructions_is_no_arithmetic(counted: ProfileResult) -> None:
    names = {m.name for m in counted.metrics}
    assert "fp32 operations" in names
    assert "fp16 operations" not in names


def test_tensor_operations_are_counted_by_kind() -> None:
    launches = launch_counters.read_launches(recorded("vendor_raw.csv"))
    assert launch_counters.flop_of(launches[2]) == {"bf16": 2 * 1024.0**3}
    assert launch_counters.whole_of(launches).flop == pytest.approx({"bf16": 2 * 1024.0**3, "fp32": 2 * 1_074_790_400})


def test_what_was_not_measured_is_missing_and_never_zero(tmp_path: Path) -> None:
    found = profile(subject(tmp_path), NCU, RecordedRun(tmp_path, done(), raw="unknown_metric_raw.csv"))
    assert counters.MEMORY in found.missing
    assert not [m for m in found.metrics if m.name == counters.MEMORY]
    assert found.bound == Bottleneck.UNKNOWN
    assert "Not available here" in found.summary


def test_a_name_the_chip_does_not_have_is_not_asked_for_and_told_as_missing(tmp_path: Path) -> None:
    run = RecordedRun(tmp_path, done())
    names = nsight.listed_metrics(recorded("known_profiling.txt")) | nsight.listed_metrics(recorded("known_launch.txt"))
    poorer = frozenset(names - {counters.ELIGIBLE.split(".")[0]})
    asked, missing = nsight.known_and_absent(nsight.wanted(), poorer)
    assert missing == [counters.ELIGIBLE]
    assert counters.THEORETICAL in asked
    assert nsight.known_and_absent(nsight.wanted(), frozenset({"one__name"})) == (nsight.wanted(), [])
    first = nsight.known_metrics(run, NCU, "9.0", tmp_path)
    assert first.version == "2025.3.1.0"
    assert nsight.known_metrics(run, NCU, "9.0", tmp_path) == first
    assert sum("--query-metrics" in one for one in run.commands) == 2, "asked again although kept"


def test_only_the_profiled_call_is_counted_and_clocks_are_left_alone(tmp_path: Path) -> None:
    words = nsight.collect_command(NCU, ["a__b.sum"], nsight.target_command(tmp_path, "profile"))
    assert words[words.index("--clock-control") + 1] == "none"
    assert words[words.index("--profile-from-start") + 1] == "off"
    assert words[words.index("--target-processes") + 1] == "application-only"


def test_the_summary_names_bottleneck_traffic_conflicts_and_the_dearest_advice(counted: ProfileResult) -> None:
    assert counted.bound == Bottleneck.MEMORY
    assert "1.00 times the least this task needs" in counted.summary
    assert "bank conflicts on shared stores: 94 %" in counted.summary
    assert "mio_throttle" in counted.summary
    assert counted.summary.index("uncoalesced shared accesses") < counted.summary.index("3 full waves and a partial")
    assert "http" not in counted.summary
    assert "A wave of thread blocks is defined" not in counted.summary
    assert counted.advice[0].rule == "UncoalescedSharedAccess", "advice on the launch of 1 % came first"
    assert len(counted.summary) < 4000


def test_a_profile_says_how_it_was_taken_and_keeps_the_profilers_own_file(counted: ProfileResult) -> None:
    assert counted.evidence["way"] == "hardware counters"
    assert counted.evidence["passes"] == "25"
    assert "not locked" in counted.evidence["clocks"]
    assert base64.b64decode(counted.report) == b"NVR\0"
    assert "Rule Description" in counted.raw
    assert counted.ceilings["memory"] == pytest.approx(4.3007e12)


@pytest.mark.parametrize(
    ("session", "because"),
    [
        (Done(1, REFUSAL), "does not allow hardware counters"),
        (Done(9, recorded("session_fault.txt")), "LaunchFailed"),
        (Done(0, recorded("session_idle.txt")), "no kernel was launched"),
        (Done(1, recorded("session_raise.txt")), "error code (1)"),
        (Done(-9, "", is_timeout=True), "did not end within 120 s"),
    ],
    ids=["refused", "fault", "idle", "raise", "hang"],
)
def test_without_counters_the_rest_is_told_with_the_reason(tmp_path: Path, session: Done, because: str) -> None:
    found = profile(subject(tmp_path), NCU, RecordedRun(tmp_path, session, trace=TRACE))
    assert because in found.evidence["because"]
    assert because in found.summary
    assert value(found, counters.REGISTERS, 0) == 40
    assert value(found, counters.THEORETICAL, 0) == pytest.approx(75.0)
    assert value(found, "device time") == pytest.approx(0.44e-3)
    assert counters.MEMORY in found.missing
    assert found.bound == Bottleneck.UNKNOWN


def test_without_a_profiler_the_reason_is_that(tmp_path: Path) -> None:
    found = profile(subject(tmp_path), None, RecordedRun(tmp_path, done(), trace=TRACE))
    assert "not installed" in found.evidence["because"]


def test_no_profile_at_all_is_its_own_failure_with_both_reasons(tmp_path: Path) -> None:
    with pytest.raises(ProfileUnavailable, match="LaunchFailed.*illegal memory access"):
        profile(subject(tmp_path), NCU, RecordedRun(tmp_path, Done(9, recorded("session_fault.txt"))))


@pytest.mark.parametrize("trace", ["[]", "{", '{"traceEvents": {"a": 1}}', '{"traceEvents": [{"cat": "kernel"}]}'])
def test_a_trace_that_the_candidate_spoilt_breaks_nothing(tmp_path: Path, trace: str) -> None:
    found = profile(subject(tmp_path), None, RecordedRun(tmp_path, done(), trace=trace))
    assert value(found, "device time") == pytest.approx(0.44e-3)
    assert all(m.launch < 0 for m in found.metrics)


def test_bottlenecks_are_told_apart_at_sixty_percent() -> None:
    assert bottleneck.bottleneck(85.0, 30.0, 8.0) is Bottleneck.MEMORY
    assert bottleneck.bottleneck(30.0, 60.0, 8.0) is Bottleneck.COMPUTE
    assert bottleneck.bottleneck(59.0, 30.0, 8.0) is Bottleneck.LATENCY
    assert bottleneck.bottleneck(59.0, 30.0, 0.5) is Bottleneck.UNDERUTILISED
    assert bottleneck.bottleneck(None, 90.0, 8.0) is Bottleneck.UNKNOWN


def test_people_read_what_a_kernel_is_bound_by_with_the_threshold() -> None:
    assert {*Bottleneck, *Bound} - {Bottleneck.UNKNOWN} == BOUNDS.keys()
    assert bound_by(bottleneck.bottleneck(59.5, 30.0, 8.0)) == (
        "latency", "neither memory nor arithmetic reaches 60 % of its peak"
    )  # fmt: skip
    assert bound_by(Bottleneck.UNDERUTILISED)[0] == "latency, grid below one wave"
    assert bound_by("") == bound_by(Bottleneck.UNKNOWN) == ("unknown", "")


def test_occupancy_arithmetic_agrees_with_the_profiler() -> None:
    for file in ("two_launches_raw.csv", "vendor_raw.csv"):
        for launch in launch_counters.read_launches(recorded(file)):
            shared = [launch.value(name) or 0.0 for name in (counters.STATIC_SHARED, counters.DYNAMIC_SHARED)]
            threads, registers = (launch.value(name) or 0.0 for name in (counters.BLOCK, counters.REGISTERS))
            ours = bottleneck.theoretical_occupancy(H200, int(threads), int(registers), int(sum(shared)))
            assert ours.percent == pytest.approx(launch.value(counters.THEORETICAL), abs=0.1), launch.kernel
            told = launch.value("launch__occupancy_limit_registers")
            assert ours.blocks_by["registers"] == told, launch.kernel


def test_the_limiter_is_the_resource_with_room_for_the_fewest_blocks() -> None:
    launches = launch_counters.read_launches(recorded("vendor_raw.csv"))
    assert bottleneck.limiter(launches[0]) == "", "a kernel with full occupancy is limited by nothing"
    assert bottleneck.limiter(launches[2]) == "registers and shared memory"
    assert bottleneck.limiter(launches[3]) == "registers"


def test_room_for_no_block_is_not_believed_of_a_kernel_that_ran() -> None:
    header, units, *rows = csv.reader(recorded("two_launches_raw.csv").splitlines())
    zero = [counters.THEORETICAL, f"{counters.OCCUPANCY_LIMIT}shared_mem"]
    for name in (*zero, counters.DRAM):
        rows[0][header.index(name)] = "0"
    text = io.StringIO()
    csv.writer(text, quoting=csv.QUOTE_ALL).writerows([header, units, *rows])
    launch = launch_counters.read_launches(text.getvalue())[0]
    assert [launch.value(name) for name in (*zero, counters.DRAM)] == [None, None, 0.0]
    assert bottleneck.limiter(launch) == ""


def test_kernel_names_are_short_on_screen() -> None:
    long = "void at::vectorized_elementwise_kernel<8, at::copy(at::Iterator &)::[lambda(float) (instance 1)]>(int, T1)"
    assert kernel_names.short(long) == "vectorized_elementwise_kernel<…>"
    assert kernel_names.short("void demo::product<(int)32>(const float *, float *)") == "product<32>"
    assert kernel_names.short("<unnamed>::scale(float *)") == "scale"
    assert kernel_names.short("product(float*, int) [clone ._omp_fn.0]") == "product [clone ._omp_fn.0]"
    assert kernel_names.short("Memset (Device)") == "Memset (Device)"
    assert kernel_names.short(" ") == "a kernel without a name"
    assert kernel_names.short("nvjet_sm90_tst") == "nvjet_sm90_tst"
    assert kernel_names.short("kernel_cutlass_part_kernel_tensorptrf32gmemo512221_4_0") == "part_kernel"
    assert kernel_names.short("kernel_cutlass_run_candidateSwish_object_at__tensorptrf32_0") == "run"


def test_what_the_compiler_used_is_read_spills_included() -> None:
    product, scale = without_counters.parsed_resources(recorded("resources.txt"))
    assert (product.kernel, product.registers) == ("_ZN4demo13tiled_productILi32EEEvPKfS2_Pfi", 31)
    assert (product.stack_bytes, product.shared_bytes) == (0, 9216)
    assert (scale.registers, scale.shared_bytes) == (12, 0)
    spilling = recorded("resources.txt").replace("REG:31 STACK:0", "REG:64 STACK:688")
    assert without_counters.parsed_resources(spilling)[0].stack_bytes == 688


def test_a_recorded_trace_gives_launches_as_the_profiler_counts_them(tmp_path: Path) -> None:
    found = profile(subject(tmp_path), None, RecordedRun(tmp_path, done(), trace=recorded("trace.json")))
    assert value(found, counters.TIME, 1) == pytest.approx(3395.2e-6)
    assert value(found, counters.REGISTERS, 1) == 31
    assert value(found, counters.WAVES, 1) == pytest.approx(15.515, abs=0.01)
    assert value(found, counters.THEORETICAL, 1) == 100
    assert value(found, "shared memory per block", 1) == 8192


def test_a_small_task_is_measured_against_the_cache_it_may_lie_in() -> None:
    assert H200.bandwidth_at(12_000_000) == pytest.approx(8030.3)
    assert H200.bandwidth_at(1 << 40) == pytest.approx(4300.7)


def test_the_profiled_program_replays_the_builds_of_the_judgement_in_their_order(tmp_path: Path) -> None:
    (tmp_path / "task.py").write_text(
        "import torch\ndef get_inputs():\n    return [torch.rand(4)]\ndef get_init_inputs():\n    return [3.0]\n"
    )
    (tmp_path / "candidate.py").write_text(CANDIDATE)
    (tmp_path / "builds.json").write_text(json.dumps([{"excerpt": "first"}, {"excerpt": "second"}]))
    (tmp_path / "request.json").write_text('{"seed": 7, "calls": 2}')
    code = (
        "import sys; from pathlib import Path; from engine.evaluator.profiling.device import target\n"
        "call, calls = target.prepare(Path(sys.argv[1]), 'cpu')\nassert calls == 2\n"
        "assert call().equal(call()), 'inputs change between calls'\nprint(sys.modules['candidate'].SAID)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert [word in done.stdout for word in ("first", "second", "was not built when")] == [True] * 3


def test_of_many_launches_the_longest_are_kept_in_full_and_all_in_outline() -> None:
    first = launch_counters.read_launches(recorded("two_launches_raw.csv"))[1]
    many = [replace(first, number=i, values={**first.values, counters.TIME: ("s", 1e-6 * (i + 1))}) for i in range(30)]
    seen = nsight.Collected(many, (), (), "", "2025", 26, "", 5 << 20)
    found = counted("hash", seen, H200, LIMIT, 1.0)
    by_launch = {i: {m.name for m in found.metrics if m.launch == i} for i in range(30)}
    assert all(by_launch[i] >= OUTLINE and counters.ELIGIBLE not in by_launch[i] for i in range(22))
    assert all(counters.ELIGIBLE in by_launch[i] for i in range(22, 30))
    assert "launches, 465 us in all, 100 % of the time\nLaunch 29: " in found.summary
    assert found.evidence["report"] == "5.2 MB, too large to keep"
    assert (found.is_cut, "times the least this task needs" in found.summary) == (False, True)
    more = [*many, *(replace(first, number=i) for i in range(30, nsight.MAX_LAUNCHES))]
    cut = counted("hash", replace(seen, launches=more), H200, LIMIT, 1.0)
    assert cut.is_cut
    assert "Only the first 40 launches of the call were profiled: these figures are theirs alone" in cut.summary
    assert "times the least this task needs" not in cut.summary, "40 launches do a part of the task"


def test_of_many_launches_the_kernel_that_takes_longest_in_all_comes_first() -> None:
    """No launch of it is among the longest."""
    one = launch_counters.read_launches(recorded("two_launches_raw.csv"))[1]
    times = {"small": [4e-6] * 26, "large": [20e-6], **{f"other_{n}": [(30 - n) * 1e-7] for n in range(12)}}
    launches = [
        replace(one, number=number, kernel=f"{kernel}(float*)", values={**one.values, counters.TIME: ("s", took)})
        for number, (kernel, took) in enumerate((kernel, took) for kernel, each in times.items() for took in each)
    ]
    told = counted("hash", nsight.Collected(launches, (), (), "", "2025", 39, "", 1), H200, LIMIT, 1.0).summary
    small, _, large = told.partition("Launch 26: large, 20 us (13 % of the time)")
    assert "small: 26 launches, 104 us in all, 68 % of the time" in small
    assert " blocks of " in small, "the small kernel is told in full"
    assert "other_2: 1 launch, " in large
    assert "4 more launches of 4 kernels, " in told


def test_a_call_in_which_mostly_no_kernel_runs_is_said_to_wait_for_launches(tmp_path: Path) -> None:
    found = profile(subject(tmp_path), None, RecordedRun(tmp_path, done(), trace=TRACE))
    assert "the device waits for launches" in found.summary


def test_source_lines_have_their_samples_and_what_they_wait_for(tmp_path: Path) -> None:
    """The page as Nsight Compute 2025.3 printed it on an H200, without columns that are not read and rows without
    samples."""
    run = RecordedRun(tmp_path, done(), source=recorded("source_lines.csv"))
    found = profile(subject(tmp_path), NCU, run)
    assert found.samples == 397, "an instruction that stands under several lines counts once"
    hottest, second = found.lines[:2]
    assert (hottest.file, hottest.line, hottest.samples) == ("", 102, 176)
    assert (hottest.stall, hottest.stall_samples) == ("long_scoreboard", 153)
    assert second.stall == "drain"
    header = next(line for line in found.lines if line.file)
    assert (header.file, header.line) == ("include/cute/pointer_base.hpp", 151)
    assert header.text.startswith("reference operator[]")
    head, _, first, *_ = found.sass.splitlines()
    assert head.startswith("split_b(")
    assert first.split() == ["0", "17", "no_instruction", "95", "LDC", "R1,", "c[0x0][0x28]"]
    assert "source lines" not in found.evidence
    assert "--launch-skip" not in run.commands[-1]


def test_only_lines_of_headers_are_cut_and_a_listing_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = source_lines.read(recorded("source_lines.csv"))
    monkeypatch.setattr(source_lines, "MOST_LINES", 1)
    monkeypatch.setattr(source_lines, "MOST_INSTRUCTIONS", 2)
    cut = source_lines.read(recorded("source_lines.csv"))
    assert whole is not None
    assert cut is not None
    assert [line for line in cut.lines if not line.file] == [line for line in whole.lines if not line.file]
    assert len([line for line in cut.lines if line.file]) == 1 < len([line for line in whole.lines if line.file])
    assert cut.sass.endswith(f"{len(whole.sass.splitlines()) - 4:,} more instructions are not listed.")


def test_of_many_launches_the_longest_is_read_and_a_page_that_was_cut_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_lines, "MOST_LAUNCHES", 1)
    run = RecordedRun(tmp_path, done(), source=recorded("source_lines.csv"))
    found = profile(subject(tmp_path), NCU, run)
    assert found.evidence["source lines"] == "only of the longest of the 2 profiled launches"
    assert "--launch-skip" in run.commands[-1]

    def cut(command: list[str], limit_s: float) -> Done:
        return replace(run(command, limit_s), is_cut="source" in command)

    assert profile(subject(tmp_path), NCU, cut).evidence["source lines"].startswith("not available")


def test_a_launch_that_is_printed_again_adds_to_its_lines(tmp_path: Path) -> None:
    once = recorded("source_lines.csv")
    twice = source_lines.read(once + once)
    assert twice is not None
    assert (twice.samples, twice.lines[0].samples) == (2 * 397, 2 * 176)


@pytest.mark.parametrize("printed", ["", "no such page", '"File Path","a.cu"\n"Line No","Source"\n"1","x"\n'])
def test_source_lines_in_an_unknown_form_are_said_to_be_missing_and_cost_nothing_else(
    tmp_path: Path, counted: ProfileResult, printed: str
) -> None:
    found = profile(subject(tmp_path), NCU, RecordedRun(tmp_path, done(), source=printed))
    assert (found.lines, found.samples, found.sass) == ((), 0, "")
    assert found.evidence["source lines"].startswith("not available")
    assert found.metrics == counted.metrics
