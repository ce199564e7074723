"""Lines and files on a disk that is full or fails, is really small, or whose writer is gone."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from storage import files
from storage.run import events, journal
from storage.run.journal import Journal


def failing(code: int, after: int = 0, part: int = 0) -> Callable[..., int]:
    """A call of the system that fails once after so many calls; a write has written `part` bytes by then."""
    real, left = os.write, [after]

    def write(file: int, data: bytes) -> int:
        left[0] -= 1
        if left[0] == -1 and part:
            return real(file, data[:part])
        if left[0] == -1 - bool(part):
            raise OSError(code, os.strerror(code))
        return real(file, data)

    return write


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("torn", [1, 4095, 4096, 4097, 20_000])
def test_a_line_written_in_part_is_cut_off_before_another_is_appended(tmp_path: Path, torn: int) -> None:
    path = tmp_path / "rows.jsonl"
    for before in (b"", b'{"a":1}\n'):
        path.write_bytes(before + b"x" * torn)
        files.append(path, ['{"b":2}'])
        assert path.read_bytes() == before + b'{"b":2}\n'


def test_a_line_of_a_person_that_lacks_only_its_newline_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b'{"a":1}')
    files.append(path, ["{}"])
    assert path.read_bytes() == b'{"a":1}\n{}\n'


def test_a_write_that_the_system_does_in_parts_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.write
    monkeypatch.setattr(os, "write", lambda file, data: real(file, data[:3]))
    files.append(tmp_path / "rows.jsonl", ['{"a":1}', '{"b":2}'])
    files.replace(tmp_path / "whole", "a text")
    assert (tmp_path / "rows.jsonl").read_text() == '{"a":1}\n{"b":2}\n'
    assert (tmp_path / "whole").read_text() == "a text"


@pytest.mark.parametrize("is_cut_at_once", [True, False])
def test_the_event_after_one_that_did_not_fit_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_cut_at_once: bool
) -> None:
    path = tmp_path / "journal.jsonl"
    writer = Journal(path)
    writer.append(events.RunStarted("r", "t"))
    with monkeypatch.context() as patched:
        patched.setattr(os, "write", failing(errno.ENOSPC, part=20))
        if not is_cut_at_once:
            patched.setattr(os, "ftruncate", lambda *_: (_ for _ in ()).throw(OSError(errno.EIO, "failed")))
        with pytest.raises(OSError, match="No space left") as told:
            writer.append(events.RunEnded("failed", "y" * 100, None, None))  # type: ignore[arg-type]
    assert (path.read_bytes()[-1:] == b"\n") is is_cut_at_once
    assert files.explained(told.value) == (
        f"{path}: No space left on device. The disk is full: free some space, then try again."
    )
    writer.append(events.RunStarted("r", "again"))
    writer.close()
    found, faults = journal.survey(path)
    assert ([entry.seq for entry in found], faults) == ([1, 2], [])


def test_an_event_that_may_not_be_on_disk_counts_and_is_not_written_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "journal.jsonl"
    writer = Journal(path)
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError(errno.EIO, os.strerror(errno.EIO))))
        with pytest.raises(OSError, match="Input/output error"):
            writer.append(events.RunStarted("r", "t"))
    writer.append(events.EngineStarted(1, False))
    writer.close()
    found, faults = journal.survey(path)
    assert ([entry.seq for entry in found], faults, journal.last_written(path)) == ([1, 2], [], 2)


@pytest.mark.parametrize("failing_call", ["write", "fsync", "replace"])
def test_a_file_that_cannot_be_replaced_stays_and_no_draft_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing_call: str
) -> None:
    path = tmp_path / "settings"
    files.replace(path, "before")
    with monkeypatch.context() as patched:
        patched.setattr(os, failing_call, lambda *_: (_ for _ in ()).throw(OSError(errno.EDQUOT, "Quota", "draft")))
        with pytest.raises(OSError) as told:
            files.replace(path, "after")
    assert told.value.filename == str(path)
    assert (path.read_text(), names(tmp_path)) == ("before", ["settings"])


def test_a_call_that_a_signal_interrupts_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, tries = os.replace, []

    def interrupted(one: Path, other: Path) -> None:
        tries.append(one)
        if len(tries) < 3:
            raise InterruptedError(errno.EINTR, "interrupted")
        real(one, other)

    monkeypatch.setattr(os, "replace", interrupted)
    files.replace(tmp_path / "whole", "text")
    assert ((tmp_path / "whole").read_text(), len(tries)) == ("text", 3)


def test_a_file_is_made_once(tmp_path: Path) -> None:
    files.create(tmp_path / "run.json", "first")
    with pytest.raises(FileExistsError) as told:
        files.create(tmp_path / "run.json", "second")
    assert told.value.filename == str(tmp_path / "run.json")
    assert ((tmp_path / "run.json").read_text(), names(tmp_path)) == ("first", ["run.json"])


def test_what_a_killed_writer_left_is_swept_and_what_a_living_one_writes_is_not(tmp_path: Path) -> None:
    child = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True)
    gone, here = tmp_path / f".blob.{int(child.stdout)}-0", tmp_path / f".blob.{os.getpid()}-0"
    for path in (gone, here, tmp_path / ".hidden"):
        path.touch()
    files.sweep(tmp_path)
    assert names(tmp_path) == sorted([here.name, ".hidden"])
    files.sweep(tmp_path / "none")


def test_many_writers_of_a_shared_file_cut_no_line_of_each_other(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"

    def write(number: int) -> None:
        for count in range(20):
            files.append(path, [f'{{"row":"{number}-{count}","pad":"{"x" * 5000}"}}'])

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({line[:20] for line in path.read_text().splitlines()}) == 80


@pytest.mark.parametrize(
    ("code", "says"),
    [(errno.EROFS, "can only be read"), (errno.EACCES, "no right"), (errno.EIO, "disk failed"), (errno.EBUSY, "busy")],
)
def test_a_failure_of_the_system_is_one_line_with_its_file(code: int, says: str) -> None:
    text = files.explained(OSError(code, os.strerror(code), "/a/file"))
    assert text.startswith("/a/file: ")
    assert says in text
    assert "\n" not in text
