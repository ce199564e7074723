"""Strategies that are offered: those of somebody's own are described by another process and never imported here."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from engine import __main__ as command_line
from engine.errors import EngineError
from engine.search.methods import catalogue
from engine.search.methods.loading import find_strategy
from storage.run.method_words import PLAIN, MethodWords
from tests.engine.test_supervisor import until

MINE = """
import os, pathlib, sys
from dataclasses import dataclass
from engine.search.methods.options import option
from storage.run.method_words import MethodWords
from tests.engine.search.methods.random_restarts import RandomRestarts
pathlib.Path({marker!r}).write_text(str(os.getpid()))
print("hello from", __name__)

@dataclass(frozen=True)
class Options:
    width: int = option({width}, "kernels side by side", least=1)

class Beam(RandomRestarts):
    '''Keeps several kernels.

    More of it.
    '''
    options = Options
    words = MethodWords("walk", "walks", collected="never")
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return tmp_path


def offered(monkeypatch: pytest.MonkeyPatch, *names: str) -> list[catalogue.StrategyDescription]:
    monkeypatch.setenv(catalogue.VARIABLE, ", ".join(names))
    return [one for one in catalogue.descriptions() if one.name in names]


def test_ones_own_is_described_by_a_process_of_its_own_and_again_when_its_file_changes(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, marker, name = folder / "mine_for_the_catalogue.py", folder / "marker", "mine_for_the_catalogue:Beam"
    file.write_text(MINE.format(marker=str(marker), width=4))
    assert [one.is_known for one in offered(monkeypatch, name)] == [False], "it does not wait"
    found = catalogue.description(name)
    assert (found.about, found.failure) == ("Keeps several kernels.", "")
    assert [(one.name, one.default, one.least) for one in found.options] == [("width", 4, 1)]
    assert catalogue.words(name) == found.words == MethodWords("walk", "walks", collected="never")
    assert int(marker.read_text()) != os.getpid()
    assert "mine_for_the_catalogue" not in sys.modules
    assert offered(monkeypatch, name) == [found]
    assert not catalogue.is_reading()

    file.write_text(MINE.format(marker=str(marker), width=8))
    os.utime(file, (1, 1))
    assert offered(monkeypatch, name) == [found], "the old one stands until the new one is read"
    until(lambda: not catalogue.is_reading(), "the file to be read again")
    assert offered(monkeypatch, name)[0].options[0].default == 8


def test_one_that_cannot_be_had_is_said_to_be_so_with_the_reason(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "raises_for_the_catalogue.py").write_text("raise RuntimeError('no licence')")
    (folder / "talks_for_the_catalogue.py").write_text(
        "from tests.engine.search.methods.random_restarts import RandomRestarts\n"
        "class X(RandomRestarts): words = 'walk'"
    )
    (folder / "exits_for_the_catalogue.py").write_text("raise SystemExit('not on a Monday')")
    names = ["raises_for_the_catalogue:X", "exits_for_the_catalogue:X", "talks_for_the_catalogue:X"]
    monkeypatch.setenv(catalogue.VARIABLE, ",".join(names))
    catalogue.descriptions()
    raises, exits, talks = (catalogue.description(name) for name in names)
    assert not raises.is_usable
    assert "cannot be imported: RuntimeError: no licence" in raises.failure
    assert "cannot be imported: not on a Monday" in exits.failure
    assert "its words are no MethodWords" in talks.failure
    assert catalogue.words("talks_for_the_catalogue:X") == catalogue.words("nobody.knows:X") == PLAIN


def test_one_that_does_not_come_to_an_end_is_given_up(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "hangs_for_the_catalogue.py").write_text("import time\ntime.sleep(600)")
    monkeypatch.setattr(catalogue, "LIMIT_S", 0.2)
    assert "was not imported within" in catalogue.description("hangs_for_the_catalogue:X").failure


def test_without_the_variable_nothing_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(catalogue.VARIABLE, raising=False)
    assert all(one.is_usable for one in catalogue.descriptions())
    assert [one.name for one in catalogue.descriptions()] == catalogue.names()
    assert not catalogue.is_reading()


def test_the_command_lists_strategies_with_their_options(capsys: pytest.CaptureFixture[str]) -> None:
    name = "tests.engine.search.methods.random_restarts:RandomRestarts"
    assert command_line.main(["strategies", "cutegen", name]) == 0
    told = capsys.readouterr().out
    assert "cutegen: CuTeGen: one evolving kernel" in told
    assert "  max_repairs          patches per generated kernel, at least 0 (default 5)" in told
    assert "  most_failures        failed kernels that end the run, at least 1 (default automatic)" in told
    assert command_line.main(["strategies", "--json", name, "no.such:Thing"]) == 2
    own, none = json.loads(capsys.readouterr().out)
    assert own["options"][0]["label"] == "Maximum failures"
    assert "No module named 'no'" in none["failure"]


@pytest.mark.parametrize(
    ("line", "now"),
    [
        ("from storage import events as ev", "storage.events is storage.run.events now"),
        ("from engine.actions import Ask", "engine.actions is engine.search.actions now"),
        ("from engine.strategies.options import option", "engine.strategies is engine.search.methods now"),
    ],
)
def test_a_strategy_that_imports_a_former_place_is_told_the_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, now: str
) -> None:
    name = f"of_before_{abs(hash(line))}"
    (tmp_path / f"{name}.py").write_text(f"{line}\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(EngineError, match=now):
        find_strategy(f"{name}:X")
