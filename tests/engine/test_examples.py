"""Runs that have ended as archives: packed without what tells of a machine, opened whole, counted in no total."""

from __future__ import annotations

import io
import json
import os
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

from engine import examples, forking, supervisor
from engine.__main__ import main
from engine.errors import EngineError
from engine.evaluator import tasks
from storage.index import queries
from storage.index.database import Database, open_database
from storage.index.ingest import Ingest
from storage.run import damage, labels, liveness
from storage.run.blobs import Blobs
from storage.run.folder import RunFolder, find_run
from storage.run.steering import commands
from storage.run.steering.verbs import CommandKind
from tests import samples

TOLD = "nvcc -I/lustre/somebody/tw/include /tmp/build.x1/kernel.cu: error in /usr/include/math.h"


@pytest.fixture
def packed(home: Path, tmp_path: Path) -> Path:
    """A folder with one archive, of a run that is not here any more."""
    run = samples.write_run(home / "runs", "packed", seed=2, depths=3)
    samples.rewrite_texts(run, lambda text: f"{text}\n# {TOLD}")
    labels.change(run, lambda old: replace(old, name="A good one", note="ends at the limit"), "somebody")
    archive = examples.pack(run, tmp_path / "archives")
    run.path.rename(tmp_path / "moved")
    return archive.parent


def index_of(home: Path, tmp_path: Path) -> Database:
    db = open_database(tmp_path / "index.duckdb")
    Ingest(db, home / "runs").catch_up()
    return db


@pytest.mark.parametrize("path", sorted(examples.SHIPPED.glob("*.tar.xz")), ids=lambda path: path.name)
def test_a_shipped_example_is_whole_small_and_tells_nothing_of_its_machine(home: Path, path: Path) -> None:
    examples.see_that_nothing_is_private(examples.members(path))
    assert path.stat().st_size < examples.LARGEST_BYTES
    (run,) = examples.open_examples([path.name.removesuffix(examples.ENDING)])
    assert not damage.examine(run).is_damaged
    assert run.read_settings().is_example
    assert labels.read(run).note


def test_a_packed_run_opens_as_it_was_without_paths_and_names(home: Path, packed: Path, tmp_path: Path) -> None:
    (one,) = examples.shipped_examples(packed)
    assert (one.run_id, one.labels.name, one.is_open) == ("packed", "A good one", False)
    (run,) = examples.open_examples(folder=packed)
    assert not damage.examine(run).is_damaged
    texts = [Blobs(run.blobs).get(file.name) for file in run.blobs.iterdir()]
    assert any("nvcc -I.../include .../kernel.cu: error in /usr/include/math.h" in text for text in texts)
    assert not any("somebody" in text for text in [*texts, *(file.read_text() for file in run.path.glob("*.json*"))])
    before = RunFolder(tmp_path / "moved")
    assert len(run.journal_file.read_bytes().split(b"\n")) == len(before.journal_file.read_bytes().split(b"\n"))
    assert supervisor.exported(run)


def test_an_example_counts_in_no_total_and_no_engine_works_on_it(home: Path, packed: Path, tmp_path: Path) -> None:
    (run,) = examples.open_examples(folder=packed)
    db = index_of(home, tmp_path)
    assert (queries.count_runs(db), queries.count_own_runs(db), queries.count_examples(db)) == (1, 0, 1)
    assert queries.totals(db).model_calls == queries.run_totals(db, 0.0).accepted == 0
    assert not queries.state_counts(db)
    assert not queries.model_figures(db)
    assert queries.listing(db, queries.RunFilter(is_example=True)).run_ids == ["packed"]
    with pytest.raises(EngineError, match="fork one of its kernels"):
        supervisor.resume(run)
    assert main(["resume", "packed", "--set-budget", "calls=9"]) == 2
    assert all(one.kind is not CommandKind.SET_BUDGET for one in commands.read_from(run.commands_file)[0])


def test_removed_examples_come_back(home: Path, packed: Path) -> None:
    examples.open_examples(folder=packed)
    samples.write_run(home / "runs", "own", depths=1)
    assert examples.remove_examples() == (["packed"], [])
    assert [run.run_id for run in (find_run("own"),)] == ["own"]
    with pytest.raises(FileNotFoundError):
        find_run("packed")
    assert [run.run_id for run in examples.open_examples(["packed"], packed)] == ["packed"]
    with pytest.raises(EngineError, match="no example gone"):
        examples.open_examples(["gone"], packed)


