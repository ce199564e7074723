"""Every command that reads a file, with each thing that may lie in its place: one sentence and an exit code."""

from __future__ import annotations

import io
import os
import tarfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from engine import examples, importing
from engine.__main__ import main
from engine.cli.terminal import printable
from engine.errors import EngineError
from engine.evaluator.tasks import FolderEntry, in_folder
from engine.search import prompt_pack
from engine.suites import definition
from tests import samples
from tests.inputs import ALL, NO_FILE, Lay

KNOWN_RUN = "known"
# What is a text of its own kind to a reader that takes any text: a reply, or a kernel that is screened.
ANY_TEXT = {"submit", "patch SOURCE", "patch REPLY", "screen"}

COMMANDS: dict[str, tuple[str, Callable[[str], Sequence[str]]]] = {
    "run TASK": ("task.py", lambda file: ["run", file]),
    "run PROBLEM": ("definition.json", lambda file: ["run", file]),
    "run --recording": ("recording.jsonl", lambda file: ["run", "swish", "--recording", file]),
    "evaluate TASK": ("task.py", lambda file: ["evaluate", file, file]),
    "suite run": ("suite.toml", lambda file: ["suite", "run", file]),
    "knowledge import": ("base.jsonl", lambda file: ["knowledge", "import", file]),
    "answer": ("reply.txt", lambda file: ["answer", KNOWN_RUN, file]),
    "submit": ("kernel.py", lambda file: ["submit", KNOWN_RUN, file]),
    "patch SOURCE": ("source.py", lambda file: ["patch", file, __file__]),
    "patch REPLY": ("reply.txt", lambda file: ["patch", __file__, file]),
    "screen": ("kernel.py", lambda file: ["screen", "swish", file]),
    "reproduce": ("manifest.json", lambda file: ["reproduce", file]),
}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TILEWRIGHT_HOME", str(tmp_path / "home"))
    samples.write_run(tmp_path / "home" / "runs", KNOWN_RUN, depths=1)
    return tmp_path


