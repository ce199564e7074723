"""The page of networks in every state that a capture can leave one in, with the figures of the ranking."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from pages.parts import wording
from pages.parts.network import icicle, network_dialogs, place_words, workload_bars
from pages.parts.network.region_states import RegionState
from storage.networks import files, ranking
from storage.networks.records import CaptureEnded, CaptureProgressed, CaptureStarted, Event, RegionRun
from storage.networks.standing import standing
from tests import sample_networks, samples
from tests.pages.conftest import Open, everything, words


def test_without_a_network_the_page_says_what_one_is_and_how_to_capture_it(home: Path, open_page: Open) -> None:
    app = open_page("networks")
    assert "No network has been captured here" in words(app)
    assert "python -m engine network capture app.py:make" in everything(app)


def sent(text: str) -> str:
    """A text as it stands in what a component is given."""
    return json.dumps(text)[1:-1].replace("\\", "\\\\")


def write_unfinished() -> int:
    """Networks whose capture is not whole; the lock of the one at work."""
    unfinished: dict[str, tuple[Event, ...]] = {
        "failed": (CaptureEnded("make() raised ValueError: no checkpoint"),),
        "broken": (CaptureProgressed("measuring prefill"),),
        "working": (CaptureProgressed("exporting decode"),),
        "damaged": (),
    }
    for name, events in unfinished.items():
        sample_networks.begin(name, CaptureStarted("app.py:make", "eval", "cpu", 1), *events)
    files.folder_of("damaged").network_file.write_text('{"name": ')
    return files.hold(files.folder_of("working"))


def test_the_list_has_a_network_in_every_state(home: Path, open_page: Open) -> None:
    sample_networks.write_network(sample_networks.network("whole"))
    lock = write_unfinished()
    said = everything(open_page("networks"))
    for sentence in (
        "no checkpoint", "the capture ended while it was measuring prefill", "exporting decode",
        "delete it and capture it again", "networks?network=whole", "5 of 18",
    ):  # fmt: skip
        assert sentence in said, sentence
    os.close(lock)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("failed", "The capture failed.** make() raised ValueError"),
        ("broken", "Broken off.** The capture ended while it was measuring prefill"),
        ("working", "Being captured.** Exporting decode"),
        ("damaged", "delete the network and capture it again"),
        ("gone", "No network 'gone' was captured here"),
        ("../x", "is no name of a network"),
    ],
)
def test_a_network_that_is_not_whole_says_why(home: Path, open_page: Open, name: str, sentence: str) -> None:
    lock = write_unfinished()
    app = open_page("networks", network=name)
    assert not app.exception
    assert sentence in words(app).replace("\\", "")
    assert len(app.button) == (name in ("failed", "broken", "working", "damaged"))  # what is there can be deleted
    os.close(lock)


def test_a_network_is_told_with_the_figures_of_the_ranking(home: Path, open_page: Open) -> None:
    folder = sample_networks.write_network(sample_networks.network())
    samples.write_run(home / "runs", "run-attn", depths=4)
    files.append(folder, RegionRun("attn", "run-attn"), RegionRun("attn", "deleted"), RegionRun("mlp_up", "deleted"))
    stands = standing(folder)
    assert stands.network is not None
    rows = ranking.ranked(stands.network, stands.limits)
    said = everything(open_page("networks", network="tiny"))
    for row in rows:
        assert f"region={row.region.name}" in said
        assert wording.as_written_here(row.reason)[:40] in said, row.reason
    ceiling = ranking.ceiling_of(stands.network, [row for row in rows if row.is_worth_it])
    for figure in ("5 of 18", wording.speedup(ceiling), "7 to 26 %", "3.72 GB", "run?run=run-attn", "everything else"):
        assert sent(figure) in said, figure
    assert "Places and everything else are not the whole" not in said


def test_one_workload_is_told_alone_and_the_compiled_view_names_every_place_of_a_fused_kernel(
    home: Path, open_page: Open
) -> None:
    sample_networks.write_network(sample_networks.network())
    one = everything(open_page("networks", network="tiny", network_workload="decode"))
    assert "region=attn_one_token" in one
    assert "region=attn" + '\\"' not in one
    compiled = everything(open_page("networks", network="tiny", network_view="under torch.compile, by kernel"))
    assert "triton_poi_fused_add_gelu_native_layer_norm_3" in compiled
    assert "layers.*.mlp.act (6 places), layers.*.mlp (6 places), layers.*.norm2 (6 places)" in compiled


def test_what_does_not_add_up_or_could_not_be_done_is_said(home: Path, open_page: Open) -> None:
    found = sample_networks.network(is_gpu=False)
    slowed = tuple(replace(one, profiled_ms=2 * one.profiled_ms) for one in found.workloads)
    sample_networks.write_network(replace(found, workloads=slowed))
    said = words(open_page("networks", network="tiny")).replace("\\", "")
    assert "Places and everything else are not the whole" in said
    assert "prefill: the call that was watched took 46.3 ms and one that was not takes 22.7 ms" in said
    assert "prefill: torch.compile failed: no C++ compiler was found" in said
    assert "torch.compile broke the graph" in said
    assert "no C++ compiler" in words(
        open_page("networks", network="tiny", network_view="under torch.compile, by kernel")
    ).replace("\\", "")


@pytest.mark.parametrize(
    ("count", "sentence"), [(0, "No region was found"), (1, "1 of 1"), (300, "Showing 1–50 of 300")]
)
def test_the_page_works_with_any_number_of_regions(home: Path, open_page: Open, count: int, sentence: str) -> None:
    sample_networks.write_network(sample_networks.with_regions(count))
    assert sentence in everything(open_page("networks", network="many"))


def test_a_region_has_all_that_is_known_of_it(home: Path, open_page: Open) -> None:
    folder = sample_networks.write_network(sample_networks.network())
    said = everything(open_page("networks", network="tiny", region="mlp_up"))
    for fact in (
        "layers.5.mlp.up", "tanh", "(8, 512, 3072)", "-4.80 to 4.70", "the same", "19.3 GFLOP",
        "3.1e-07", "It reads what came from linear", f"python -m engine run {folder.path}/regions/mlp_up/task.py",
    ):  # fmt: skip
        assert fact in said.replace("\\\\", ""), fact
    assert "it draws random numbers" in words(open_page("networks", network="tiny", region="norm2")).lower()
    (folder.path / "regions/mlp_up/task.py").unlink()
    assert "has gone" in words(open_page("networks", network="tiny", region="mlp_up"))
    assert "has no region never" in words(open_page("networks", network="tiny", region="never"))


def test_a_read_only_server_offers_nothing_that_it_would_refuse(
    home: Path, open_page: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    sample_networks.write_network(sample_networks.network())
    asked: tuple[dict[str, str], ...] = ({}, {"network": "tiny"}, {"network": "tiny", "region": "mlp_up"})
    offered = [len(open_page("networks", **query).button) for query in asked]
    assert offered == [1, 2, 1]
    monkeypatch.setenv("TILEWRIGHT_READ_ONLY", "1")
    for query in asked:
        app = open_page("networks", **query)
        assert not app.button
        assert "Start runs" not in everything(app)


def test_a_region_without_a_recording_asks_for_another_model(home: Path, open_page: Open) -> None:
    sample_networks.write_network(sample_networks.network())
    app = open_page("networks", network="tiny", region="mlp_up")
    app.button[0].click().run()
    assert network_dialogs.NO_RECORDING in words(app).replace("\\", "")
    assert next(one for one in app.button if one.key == "start_regions_yes").disabled


def test_a_network_is_deleted_after_a_question(home: Path, open_page: Open) -> None:
    folder = sample_networks.write_network(sample_networks.network())
    app = open_page("networks", network="tiny")
    app.button[0].click().run()
    assert "Runs of its regions stay" in words(app)
    assert folder.path.exists()
    next(one for one in app.button if one.key == "delete_network_yes").click().run()
    assert not folder.path.exists()


def test_a_capture_that_cannot_begin_says_why(home: Path, open_page: Open) -> None:
    app = open_page("networks")
    app.button[0].click().run()
    next(one for one in app.text_input if one.key == "network_entry").set_value("app.py:make")
    next(one for one in app.button if one.key == "capture_yes").click().run()
    assert "give its whole path" in words(app)


def test_places_that_differ_in_numbers_alone_are_told_once() -> None:
    layers = [f"layers.{number}.mlp.act" for number in range(12)]
    assert place_words.in_few(layers) == "layers.*.mlp.act (12 places)"
    assert place_words.in_few(["head", *layers, "conv1", "conv2"]) == (
        "head, layers.*.mlp.act (12 places), conv1, 1 other sort of place"
    )
    assert place_words.in_few([""]) == "the network itself"


def test_what_is_drawn_of_a_network_adds_up_to_the_whole_with_everything_else() -> None:
    found = sample_networks.network()
    tree = icicle.tree_of(found)
    shown = icicle.sectors(tree, {}, "")
    assert shown[0].ms == pytest.approx(ranking.whole_of(found).eager_ms)
    assert [one.label for one in shown if one.path is None] == ["everything else"]
    drawn = icicle.figure(shown)["data"][0]
    assert sum(drawn["values"]) == pytest.approx(shown[0].ms)
    assert min(drawn["values"]) >= 0
    by_place = icicle.states_by_place(found.regions, {one.name: RegionState.WORTH_IT for one in found.regions})
    assert "layers.0.mlp.act" in by_place
    assert "layers.0" not in by_place  # where fused operators lie, which are but a part of what it does
    inner = icicle.sectors(tree, {"layers.0.mlp.act": RegionState.WORTH_IT}, "layers.0.mlp")
    assert [one.label for one in inner] == ["mlp", "up", "act", "down"]
    assert inner[2].state is RegionState.WORTH_IT


def test_modules_too_narrow_to_be_seen_are_drawn_as_one() -> None:
    tree = icicle.tree_of(sample_networks.with_regions(300))
    shown = icicle.sectors(tree, {}, "")
    assert len(shown) < 60
    small = next(one for one in shown if one.label == icicle.SMALLER)
    assert sum(one.ms for one in shown if one.parent_id == "place:blocks") == pytest.approx(tree.total_ms["blocks"])
    assert "too narrow" in small.hover


def test_a_workloads_ceiling_stands_across_its_bars_once_a_limit_is_known(home: Path) -> None:
    stands = standing(sample_networks.write_network(sample_networks.network()))
    assert stands.network is not None
    prefill = stands.network.workloads[0]
    drawn = workload_bars.of_workload(stands.network, stands.limits, prefill)
    assert [one.text for one in drawn] == ["22.7 ms", "16.3 ms", "none yet"]
    assert [one.before for one in drawn] == [pytest.approx(13.485 / 22.7, rel=1e-3)] * 3
    assert workload_bars.of_workload(stands.network, {}, prefill)[0].before is None
