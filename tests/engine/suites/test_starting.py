"""Suites started, stopped and continued as a page does it: real runners, with a person as the model."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from engine.errors import EngineError
from engine.suites import starting
from storage.suites import files
from storage.suites.records import CellState
from storage.suites.standing import Suite, fold

TOML = 'tasks = ["swish"]\nsettings = "--toolchain cpu --model manual"\n[arms]\nplain = ""\n'


def suite_of(name: str) -> Suite:
    suite = fold(files.read(files.find(name)))
    assert suite is not None
    return suite


def test_a_suite_of_a_form_is_started_where_its_file_stays_and_continued(home: Path) -> None:
    folder = starting.start_text("mine", TOML)
    assert folder.definition_file.read_text() == TOML
    wait_until_over("mine")
    assert [standing.state for standing in suite_of("mine").planned] == [CellState.WAITING]
    with pytest.raises(EngineError, match="choose another name"):
        starting.start_text("mine", TOML)
    begun = len(files.read(folder))
    starting.resume("mine")
    wait_until_over("mine")
    assert len(files.read(folder)) > begun
    assert starting.stop("mine") == 0  # neither a runner nor an engine lives
    assert suite_of("mine").is_stop_asked


def wait_until_over(name: str) -> None:
    deadline = time.monotonic() + 60
    while not suite_of(name).is_ended or files.find(name).has_runner:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_suite_that_cannot_be_run_is_told_in_words_and_leaves_nothing(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(EngineError, match="the suite did not start: swish, plain, repeat 1: .*--nonsense"):
        starting.start_text("mine", TOML.replace('""', '"--nonsense"'))
    assert not (home / "suites" / "mine").exists()
    monkeypatch.setenv("TILEWRIGHT_READ_ONLY", "1")
    with pytest.raises(EngineError, match="run suites"):
        starting.start_shipped("quick")
    with pytest.raises(EngineError, match="stop suites"):
        starting.stop("mine")
    assert not files.all_suites()