def lay(place: Path, what: Lay) -> Path:
    if os.path.lexists(place):
        place.rmdir() if place.is_dir() and not place.is_symlink() else place.unlink()
    what(place)
    return place


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_ends_with_one_sentence_and_an_exit_code_whatever_lies_where_a_file_is_expected(
    command: str, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name, words = COMMANDS[command]
    for what, make in ALL.items():
        began = time.process_time()
        code = main([*words(str(lay(home / name, make)))])
        told = capsys.readouterr()
        assert "Traceback" not in told.out + told.err, what
        assert time.process_time() - began < 5, what
        if command not in ANY_TEXT or what in NO_FILE:
            assert code in (1, 2), what
            assert told.err.count("tilewright: ") >= 1, what
            assert printable(told.err) == told.err, what
            assert len(told.err) < 2500, what


@pytest.mark.parametrize("what", ALL)
def test_a_folder_of_tasks_tells_why_of_each_file(what: str, home: Path) -> None:
    folder = home / "tasks"
    folder.mkdir()
    good = Path("tasks/activation/swish.py").read_text()
    for name in ("bad.py", "named.toml", "definition.json", "inner"):
        if name == "inner":
            (folder / "inner").mkdir()
            lay(folder / "inner" / "definition.json", ALL[what])
        else:
            lay(folder / name, ALL[what]) if name != "definition.json" else None
    (folder / "named.py").write_text(good)
    (folder / "good.py").write_text(good)
    found = {one.path.name: one for one in in_folder(folder)}
    assert found["good.py"].task is not None
    assert all(isinstance(one, FolderEntry) and (one.task is not None) != bool(one.reason) for one in found.values())
    assert "bad.py" not in found or found["bad.py"].task is None


@pytest.mark.parametrize("what", ALL)
@pytest.mark.parametrize("name", ["prices.toml", "limits.toml"])
def test_a_settings_file_of_the_home_that_cannot_be_read_is_named(
    what: str, name: str, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lay(home / "home" / name, ALL[what])
    main(["run", "swish", "--model", "gpt-x", "--max-cost", "1"])
    told = capsys.readouterr()
    assert "Traceback" not in told.err
    assert told.err.startswith("tilewright: ")


@pytest.mark.parametrize("what", ALL)
def test_an_archive_a_folder_to_import_and_a_prompt_pack_are_read_or_refused(what: str, home: Path) -> None:
    folder = home / "given"
    folder.mkdir()
    for name in ("synthesise.md", "step1.py", "step1.json", "kernel.json"):
        lay(folder / name, ALL[what])
    for read in (importing.read_kernels, prompt_pack.read_pack):
        with pytest.raises(EngineError):
            read(folder)
    with pytest.raises(EngineError):
        examples.members(lay(home / "x.tar.xz", ALL[what]))


def archive(path: Path, *members: tuple[str, bytes]) -> Path:
    with tarfile.open(path, "w:xz", preset=0) as packed:
        for name, content in members:
            about = tarfile.TarInfo(name)
            about.size = len(content)
            packed.addfile(about, io.BytesIO(content))
    return path


def test_an_archive_that_holds_too_much_or_something_else_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(examples, "ARCHIVE", replace(examples.ARCHIVE, most_bytes=4 << 20))
    cases: list[tuple[list[tuple[str, bytes]], str]] = [
        ([("journal.jsonl", bytes(64 << 20))], "come out of"), ([("../x", b"")], "it holds"),
        ([("run.json", b"{}"), ("run.json", b"{}")], "it holds"),
    ]  # fmt: skip
    for members, told in cases:
        with pytest.raises(EngineError, match=told):
            examples.members(archive(tmp_path / "x.tar.xz", *members))
    archive(tmp_path / "x.tar.xz", ("run.json", b"[" * 100_000))
    with pytest.raises(EngineError, match=r"damaged.*nested"):
        examples.shipped_examples(tmp_path)


SUITE = 'tasks = ["swish"]\n'
WRONG_SUITES = [
    "repeats = 1000000000", "repeats = -1", "repeats = true", "repeats = 1e9", 'repeats = "3"', "weight = inf",
    f"weight = {'9' * 300}", "weight = nan", "parameters = 3", "parameters = [1]", "paper = 3", "limits = 3",
    'limits = {hours = "x"}', "limits = {hours = inf}", "arms = 3", "arms = {a = 1}", "name = 3", 'name = "../x"',
    'baseline = "none"', "classes = [1]", 'classes = {swish = 1}', "title = [[[1]]]\nrepeats = 1001",
]  # fmt: skip


@pytest.mark.parametrize("line", WRONG_SUITES)
def test_a_suite_with_an_entry_that_it_cannot_have_is_refused(line: str, tmp_path: Path) -> None:
    (tmp_path / "suite.toml").write_text(SUITE + line + "\n")
    with pytest.raises(EngineError, match="suite"):
        definition.read(tmp_path / "suite.toml")


def test_a_suite_of_too_many_runs_is_refused_before_they_are_made(tmp_path: Path) -> None:
    arms = "\n".join(f'a{number} = ""' for number in range(60))
    (tmp_path / "suite.toml").write_text(f"{SUITE}repeats = 1000\n[arms]\n{arms}\n")
    with pytest.raises(EngineError, match="60,000 runs are too many"):
        definition.read(tmp_path / "suite.toml")


@pytest.mark.parametrize(
    "words", [["--depths", "-1"], ["--target", "nan"], ["--max-minutes", "1e308"], ["--max-tokens", "-1"]]
)
def test_a_limit_that_means_nothing_begins_no_run(
    words: list[str], home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sorted((home / "home" / "runs").iterdir())
    assert main(["run", "swish", *words]) == 2
    assert "give a number from 0 on" in capsys.readouterr().err
    assert sorted((home / "home" / "runs").iterdir()) == before


def test_a_journal_of_gigabytes_and_settings_that_lead_nowhere_are_damage_and_hold_up_no_list(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = home / "home" / "runs"
    samples.write_run(runs, "huge", depths=1)
    os.truncate(runs / "huge" / "journal.jsonl", 20 << 30)
    (runs / "nowhere").mkdir()
    (runs / "nowhere" / "run.json").symlink_to("/nowhere/run.json")
    assert main(["list"]) == 0
    told = capsys.readouterr().out
    assert all(name in told for name in (KNOWN_RUN, "huge", "nowhere"))
    assert told.count("damaged") >= 2
