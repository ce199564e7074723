"""What the command line says and does about a run whose files are damaged."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rich.console import Console

from engine import supervisor
from engine.__main__ import main
from engine.cli import report
from engine.errors import EngineError
from storage.folder import RunFolder
from tests.examples import examples
from tests.samples import write_run


def spoil(run: RunFolder, *numbers: int) -> None:
    lines = run.journal_file.read_bytes().splitlines(keepends=True)
    for number in numbers:
        lines[number - 1] = b'{"seq":\0\0\n'
    run.journal_file.write_bytes(b"".join(lines))


def said(capsys: pytest.CaptureFixture[str]) -> tuple[str, str]:
    found = capsys.readouterr()
    return " ".join(found.out.split()), " ".join(found.err.split())


def test_a_damaged_run_is_marked_in_the_list_and_explained_by_show(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    write_run(home / "runs", "whole", depths=2)
    spoil(write_run(home / "runs", "spoilt", depths=2), 12, 20)
    write_run(home / "runs", "unreadable", depths=1).settings_file.write_text("{")
    assert main(["list"]) == 0
    listed, _ = said(capsys)
    assert "spoilt square_matmul finished (damaged)" in listed
    assert "whole square_matmul finished 1/2" in listed
    assert "unreadable run.json damaged" in listed
    assert main(["list", "--json"]) == 0
    rows = {row["run"]: row for row in json.loads(capsys.readouterr().out)}
    assert rows["whole"]["damage"] == []
    assert rows["unreadable"]["state"] == "unreadable"
    assert "2 lines of journal.jsonl cannot be read." in rows["spoilt"]["damage"]
    assert main(["show", "spoilt"]) == 0
    shown, _ = said(capsys)
    assert "damaged: Events 12 and 20 are missing (2 of " in shown
    assert "Restore journal.jsonl from a backup" in shown
    assert main(["show", "whole"]) == 0
    assert "damaged" not in said(capsys)[0]
    assert main(["show", "unreadable"]) == 2
    assert "run.json cannot be read, restore it from a backup" in said(capsys)[1]


def test_no_engine_is_started_on_a_journal_with_holes(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = write_run(home / "runs", "spoilt", depths=2, ending="stopped")
    spoil(run, 12)
    before = run.journal_file.read_bytes()
    with pytest.raises(EngineError, match="Run spoilt cannot be resumed"):
        supervisor.resume(run)
    for words in (["resume", "spoilt", "--background"], ["resume", "spoilt"]):
        assert main(words) == 2
        _, error = said(capsys)
        assert "tilewright: Run spoilt cannot be resumed. 1 line of journal.jsonl cannot be read." in error
        assert "python -m engine fork spoilt KERNEL" in error
    assert run.journal_file.read_bytes() == before


def test_a_kernel_of_a_damaged_run_is_exported_with_a_warning(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spoil(write_run(home / "runs", "spoilt", depths=2), 12)
    assert main(["export", "spoilt"]) == 0
    found = capsys.readouterr()
    assert "class ModelNew" in found.out
    assert "tilewright: warning: This run's journal is damaged." in found.err


@settings(max_examples=examples(20), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_whatever_is_missing_the_rest_of_a_run_can_be_shown(home: Path, data: st.DataObject) -> None:
    shutil.rmtree(home / "runs", ignore_errors=True)
    run = write_run(home / "runs", depths=6)
    count = run.journal_file.read_bytes().count(b"\n")
    spoil(run, *data.draw(st.sets(st.integers(1, count), min_size=1, max_size=40)))
    found = report.details(run)
    assert found["damage"]
    with open("/dev/null", "w") as nowhere:
        report.print_run(Console(file=nowhere), run)
