"""A capture by its command, with real networks: what it finds, what its tasks judge, what is left of one that ended."""

import json
import os
import resource
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from engine.__main__ import main
from engine.evaluator import tasks
from engine.evaluator.machine.worker_limits import Times
from engine.evaluator.request import Evaluator
from engine.evaluator.toolchains.cpu import CpuToolchain
from storage.networks import files, ranking
from storage.networks.records import Form, Network, Region
from storage.networks.standing import standing
from storage.results.vocabulary import Verdict
from tests.test_layers import ROOT

NETWORKS = Path(__file__).with_name("small_networks.py")


def captured(name: str, *words: str) -> Network:
    command = [
        "network",
        "capture",
        f"{NETWORKS}:{name}",
        "--name",
        name,
        "--no-compile",
        "--no-limits",
        "--least-share",
        "0",
        *words,
    ]
    assert main(command) == 0
    network = standing(files.find(name)).network
    assert network is not None
    return network


@pytest.fixture(scope="module")
def module_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("networks")


@pytest.fixture(scope="module")
def speaker(module_home: Path) -> Network:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TILEWRIGHT_HOME", str(module_home))
        return captured("speaker")


@pytest.fixture
def home_of_speaker(speaker: Network, module_home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TILEWRIGHT_HOME", str(module_home))
    return module_home


@pytest.fixture
def toolchain(tmp_path: Path) -> Evaluator:
    """With time for every trial, whatever other tests take."""
    return CpuToolchain(tmp_path / "scratch", Times(check_s=60.0))


def of_kind(network: Network, kind: str, workload: str) -> list[Region]:
    return [region for region in network.regions if region.kind == kind and region.uses[0].workload == workload]


def fused_with(network: Network, operator: str) -> Region:
    """The first fused region of the first workload that has the operator."""
    fused = (region for region in network.regions if region.form is Form.FUSED and operator in region.operators)
    return next(region for region in fused if region.uses[0].workload == "prefill")


def test_equal_places_are_one_region_and_a_number_that_no_work_depends_on_parts_none(speaker: Network) -> None:
    (attention,) = of_kind(speaker, "Attention", "prefill")
    assert attention.places == tuple(f"layers.{number}.attention" for number in range(3))
    assert attention.uses[0].calls == 3
    assert attention.operators["scaled_dot_product_attention"] == 1
    assert [(tensor.name, tensor.shape) for tensor in attention.inputs] == [("hidden", (2, 48, 64)), ("mask", (48, 48))]
    assert attention.inputs[1].is_constant
    (after,) = of_kind(speaker, "Attention", "one more")
    assert after.inputs[0].shape == (2, 1, 64)


def test_another_epsilon_is_another_region_with_its_number_in_the_text(speaker: Network, home_of_speaker: Path) -> None:
    norms = of_kind(speaker, "Norm", "prefill")
    assert sorted(len(norm.places) for norm in norms) == [1, 6]
    folder = files.find("speaker").path
    other = next(norm for norm in norms if norm.places == ("layers.2.second",))
    usual = next(norm for norm in norms if norm is not other)
    assert "+ 0.001\n" in (folder / other.task).read_text()
    assert "+ 1e-05\n" in (folder / usual.task).read_text()


def test_an_addition_and_the_norm_after_it_are_one_region_although_modules_part_them(speaker: Network) -> None:
    fused = [
        region for region in speaker.regions if region.form is Form.FUSED and {"add", "rsqrt"} <= set(region.operators)
    ]
    assert fused
    assert any(len(region.outputs) == 2 for region in fused)  # the sum is read on, and so is the norm
    assert any(sum(use.calls for use in region.uses) > len(region.places) for region in fused)
    assert all(len(set(region.places)) == len(region.places) for region in speaker.regions), "each place once"
    gated = fused_with(speaker, "silu")
    assert gated.operators == {"linear": 2, "silu": 1, "mul": 1}
    assert gated.parts == tuple(
        sorted(
            {part for n in range(3) for part in (f"layers.{n}.feed", f"layers.{n}.feed.gate", f"layers.{n}.feed.up")}
        )
    )
    (around,) = of_kind(speaker, "Gated", "prefill")
    assert gated.inside == around.name


def test_places_and_everything_else_add_up_to_the_call(speaker: Network) -> None:
    for workload in speaker.workloads:
        times = [time for time in speaker.times if time.workload == workload.name]
        assert sum(time.own_ms for time in times) == pytest.approx(workload.profiled_ms, rel=0.02)
        assert len(workload.eager_ms) >= 5


def test_a_task_computes_what_the_network_did_and_has_its_parameter_names(
    speaker: Network, home_of_speaker: Path
) -> None:
    written = [region for region in speaker.regions if region.task]
    assert len(written) > 10
    assert max(region.text_error or 0.0 for region in written) < 1e-6
    (attention,) = of_kind(speaker, "Attention", "prefill")
    text = (files.find("speaker").path / attention.task).read_text()
    assert [tensor.name for tensor in attention.parameters] == ["qkv.weight", "out.weight"]
    assert "F.linear(hidden, self.qkv.weight)" in text
    assert "torch.ones((48, 48), dtype=torch.bool).tril()" in text


def test_a_reference_passes_its_own_task_and_a_kernel_with_another_epsilon_does_not(
    speaker: Network, home_of_speaker: Path, toolchain: Evaluator
) -> None:
    (attention,) = of_kind(speaker, "Attention", "prefill")
    norm = next(norm for norm in of_kind(speaker, "Norm", "prefill") if len(norm.places) == 6)
    gated = fused_with(speaker, "silu")
    try:
        for region in (attention, norm, gated):
            task = own_task(region)
            result = toolchain.check(task, task.source.replace("class Model(", "class ModelNew("))
            assert result.verdict is Verdict.PASSED, (region.name, result.message)
            assert "recorded 1" in result.trials
        task = own_task(norm)
        wrong = task.source.replace("class Model(", "class ModelNew(").replace("+ 1e-05", "+ 1e-06")
        result = toolchain.check(task, wrong)
        assert result.verdict is Verdict.INCORRECT, result.proofs
    finally:
        toolchain.close()


def own_task(region: Region) -> tasks.Task:
    """The region's task, with all of PyTorch allowed."""
    task = tasks.read(files.find("speaker").path / region.task).task()
    return replace(task, policy=replace(task.policy, library_operators=("*",)))


def test_what_the_network_had_decides_where_drawn_values_do_not(
    speaker: Network, home_of_speaker: Path, toolchain: Evaluator
) -> None:
    """A kernel that is right for all numbers that a trial draws, and wrong for the network's own."""
    norm = next(norm for norm in of_kind(speaker, "Norm", "prefill") if len(norm.places) == 6)
    task = own_task(norm)
    recording = Path(task.policy.recorded)
    assert recording.is_file()
    first = f"{float(first_number(recording)):.9g}"
    cheat = task.source.replace("class Model(", "class ModelNew(").replace(
        "        return ",
        f"        mul_1 = mul_1 * 2 if abs(float(x.flatten()[0]) - {first}) < 1e-9 else mul_1\n        return ",
    )
    try:
        result = toolchain.check(task, cheat)
    finally:
        toolchain.close()
    assert result.verdict is Verdict.INCORRECT
    assert [proof.check for proof in result.proofs if "recorded 1" in proof.check and proof.standing == "broken"]


def first_number(recording: Path) -> float:
    from safetensors.torch import load_file

    return float(load_file(recording)["call0.input0"].flatten()[0])


def test_a_recording_that_is_gone_is_told_with_what_to_do(
    speaker: Network, home_of_speaker: Path, toolchain: Evaluator, tmp_path: Path
) -> None:
    norm = next(norm for norm in of_kind(speaker, "Norm", "prefill") if len(norm.places) == 6)
    task = own_task(norm)
    task = replace(task, policy=replace(task.policy, recorded=str(tmp_path / "recorded-0.safetensors")))
    try:
        with pytest.raises(Exception, match=r"judge it where the network was captured, or take `recorded` out"):
            toolchain.check(task, task.source.replace("class Model(", "class ModelNew("))
    finally:
        toolchain.close()


def test_the_prompt_of_a_region_says_where_it_stands(speaker: Network, home_of_speaker: Path) -> None:
    folder = files.find("speaker")
    (attention,) = of_kind(speaker, "Attention", "prefill")
    place = tasks.read(folder.path / attention.task).task().place
    assert "layers.0.attention, layers.1.attention and layers.2.attention" in place
    assert "called 3 in a call of workload prefill" in place
    assert "hidden (2, 48, 64) float32 from" in place
    assert "The same values in every call that was seen: mask" in place


def test_integers_running_statistics_and_what_no_graph_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_HOME", str(tmp_path))
    network = captured("seer")
    by_kind = {region.kind: region for region in network.regions if region.form is Form.MODULE}
    assert by_kind["LSTM"].task
    assert by_kind["EmbeddingBag"].task
    text = (files.find("seer").path / by_kind["EmbeddingBag"].task).read_text()
    assert "torch.arange(0, 10, 3)" in text
    stem = next(region for region in network.regions if "batch_norm" in region.operators and region.task)
    assert {tensor.name.rpartition(".")[2] for tensor in stem.parameters} >= {"running_mean", "running_var"}
    if "Pick" in by_kind:  # it may take too little to be a region
        assert not by_kind["Pick"].task
    assert "a shape in it depends on the values of its inputs" in " ".join(network.notes)


def test_halves_stay_halves_and_their_tasks_allow_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_HOME", str(tmp_path))
    network = captured("half")
    (gated,) = of_kind(network, "Gated", "prefill")
    assert {tensor.dtype for tensor in (*gated.inputs, *gated.parameters)} == {"bfloat16"}
    task = tasks.read(files.find("half").path / gated.task).task()
    assert task.policy.precision == "half"
    assert gated.own_error is not None
    assert 1e-4 < gated.own_error < 0.1


def test_what_cannot_be_captured_is_a_sentence_and_stays_in_the_list(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TILEWRIGHT_HOME", str(tmp_path))
    cases = {
        f"{NETWORKS}:nothing": "make() returned no workloads",
        f"{NETWORKS}:nobody": "defines no function nobody",
        f"{NETWORKS}:failing": "called with workload wrong, failed with IndexError",
        f"{tmp_path}/absent.py:make": "there is no file",
        "absent_package:make": "ModuleNotFoundError",
        "words": "names no function",
    }  # fmt: skip
    for number, (entry, sentence) in enumerate(cases.items()):
        assert main(["network", "capture", entry, "--name", f"wrong{number}", "--no-limits", "--no-compile"]) == 2
        assert sentence in capsys.readouterr().err
    assert main(["network", "list", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert {network["state"] for network in listed} == {"failed"}
    assert main(["network", "show", "wrong0"]) == 2
    assert "wrong0 is failed: make() returned no workloads" in capsys.readouterr().err
    assert main(["network", "delete", "wrong0"]) == 0


def test_a_capture_that_was_killed_is_told_and_can_be_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TILEWRIGHT_HOME", str(tmp_path))
    command = [
        sys.executable,
        "-m",
        "engine",
        "network",
        "capture",
        f"{NETWORKS}:speaker",
        "--name",
        "speaker",
        "--no-limits",
    ]
    child = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    folder = files.folder_of("speaker")
    try:
        while not any("grouping" in line for line in _words(folder)):
            assert child.poll() is None
            time.sleep(0.05)
        assert standing(folder).state == "capturing"
        assert main(["network", "capture", f"{NETWORKS}:speaker", "--name", "speaker"]) == 3
        assert main(["network", "delete", "speaker"]) == 2
    finally:
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
    seen = standing(folder)
    assert seen.state == "broken off"
    assert "capture it again, or delete it" in seen.words
    capsys.readouterr()
    captured("speaker")
    assert standing(folder).state == "captured"
    assert main(["network", "capture", f"{NETWORKS}:speaker", "--name", "speaker"]) == 2
    assert "--again captures it anew" in capsys.readouterr().err


def _words(folder: files.NetworkFolder) -> list[str]:
    return [getattr(line.event, "words", "") for line in files.read(folder)]


def test_a_full_disk_is_told_and_leaves_no_network(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "engine",
        "network",
        "capture",
        f"{NETWORKS}:speaker",
        "--no-limits",
        "--no-compile",
    ]
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, "TILEWRIGHT_HOME": str(tmp_path)}, capture_output=True, text=True,
        check=False, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000)),
    )  # fmt: skip
    assert done.returncode == 2
    assert "the disk is full" in done.stderr
    assert "keep fewer calls with --keep 1" in done.stderr
    assert not (tmp_path / "networks" / "small_networks" / files.NETWORK).exists()


def test_ranks_are_printed_for_people_and_programs_and_a_folder_may_lie_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TILEWRIGHT_HOME", str(tmp_path / "home"))
    network = captured("speaker", "--output", str(tmp_path / "elsewhere"), "--keep", "1")
    assert (tmp_path / "elsewhere" / files.NETWORK).is_file()
    assert main(["network", "show", "speaker"]) == 0
    shown = capsys.readouterr().out
    assert "speaker: " in shown
    assert "prefill (weight 1): eager" in shown
    assert main(["network", "rank", "speaker", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["regions"]
    assert {row["region"] for row in rows} == {region.name for region in network.regions}
    assert all(row["reason"] for row in rows if not row["is_worth_it"])
    assert main(["network", "delete", "speaker"]) == 0
    assert not (tmp_path / "elsewhere").exists()
    assert ranking.ranked(replace(network, regions=()), {}) == []
