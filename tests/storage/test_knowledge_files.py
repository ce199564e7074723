"""The knowledge base's files: every row once, whoever writes, dies, or replaces them."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from storage import codec
from storage.knowledge import files
from storage.knowledge.files import EVIDENCE, REVISIONS, KnowledgeError
from storage.knowledge.records import Outcome
from tests.storage.children import child, line_from
from tests.storage.knowledge_rows import attempt, change, technique

WRITER = """
import sys
from pathlib import Path
from storage.knowledge import files
from tests.storage.knowledge_rows import attempt
place, run_id, count = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
for number in range(count):
    files.append_evidence([attempt(number, run_id=run_id, error="x" * 3000)], place)
    print(number, flush=True)
"""


def rows(place: Path) -> list[tuple[str, str]]:
    return [(row.run_id, row.candidate_id) for row in files.load(place).rows]


def lines(place: Path) -> list[str]:
    return (place / EVIDENCE).read_text().splitlines()


def test_two_processes_write_at_once_one_is_killed_and_no_row_is_lost_or_doubled(tmp_path: Path) -> None:
    """The killed one begins again from its first row, as a resumed run would."""
    with child(WRITER, tmp_path, "steady", 120) as steady:
        for kill_after in (3, 9, 20):
            with child(WRITER, tmp_path, "killed", 30) as killed:
                for _ in range(kill_after):
                    line_from(killed)
                os.kill(killed.pid, signal.SIGKILL)
                killed.wait()
        with child(WRITER, tmp_path, "killed", 30) as last:
            assert [line_from(last).strip() for _ in range(30)] == [str(number) for number in range(30)]
        assert [line_from(steady).strip() for _ in range(120)] == [str(number) for number in range(120)]
    found = [(row["run_id"], row["candidate_id"]) for row in map(json.loads, lines(tmp_path))]
    assert len(found) == len(set(found)) == 150
    assert sorted(found) == sorted(rows(tmp_path))
    assert [name for run, name in found if run == "steady"] == [f"c{number:03}" for number in range(120)]
    assert files.load(tmp_path).damaged == 0


def test_processes_that_write_the_same_rows_at_once_write_each_once(tmp_path: Path) -> None:
    """As two engines that resumed copies of one run would."""
    waiting = WRITER.replace("for number", "print('ready', flush=True)\nsys.stdin.readline()\nfor number")
    with child(waiting, tmp_path, "same", 300) as one, child(waiting, tmp_path, "same", 300) as other:
        assert [line_from(one), line_from(other)] == ["ready", "ready"]
        for process in (one, other):
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        assert [[line_from(process) for _ in range(300)][-1] for process in (one, other)] == ["299", "299"]
    assert len(lines(tmp_path)) == len(rows(tmp_path)) == 300


def test_a_row_is_written_once_however_often_it_is_appended(tmp_path: Path) -> None:
    assert files.append_evidence([attempt(1), attempt(2), attempt(1, Outcome.SLOWER)], tmp_path) == 2
    assert files.append_evidence([attempt(2), attempt(3)], tmp_path) == 1
    assert rows(tmp_path) == [("run", "c001"), ("run", "c002"), ("run", "c003")]
    assert files.load(tmp_path).rows[0].outcome is Outcome.FASTER
    assert files.append_revision(change("once", why="first"), tmp_path)
    assert not files.append_revision(change("once", why="second"), tmp_path)
    assert [one.why for one in files.load(tmp_path, seeded=False).revisions] == ["first"]


def test_what_was_read_does_not_change_when_more_is_written(tmp_path: Path) -> None:
    files.append_evidence([attempt(1)], tmp_path)
    before = files.load(tmp_path)
    files.append_evidence([attempt(2)], tmp_path)
    after = files.load(tmp_path)
    assert (len(before.rows), before.figures("tile").attempts) == (1, 1)
    assert (len(after.rows), after.figures("tile").attempts) == (2, 2)
    assert before.mark != after.mark
    assert files.load(tmp_path).mark == after.mark
    assert files.load(tmp_path, seeded=False).mark != after.mark


def test_only_what_is_new_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[bytes] = []
    read_line = codec.read_line

    def counting(kind: type, line: bytes) -> object:
        read.append(line)
        return read_line(kind, line)

    files.append_evidence([attempt(1), attempt(2)], tmp_path)
    files.load(tmp_path)
    monkeypatch.setattr(codec, "read_line", counting)
    with open(tmp_path / EVIDENCE, "a") as file:
        file.write(codec.dumps(attempt(3)) + "\n")
    assert len(files.load(tmp_path).rows) == 3
    files.load(tmp_path)
    assert len(read) == 1


def test_a_torn_last_line_waits_for_the_rest(tmp_path: Path) -> None:
    files.append_evidence([attempt(1)], tmp_path)
    line = codec.dumps(attempt(2))
    with open(tmp_path / EVIDENCE, "a") as file:
        file.write(line[:40])
    assert rows(tmp_path) == [("run", "c001")]
    with open(tmp_path / EVIDENCE, "a") as file:
        file.write(line[40:] + "\n")
    assert rows(tmp_path) == [("run", "c001"), ("run", "c002")]
    assert files.load(tmp_path).damaged == 0


@pytest.mark.parametrize("length", [1, 40, -1])
def test_a_writer_that_died_in_a_line_harms_no_row(tmp_path: Path, length: int) -> None:
    files.append_evidence([attempt(1)], tmp_path)
    with open(tmp_path / EVIDENCE, "a") as file:
        file.write(codec.dumps(attempt(2))[:length])
    assert files.append_evidence([attempt(2), attempt(3)], tmp_path) == 2
    assert rows(tmp_path) == [("run", "c001"), ("run", "c002"), ("run", "c003")]
    assert (len(lines(tmp_path)), files.load(tmp_path).damaged) == (3, 0)


def test_a_row_that_lacks_only_its_newline_is_kept(tmp_path: Path) -> None:
    files.append_evidence([attempt(1)], tmp_path)
    with open(tmp_path / EVIDENCE, "a") as file:
        file.write(codec.dumps(attempt(2, error="kept")))
    assert files.append_evidence([attempt(2), attempt(3)], tmp_path) == 1
    assert [row.error for row in files.load(tmp_path).rows] == ["", "kept", ""]


def test_damaged_lines_are_left_out_and_counted(tmp_path: Path) -> None:
    files.append_evidence([attempt(1)], tmp_path)
    bad = [b"\0\0\0", b"\xff\xfe", b"{}", codec.dumps(attempt(2)).replace("1.5", "-1.5").encode(), b""]
    with open(tmp_path / EVIDENCE, "ab") as file:
        file.write(b"\n".join(bad) + b"\n")
    (tmp_path / REVISIONS).write_text("nonsense\n")
    files.append_evidence([attempt(3)], tmp_path)
    assert rows(tmp_path) == [("run", "c001"), ("run", "c003")]
    assert files.load(tmp_path).damaged == 5


def _shorten(place: Path) -> None:
    path = place / EVIDENCE
    os.truncate(path, len(path.read_bytes().splitlines(keepends=True)[0]))


def _replace(place: Path) -> None:
    other = place / "other"
    other.write_text("".join(codec.dumps(attempt(number)) + "\n" for number in (1, 7, 8, 9)))
    other.replace(place / EVIDENCE)


def _write_over(place: Path) -> None:
    (place / EVIDENCE).write_text("".join(codec.dumps(attempt(number)) + "\n" for number in (1, 4, 5, 6, 7)))


@pytest.mark.parametrize(
    ("change_file", "left"),
    [(_shorten, (1,)), (_replace, (1, 7, 8, 9)), (_write_over, (1, 4, 5, 6, 7)), (shutil.rmtree, ())],
)
def test_a_file_that_was_cut_or_replaced_is_read_anew(
    tmp_path: Path, change_file: Callable[[Path], None], left: tuple[int, ...]
) -> None:
    place = tmp_path / "knowledge"
    files.append_evidence([attempt(number) for number in (1, 2, 3)], place)
    old = files.load(place)
    change_file(place)
    assert rows(place) == [("run", f"c{number:03}") for number in left]
    assert len(old.rows) == 3
    files.append_evidence([attempt(2)], place)
    assert ("run", "c002") in rows(place)


def test_texts_of_any_kind_come_back_as_they_were(tmp_path: Path) -> None:
    row = attempt(1, error="\ud800 \0 \u2028 ü", before={"nan": float("inf")}, technique="\ud801")
    files.append_evidence([row], tmp_path)
    assert files.load(tmp_path).rows == [row]


def test_a_full_disk_leaves_no_part_of_a_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files.append_evidence([attempt(1)], tmp_path)
    write, left = os.write, [50]

    def full(file: int, line: bytes) -> int:
        if not left:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(file, line[: left.pop()])

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OSError, match="No space left"):
        files.append_evidence([attempt(2)], tmp_path)
    monkeypatch.undo()
    assert len(lines(tmp_path)) == 1
    assert files.append_evidence([attempt(2)], tmp_path) == 1


def test_looking_makes_no_folder_and_the_id_of_the_seed_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert files.load(tmp_path / "none").rows == []
    assert not (tmp_path / "none").exists()
    with pytest.raises(KnowledgeError, match="shipped with"):
        files.append_revision(change("seed"), tmp_path)
    monkeypatch.setenv("TILEWRIGHT_READ_ONLY", "1")
    with pytest.raises(KnowledgeError, match="read-only"):
        files.append_revision(change("mine", techniques=(technique(),)), tmp_path)
