"""Networks as archives: exported without what must not leave their folder, opened in a home that has nothing, and
refused where an archive is not what it says."""

from __future__ import annotations

import io
import json
import lzma
import os
import shutil
import tarfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from engine import examples as runs
from engine import forking, supervisor
from engine.__main__ import main
from engine.cli import report
from engine.errors import EngineError
from engine.networks import examples, optimising
from storage import codec, untrusted
from storage.networks import files, in_network
from storage.networks.files import NetworkFolder
from storage.networks.records import RegionRun, SearchStarted
from storage.networks.standing import standing
from storage.run import damage, liveness
from storage.run.folder import RunFolder, runs_folder
from storage.run.settings import RunSettings
from storage.suites import files as suites
from storage.suites.records import Arm, Cell, CellLeft, CellLinked, CellState, Defined, RunnerStarted, SuiteTask
from storage.suites.standing import fold
from tests import sample_networks, samples
from tests.sample_networks import TRIALS, Left

RECORDED = "recorded-0123456789abcdef.safetensors"
SEARCHED = "attn"


def write_whole(home: Path) -> NetworkFolder:
    """A network as `optimise` leaves it: recorded tensors, a suite, a finished run for every kernel, a proof."""
    found = replace(sample_networks.network(), entry=f"{home}/app.py:make", folder=str(home))
    folder = sample_networks.write_network(found)
    for path in (folder.path / files.REGIONS).iterdir():
        (path / RECORDED).write_bytes(b"secret values")
        (path / "task.toml").write_text(f'name = "{path.name}"\nrecorded = "{RECORDED}"\n')
    for region in TRIALS:
        run = samples.write_run(home / "runs", sample_networks.chosen(region).run_id, depths=2)
        settings = run.read_settings()
        recorded = str(folder.region(region) / RECORDED)
        write_settings(run, replace(settings, policy=replace(settings.policy, recorded=recorded)))
    sample_networks.write_proof(folder, Left.WHOLE)
    write_search(folder)
    return folder


def write_settings(run: RunFolder, settings: RunSettings) -> None:
    run.settings_file.write_text(json.dumps(codec.to_plain(settings)))


def write_search(folder: NetworkFolder) -> None:
    task = SuiteTask(SEARCHED, str(folder.region(SEARCHED) / "task.py"))
    defined = Defined(optimising.suite_name(folder.name), (task,), (Arm("search"),), baseline_arm="search")
    cell, run_id = Cell(SEARCHED, "search", 1), sample_networks.chosen(SEARCHED).run_id
    suites.append(
        suites.folder_of(defined.name), defined, RunnerStarted(1, ("GPU-431e9fe2",)), CellLinked(cell, run_id),
        CellLeft(cell, run_id, CellState.WAITING, "Your reply is needed"),
    )  # fmt: skip
    files.append(folder, SearchStarted(defined.name))


