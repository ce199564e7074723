"""Which regions are worth a kernel: figures of made-up networks; where a network stands by what lies in its folder."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from storage.networks import files, ranking, standing
from storage.networks.files import NetworkError
from storage.networks.records import (
    MAX_AUTOTUNE,
    TUNED_GRAPH,
    CaptureEnded,
    CaptureProgressed,
    CaptureStarted,
    Form,
    Network,
    NetworkState,
    PlaceTime,
    Region,
    RegionLimited,
    RegionRun,
    RegionUse,
    WorkloadFacts,
)


def network(
    *regions: Region, compiled_ms: tuple[float, ...] = (), replayed_ms: tuple[float, ...] = ()
) -> Network:  # fmt: skip
    workload = WorkloadFacts(
        "call", 2.0, (10.0, 10.0, 11.0), 10.0, compiled_ms=compiled_ms, replayed_ms=replayed_ms
    )  # fmt: skip
    times = (PlaceTime("call", "", 1, 10.0, 1.0),)
    return Network("net", "app.py:make", "eval", "cpu", 0, 0.0, 1.0, {}, (workload,), (), times, regions)


def region(name: str, ms: float, *places: str, compiled: float | None = None, is_shared: bool = False) -> Region:
    use = RegionUse("call", len(places), ms, compiled, is_shared)
    return Region(name, Form.MODULE, name, places, (use,), task=f"regions/{name}/task.py")


def limit(name: str, ms: float) -> dict[str, RegionLimited]:
    return {name: RegionLimited(name, ms, "memory", "cpu")}


def test_a_region_saves_what_ninety_percent_of_its_limit_leaves_and_the_ceiling_is_the_wholes() -> None:
    (row,) = ranking.ranked(network(region("norm", 4.0, "a", "b")), limit("norm", 0.9))
    assert row.share == pytest.approx(0.4)
    assert row.calls == 4.0
    assert row.limit_ms == pytest.approx(3.6)  # two workloads' worth of two calls
    assert row.saving_ms == pytest.approx(8.0 - 3.6 / 0.9)
    assert row.ceiling == pytest.approx(20.0 / 16.0)
    assert row.is_worth_it


def test_a_region_stands_against_the_compiler_where_the_network_is_faster_with_it() -> None:
    one = region("norm", 4.0, "a", compiled=1.0, is_shared=True)
    (row,) = ranking.ranked(network(one, compiled_ms=(5.0,)), limit("norm", 0.45))
    assert (row.alternative, row.is_at_most) == ("torch.compile", True)
    assert row.in_place_ms == pytest.approx(2.0)
    assert row.ceiling == pytest.approx(10.0 / 9.0)
    (slower,) = ranking.ranked(network(one, compiled_ms=(50.0,)), limit("norm", 0.45))
    assert slower.alternative == "eager"
    assert slower.in_place_ms == pytest.approx(8.0)


def test_a_region_is_a_larger_part_of_a_network_that_a_cuda_graph_frees_of_its_host() -> None:
    one = region("norm", 1.0, "norm", compiled=0.9)
    (compiled,) = ranking.ranked(network(one, compiled_ms=(9.0,)), limit("norm", 0.45))
    (replayed,) = ranking.ranked(network(one, compiled_ms=(9.0,), replayed_ms=(2.0,)), limit("norm", 0.45))
    assert (compiled.alternative, replayed.alternative) == ("torch.compile", "CUDA graph")
    assert compiled.in_place_ms == replayed.in_place_ms
    assert compiled.ceiling == pytest.approx(18.0 / (18.0 - 0.8))
    assert replayed.ceiling == pytest.approx(4.0 / (4.0 - 0.8))


def test_the_ranking_stands_against_the_fastest_of_all_ways_that_were_timed() -> None:
    one = region("norm", 1.0, "norm", compiled=0.9)
    plain = network(one, compiled_ms=(9.0,), replayed_ms=(4.0,))
    (workload,) = plain.workloads
    tuned = replace(workload, other_ms={MAX_AUTOTUNE: (5.0,), TUNED_GRAPH: (2.0,)})
    (row,) = ranking.ranked(replace(plain, workloads=(tuned,)), limit("norm", 0.45))
    assert row.alternative == TUNED_GRAPH
    assert row.ceiling == pytest.approx(4.0 / (4.0 - 0.8))
    other = replace(workload, name="other")
    assert ranking.whole_of(replace(plain, workloads=(tuned, other))).alternative == "CUDA graph"


def test_a_module_that_is_called_in_two_ways_is_a_place_of_two_regions_without_work_in_common() -> None:
    long, short = region("norm", 2.0, "l.0.norm", "l.1.norm"), region("norm_short", 1.0, "l.0.norm", "l.1.norm")
    assert not ranking.overlap(long, short)
    assert ranking.overlap(region("layer", 6.0, "l.0"), short)


def test_what_is_not_worth_it_says_why_and_stands_last() -> None:
    near, small, no_task = region("near", 5.0, "a"), region("small", 0.05, "b"), region("big", 9.0, "c")
    no_task = replace(no_task, task="", reason="it has 90 operators")
    worth = region("worth", 1.0, "d")
    limits = limit("near", 4.45) | limit("worth", 0.1)
    almost = region("almost", 0.0994, "e")  # of 10 ms
    rows = ranking.ranked(network(near, small, no_task, worth, almost), limits)
    assert rows[0].region.name == "worth"
    reasons = {row.region.name: row.reason for row in rows}
    assert reasons["near"].startswith("near its limit: a kernel at 90% of it would save")
    said = "it takes 0.5 % of the network in eager PyTorch; less than 1% cannot be measured in it"
    assert reasons["small"] == said
    assert reasons["almost"].startswith("it takes 0.99 % of the network"), "which is less than 1 %"
    faster = ranking.ranked(network(region("small", 0.05, "b", compiled=0.04), compiled_ms=(5.0,)), {})
    assert faster[0].reason.startswith("it takes 0.8 % of the network by its best alternative, torch.compile; less")
    assert reasons["big"] == "it has 90 operators"


def test_work_in_common_counts_once_in_the_ceiling_of_all() -> None:
    outer, inner, beside = region("layer", 6.0, "l.0"), region("norm", 2.0, "l.0.norm"), region("head", 2.0, "head")
    fused = replace(region("fused", 1.0, "l"), form=Form.FUSED, parts=("l.0.norm", "l.1"))
    limits = limit("layer", 0.9) | limit("norm", 0.09) | limit("head", 0.9) | limit("fused", 0.09)
    whole = network(outer, inner, beside, fused)
    rows = ranking.ranked(whole, limits)
    assert ranking.overlap(outer, inner)
    assert ranking.overlap(fused, inner)
    assert ranking.overlap(inner, fused)
    assert not ranking.overlap(fused, beside)
    assert not ranking.overlap(fused, replace(region("deep", 1.0, "l.1.feed")))
    saved = 2 * (6.0 - 1.0) + 2 * (2.0 - 1.0)
    assert ranking.ceiling_of(whole, rows) == pytest.approx(20.0 / (20.0 - saved))


def test_places_that_miss_the_whole_are_told() -> None:
    quiet = WorkloadFacts("call", 1.0, (10.0, 10.1, 9.9), 10.2)
    assert ranking.gap_of(quiet, 10.0) == ""
    assert "shares are those of a call that watching has slowed" in ranking.gap_of(
        replace(quiet, profiled_ms=20.0), 20.0
    )
    gpu = replace(quiet, device_ms=8.0, profiled_ms=30.0)
    assert ranking.gap_of(gpu, 8.1) == ""
    assert "some run at the same time or belong to no place" in ranking.gap_of(gpu, 12.0)
    assert ranking.host_share(gpu) == pytest.approx(0.2)


def test_a_network_stands_as_its_folder_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_HOME", str(tmp_path))
    folder = files.folder_of("net")
    lock = files.hold(folder)
    files.append(folder, CaptureStarted("app.py:make", "eval", "cpu"), CaptureProgressed("calling workload a"))
    assert (standing.standing(folder).state, standing.standing(folder).words) == (
        NetworkState.CAPTURING,
        "calling workload a",
    )
    with pytest.raises(NetworkError, match="a capture works on net"):
        files.delete(folder)
    os.close(lock)
    assert standing.standing(folder).state is NetworkState.BROKEN_OFF
    files.append(folder, CaptureEnded("make() failed"))
    assert (standing.standing(folder).state, standing.standing(folder).words) == (NetworkState.FAILED, "make() failed")
    with folder.journal_file.open("ab") as file:
        file.write(b'{"kind": "Unknown"}\n{"torn')
    files.write_network(folder, network(region("norm", 1.0, "a")))
    files.append(folder, RegionRun("norm", "run-1"), RegionRun("norm", "run-2"), *limit("norm", 0.5).values())
    seen = standing.standing(folder)
    assert (seen.state, seen.runs, seen.limits["norm"].limit_ms) == (
        NetworkState.CAPTURED,
        {"norm": ["run-1", "run-2"]},
        0.5,
    )
    folder.network_file.write_text("{")
    with pytest.raises(NetworkError, match="delete the network and capture it again"):
        standing.standing(folder)


@pytest.mark.parametrize("name", ["", "../up", ".hidden", "a/b", "x" * 81])
def test_a_name_that_no_folder_should_have_is_refused(name: str) -> None:
    with pytest.raises(NetworkError, match="no name of a network"):
        files.folder_of(name)
