"""A journal keeps whole lines in order, whatever happens to its writer."""

from __future__ import annotations

import json
import os
import signal
import threading
from pathlib import Path

import pytest

from storage import codec
from storage.run import events, journal
from storage.run.events import ApprovalAsked, ApprovalSettled, BudgetWarned, RunStarted
from storage.run.journal import Entry, Journal
from storage.run.steering.command_arguments import Fallback
from tests.storage.children import child, line_from

WRITER = """
import sys
from pathlib import Path
from storage.run.events import BudgetWarned
from storage.run.journal import Journal
journal = Journal(Path(sys.argv[1]))
for number in range(int(sys.argv[2])):
    print(journal.append(BudgetWarned("x" * 500, number, 1.0)).seq, flush=True)
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.jsonl"


def write(path: Path, count: int) -> list[Entry]:
    book = Journal(path, clock=lambda: 5.0)
    entries = [book.append(BudgetWarned("tokens", float(n), 10.0)) for n in range(count)]
    book.close()
    return entries


def test_seq_rises_by_one_and_goes_on_after_reopening(path: Path) -> None:
    write(path, 3)
    write(path, 2)
    assert [entry.seq for entry in journal.read(path)] == [1, 2, 3, 4, 5]


def test_an_opened_journal_knows_what_was_written_before(path: Path) -> None:
    entries = write(path, 3)
    assert Journal(path).entries == entries


def test_a_torn_last_line_is_not_read_and_cut_by_the_next_writer(path: Path) -> None:
    entries = write(path, 2)
    with open(path, "ab") as file:
        file.write(b'{"seq":3,"time":5.0,"ki')
    assert list(journal.read(path)) == entries
    write(path, 1)
    assert [entry.seq for entry in journal.read(path)] == [1, 2, 3]


def test_a_journal_of_nothing_but_a_torn_line_starts_again(path: Path) -> None:
    path.write_bytes(b'{"seq":1')
    assert write(path, 1)[0].seq == 1


def test_reading_from_any_line_gives_the_rest_and_its_end(path: Path) -> None:
    entries = write(path, 5)
    size, offset = path.stat().st_size, 0
    for number, line in enumerate(path.read_bytes().splitlines(keepends=True)):
        assert journal.read_from(path, offset) == (entries[number:], size)
        offset += len(line)
    assert journal.read_from(path, size) == ([], size)


def test_a_line_longer_than_the_limit_is_read_whole(path: Path) -> None:
    book = Journal(path)
    entry = book.append(RunStarted("r", "t" * 1000))
    book.close()
    assert journal.read_from(path, 0, limit_bytes=16) == ([entry], path.stat().st_size)


def test_a_missing_journal_is_empty(path: Path) -> None:
    assert list(journal.read(path)) == []
    assert journal.read_from(path, 0) == ([], 0)


@pytest.mark.parametrize(
    "line", ["", "nonsense", "[]", "3", '{"seq":1}', '{"seq":1,"time":1,"kind":"Unheard","event":{}}']
)
def test_a_damaged_line_is_named_as_such(line: str) -> None:
    with pytest.raises(codec.DecodeError):
        journal.decode(line)


def test_readers_beside_a_writing_process_see_only_whole_lines_in_order(path: Path) -> None:
    count, seen = 400, [0, 0]

    def follow(reader: int) -> None:
        offset = 0
        while seen[reader] < count:
            entries, offset = journal.read_from(path, offset)
            for entry in entries:
                assert entry.seq == seen[reader] + 1
                seen[reader] = entry.seq

    with child(WRITER, path, count) as writer:
        readers = [threading.Thread(target=follow, args=[n], daemon=True) for n in range(2)]
        for reader in readers:
            reader.start()
        while line_from(writer):
            pass
        for reader in readers:
            reader.join(timeout=30)
    assert seen == [count, count]


def test_a_writer_killed_at_any_time_loses_no_line_it_has_spoken_of(path: Path) -> None:
    spoken = 0
    for _ in range(4):
        with child(WRITER, path, 1_000_000) as writer:
            for _ in range(60):
                spoken = int(line_from(writer))
            os.kill(writer.pid, signal.SIGKILL)
            writer.wait()
        entries = list(journal.read(path))
        assert [entry.seq for entry in entries] == list(range(1, len(entries) + 1))
        assert len(entries) >= spoken


def test_an_approval_is_written_and_read_under_the_name_that_old_journals_use(path: Path) -> None:
    told: list[events.Event] = [
        ApprovalAsked(1, "compile", 0, None, Fallback.NO, 60.0),
        ApprovalSettled(1, False, "nobody"),
    ]
    book = Journal(path)
    for event in told:
        book.append(event)
    book.close()
    assert [json.loads(line)["kind"] for line in path.read_text().splitlines()] == ["LeaveAsked", "LeaveSettled"]
    assert [entry.event for entry in journal.read(path)] == told
