"""Kernels put back into a network by the commands: what pays is kept, what does not is told with its reason, and a
proof that was broken off goes on."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from engine.__main__ import main
from engine.evaluator import tasks
from engine.evaluator.toolchains.cpu import CpuToolchain
from engine.networks import applying, fingerprint
from storage.networks import files, in_network, proofs
from storage.networks.proofs import Proof
from storage.networks.records import (
    ChosenKernel,
    Event,
    Form,
    OriginalTimed,
    PartMeasured,
    ProofProgressed,
    ProofStarted,
    Region,
    RegionTried,
    Verdict,
)
from storage.networks.standing import standing
from storage.results.vocabulary import Verdict as Judgement
from tests.engine.networks import paying_networks
from tests.engine.packaging.judged import judged_run
from tests.engine.packaging.test_packing import own_tests
from tests.test_layers import ROOT

ENTRY = f"{paying_networks.__file__}:make"
FAST = ("--ways", "eager", "--seconds", "0.5")


@pytest.fixture(scope="module")
def module_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with the network captured once."""
    home = tmp_path_factory.mktemp("paying")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TILEWRIGHT_HOME", str(home))
        words = ["--name", "paying", "--no-compile", "--no-limits", "--least-share", "0"]
        assert main(["network", "capture", ENTRY, *words]) == 0
    return home


