"""The page of networks in every state that a capture can leave one in, with the figures of the ranking."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from engine.errors import EngineError
from engine.networks import examples, starting
from pages.parts import index, wording
from pages.parts.network import (
    icicle,
    network_dialogs,
    network_kernels,
    place_words,
    proof_state,
    region_states,
    whole_curve,
    workload_bars,
)
from pages.parts.network.region_states import Done, RegionState
from pages.parts.network.whole_curve import Axis
from storage.index import queries
from storage.networks import files, ranking
from storage.networks.files import NetworkFolder
from storage.networks.in_network import RegionRow
from storage.networks.records import (
    COMPILED,
    MAX_AUTOTUNE,
    CaptureEnded,
    CaptureProgressed,
    CaptureStarted,
    Engaged,
    Event,
    OriginalTimed,
    ProofEnded,
    ProofStarted,
    ProofStopAsked,
    RegionRun,
    RegionTried,
    SearchStarted,
    Verdict,
)
from storage.networks.standing import Standing, standing
from storage.run import liveness
from storage.suites import files as suites
from storage.suites.records import Arm, Cell, CellLinked, Defined, RunnerStarted, SuiteTask
from tests import sample_networks, samples
from tests.pages.conftest import Open, everything, words
from tests.sample_networks import TRIALS, Left


def test_without_a_network_the_page_says_what_one_is_and_how_to_capture_it(home: Path, open_page: Open) -> None:
    app = open_page("networks")
    assert "No network has been captured here" in words(app)
    assert "Capture one with *New network* above, or from a terminal with the command below" in words(app)
    assert "python -m engine network capture app.py:make" in everything(app)


def test_calls_beyond_those_of_the_region_are_told_apart() -> None:
    """What the small decoder's fused projection was seen to do: two of six calls stand in a larger region."""
    trial = RegionTried("fused", Verdict.KEPT, "faster", engaged=(Engaged("prefill", 4, 6), Engaged("short", 4, 4)))
    told = network_kernels.called_cell(RegionRow("fused", None, trial, None, True, None))
    assert isinstance(told, dict)
    assert (told["text"], told["note"]) == ("8 of 8", "and 2 more")
    assert "2 more of the same operators in other places" in told["title"]


def sent(text: str) -> str:
    """A text as it stands in what a component is given."""
    return json.dumps(text)[1:-1].replace("\\", "\\\\")


def pressed(app: AppTest, key: str) -> AppTest:
    return next(one for one in app.button if one.key == key).click().run()


def offered(app: AppTest) -> dict[str, bool]:
    """What can be started, and whether it can be now."""
    return {str(one.key): not one.disabled for one in app.button}


def write_proven(left: Left, name: str = "tiny") -> NetworkFolder:
    folder = sample_networks.write_network(sample_networks.network(name))
    if (lock := sample_networks.write_proof(folder, left)) is not None:
        os.close(lock)
    return folder


def stands_of(folder: NetworkFolder) -> Standing:
    stands = standing(folder)
    assert stands.network is not None
    return stands


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
    again = f"python -m engine network capture app.py:make --name {name}"
    assert [code.value for code in app.code if code.value == again] == [again] * (name in ("failed", "broken"))
    assert len(app.button) == (name in ("failed", "broken", "working", "damaged"))  # what is there can be deleted
    os.close(lock)