def test_an_example_that_is_at_work_stays_and_the_others_go(home: Path, packed: Path) -> None:
    examples.open_examples(folder=packed)
    playing = samples.write_run(home / "runs", "an-example-too", depths=1)
    settings = replace(playing.read_settings(), is_example=True)
    playing.settings_file.unlink()
    playing.write_settings(settings)
    lock = liveness.hold(playing)
    gone, refused = examples.remove_examples()
    os.close(lock)
    assert gone == ["packed"]
    assert ["an-example-too" in one for one in refused] == [True]


def test_the_first_visit_opens_one_example(home: Path) -> None:
    examples.open_first_example()
    tagged = [one.run_id for one in examples.shipped_examples() if examples.FIRST in one.labels.tags]
    assert [one.is_open for one in examples.shipped_examples()].count(True) == 1
    assert all(find_run(name) for name in tagged[:1])


def test_what_a_list_begins_with_is_shipped() -> None:
    assert set(examples.SHOWN_FIRST) <= {one.run_id for one in examples.shipped_examples()}


def test_a_fork_with_another_toolchain_has_the_tasks_sizes_for_it(home: Path, packed: Path) -> None:
    (run,) = examples.open_examples(folder=packed)
    task = tasks.find("matrix_vector").task("cuda")
    settings = replace(
        run.read_settings(), task_name=task.name, task_source=task.source, sizes=task.sizes, toolchain="cuda",
        language="triton",
    )  # fmt: skip
    fields = forking.on_toolchain(settings, "cpu")
    assert (fields["toolchain"], fields["language"]) == ("cpu", "cute")
    assert fields["sizes"] == supervisor.new_settings("matrix_vector", model="manual").sizes
    assert forking.on_toolchain(settings, "cuda") == {}
    for name in ("matrix_vector", "swish-old"):  # a person's own file, whatever its name
        own = replace(settings, task_name=name, task_source=f"{task.source}\n# my own")
        assert "task_source" not in forking.on_toolchain(own, "cpu")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("key sk-abcdefghijklmnop1234", "a key"),
        ("write to some.body@example.com", "a mail address"),
        ("write to jane@uni.ch.", "a mail address"),
        *((f"key {key}", "a key") for key in ("nvapi-" + 20 * "a", "github_pat_" + 20 * "a", "Bearer " + 20 * "a")),
    ],
)
def test_a_run_that_tells_of_a_person_is_not_packed(home: Path, tmp_path: Path, text: str, told: str) -> None:
    run = samples.write_run(home / "runs", "telling", depths=1)
    samples.rewrite_texts(run, lambda old: f"{old}\n{text}")
    with pytest.raises(EngineError, match=told):
        examples.pack(run, tmp_path)
    assert not list(tmp_path.glob("*.tar.xz"))


@pytest.mark.parametrize("ending", ["running", "waiting"])
def test_a_run_that_is_not_over_is_not_packed(home: Path, tmp_path: Path, ending: str) -> None:
    run = samples.write_run(home / "runs", "open", depths=2, ending=ending)
    with pytest.raises(EngineError, match="is not over|not whole"):
        examples.pack(run, tmp_path)


def test_a_damaged_archive_is_named(home: Path, packed: Path) -> None:
    archive = next(packed.glob("*.tar.xz"))
    text = bytearray(archive.read_bytes())
    text[len(text) // 2] ^= 0xFF
    archive.write_bytes(text)
    with pytest.raises(EngineError, match=r"packed\.tar\.xz cannot be read"):
        examples.open_examples(folder=packed)


@pytest.mark.parametrize("name", ["../escaped", "blobs/../../escaped", "engine.lock"])
def test_an_archive_with_a_strange_file_is_refused(home: Path, packed: Path, name: str) -> None:
    archive = next(packed.glob("*.tar.xz"))
    files = examples.members(archive)
    with tarfile.open(archive, "w:xz") as made:
        for member, text in {**files, name: b"x"}.items():
            told = tarfile.TarInfo(member)
            told.size = len(text)
            made.addfile(told, io.BytesIO(text))
    with pytest.raises(EngineError, match="is refused: it holds"):
        examples.open_examples(folder=packed)
    assert not (home / "runs" / "packed").exists()


def test_the_command_line_lists_and_opens_the_shipped_ones(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["examples", "list", "--json"]) == 0
    known = json.loads(capsys.readouterr().out)
    assert main(["examples", "open", known[0]["run"]]) == 0
    capsys.readouterr()
    assert main(["examples", "list", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["is_open"]
    assert main(["examples", "remove"]) == 0
    assert "Removed 1 example" in capsys.readouterr().out