@pytest.fixture(scope="module")
def exported_from(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home whose network was exported, to tiny.tar.xz in it."""
    home = tmp_path_factory.mktemp("exported")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TILEWRIGHT_HOME", str(home))
        write_whole(home)
        assert main(["network", "export", "tiny", "--output", str(home / "tiny.tar.xz")]) == 0
    return home


@pytest.fixture
def archive(home: Path, exported_from: Path) -> Path:
    """The archive, for a home that has nothing."""
    (home.parent / "archives").mkdir()
    return Path(shutil.copy(exported_from / "tiny.tar.xz", home.parent / "archives"))


def contents(archive: Path) -> dict[str, bytes]:
    return dict(untrusted.archive_members(archive, examples.ARCHIVE))


@pytest.mark.parametrize("path", sorted(examples.SHIPPED.glob("*.tar.xz")), ids=lambda path: path.name)
def test_a_shipped_network_opens_whole_and_tells_nothing_of_its_machine(home: Path, path: Path) -> None:
    runs.see_that_nothing_is_private(contents(path))
    folder = examples.open_archive(path)
    stands = standing(folder)
    assert stands.network is not None
    assert stands.proof is not None
    assert stands.proof.is_over
    assert in_network.headline(stands.network, stands.proof)
    for run_id in examples.run_ids(folder):
        assert not damage.examine(RunFolder(runs_folder() / run_id)).is_damaged


def test_an_archive_has_no_recorded_value_no_path_and_no_device_of_its_machine(
    archive: Path, exported_from: Path
) -> None:
    packed = contents(archive)
    assert not [name for name in packed if name.endswith(".safetensors")]
    told = b"".join(packed.values())
    for secret in (b"secret values", bytes(exported_from), b"GPU-431e9fe2", b'recorded = "'):
        assert secret not in told


def test_an_opened_network_tells_what_it_told_where_it_was_measured(
    archive: Path, exported_from: Path, tmp_path: Path
) -> None:
    assert main(["network", "import", str(archive)]) == 0
    folder = files.find("tiny")
    stands, network = standing(folder), standing(folder).network
    there = NetworkFolder(exported_from / "networks" / "tiny")
    before, was = standing(there), standing(there).network
    assert network is not None
    assert was is not None
    assert stands.proof is not None
    assert before.proof is not None
    assert network == replace(was, entry="app.py:make", folder="", is_example=True)
    assert stands.proof.stack == before.proof.stack
    assert stands.proof.tried == before.proof.tried
    assert (stands.limits, stands.runs) == (before.limits, before.runs)
    assert in_network.origin(network) == (
        "measured on an NVIDIA H100 80GB HBM3; its recorded tensors are not part of it"
    )
    for region in TRIALS:
        run = RunFolder(runs_folder() / sample_networks.chosen(region).run_id)
        assert not damage.examine(run).is_damaged
        assert run.read_settings().is_example
        assert supervisor.exported(run)
    suite = fold(suites.read(suites.find("tiny.regions")))
    assert suite is not None
    assert suite.defined.is_example
    assert Path(suite.defined.tasks[0].task).read_text() == sample_networks.TASK
    assert suite.counts[CellState.FINISHED] == 1
    assert main(["network", "report", "tiny", "--output", str(tmp_path / "report.html")]) == 0
    assert "the best alternative" in (tmp_path / "report.html").read_text()
    assert main(["network", "import", str(archive)]) == 0  # it is open already


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["network", "apply", "tiny"], "kernels cannot be measured in it here. Capture a network of your own"),
        (["network", "optimise", "tiny"], "no kernels can be searched for it here. Capture a network of your own"),
        (["network", "rank", "tiny", "--limits"], "no limits can be measured for it here"),
        (["suite", "resume", "tiny.regions"], "is an example, made on another machine"),
        (["resume", "run-attn"], "fork one of its kernels instead"),
    ],
)
def test_what_needs_the_program_or_the_tensors_says_why_it_cannot_and_what_to_do(
    archive: Path, capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    examples.open_archive(archive)
    capsys.readouterr()
    assert main(words) != 0
    assert said in " ".join(capsys.readouterr().err.split())


def test_a_region_of_it_is_not_run_and_a_kernel_of_it_is_forked_without_the_recorded_tensors(
    archive: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = examples.open_archive(archive)
    assert main(["run", str(folder.region("attn") / "task.py"), "--model", "manual"]) != 0
    assert "copy its task.py to a folder of your own" in capsys.readouterr().err
    run = RunFolder(runs_folder() / "run-attn")
    assert run.read_settings().policy.recorded == f".../{RECORDED}"
    best = report.load(run).best_id
    assert best is not None
    forked = forking.fork_settings(run, best, model="manual")
    assert (forked.is_example, forked.policy.recorded) == (False, "")


def test_a_name_that_is_taken_is_told_and_another_one_opens_it(archive: Path) -> None:
    sample_networks.write_network(sample_networks.network())
    with pytest.raises(EngineError, match="another network tiny is here already.*--name OTHER"):
        examples.open_archive(archive)
    folder = examples.open_archive(archive, "other")
    assert standing(folder).suite == "other.regions"
    assert not files.read_network(files.find("tiny")).is_example  # type: ignore[union-attr]


def test_examples_list_open_and_remove_networks_too(
    archive: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(examples, "SHIPPED", archive.parent)
    assert main(["examples", "list", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [one["is_open"] for one in listed if one.get("network") == "tiny"] == [False]
    assert main(["examples", "open", "tiny"]) == 0
    assert "tiny: open. `python -m engine network show tiny`" in capsys.readouterr().out
    assert [one.is_open for one in examples.shipped()] == [True]
    assert main(["examples", "remove"]) == 0
    assert not files.all_networks()
    assert not suites.all_suites()
    assert main(["examples", "open", "tiny"]) == 0  # its runs come back from the trash
    assert RunFolder(runs_folder() / "run-attn").settings_file.exists()


def test_nothing_is_opened_beside_the_running_demo(archive: Path) -> None:
    demo = samples.write_run(runs_folder(), "demo", depths=1)
    write_settings(demo, replace(demo.read_settings(), is_demo=True))
    lock = liveness.hold(demo)
    with pytest.raises(EngineError, match="the demo run is at work"):
        examples.open_archive(archive)
    os.close(lock)
    assert not files.all_networks()


def test_what_is_not_whole_is_not_exported(home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, words = write_whole(home), ["network", "export", "tiny", "--output", str(tmp_path / "tiny.tar.xz")]
    run = samples.write_run(home / "runs", "unfinished", depths=1)
    lines = run.journal_file.read_bytes().splitlines(keepends=True)
    run.journal_file.write_bytes(b"".join(lines[:-1]))
    files.append(folder, RegionRun("attn", "unfinished"))
    assert main(words) == 0
    assert "left out: run unfinished is not over" in capsys.readouterr().err
    RunFolder(home / "runs" / "run-attn").path.rename(tmp_path / "gone")
    assert main(words) != 0
    assert "run-attn (of region attn)" in capsys.readouterr().err
    (tmp_path / "gone").rename(home / "runs" / "run-attn")
    lock = sample_networks.write_proof(folder, Left.AT_WORK, 2)
    assert lock is not None
    assert main(words) != 0
    assert "kernels are being measured in network tiny" in capsys.readouterr().err


Change = Callable[[dict[str, bytes]], None]


def with_text(name: str, old: str, new: str) -> Change:
    def change(packed: dict[str, bytes]) -> None:
        assert old.encode() in packed[name]
        packed[name] = packed[name].replace(old.encode(), new.encode())

    return change


def with_file(name: str) -> Change:
    return lambda packed: packed.update({name: b"x"})


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (with_file("regions/../../../evil/task.py"), "which no exported network has"),
        (with_file("/etc/evil"), "which no exported network has"),
        (with_file("regions/attn/recorded.safetensors"), "which no exported network has"),
        (with_file("runs/run-attn/../evil"), "holds something that no run has"),
        (with_file("runs/run-attn/engine.log"), "holds something that no run has"),
        (with_file("runs/run-attn/blobs/" + "0" * 64), "is not what its name says"),
        (with_text("network.json", "regions/attn/task.py", "../../../etc/passwd"), "the task of region attn"),
        (with_text("network.json", '"name": "tiny"', '"name": "../tiny"'), "is no name of a network"),
        (with_text("network.json", '"weight": 8.0', '"weight": "much"'), "is damaged"),
        (with_text("journal.jsonl", "run-attn", "mine"), "names runs that are not in it: mine"),
        (with_text("suite.jsonl", "run-attn", "mine"), "names runs that are not in it: mine"),
        (with_text("suite.jsonl", '"name":"attn"', '"name":"../attn"'), "tasks that are no regions"),
        (with_text("runs/run-attn/run.json", '"is_example": true', '"is_example": false'), "no run of an exported"),
        (lambda packed: packed.pop("network.json"), "is no exported network"),
    ],
    ids=lambda one: one if isinstance(one, str) else "",
)
def test_an_archive_that_is_none_of_ours_is_refused(archive: Path, change: Change, said: str) -> None:
    packed = contents(archive)
    change(packed)
    archive.write_bytes(runs.archive_of(packed, 0.0))
    with pytest.raises(EngineError, match=said):
        examples.open_archive(archive)
    assert not files.all_networks()
    assert not (archive.parent / "evil").exists()


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.DIRTYPE])
def test_an_archive_with_a_link_or_a_device_in_it_is_refused(archive: Path, kind: bytes) -> None:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:xz") as written:
        member = tarfile.TarInfo("network.json")
        member.type, member.linkname = kind, "/etc/passwd"
        written.addfile(member)
    archive.write_bytes(out.getvalue())
    with pytest.raises(EngineError, match="is no file"):
        examples.open_archive(archive)


def test_an_archive_that_comes_to_too_much_is_refused(archive: Path) -> None:
    archive.write_bytes(lzma.compress(bytes(examples.ARCHIVE.most_bytes + (1 << 20)), preset=0))
    with pytest.raises(EngineError, match="more than 64 MB come out of"):
        examples.open_archive(archive)
