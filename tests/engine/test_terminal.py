"""What reaches a person's terminal, and how runs are named to the command line."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.table import Table

from engine.__main__ import main
from engine.cli.terminal import Console, plain_streams, printable
from engine.run_settings import new_settings
from storage import codec
from storage.run import labels
from storage.run.folder import RunFolder, find_run, id_for, run_at, whole_id
from tests import samples

HOSTILE = "\x1b]0;pwned\x07\x1b[2J\x9b31m\r\u202ea[red]b[/nothing]"


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TILEWRIGHT_HOME", str(tmp_path))
    return tmp_path / "runs"


def is_plain(text: str) -> bool:
    return printable(text) == text and "\r" not in text


def test_nothing_that_a_terminal_obeys_is_printed_whoever_wrote_it(
    runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    samples.write_run(runs, "hostile", depths=2)
    (runs / "hostile" / labels.FILE).write_text(codec.dumps(labels.Labels(HOSTILE, note=HOSTILE)) + "\n")
    journal = runs / "hostile" / "journal.jsonl"
    journal.write_text(journal.read_text().replace('"summary":"', '"summary":"\\u001b]0;pwned\\u0007\\u009b2J[/x]'))
    for words in (["list"], ["show", "hostile"], ["show", HOSTILE], ["export", HOSTILE]):
        main(words)
        told = capsys.readouterr()
        assert is_plain(told.out + told.err), words
        assert "pwned" in told.out + told.err, words


def test_a_table_shows_its_own_colours_and_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    out = io.StringIO()
    monkeypatch.setattr("sys.stdout", out)
    table = Table("name")
    table.add_row("[red]mine[/]")
    table.add_row("\x1b[2Jtheirs")
    with plain_streams():
        Console().print(table)
        print("\x1b[2Jplain")
    assert "\x1b[31mmine" in out.getvalue()
    assert "\x1b[2J" not in out.getvalue()


def test_ids_in_a_list_are_whole_and_a_run_is_found_by_the_beginning_of_its_own(
    runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = [f"a_task_with_a_rather_long_name_for_a_terminal-20261127-18321{number}-abcd" for number in range(2)]
    for name in names:
        samples.write_run(runs, name, depths=1)
    assert main(["list"]) == 0
    assert all(name in capsys.readouterr().out for name in names[:1])
    assert whole_id(names[0][:-5]) == whole_id(f"{names[0][:-5]}…") == names[0]
    assert main(["show", names[1][:-5]]) == 0
    assert names[1] in capsys.readouterr().out
    assert main(["show", "a_task"]) == 2
    assert "2 runs begin with 'a_task'" in capsys.readouterr().err


NAMES = ("my swish", "_private", "-rf", "a+b", "Größe 核", "...", "two\nlines", "x" * 200, "it's", "核")


@pytest.mark.parametrize("name", NAMES)
def test_a_task_file_of_any_name_makes_a_run_that_is_found(name: str, runs: Path, tmp_path: Path) -> None:
    file = tmp_path / f"{name}.py"
    file.write_text((Path("tasks") / "activation" / "swish.py").read_text())
    settings = new_settings(str(file), model="manual")
    RunFolder(runs / settings.run_id).write_settings(settings)
    assert find_run(settings.run_id).read_settings() == settings
    assert settings.run_id.isascii()
    assert not settings.run_id.startswith(("-", "."))


@pytest.mark.parametrize("run_id", ["my swish-20261127-010203-abcd", "_x-1", "a+b (2)", "Größe-核", 'it\'s "<b>"'])
def test_a_run_that_was_named_after_its_file_is_found(run_id: str, runs: Path) -> None:
    samples.write_run(runs, run_id, depths=1)
    assert find_run(run_id).run_id == run_id
    assert main(["show", run_id]) == 0


@pytest.mark.parametrize(
    "text", ["", ".", "..", "../x", "a/b", "\0", "x\0", "a" * 5000, "\ud800", "核" * 100, "\n", ".git"]
)
def test_what_can_be_no_id_is_no_run_and_no_path(text: str, runs: Path) -> None:
    runs.mkdir()
    assert run_at(text).path.parent == runs
    assert not run_at(text).settings_file.exists()
    with pytest.raises(FileNotFoundError, match="no run"):
        find_run(text)


def test_an_id_says_the_name_of_the_task_as_far_as_it_can() -> None:
    assert id_for("my swish", "1") == "my-swish-1"
    assert id_for("核", "1") == "task-1"
    assert id_for("linear-backward", "1") == "linear-backward-1"
