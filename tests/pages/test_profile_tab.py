"""The profile of a kernel on its page, from records of real profiles."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from pages.parts import index, speed_of_light
from pages.parts.kernel import hot_lines, machine_use, roofline
from pages.parts.kernel.metrics import SENSES, Judgement, Weighed, foremost, weighed
from pages.parts.report import report_run
from storage import codec
from storage.index import queries
from storage.index.queries import MetricChangeRow, MetricRow
from storage.results import counters
from storage.results.hardware_limit import CalledOperator, DeviceFacts, HardwareLimit
from storage.results.observed import COPY, KERNELS, OWN, ObservedKernel, to_text
from storage.results.policy import arithmetic_of
from storage.results.profile_results import DISTURBED, LAUNCHES, Metric, ProfileResult, SourceLine
from tests import sample_profiles, samples
from tests.engine.evaluator.profiling.sessions import H200, LIMIT
from tests.pages import profiled
from tests.pages.conftest import Open, words


def rows_of(found: ProfileResult) -> list[MetricRow]:
    return [MetricRow("c", "h", m.launch, m.kernel, m.name, m.unit, m.value) for m in found.metrics]


@pytest.mark.parametrize("kind", ["counted", "watched"])
def test_a_device_profile_is_shown_on_its_page(home: Path, open_page: Open, tmp_path: Path, kind: str) -> None:
    found = getattr(profiled, kind)(tmp_path)
    only = "only of the longest of the 9 profiled launches"
    found = replace(found, evidence={**found.evidence, "source lines": only})
    _, names = profiled.write_run(home / "runs", "r1", found)
    for name in names[:2]:
        app = open_page("candidate", run="r1", candidate=name)
        app.session_state["tab"] = "Profile"
        app.session_state["metrics:open"] = True
        assert not app.run().exception
        assert found.summary in [block.value for block in app.code]
        said = words(app)
        assert "Launches" in said
        assert ("Roofline" in said) is (kind == "counted")
        assert ("## Source lines" in said) is (kind == "counted")
        assert (f"in the profiled call, {only}. An" in said) is (kind == "counted")
        assert ("without hardware counters" in said) is (kind == "watched")


def test_a_profile_of_an_older_version_still_shows(home: Path, open_page: Open) -> None:
    old = ProfileResult("h", (), "memory", "Memory-bound.")
    folder, names = profiled.write_run(home / "runs", "r1", old)
    text = folder.journal_file.read_text()
    for gone in ("advice", "ceilings", "evidence", "report", "report_blob"):
        text = text.replace(json.dumps(gone) + ":", json.dumps(f"no longer {gone}") + ":")
    folder.journal_file.write_text(text)
    app = open_page("candidate", run="r1", candidate=names[0])
    app.session_state["tab"] = "Profile"
    assert not app.run().exception
    assert "No roofline" in words(app)


@pytest.mark.parametrize(
    ("bound", "said"),
    [
        (
            "latency",
            "**Bound by** :violet-badge[latency] :gray[neither memory nor arithmetic reaches 60 % of its peak · ",
        ),
        (
            "underutilised",
            "**Bound by** :violet-badge[latency, grid below one wave] :gray[neither memory nor arithmetic",
        ),
        ("something older", "**Bound by** :violet-badge[something older] :gray[2"),
    ],
)
def test_what_a_kernel_is_bound_by_is_a_sentence_with_its_threshold(
    home: Path, open_page: Open, bound: str, said: str
) -> None:
    _, names = profiled.write_run(home / "runs", "r1", ProfileResult("h", (), bound, "s"))
    app = open_page("candidate", run="r1", candidate=names[0])
    app.session_state["tab"] = "Profile"
    assert not app.run().exception
    assert said in words(app)


# The best kernel of the square product that comes as an example: three products of halves for one in fp32.
SQUARE = HardwareLimit("NVIDIA H200", 6795.23, 280555.86, 201_326_592, 137_438_953_472)
SQUARE_RATES = {"memory": 4.2999e12, "fp32": 65.985e12, "tf32": 430.34e12, "bf16": 854.5e12}
SQUARE_CALL = {
    "memory traffic": 780.26e6, "memory throughput": 0.9412e12, "arithmetic throughput": 511.2e12,
    "arithmetic intensity": 543.1, "fp32 operations": 2.7e9, "bf16 operations": 280.7e9, "tf32 operations": 140.4e9,
}  # fmt: skip


def test_height_over_height_on_the_roofline_is_the_share_of_the_limit() -> None:
    axes = roofline.axes(SQUARE_RATES, SQUARE, "fp32")
    assert axes
    here = roofline.point("kernel 2", SQUARE_CALL, axes.work, 0.832)
    target = roofline.task_limit(SQUARE)
    assert here
    assert target
    assert target.name == "theoretical minimum latency 0.490 ms"
    assert speed_of_light.percent(SQUARE, 0.832) == "59 %" == f"{100 * here.rate / target.rate:.0f} %"
    assert here.intensity == pytest.approx(137.44e9 / 780.26e6, rel=1e-3), "the task's operations, not those executed"
    assert target.rate == max(axes.roofs.values()), "the limit stands on the roof that applies"
    said = roofline.counted(axes, SQUARE_CALL)
    assert "Tensor rates are divided by 3" in said
    assert said.endswith("This kernel executes 424 GFLOP, 3.1 for each of the task's.")
    drawn = roofline.figure(axes, [here], target)
    names = [trace["name"] for trace in drawn["data"] if trace["mode"] == "lines"]
    assert names == [
        "memory 4.30 TB/s", "memory and caches 6.80 TB/s", "FP32 66.0 TFLOP/s", "TF32 tensor ÷ 3 143 TFLOP/s",
        "BF16 tensor ÷ 3 281 TFLOP/s",
    ]  # fmt: skip
    assert drawn["layout"]["yaxis"]["title"]["text"] == "the task's FLOP/s"
    assert axes.work / (SQUARE.limit_ms / 1e3) <= max(axes.roofs.values()) * 1.0001


def test_what_a_class_may_use_is_what_stands_over_its_kernels() -> None:
    whole = HardwareLimit("NVIDIA H200", 4300.0, 854_500.0, 201_326_592, 137_438_953_472)
    half = roofline.axes(SQUARE_RATES, whole, "half")
    assert half
    assert (set(half.roofs), half.products) == ({"fp32", "tf32", "bf16"}, 1)
    tf32 = roofline.axes(SQUARE_RATES, replace(whole, peak_gflop_s=430_340.0), "tf32")
    assert tf32
    assert (set(tf32.roofs), max(tf32.roofs.values())) == ({"fp32", "tf32"}, 430.34e12)
    with_fp8 = dict(SQUARE_RATES) | {"fp8": 1500e12}
    assert roofline.axes(with_fp8, whole, "half") == half, "its limit does not stand on FP8"
    eight = roofline.axes(with_fp8, replace(whole, peak_gflop_s=1_480_000.0), "half")
    assert eight
    assert (set(eight.roofs), max(eight.roofs.values())) == ({"fp32", "tf32", "bf16", "fp8"}, 1480e12)
    assert (arithmetic_of("fp32"), arithmetic_of("bf16, forward and backward")) == ("fp32", "half")


def test_a_kernel_stands_below_its_roof_and_the_task_on_it(tmp_path: Path) -> None:
    found = profiled.counted(tmp_path)
    whole = {m.name: m.value for m in found.metrics if m.launch < 0}
    axes = roofline.axes(found.ceilings, LIMIT, "fp32")
    assert axes
    here = roofline.point("kernel 1", whole, axes.work, 1e3 * whole["device time"])
    assert here is not None
    assert here.rate < min(H200.fp32_gflop_s * 1e9, here.intensity * H200.bandwidth_gb_s * 1e9)
    target = roofline.task_limit(LIMIT)
    assert target is not None
    assert target.rate == pytest.approx(min(LIMIT.peak_gflop_s * 1e9, target.intensity * LIMIT.bandwidth_gb_s * 1e9))
    figure = roofline.figure(axes, [here], target)
    lines = [trace for trace in figure["data"] if trace["mode"] == "lines"]
    slope, *roofs = lines
    assert [y / x for x, y in zip(slope["x"], slope["y"], strict=True)] == [pytest.approx(4.3007e12)] * 2
    assert len(roofs) == 3, "FP32, TF32 and BF16"
    for trace in roofs:
        (ridge, _), (peak, end) = trace["x"], trace["y"]
        assert peak == end == pytest.approx(ridge * LIMIT.bandwidth_gb_s * 1e9)
    left, right = figure["layout"]["xaxis"]["range"]
    assert left < math.log10(here.intensity) < right


def test_a_host_profile_has_a_roofline_from_the_runs_limit() -> None:
    limit = HardwareLimit("a processor", 40.0, 200.0, 10**9, 10**9)
    axes = roofline.axes({}, limit, "fp32")
    assert axes == roofline.Axes(10**9, {"memory": 40e9}, {"peak": 200e9})
    here = roofline.point("kernel 1", {"arithmetic throughput": 50e9, "memory throughput": 50e9}, axes.work, 20.0)
    assert here == roofline.Point("kernel 1", 1.0, 50e9)
    assert roofline.figure(axes, [here], roofline.task_limit(limit))["data"]


def test_of_a_task_without_counted_operations_the_executed_ones_are_drawn() -> None:
    limit = HardwareLimit("d", 4.3e3, 1.0, 8, 0)
    axes = roofline.axes(SQUARE_RATES, limit, "fp32")
    assert axes
    assert (axes.work, axes.products, axes.roofs["bf16"]) == (0, 1, 854.5e12)
    assert roofline.point("k", SQUARE_CALL, axes.work, 0.8) == roofline.Point("k", 543.1, 511.2e12)
    assert roofline.task_limit(limit) is None
    assert "that a kernel executes" in roofline.counted(axes, SQUARE_CALL)
    assert roofline.point("k", {"memory throughput": 1e9}, 0, 1.0) is None
    assert roofline.axes({}, None, "fp32") is None


def test_waits_are_shares_of_all_waiting(tmp_path: Path) -> None:
    shares = machine_use.waits([row for row in rows_of(profiled.counted(tmp_path)) if row.launch == 1]).shares
    assert next(iter(shares)) == "mio_throttle"
    assert shares["mio_throttle"] == pytest.approx(32.11 / 55.53, abs=0.01)
    assert "selected" not in shares
    assert machine_use.waits([]).shares == {}


def test_a_launch_counts_among_the_waits_of_a_call_by_its_time_alone(tmp_path: Path) -> None:
    waits = [counters.stall_counter(reason) for reason in ("not_selected", "long_scoreboard")]

    def of(launch: int, seconds: float, *cycles: float) -> list[MetricRow]:
        values = [(counters.TIME, seconds), *zip(waits, cycles, strict=False)]
        return [MetricRow("c", "h", launch, "k" * (launch >= 0), name, "1", value) for name, value in values]

    rows = [*of(-1, 10.0, 1.16, 5.04), *of(0, 9.0, 1.2, 0.4), *of(1, 1.0, 0.8, 46.8)]
    found = machine_use.waits(rows)
    assert found.shares == pytest.approx(
        {"not_selected": 0.9 * 0.75 + 0.1 * 0.8 / 47.6, "long_scoreboard": 0.3233}, abs=1e-3
    )
    assert found.of == "Each launch's shares, weighted by its time."
    assert (
        "Only of the 2 longest of the 3 profiled launches, 91 % of their time"
        in machine_use.waits([*rows, *of(2, 1.0)]).of
    )
    taken = rows_of(profiled.counted(tmp_path))
    told, kept = (machine_use.waits(rows) for rows in (taken, [row for row in taken if row.launch >= 0]))
    assert told.shares == pytest.approx(kept.shares), "what is told of the call is what its launches tell"


def test_a_launch_tells_what_limits_its_occupancy_and_a_dash_for_what_is_unknown(tmp_path: Path) -> None:
    first = machine_use.launch_rows(rows_of(profiled.watched(tmp_path)))[0]
    assert first.cells["compute"] == "–"
    assert "limited by registers" in str(first.cells["occupancy"])
    second = machine_use.launch_rows(rows_of(profiled.counted(tmp_path)))[1]
    assert "tiled_product<32>" in str(second.cells["kernel"])
    assert "94 % of 100 %" in str(second.cells["occupancy"])
    assert machine_use.limiter({counters.THEORETICAL: 100.0, f"{counters.OCCUPANCY_LIMIT}warps": 2.0}) == ""


def test_the_limit_says_what_it_assumes_and_how_much_of_it_was_reached() -> None:
    large = HardwareLimit("NVIDIA H200", 4300.7, 65971.0, 12_884_901_888, 0)
    told = speed_of_light.sentence(large, 3.25, 4.3007e12)
    assert told.startswith(
        "Limit (theoretical minimum latency) 3.00 ms: moving its 12.9 GB at 4.30 TB/s (device memory"
    )
    assert told.endswith("This kernel takes 3.25 ms: 92 % of the limit.")
    small = HardwareLimit("NVIDIA H200", 8030.3, 65971.0, 12_582_912, 2_147_483_648)
    assert "stays in the caches" in speed_of_light.sentence(small, None, 4.3007e12)
    measured = replace(small, facts=DeviceFacts("sm_90a", 132, 4300.7))
    assert "stays in the caches; device memory alone gives 4.30 TB/s)" in speed_of_light.sentence(measured, None)
    assert "caches" not in speed_of_light.sentence(measured.raised_to(small.limit_ms / 2), None), "a kernel's own rate"
    assert ": its 137 GFLOP at 281 TFLOP/s, which takes longer than moving its 201 MB at 6.80 TB/s." in (
        speed_of_light.sentence(SQUARE, None)
    )
    halved = replace(SQUARE, leaves_masked_out=True)
    assert ": its 137 GFLOP (what the reference's masks leave) at 281" in speed_of_light.sentence(halved, None)
    assert speed_of_light.percent(None, 1.0) == speed_of_light.percent(large, None) == "–"


@pytest.mark.parametrize(
    "source", ["scores.masked_fill(later, float('-inf'))", "F.scaled_dot_product_attention(q, k, v, is_causal = True)"]
)
def test_no_kernel_is_at_a_limit_of_which_it_may_skip_operations(source: str) -> None:
    limit = SQUARE.of_source(source)
    took_ms = limit.limit_ms
    assert (speed_of_light.percent(limit, took_ms), speed_of_light.share(limit, took_ms)) == ("not known", None)
    assert (limit.known_ms, limit.reached_at(took_ms)) == (None, None)
    assert speed_of_light.sentence(limit, took_ms) == (
        "Limit not known for this task: 0.490 ms is the time for all 137 GFLOP of the reference. It masks part of "
        "their results, so a kernel may skip some."
    )
    by_memory = replace(limit, min_bytes=10**12)
    counted = replace(SQUARE, leaves_masked_out=True).of_source(source)
    assert by_memory.is_known
    assert counted.is_known
    assert SQUARE.of_source("torch.tril(torch.matmul(a, b))").is_known
    assert not replace(SQUARE, operators=(CalledOperator("masked_fill", 1, 9),)).is_known


def test_a_limit_of_which_a_kernel_left_out_operations_is_told_as_such_and_roofs_stand_over_what_is_executed() -> None:
    undercut = replace(SQUARE, executed_share=0.2317)
    assert (speed_of_light.percent(undercut, 1.0), speed_of_light.share(undercut, 1.0)) == ("not known", None)
    assert speed_of_light.sentence(undercut, 1.0) == (
        "Limit not known for this task: 0.490 ms is the time for all 137 GFLOP of the reference. A kernel of this run "
        "executes as little as 0.23 of the task's floating-point operations."
    )
    assert "A kernel of this run" in speed_of_light.sentence(undercut.raised_to(0.2), 1.0)
    assert "0.490 ms is the time for all" in speed_of_light.sentence(undercut.raised_to(0.2), 1.0)
    assert (
        speed_of_light.why_unknown(undercut)
        == "a kernel of this run executes as little as 0.23 of the task's operations"
    )
    assert speed_of_light.avoidable(undercut, 0.2317) == (
        "Most of the task's work is avoidable: this kernel executes 0.23 of its floating-point operations."
    )
    assert speed_of_light.avoidable(undercut, 3.1) == speed_of_light.avoidable(SQUARE, 0.2317) == ""
    axes = roofline.axes(SQUARE_RATES, undercut, "fp32")
    assert axes
    assert (axes.work, axes.products, roofline.task_limit(undercut)) == (0, 1, None)
    here = roofline.point("kernel 2", SQUARE_CALL, axes.work, 0.832)
    assert here
    assert here.rate == SQUARE_CALL["arithmetic throughput"]
    said = roofline.counted(axes, {"fp32 operations": 0.2317 * SQUARE.min_flop})
    assert "a kernel need not do all of the task's 137 GFLOP." in said
    assert said.endswith("This kernel executes 31.8 GFLOP, 0.23 for each of the task's.")


def test_a_profile_that_was_disturbed_says_so_and_is_compared_with_nothing(home: Path, open_page: Open) -> None:
    slow = sample_profiles.on_host(3, 60.0, "h")  # the call is timed at some three milliseconds
    _, names = profiled.write_run(home / "runs", "r1", slow, depths=6)
    app = open_page("candidate", run="r1", candidate=names[1])
    app.session_state["tab"] = "Profile"
    assert not app.run().exception
    said = words(app)
    assert "This profile was disturbed" in said
    assert "the profiled call took 60 ms" in said
    assert ("Not shown to a model" in said) is ("Shown to" not in said)
    assert "better" not in said
    assert queries.profiled_ancestor(index.current(), "r1", names[1]) is None


def test_the_time_of_a_call_and_what_follows_from_it_are_those_of_the_timing(home: Path, open_page: Open) -> None:
    _, names = profiled.write_run(home / "runs", "r1", sample_profiles.on_host(3, 4.0, "h"))
    open_page("candidate", run="r1", candidate=names[0])
    db = index.current()
    found = queries.candidate(db, "r1", names[0])
    assert found is not None
    assert found.latency_ms is not None
    values = {row.metric: row.value for row in queries.metrics(db, "r1", names[0])}
    assert values["latency"] == pytest.approx(found.latency_ms / 1e3)
    assert values["memory throughput share"] == pytest.approx(0.19 * 4.0 / found.latency_ms)
    assert values["page faults per call"] == 1300.0


def test_a_profile_stands_beside_that_of_any_other_kernel(home: Path, open_page: Open) -> None:
    folder = samples.write_run(home / "runs", "r1", depths=5)
    lines = map(json.loads, folder.journal_file.read_text().splitlines())
    names = [line["event"]["candidate_id"] for line in lines if line["kind"] == "Profiled"]
    app = open_page("candidate", run="r1", candidate=names[0])
    app.session_state["tab"] = "Profile"
    app.run()
    beside = app.selectbox(key=f"profile_beside:{names[0]}")
    assert beside.value is None
    assert "No profiled ancestor to compare with" in words(app)
    beside.select_index(1).run()
    assert not app.exception
    assert f"Since kernel {int(names[2].removeprefix('c'))}: " in words(app).replace("\\", "")


def test_a_change_tells_what_the_operations_of_both_kernels_mostly_are(home: Path, open_page: Open) -> None:
    folder = samples.write_run(home / "runs", "r1", depths=5)
    lines = [json.loads(line) for line in folder.journal_file.read_text().splitlines()]
    events = [line["event"] for line in lines if line["kind"] == "Profiled"]
    for one, kind in zip(events, ("tf32", "fp16"), strict=False):
        figures = {"arithmetic throughput share": 0.9, f"{kind} operations": 8.0, "fp32 operations": 1.0}
        one["result"] = codec.to_plain(
            ProfileResult(
                "h", tuple(Metric(name, "1", value) for name, value in figures.items()), "compute", "", "", 1.0
            )
        )
    folder.journal_file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    open_page("run", run="r1")
    before, after = (one["candidate_id"] for one in events[:2])
    found = {one.metric: one for one in queries.metric_changes(index.current(), "r1", after, before)}
    share = found["arithmetic throughput share"]
    assert (share.previous_kind, share.kind, share.is_of_another_peak) == ("tf32", "bf16", True)
    assert not found["fp32 operations"].is_of_another_peak


@pytest.mark.parametrize("is_disturbed", [True, False])
def test_every_place_tells_the_same_of_a_profile_that_is_compared_with_none(
    home: Path, open_page: Open, is_disturbed: bool
) -> None:
    """A disturbed one, though an ancestor has a profile; and that of a first kernel, which has no ancestor."""
    folder = samples.write_run(home / "runs", "r1", depths=5)
    lines = [json.loads(line) for line in folder.journal_file.read_text().splitlines()]
    events = [line["event"] for line in lines if line["kind"] == "Profiled"]
    name = events[is_disturbed]["candidate_id"]
    events[is_disturbed]["result"]["evidence"][DISTURBED] = "the profiled call took 9 ms" if is_disturbed else ""
    folder.journal_file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    app = open_page("candidate", run="r1", candidate=name)
    app.session_state["tab"] = "Profile"
    assert not app.run().exception
    kernel = words(app).replace("\\", "")
    beside_curve = words(open_page("run", run="r1", candidate=name)).replace("\\", "")
    report = report_run.run_report(index.current(), "r1")
    alone = "Its profile was disturbed, so it is compared with no other."
    first = "Profiled; no profiled ancestor to compare with."
    assert (queries.profiled_ancestor(index.current(), "r1", name) is not None) is is_disturbed
    for said in (kernel, beside_curve):
        assert (alone in said, first in said) == (is_disturbed, not is_disturbed)
        assert not any(other in said for other in ("notable change", "Since kernel", "Marker: kernel"))
    assert (f"Profile of kernel {int(name[1:])}: {alone[:-1]}" in report) is is_disturbed
    assert ("do not compare its figures" in kernel) is is_disturbed
    is_offered = any(box.label == "Beside the profile of" for box in app.selectbox)
    assert is_offered is not is_disturbed


@pytest.mark.parametrize("is_own", [True, False])
def test_a_profile_of_the_first_launches_alone_is_compared_with_none(
    home: Path, open_page: Open, tmp_path: Path, is_own: bool
) -> None:
    folder, names = profiled.write_run(home / "runs", "r1", profiled.counted(tmp_path), depths=6)
    lines = [json.loads(line) for line in folder.journal_file.read_text().splitlines()]
    name, cut = names[1], names[1 if is_own else 0]
    for line in lines:
        result = line["event"].get("result") if line["event"].get("candidate_id") == cut else None
        if line["kind"] == "Profiled" and result:
            result["evidence"][LAUNCHES] = "only the first 2 were profiled"
        elif line["kind"] == "Checked" and result:
            rows = [ObservedKernel("mine", OWN, "", 710.6, 9.0, 0.9), ObservedKernel("Memset", COPY, "", 3.0, 1.0, 0.1)]
            result["evidence"][KERNELS] = to_text(rows)
    folder.journal_file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    app = open_page("candidate", run="r1", candidate=name)
    app.session_state["tab"] = "Profile"
    assert not app.run().exception
    kernel = words(app).replace("\\", "")
    db = index.current()
    assert queries.profiled_ancestor(db, "r1", name) == names[0]
    assert all(change.previous is None for change in queries.metric_changes(db, "r1", name))
    whose = "" if is_own else f" of kernel {int(cut[1:])}"
    rest = "its profile is compared with no other" if is_own else "the two profiles are not compared"
    alone = f"Only the first 2 of 711 launches{whose} were profiled, so {rest}"
    assert kernel.count(alone) == 2, "in the paragraph that opens the page, and on the tab"
    beside_curve = words(open_page("run", run="r1", candidate=name)).replace("\\", "")
    assert alone in beside_curve
    for said in (kernel, beside_curve):
        assert not any(other in said for other in ("better", "Since kernel", "Marker: kernel"))
    assert ("No roofline. Only the first 2 of 711 launches were profiled" in kernel) is is_own
    assert any(box.label == "Beside the profile of" for box in app.selectbox) is not is_own
    assert (f"Profile of kernel {int(name[1:])}: {alone}" in report_run.run_report(db, "r1")) is True


def test_what_got_worse_is_never_left_out() -> None:
    change = MetricChangeRow(-1, "", "latency", "s", 2.0, 1.0, "c001")
    found = [Weighed(change, SENSES["latency"], Judgement.BETTER, 100.0 - i) for i in range(20)]
    worse = Weighed(change, SENSES["latency"], Judgement.WORSE, 0.1)
    assert foremost([*found, worse]) == [*found[:10], worse]


def test_each_line_has_its_share_of_the_time_and_what_it_waits_for() -> None:
    rows = [SourceLine("k", "", 2, 30, "barrier", 20, ""), SourceLine("j", "", 2, 10, "wait", 9, "")]
    rows += [SourceLine("k", "", 3, 20, "wait", 20, ""), SourceLine("k", "", 4, 1, "wait", 1, "")]
    heat = hot_lines.heat_of(rows, 400, 2.0)
    assert heat.keys() == {2, 3}, "too little to be seen"
    assert (heat[2].level, heat[2].text, heat[3].level) == (1.0, "10 %", 0.5)
    barrier = counters.STALLS["barrier"]
    assert heat[2].meaning == f"10 % of the samples, about 0.200 ms of the call; mostly waits for: {barrier}"
    assert hot_lines.heat_of([], 400, None) == {}


@pytest.mark.parametrize(("factor", "is_alike"), [(0.97, True), (0.951, False), (0.5, False)])
def test_what_follows_from_the_time_of_a_call_is_no_change_where_two_timings_show_none(
    home: Path, open_page: Open, factor: float, is_alike: bool
) -> None:
    folder = samples.write_run(home / "runs", "r1", depths=5)
    lines = [json.loads(line) for line in folder.journal_file.read_text().splitlines()]
    profiles = [line["event"] for line in lines if line["kind"] == "Profiled"][:2]
    timings = {line["event"]["candidate_id"]: line["event"] for line in lines if line["kind"] == "Timed"}
    before, after = (profile["candidate_id"] for profile in profiles)
    timings[after]["result"] |= {
        "candidate_ms": [factor * ms for ms in timings[before]["result"]["candidate_ms"]],
        "baseline_ms": timings[before]["result"]["baseline_ms"],
    }
    for profile, faults in zip(profiles, (524, 463), strict=True):
        took_s = timings[profile["candidate_id"]]["result"]["candidate_ms"][0] / 1e3
        figures = {"latency": took_s, "memory throughput": 1e6 / took_s, "page faults per call": faults}
        metrics = tuple(Metric(name, "1", value) for name, value in figures.items())
        profile["result"] = codec.to_plain(ProfileResult("h", metrics, "memory", "", "", 1.0))
    folder.journal_file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    open_page("run", run="r1")
    changes = queries.metric_changes(index.current(), "r1", after, before)
    judged = {weighty.change.metric: weighty.judgement for weighty in weighed(changes)}
    told = Judgement.SAME if is_alike else Judgement.BETTER
    assert (judged["latency"], judged["memory throughput"]) == (told, told)
    assert judged["page faults per call"] is Judgement.BETTER