def test_a_network_is_told_with_the_figures_of_the_ranking(home: Path, open_page: Open) -> None:
    folder = sample_networks.write_network(sample_networks.network())
    samples.write_run(home / "runs", "run-attn", depths=4)
    files.append(folder, RegionRun("attn", "run-attn"), RegionRun("attn", "deleted"), RegionRun("mlp_up", "deleted"))
    stands = standing(folder)
    assert stands.network is not None
    rows = ranking.ranked(stands.network, stands.limits)
    app = open_page("networks", network="tiny")
    said = everything(app)
    for row in rows:
        assert f"region={row.region.name}" in said
        assert wording.as_written_here(row.reason)[:40] in said, row.reason
    ceiling = ranking.ceiling_of(stands.network, [row for row in rows if row.is_worth_it])
    for figure in ("5 of 18", "7 to 26 %", "3.72 GB", "run?run=run-attn", "everything else",
                   "kernels inside its modules take", "such as parameters and inputs"):  # fmt: skip
        assert sent(figure) in said, figure
    told = words(app)
    assert f"Ceiling: at most {wording.speedup(ceiling)} over" in told
    assert "A large region's ceiling is optimistic" in told
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
    found = sample_networks.with_regions(count)
    folder = sample_networks.write_network(found)
    names = [region.name for region in found.regions]
    trials = [sample_networks.tried(name, Verdict.KEPT, 1.001, "") for name in names]
    kernels = tuple(map(sample_networks.chosen, names))
    files.append(folder, ProofStarted(1, kernels), *trials, sample_networks.stack(tuple(names), 1.2), ProofEnded())
    said = everything(open_page("networks", network="many"))
    assert sentence in said
    assert f"{count} of {count}" in said


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
    assert offered == [1 + starting.has_small_network() + len(examples.shipped()), 2, 1]
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
    pressed(app, "new_network")
    next(one for one in app.text_input if one.key == "network_entry").set_value("app.py:make")
    next(one for one in app.checkbox if one.key == "network_tuned").check()
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


@pytest.mark.parametrize(
    ("left", "sentences"),
    [
        (None, ("No kernel was put back into this network yet", "python -m engine network optimise tiny", "none yet")),
        (Left.BROKEN_OFF, ("was broken off", "ended while it was putting back norm1", "4 of 8 kernels", "Go on")),
        (Left.NOTHING_KEPT, ("No kernel pays in this network", "none kept", "it costs time in place", "reverted")),
        (Left.WHOLE, (
            "1.115× (1.112 to 1.118) the best alternative (both torch.compile)", "24 of 24 greedy",
            "1 prefill + 8 decode, without kernels", "by torch.compile, timed in turns",
            "by torch.compile, at the capture",
            "In eager calls (no compiler, no CUDA graph) 8 kernels, measured alone, promise a network",
            "1.112 to 1.118", "3 of 8", "kept", "within the noise", "5 of 6 calls reach the kernel", "SIGSEGV",
            "attn has work in common", "a person has switched it off", "with kernels, torch.compile", "11 of 12",
            "Leave-one-out", "Speed-up of the whole by kernel",
        )),
    ],
)  # fmt: skip
def test_what_kernels_bring_is_told_in_every_state_that_a_proof_can_be_left_in(
    home: Path, open_page: Open, left: Left | None, sentences: tuple[str, ...]
) -> None:
    if left:
        write_proven(left)
    else:
        sample_networks.write_network(sample_networks.network())
    said = everything(open_page("networks", network="tiny")).replace("\\", "")
    for sentence in sentences:
        assert sentence in said or sent(sentence).replace("\\", "") in said, sentence


def test_a_proof_at_work_says_what_it_does_and_starts_nothing_beside_itself(home: Path, open_page: Open) -> None:
    folder = sample_networks.write_network(sample_networks.network())
    lock = sample_networks.write_proof(folder, Left.AT_WORK)
    app = open_page("networks", network="tiny")
    assert "Kernels are being put back.** Putting back norm1" in words(app)
    assert "4 of 8 kernels tried" in everything(app)
    assert "it is being measured" in everything(app)
    assert "measuring" in everything(open_page("networks"))
    assert offered(app) == {
        "delete:tiny": True, "stop_measuring": True, "search_kernels": False, "measure_again": False,
    }  # fmt: skip
    app.button(key="stop_measuring").click().run()
    assert isinstance(files.read(folder)[-1].event, ProofStopAsked)
    assert not offered(open_page("networks", network="tiny"))["stop_measuring"]
    with pytest.raises(EngineError, match="being measured in network tiny already"):
        starting.put_kernels_back("tiny")
    assert lock is not None
    os.close(lock)
    assert offered(open_page("networks", network="tiny"))["proof_go_on"]


def test_what_cannot_be_put_back_is_told_with_what_the_command_wrote(home: Path, open_page: Open) -> None:
    folder = sample_networks.write_network(sample_networks.network())
    run = samples.write_run(home / "runs", "run-attn", depths=2)
    files.append(folder, RegionRun("attn", "run-attn"))
    app = open_page("networks", network="tiny")
    assert "attn has a correct kernel, and none was put back yet" in words(app)
    run.settings_file.write_text("{")
    pressed(app, "put_back")
    assert "The measurement did not start" in words(app)
    assert "no region of network tiny has a correct kernel yet" in everything(app)
    assert stands_of(folder).proof is None


