"""A run's id leads to its folder and to nothing else."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from storage import codec
from storage.results.vocabulary import KernelClass
from storage.run import exposure, folder
from storage.run.folder import RunFolder
from storage.run.settings import SETTINGS_VERSION
from tests.samples import sample_settings, write_run


def test_settings_come_back_as_they_were_written(root: Path) -> None:
    settings = sample_settings("a-run")
    RunFolder(root / "a-run").write_settings(settings)
    assert folder.find_run("a-run").read_settings() == settings


def test_settings_without_a_version_are_those_of_a_run_made_before_and_stay_so_in_a_fork_of_it(root: Path) -> None:
    folder = RunFolder(root / "r1")
    folder.write_settings(sample_settings("r1"))
    plain = json.loads(folder.settings_file.read_text())
    assert plain.pop("version") == SETTINGS_VERSION
    folder.settings_file.write_text(json.dumps(plain))
    old = folder.read_settings()
    assert old.version == 1
    copied = RunFolder(root / "r2")
    copied.write_settings(replace(old, run_id="r2"))
    assert copied.read_settings().version == 1
    assert (
        exposure.of_run(old, KernelClass.MATMUL).first + 1
        == exposure.of_run(replace(old, version=SETTINGS_VERSION), KernelClass.MATMUL).first
    )


def test_settings_are_written_once(root: Path) -> None:
    run = RunFolder(root / "a")
    run.write_settings(sample_settings("a", seed=0))
    with pytest.raises(FileExistsError):
        run.write_settings(sample_settings("a", seed=1))
    assert run.read_settings().task_name == "square_matmul"
    assert [path.name for path in run.path.iterdir()] == ["run.json"]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"run_id": 3}', "null"])
def test_damaged_settings_are_a_decode_error(root: Path, text: str) -> None:
    run = RunFolder(root / "a")
    run.path.mkdir()
    run.settings_file.write_text(text)
    with pytest.raises(codec.DecodeError):
        run.read_settings()


@pytest.mark.parametrize("run_id", ["", ".", "..", "../runs/a", "a/../a", "/etc", "a/b", "a\n", ".a", "a" * 121, "ä"])
def test_no_path_can_be_smuggled_in_as_an_id(root: Path, run_id: str) -> None:
    write_run(root, "a", depths=1)
    with pytest.raises(FileNotFoundError):
        folder.find_run(run_id)


def test_a_run_that_is_not_there_is_not_found(home: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no run 'a'"):
        folder.find_run("a")


def test_all_runs_are_those_with_settings(root: Path) -> None:
    write_run(root, "b", depths=1)
    write_run(root, "a", depths=1)
    (root / "not-a-run").mkdir()
    (root / "file").write_text("")
    assert [run.run_id for run in folder.all_runs()] == ["a", "b"]


def test_before_the_first_run_there_are_none(home: Path) -> None:
    assert list(folder.all_runs()) == []


def test_without_the_variable_runs_are_kept_in_the_users_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("TILEWRIGHT_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert folder.runs_folder() == tmp_path / ".tilewright" / "runs"
