"""Pages of damaged runs say what is missing, and promise nothing that is not so."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from pages.parts import index
from pages.parts.api import api_answers
from pages.parts.report.report_run import run_report
from pages.parts.run import feed_sentences
from pages.parts.status import damaged, now
from pages.parts.steering import command_list
from pages.report import report_of
from storage.index import queries
from storage.run import events as ev
from storage.run import liveness
from storage.run.folder import RunFolder
from storage.run.journal import Journal
from storage.run.steering.command_arguments import Answer, Submission
from storage.run.steering.verbs import Command, CommandKind
from tests.pages.conftest import Open, words
from tests.samples import write_run


def spoil(run: RunFolder, *numbers: int) -> None:
    lines = run.journal_file.read_bytes().splitlines(keepends=True)
    for number in numbers:
        lines[number - 1] = b'{"seq":\0\0\n'
    run.journal_file.write_bytes(b"".join(lines))


def cut(run: RunFolder, share: float) -> None:
    whole = run.journal_file.read_bytes()
    run.journal_file.write_bytes(whole[: int(len(whole) * share)])


def test_a_finished_run_with_two_damaged_lines_says_so(home: Path, open_page: Open) -> None:
    run = write_run(home / "runs", "r1", depths=4)
    spoil(run, 12, 31)
    said = words(open_page("run", run="r1"))
    assert "**This run's journal is damaged.**" in said
    assert "2 lines of journal" in said
    assert "Events 12 and 31 are missing" in said
    assert "a new run from any of its kernels" in said
    assert "This run's journal is damaged" in words(open_page("candidate", run="r1", candidate="c001"))
    report = report_of([run])
    assert "This run&#x27;s journal is damaged. 2 lines of journal.jsonl cannot be read." in report
    assert "Damaged runs." in report_of([run, write_run(home / "runs", "r2", depths=2)])


@pytest.mark.parametrize("share", [0.3, 0.6, 0.9])
def test_a_journal_cut_short_is_not_told_as_a_crash_in_which_nothing_was_lost(
    home: Path, open_page: Open, share: float
) -> None:
    cut(write_run(home / "runs", "r1", depths=8), share)
    app = open_page("run", run="r1")
    assert "**The end of this run's journal is missing.**" in words(app)
    assert "repeats the lost steps" in words(app)
    assert "Completed steps are saved" not in words(app)
    assert any("esume" in button.label for button in app.button)


def test_a_crashed_run_with_holes_is_not_offered_to_be_resumed(home: Path, open_page: Open) -> None:
    spoil(write_run(home / "runs", "r1", depths=4, ending="running"), 12)
    app = open_page("run", run="r1")
    assert "The run was interrupted: its engine ended at depth" in words(app)
    assert "resume to continue" not in words(app)
    assert "Resume the run to steer it" not in words(app)
    assert not any("esume" in button.label for button in app.button)


def test_missing_texts_are_told_by_name(home: Path, open_page: Open) -> None:
    run = write_run(home / "runs", "r1", depths=2)
    for blob in run.blobs.iterdir():
        blob.unlink()
    said = words(open_page("run", run="r1"))
    assert "Some of this run's texts are missing or damaged" in said
    assert "source of kernel 1" in said


def test_events_of_a_newer_version_are_no_damage(home: Path, open_page: Open) -> None:
    run = write_run(home / "runs", "r1", depths=1)
    count = run.journal_file.read_bytes().count(b"\n")
    with open(run.journal_file, "ab") as file:
        file.write(b'{"seq":%d,"time":1.75e9,"kind":"Foreseen","event":{}}\n' % (count + 1))
    app = open_page("run", run="r1")
    assert "newer version of Tilewright" in words(app)
    assert not app.error


def test_a_run_whose_settings_cannot_be_read_is_named_in_the_list_and_on_its_page(home: Path, open_page: Open) -> None:
    write_run(home / "runs", "r1", depths=1).settings_file.write_text("{")
    listed = words(open_page())
    assert "1 run is not listed" in listed
    assert "`r1`" in listed
    assert "No runs yet" not in listed
    said = words(open_page("run", run="r1"))
    assert "This run's settings cannot be read" in said
    assert "is being read" not in said


def test_a_copied_or_renamed_folder_is_named_in_the_list_with_what_to_do(home: Path, open_page: Open) -> None:
    run = write_run(home / "runs", "r1", depths=1)
    shutil.copytree(run.path, home / "runs" / "r1-cut")
    app = open_page()
    said = words(app).replace("\\", "")
    assert "The folder r1-cut is ignored, because its run.json has the id r1 and the folder of that name is" in said
    assert len(app.warning) == 1
    assert "Showing 1–1 of 1 run" in said
    assert "The folder r1-cut is ignored" in words(open_page("run", run="r1-cut")).replace("\\", "")
    run.path.rename(home / "runs" / "r2")
    said = words(open_page()).replace("\\", "")
    assert said.count("has the id r1 and not r1-cut: rename the folder to r1.") == 1
    assert "has the id r1 and not r2: rename the folder to r1." in said


def test_damaged_runs_are_marked_in_the_list_and_for_machines(home: Path, open_page: Open) -> None:
    write_run(home / "runs", "whole", depths=2)
    spoil(write_run(home / "runs", "spoilt", depths=2), 12)
    cut(write_run(home / "runs", "cut", depths=8), 0.6)
    app = open_page()
    assert not app.exception
    assert [name for name in ("whole", "spoilt", "cut") if damaged.cells(name)] == ["spoilt", "cut"]
    rows = {row.run_id: api_answers.run(row) for row in queries.overview(index.current())}
    assert rows["whole"]["damage"] == []
    assert "1 line of journal.jsonl cannot be read." in rows["spoilt"]["damage"]
    assert rows["cut"]["reason"] == "The end of this run's journal is missing"


def test_what_an_engine_at_work_has_not_told_yet_is_no_damage(home: Path, open_page: Open) -> None:
    run = write_run(home / "runs", "r1", depths=8, ending="running")
    cut(run, 0.5)
    lock = liveness.hold(run)
    assert not open_page("run", run="r1").error
    assert lock


def test_a_command_that_the_end_of_a_run_overtook_is_not_told_as_received(home: Path, open_page: Open) -> None:
    run = write_run(home / "runs", "r1", depths=2, ending="stopped")
    book = Journal(run.journal_file)
    book.append(
        ev.CommandAcknowledged(Command("x1", CommandKind.ANSWER, str(Answer(7, 0, "cd" * 32)), "me", 1.75e9), 7)
    )
    book.close()
    open_page("run", run="r1")
    db = index.current()
    left = queries.commands(db, "r1")[-1]
    assert command_list.stage(left, has_engine=True) == "received"
    assert command_list.stage(left, has_engine=False) == "not in effect"
    assert "the run ended before it took effect" in str(command_list.state(left, has_engine=False))
    assert "the run ended before it took effect" in run_report(db, "r1")


def test_an_estimate_never_stands_against_what_has_passed() -> None:
    assert now.usual(0.3) == ["usually under 1 s", "longer than usual (under 1 s)"]
    assert now.usual(75) == ["usually 1 min 15 s", "longer than usual (1 min 15 s)"]


def test_no_hash_of_a_text_or_id_of_a_command_stands_on_screen(home: Path, open_page: Open) -> None:
    run = write_run(home / "runs", "r1", depths=2)
    asked = {
        CommandKind.SUBMIT: str(Submission("c002", "ab" * 32, "wider loads")),
        CommandKind.ANSWER: str(Answer(7, 0, "cd" * 32)),
        CommandKind.LIFT: "0123456789ab",
        CommandKind.ROLL_BACK: "c001",
    }
    book = Journal(run.journal_file)
    for number, (kind, argument) in enumerate(asked.items()):
        book.append(ev.CommandAcknowledged(Command(f"x{number}", kind, argument, "me", 1.75e9), 9))
        book.append(ev.CommandEffective(f"x{number}", 9, ""))
    book.close()
    open_page("run", run="r1")
    db = index.current()
    row = queries.run(db, "r1")
    assert row
    shown = [command_list.words(row, command) for command in queries.commands(db, "r1")]
    shown += [item.text for item in feed_sentences.items(db, "r1", limit=500)]
    shown.append(run_report(db, "r1"))
    text = "\n".join(shown)
    assert not re.search("(?<![0-9a-f])([0-9a-f]{64}|[0-9a-f]{12})(?![0-9a-f])", text)
    for expected in ("kernel 2 wider loads", "answer to step 7", "roll back kernel 1"):
        assert text.count(expected) >= 2, expected