def test_a_search_that_ends_before_it_has_begun_is_quoted(home: Path) -> None:
    sample_networks.write_network(sample_networks.network())
    with pytest.raises(EngineError, match=r"the search did not start; it wrote:\n(.|\n)*tilewright: "):
        starting.search_kernels("tiny", top=2, limits={"model_calls": 9}, recordings="/nowhere")


def test_a_read_only_server_starts_nothing_and_still_hands_out_the_package(
    home: Path, open_page: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_proven(Left.WHOLE)
    write_proven(Left.BROKEN_OFF, "broken")
    acts = {"delete:tiny", "search_kernels", "measure_again", "ship_network"}
    assert set(offered(open_page("networks", network="tiny"))) == acts
    monkeypatch.setenv("TILEWRIGHT_READ_ONLY", "1")
    app = open_page("networks", network="tiny")
    assert [one.key for one in app.button] == ["ship_network"]
    assert "switch:attn" not in everything(app)
    told = everything(app).replace("\\", "")
    assert "Replaced: " in told
    assert "Install it with pip; then apply" in told
    app.button(key="ship_network").click().run()
    assert "Not packaged: Attention is called with" in everything(app)
    assert "python -m engine network apply broken" in everything(open_page("networks", network="broken"))
    for start in (starting.try_small_network, lambda: starting.search_kernels("tiny")):
        with pytest.raises(EngineError, match="read-only"):
            start()


def test_a_search_is_followed_and_goes_on_with_the_settings_that_it_was_begun_with(home: Path, open_page: Open) -> None:
    folder = sample_networks.write_network(sample_networks.network())
    tasks = tuple(SuiteTask(name, "task.py", f"--recording /recordings/{name}.jsonl") for name in ("attn", "mlp_act"))
    defined = Defined("tiny.regions", tasks, (Arm("search"),), settings="--toolchain cuda --depths 4", words=())
    suite = suites.folder_of(defined.name)
    suites.append(suite, defined, RunnerStarted(1), CellLinked(Cell("attn", "search", 1), "run-attn"))
    files.append(folder, SearchStarted(defined.name))
    app = open_page("networks", network="tiny")
    assert "The search has stopped.** 0 of 2 regions done." in words(app)
    pressed(app, "search_kernels")
    assert "It goes on with the search that was begun, with `--depths 4`" in words(app)
    assert network_dialogs.NO_MODEL not in words(app).replace("\\", "")
    lock = liveness.hold(suite.runner)
    app = open_page("networks", network="tiny")
    assert "Kernels are being searched.** 0 of 2 regions done, now attn" in words(app)
    assert "searching" in everything(app)
    assert not offered(app)["search_kernels"]
    os.close(lock)


def test_a_search_asks_for_a_model_where_none_is_connected(home: Path, open_page: Open) -> None:
    sample_networks.write_network(sample_networks.network())
    app = pressed(open_page("networks", network="tiny"), "search_kernels")
    assert network_dialogs.NO_MODEL in words(app).replace("\\", "")
    assert not offered(app)["search_kernels_yes"]


def test_the_small_network_is_not_tried_beside_the_demo(home: Path) -> None:
    demo = samples.write_run(home / "runs", "demo", seed=0, depths=1, ending="running", has_blobs=False)
    lock = liveness.hold(demo)
    with pytest.raises(EngineError, match="the demo run is at work on this machine"):
        starting.try_small_network()
    os.close(lock)
    assert not files.all_networks()


def test_an_example_is_opened_when_the_demo_has_ended(home: Path, open_page: Open) -> None:
    lock = liveness.hold(samples.write_run(home / "runs", "demo", seed=0, depths=1, ending="running", has_blobs=False))
    for is_at_work in (True, False):
        found = [one for one in open_page("networks").button if str(one.key).startswith("open_network:")]
        assert [one.disabled for one in found] == [is_at_work] * len(examples.shipped())
        if is_at_work:
            os.close(lock)
    told = open_page("networks", network="convnext")
    assert "The network convnext comes with Tilewright and is not open here yet" in words(told).replace("\\", "")
    assert "open_network:convnext" in [one.key for one in told.button]


def test_a_package_is_refused_before_kernels_were_measured(home: Path) -> None:
    write_proven(Left.BROKEN_OFF)
    with pytest.raises(EngineError, match="no kernel was measured in network tiny yet"):
        starting.packaged("tiny")


def test_bars_before_and_after_are_of_the_same_measurement(home: Path) -> None:
    stands = stands_of(write_proven(Left.WHOLE))
    assert stands.network is not None
    assert stands.proof is not None
    prefill = stands.network.workloads[0]
    drawn = workload_bars.of_workload(stands.network, stands.limits, prefill, stands.proof.stack)
    assert [one.text for one in drawn] == ["22.7 ms", "16.3 ms", "14.7 ms"]
    assert drawn[2].label == "with kernels, torch.compile"
    assert drawn[1].share / drawn[2].share == pytest.approx(1.115)
    assert drawn[2].note.startswith("1.115× (1.112 to 1.118) over torch.compile without them")
    refused = OriginalTimed(prefill.name, MAX_AUTOTUNE, 15.0)  # with kernels it cannot be called so
    drawn = workload_bars.of_workload(stands.network, stands.limits, prefill, stands.proof.stack, (refused,))
    assert [one.text for one in drawn] == ["22.7 ms", "16.3 ms", "15.0 ms", "14.7 ms"]


def test_what_came_of_a_kernel_is_told_before_that_it_has_a_run_and_after_that_it_is_searched(home: Path) -> None:
    stands = stands_of(write_proven(Left.WHOLE))
    assert stands.network is not None
    rows = {row.region.name: row for row in ranking.ranked(stands.network, stands.limits)}
    so_far = region_states.done(stands.proof, ["mlp_act"])
    states = {name: region_states.state_of(rows[name], so_far, [*TRIALS, sample_networks.COVERED]) for name in TRIALS}
    assert states == {
        "attn": RegionState.KEPT, "mlp_act": RegionState.SEARCHING, "mlp_up": RegionState.REVERTED,
        "mlp_down": RegionState.REVERTED, "norm1": RegionState.FALLS_BACK, "embed": RegionState.FALLS_BACK,
        "attn_one_token": RegionState.FALLS_BACK, "add_layer_norm": RegionState.KEPT,
    }  # fmt: skip
    assert region_states.state_of(rows["attn_out"], so_far, ["attn_out"]) is RegionState.HAS_RUN
    assert region_states.state_of(rows["attn"], Done()) is RegionState.WORTH_IT


def test_where_a_sector_is_wide_enough_it_says_what_came_of_its_kernel() -> None:
    tree = icicle.tree_of(sample_networks.network())
    states = {"layers.0.attn": RegionState.KEPT, "layers.0.norm1": RegionState.REVERTED}
    shown = icicle.sectors(tree, states, "layers.0")
    texts = dict(zip([one.label for one in shown], icicle.figure(shown)["data"][0]["text"], strict=True))
    assert texts["attn"].endswith(", kept")
    assert texts["norm1"] == "reverted"


def test_the_curve_of_the_whole_rises_with_each_kernel_kept_at_what_all_searches_had_cost(
    home: Path, open_page: Open
) -> None:
    folder = write_proven(Left.WHOLE)
    for seed, region in enumerate(("attn", "mlp_act", "mlp_up")):
        samples.write_run(home / "runs", sample_networks.chosen(region).run_id, seed=seed, depths=2, has_blobs=False)
    app = open_page("networks", network="tiny")
    assert "Speed-up of the whole by cost" in words(app)
    stands = stands_of(folder)
    assert stands.network is not None
    assert stands.proof is not None
    started = {region: [sample_networks.chosen(region).run_id] for region in TRIALS}
    runs = {region: queries.of_ids(index.current(), run_ids) for region, run_ids in started.items()}
    spent = [(runs[region][0].tokens or 0) / 1000 for region in ("attn", "mlp_act", "mlp_up")]
    points = whole_curve.points(stands.network, stands.proof, runs, Axis.TOKENS)
    assert [point.name for point in points] == [whole_curve.AS_IT_IS, "attn", "mlp_act", "add_layer_norm",
                                                whole_curve.WHOLE]  # fmt: skip
    assert [point.spent for point in points] == pytest.approx([0, spent[0], sum(spent[:2]), sum(spent), sum(spent)])
    assert [point.speedup for point in points] == pytest.approx([1, 1.062, 1.062 * 1.041, 1.062 * 1.041 * 1.012, 1.115])
    assert (points[-1].low, points[-1].high) == pytest.approx((1.112, 1.118))
    unpriced = {**runs, "attn": [replace(runs["attn"][0], cost_usd=None)]}
    assert whole_curve.axes(unpriced) == [Axis.TOKENS, Axis.TIME]


def test_a_region_tells_what_came_of_its_kernel(home: Path, open_page: Open) -> None:
    write_proven(Left.WHOLE)
    said = everything(open_page("networks", network="tiny", region="mlp_down"))
    assert "Its kernel in the network" in said
    assert "is 0.012 away from float64" in said
    assert "changes results" in said


def test_kernels_that_were_found_since_are_told_to_wait(home: Path) -> None:
    stands = stands_of(write_proven(Left.WHOLE))
    assert stands.network is not None
    rows = network_kernels.rows_of(
        stands.network, stands, {name: sample_networks.chosen(name) for name in ("attn", "norm1_one_token")}
    )
    assert [row.region for row in rows][-3:] == ["attn_out", sample_networks.SWITCHED_OFF, "norm1_one_token"]
    assert rows[-1].waits == "not put back yet"
    assert proof_state.unmeasured(stands.proof, ["attn", "norm1_one_token"]) == ["norm1_one_token"]
    assert len(rows) == len(TRIALS) + 3


def test_a_way_that_fails_alone_still_has_its_bar_beside_the_kernels(home: Path) -> None:
    found = sample_networks.network(is_gpu=False)
    drawn = workload_bars.of_workload(found, {}, found.workloads[0], sample_networks.stack(("attn",), 1.1))
    assert [one.label.partition(",")[0] for one in drawn] == ["eager", COMPILED, "with kernels"]
    assert drawn[1].text == "16.3 ms"


def test_an_example_network_is_opened_by_a_click_and_offers_nothing_that_needs_what_is_not_there(
    home: Path, open_page: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_proven(Left.WHOLE)
    for region in TRIALS:
        samples.write_run(home / "runs", sample_networks.chosen(region).run_id, depths=1)
    for path in (folder.path / files.REGIONS).iterdir():
        (path / "task.toml").write_text(f'name = "{path.name}"\n')
    searched = tuple(SuiteTask(region, "task.py") for region in (*TRIALS, sample_networks.COVERED))
    suites.append(suites.folder_of("tiny.regions"), Defined("tiny.regions", searched, (Arm("search"),)))
    files.append(folder, SearchStarted("tiny.regions"))
    examples.export(folder, tmp_path / "archives" / "tiny.tar.xz", print)
    files.delete(folder)
    shutil.rmtree(suites.folder_of("tiny.regions").path)
    monkeypatch.setattr(examples, "SHIPPED", tmp_path / "archives")
    app = open_page("networks")
    next(one for one in app.button if one.key == "open_network:tiny").click().run()
    assert not app.exception
    network = files.read_network(files.find("tiny"))
    assert network is not None
    assert network.is_example
    told = open_page("networks", network="tiny")
    assert "Measured on an NVIDIA H100 80GB HBM3; its recorded tensors are not part of it" in words(told).replace(
        "\\", ""
    )
    assert "with kernels" in words(told)
    assert sent("1.115×") in everything(told)
    assert [one.key for one in told.button] == ["delete:tiny", "ship_network"]
    assert "Ship" in everything(told)
    assert "Start runs for the ticked" not in everything(told)
    left_behind = f"Not part of this example: the search of {sample_networks.COVERED}, whose run was"
    assert left_behind in words(told).replace("\\", "")
    attn = open_page("networks", network="tiny", region="attn")
    assert not attn.button
    assert "A run needs the recorded tensors" in words(attn)
    assert "run-attn" in everything(attn)
    assert "open_network:tiny" not in {one.key for one in open_page("networks").button}