@pytest.fixture
def home_of_network(module_home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TILEWRIGHT_HOME", str(module_home))
    return module_home


def used(home: Path, *kernels: str) -> list[str]:
    """Words that name a finished run for each kernel."""
    words = []
    for name in kernels:
        region = name.partition("_")[0]
        task = files.find("paying").path / "regions" / region / "task.py"
        run = judged_run(home, str(task), paying_networks.kernel(name))
        words += ["--use", f"{region}={run.run_id}"]
    return words


def region(name: str) -> Region:
    network = standing(files.find("paying")).network
    assert network is not None
    return next(region for region in network.regions if region.name.startswith(name))


def proof() -> Proof:
    found = standing(files.find("paying")).proof
    assert found is not None
    return found


def verdicts() -> dict[str, Verdict]:
    return {region: trial.verdict for region, trial in proof().tried.items()}


@pytest.mark.judging
def test_what_pays_is_kept_and_all_else_is_left_out_with_its_reason(
    home_of_network: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = used(home_of_network, "chain", "scaled_wrong", "shifted_slow", "pair_ends")
    assert main(["network", "apply", "paying", *words, *FAST, "--again"]) == 0
    assert verdicts() == {
        "chain": Verdict.KEPT, "scaled": Verdict.WRONG, "shifted": Verdict.NO_GAIN, "pair": Verdict.CRASHED,
    }  # fmt: skip
    tried = proof().tried
    assert [(part.expected, part.seen) for part in tried["chain"].engaged] == [
        (paying_networks.CHAINS, paying_networks.CHAINS)
    ]
    assert all(part.holds for part in tried["chain"].parity)
    assert {part.exact for part in tried["chain"].parity} == {"float64"}
    assert "is allowed" in tried["scaled"].why
    assert "it costs time in place" in tried["shifted"].why
    assert "SIGABRT" in tried["pair"].why
    stack = proof().stack
    assert stack is not None
    assert stack.kept == ("chain",)
    network = standing(files.find("paying")).network
    assert network is not None
    total = proofs.total(stack.best, proofs.weights_of(network))
    assert total is not None
    assert total.is_faster
    told = capsys.readouterr().out
    assert in_network.headline(network, proof()) in told.replace("\n", " ")
    assert "measured alone" in told
    shipped_package(tmp_path)
    capsys.readouterr()
    assert main(["network", "reproduce", str(tmp_path / "package"), "--entry", ENTRY, "--seconds", "0.5"]) == 0
    again = capsys.readouterr().out
    assert "When it was shipped: " in again
    assert "kept" in again
    assert main(["network", "report", "paying", "--output", str(tmp_path / "report.html")]) == 0
    report = (tmp_path / "report.html").read_text()
    assert "<td>chain</td>" in report
    assert "<script" not in report


def shipped_package(folder: Path) -> None:
    """What pays, as a package that passes its own tests and has the network's figures on its card."""
    assert main(["network", "ship", "paying", "--output", str(folder / "package")]) == 0
    written = folder / "package"
    texts = {str(path.relative_to(written)): path.read_text() for path in written.rglob("*") if path.is_file()}
    assert "## In the network" in texts["CARD.md"]
    assert "the best alternative" in texts["CARD.md"]
    assert not any("recorded" in name for name in texts)
    assert str(ROOT) not in "".join(texts.values())
    assert " passed" in own_tests(texts, folder / "own")


@pytest.mark.judging
def test_operators_that_no_module_holds_are_replaced_in_the_graph_and_a_call_that_no_table_tells_is_not(
    home_of_network: Path,
) -> None:
    fused, odd = region("fused_linear"), region("odd")
    assert (fused.form, fused.takes) == (Form.FUSED, None)
    words = []
    for one in (fused, odd):
        task = files.find("paying").path / one.task
        text = task.read_text().replace("class Model(", "class ModelNew(")
        words += ["--use", f"{one.name}={judged_run(home_of_network, str(task), text).run_id}"]
    assert main(["network", "apply", "paying", *words[:2], *FAST, "--again"]) == 0
    tried = proof().tried[fused.name]
    assert tried.verdict in (Verdict.KEPT, Verdict.NO_GAIN)
    assert [(part.expected, part.seen) for part in tried.engaged] == [(1, 1)]
    assert all(part.holds for part in tried.parity)
    assert main(["network", "apply", "paying", *words[2:], *FAST, "--again"]) == 0
    assert verdicts() == {odd.name: Verdict.UNFIT}
    assert "is called with, or returns, an object" in proof().tried[odd.name].why


@pytest.mark.judging
def test_a_dense_convolution_in_channels_last_reads_its_weights_as_the_network_has_them(
    home: Path, cpu: CpuToolchain
) -> None:
    words = ["--name", "images", "--no-compile", "--no-limits", "--least-share", "0"]
    assert main(["network", "capture", f"{paying_networks.__file__}:make_images", *words]) == 0
    folder = files.find("images")
    captured = standing(folder).network
    assert captured is not None
    halve = next(region for region in captured.regions if region.places == ("halve",))
    fused = next(region for region in captured.regions if {"conv2d", "layer_norm"} == region.operators.keys())
    task = tasks.read(folder.path / halve.task).task()
    checked = cpu.check(task, paying_networks.HALVE)
    assert checked.verdict is Judgement.PASSED, checked.message
    assert any("recorded" in trial for trial in checked.trials)
    uses = []
    for region, kernel in ((halve, paying_networks.HALVE), (fused, "")):
        path = folder.path / region.task
        run = judged_run(home, str(path), kernel or path.read_text().replace("class Model(", "class ModelNew("))
        uses += ["--use", f"{region.name}={run.run_id}"]
    assert main(["network", "apply", "images", *uses, *FAST]) == 0
    found = standing(folder).proof
    assert found is not None
    assert found.tried.keys() == {halve.name, fused.name}
    for trial in found.tried.values():
        assert [(part.expected, part.seen) for part in trial.engaged] == [(1, 1)], trial.why
        assert all(part.holds for part in trial.parity)


@pytest.mark.judging
def test_calls_that_fall_back_are_no_win(home_of_network: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_TEST_OTHER_STRIDES", "1")
    assert main(["network", "apply", "paying", *used(home_of_network, "scaled"), *FAST, "--again"]) == 0
    assert verdicts()["scaled"] is Verdict.NOT_ENGAGED
    assert proof().tried["scaled"].why == (
        "rows: 0 of 1 calls reach the kernel: x lies otherwise in memory than the kernel was judged with"
    )
    assert proof().stack is not None
    assert main(["network", "ship", "paying", "--output", "nowhere"]) == 2


@pytest.mark.judging
def test_a_proof_that_was_killed_goes_on_and_measures_nothing_twice(home_of_network: Path) -> None:
    words = ["network", "apply", "paying", *used(home_of_network, "chain", "scaled"), *FAST]
    folder = files.find("paying")
    before = len(files.read(folder))
    for kind in (OriginalTimed, PartMeasured):  # each start takes a quarter of a minute
        killed_after(words, before, kind)
    assert stopped_after(words, before, lambda _: main(["network", "stop", "paying"])) == 2
    assert (proof().is_over, proof().reason) == (False, applying.STOPPED)
    assert main(words) == 0
    events = [line.event for line in files.read(folder)[before:]]
    assert len({event.number for event in events if isinstance(event, ProofStarted)}) == 1
    measured = [name for event in events for name in measurements(event)]
    assert sorted(measured) == sorted(set(measured))
    tried = [event.region for event in events if isinstance(event, RegionTried)]
    assert sorted(tried) == ["chain", "scaled"]
    assert {f"putting back {region} in rows: speed" for region in tried} <= set(measured)
    assert proof().is_over


def measurements(event: Event) -> list[str]:
    """What was measured, as an event of the journal says."""
    if isinstance(event, OriginalTimed):
        return [f"{event.way} in {event.workload}"]
    if not isinstance(event, PartMeasured):
        return []
    parts = [name for name in ("engaged", "parity", "speed") if getattr(event, name) is not None]
    return [f"{event.step} in {event.workload}: {name}" for name in parts]


def killed_after(words: list[str], before: int, kind: type) -> None:
    """Run the command, and kill it and what it started once there is one more event of a kind."""
    with begun_until(words, before, kind) as command:
        os.killpg(command.pid, signal.SIGKILL)


def stopped_after(words: list[str], before: int, stop: Callable[[subprocess.Popen[bytes]], object]) -> int:
    """Run the command, and stop it once it has told what it does; how it ends."""
    with begun_until(words, before, ProofProgressed) as command:
        stop(command)
        return command.wait(60)


@contextlib.contextmanager
def begun_until(words: list[str], before: int, kind: type) -> Iterator[subprocess.Popen[bytes]]:
    """The command, once there is one more event of a kind."""
    folder = files.find("paying")

    def count() -> int:
        return sum(isinstance(line.event, kind) for line in files.read(folder)[before:])

    start = count()
    command = subprocess.Popen(
        [sys.executable, "-m", "engine", *words], cwd=ROOT, start_new_session=True, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    deadline = time.monotonic() + 240
    while count() == start and command.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    assert count() > start
    yield command
    command.wait()


def test_a_proof_that_was_broken_off_is_gone_on_with_only_where_figures_depend_on_the_same() -> None:
    kernels = (ChosenKernel("norm", "run-1", "c001"),)
    started = ProofStarted(3, kernels, measured_with={"torch": "2.13.0", "package of kernels": "ab"})
    broken = Proof(started)
    assert fingerprint.begun(broken, replace(started, number=0), is_anew=False) == (started, "")
    for change, why in (
        ({"measured_with": {"torch": "2.14.0", "package of kernels": "ab"}}, "torch was 2.13.0, it is 2.14.0"),
        ({"measured_with": {"torch": "2.13.0", "package of kernels": "cd"}}, "the package of kernels has changed"),
        ({"kernels": (ChosenKernel("norm", "run-1", "c002"),)}, "other kernels were measured before"),
        ({"ways": ("eager",)}, "other ways to call the network were measured before"),
    ):
        asked = replace(started, number=0, **change)
        assert fingerprint.begun(broken, asked, is_anew=False) == (replace(asked, number=4), why)
    over = Proof(started, is_over=True)
    assert fingerprint.begun(over, started, is_anew=False) == (replace(started, number=4), "")


@pytest.mark.judging
def test_a_network_that_cannot_be_copied_is_made_again_and_a_call_of_another_kind_is_another_regions(
    home: Path,
) -> None:
    words = ["--name", "kinds", "--no-compile", "--no-limits", "--least-share", "0"]
    assert main(["network", "capture", f"{paying_networks.__file__}:make_kinds", *words]) == 0
    folder = files.find("kinds")
    captured = standing(folder).network
    assert captured is not None
    regions = [region for region in captured.regions if region.kind == "Chain"]
    assert [region.places for region in regions] == [("chain",)] * 2
    uses = []
    for one in regions:
        run = judged_run(home, str(folder.path / one.task), paying_networks.kernel("chain"))
        uses += ["--use", f"{one.name}={run.run_id}"]
    assert main(["network", "apply", "kinds", *uses, *FAST]) == 0
    found = standing(folder).proof
    assert found is not None
    for trial in found.tried.values():
        assert trial.verdict in (Verdict.KEPT, Verdict.NO_GAIN), trial.why
        assert [(part.expected, part.seen, part.others) for part in trial.engaged] == [(1, 1, 1)]
        assert {part.exact for part in trial.parity} == {"float64"}
    assert found.tried.keys() == {region.name for region in regions}


@pytest.mark.judging
def test_a_way_that_is_not_ready_in_time_is_left_out_and_the_rest_is_measured(
    home_of_network: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--ways", "eager,torch.compile", "--seconds", "0.5", "--way-seconds", "0.5", "--again"]
    assert main(["network", "apply", "paying", *used(home_of_network, "chain"), *words]) == 0
    notes = {timed.way: (timed.ms is None, timed.note) for timed in proof().originals}
    assert notes == {"eager": (False, ""), "torch.compile": (True, "torch.compile is not ready within 0.5 s")}
    assert verdicts() == {"chain": Verdict.KEPT}
    assert "torch.compile is not ready within 0.5 s" in capsys.readouterr().out


@pytest.mark.judging
def test_in_training_mode_gradients_are_compared_and_a_backward_of_its_own_counts(home: Path) -> None:
    words = ["--name", "trained", "--no-compile", "--no-limits", "--least-share", "0", "--mode", "train"]
    assert main(["network", "capture", ENTRY, *words]) == 0
    folder = files.find("trained")
    task = folder.path / "regions" / "chain" / "task.py"
    run = judged_run(home, str(task), paying_networks.kernel("chain"), backward=True)
    assert main(["network", "apply", "trained", "--use", f"chain={run.run_id}", *FAST]) == 0
    found = standing(folder).proof
    assert found is not None
    trial = found.tried["chain"]
    assert [(part.expected, part.seen) for part in trial.engaged] == [(paying_networks.CHAINS, paying_networks.CHAINS)]
    assert any(part.output.startswith("gradient of ") for part in trial.parity)
    assert all(part.holds for part in trial.parity)


def test_what_cannot_be_put_back_is_said_before_anything_is_measured(
    home_of_network: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["network", "apply", "paying", "--use", "nowhere=run"]) == 2
    assert "has no region nowhere" in capsys.readouterr().err
    assert main(["network", "apply", "paying", "--use", "chain=run-that-is-not"]) == 2
    assert "run-that-is-not cannot be read" in capsys.readouterr().err
    shifted = region("shifted")
    assert json.dumps(shifted.takes) == json.dumps(
        ["tuple", [["tuple", [["tensor", 0]]], ["dict", [["by", ["plain", 0.5]]]]]]
    )
    assert json.dumps(shifted.gives) == json.dumps(["dict", [["moved", ["tensor", 0]], ["x", ["tensor", 1]]]])
