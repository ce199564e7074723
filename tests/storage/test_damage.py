"""What is damaged or gone of a run's files is found, named, and never rewritten."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from storage.index import queries
from storage.index.database import Database
from storage.index.ingest import Ingest
from storage.run import damage, journal, liveness
from storage.run.blobs import BlobError, Blobs
from storage.run.damage import Damage, examine
from storage.run.events import CandidateCreated, EngineStarted, ModelCalled, StepStarted
from storage.run.folder import RunFolder
from storage.run.journal import DamagedJournalError, FaultKind, Journal
from tests.examples import examples
from tests.samples import write_run
from tests.storage.index_dump import rebuilt

JUNK = b'{"seq":3,"time":17,"kind":"Step\0\0\0\n'


def lines_of(run: RunFolder) -> list[bytes]:
    return run.journal_file.read_bytes().splitlines(keepends=True)


def place_of(run: RunFolder, kind: type) -> int:
    """Index of the first line with an event of this kind."""
    return next(entry.seq - 1 for entry in journal.read(run.journal_file) if isinstance(entry.event, kind))


def told(found: Damage) -> str:
    return " ".join(damage.sentences(found))


def bytes_of(run: RunFolder) -> dict[str, bytes]:
    return {str(path.relative_to(run.path)): path.read_bytes() for path in run.path.rglob("*") if path.is_file()}


@pytest.mark.parametrize("ending", ["finished", "stopped", "failed", "waiting", "paused", "running", "new"])
def test_a_whole_run_is_not_damaged(root: Path, ending: str) -> None:
    run = write_run(root, depths=6, ending=ending)
    found = examine(run)
    assert not found.is_damaged
    assert (damage.title(found), damage.sentences(found), damage.refusal(run)) == ("", [], "")


def test_two_damaged_lines_are_told_with_what_stood_in_them(root: Path) -> None:
    run = write_run(root, depths=3)
    lines, made = lines_of(run), place_of(run, CandidateCreated)
    kernel = next(e.event for e in journal.read(run.journal_file) if isinstance(e.event, CandidateCreated))
    lines[made] = JUNK
    lines[made + 10] = b"\0" * 40 + b"\n"
    run.journal_file.write_bytes(b"".join(lines))
    before = bytes_of(run)
    found = examine(run)
    assert (found.unreadable, found.missing) == (2, ((made + 1, made + 1), (made + 11, made + 11)))
    assert found.kernels == (kernel.candidate_id,)
    assert damage.title(found) == "This run's journal is damaged"
    assert "2 lines of journal.jsonl cannot be read." in told(found)
    assert f"Events {made + 1} and {made + 11} are missing (2 of {len(lines)}): step 1" in told(found)
    assert "The record of kernel 1 is among them." in told(found)
    assert bytes_of(run) == before


def test_a_journal_cut_in_its_end_is_told_by_the_number_of_events_written(root: Path) -> None:
    run = write_run(root, depths=3)
    run.journal_file.with_suffix(".seq").write_text(f"{len(lines_of(run))}\n")
    assert not examine(run).is_damaged
    lines = lines_of(run)
    run.journal_file.write_bytes(b"".join(lines[:30]))
    found = examine(run)
    assert (found.is_cut, found.has_holes, found.missing) == (True, False, ((31, len(lines)),))
    assert damage.title(found) == "The end of this run's journal is missing"
    assert f"Events 31 to {len(lines)} are missing ({len(lines) - 30} of {len(lines)}): everything after step" in told(
        found
    )
    run.journal_file.write_bytes(b"".join(lines[:30]) + lines[30][:20])
    assert examine(run) == found, "a torn line is as good as none"


def test_a_journal_cut_before_numbers_were_kept_is_told_by_its_texts(root: Path) -> None:
    run = write_run(root, depths=5)
    whole = run.journal_file.read_bytes()
    run.journal_file.write_bytes(whole[: len(whole) * 6 // 10])
    found = examine(run)
    assert found.is_cut
    assert "texts in blobs belong to events that are not in it" in told(found)
    lock = liveness.hold(run)
    assert not examine(run).is_damaged, "an engine at work stores texts before it tells of them"
    assert lock


def test_a_killed_engine_leaves_texts_behind_and_that_is_no_damage(root: Path) -> None:
    run = write_run(root, depths=3, ending="running")
    for text in ("a source", "and its diff"):
        Blobs(run.blobs).put(text)
    with open(run.journal_file, "ab") as file:
        file.write(b'{"seq":99,"ti')
    assert not examine(run).is_damaged


def test_events_of_a_newer_version_are_no_damage_but_no_engine_goes_on_with_them(root: Path, db: Database) -> None:
    run = write_run(root, depths=1)
    count = len(lines_of(run))
    with open(run.journal_file, "ab") as file:
        file.write(b'{"seq":%d,"time":1.75e9,"kind":"Foreseen","event":{"rows":3}}\n' % (count + 1))
    found = examine(run)
    assert not found.is_damaged
    assert (found.newer, found.missing, found.last) == (("Foreseen",), (), count + 1)
    assert "1 event was written by a newer version of Tilewright (Foreseen). This is not damage" in told(found)
    assert "update Tilewright to show and resume" in damage.refusal(run)
    Ingest(db, root).catch_up()
    assert [problem.kind for problem in queries.problems(db)] == [FaultKind.NEWER]


def test_missing_and_damaged_texts_are_named_by_what_they_are(root: Path) -> None:
    run = write_run(root, depths=2)
    made = next(e.event for e in journal.read(run.journal_file) if isinstance(e.event, CandidateCreated))
    called = next(e.event for e in journal.read(run.journal_file) if isinstance(e.event, ModelCalled))
    (run.blobs / made.source_blob).write_text("something else")
    (run.blobs / called.reply_blob).unlink()
    found = examine(run)
    assert (found.spoilt, found.gone) == (("source of kernel 1",), ("reply of step 1",))
    assert damage.title(found) == "Some of this run's texts are missing or damaged"
    assert "1 file is missing from blobs: reply of step 1." in told(found)
    assert "1 file in blobs is damaged: source of kernel 1." in told(found)
    assert damage.refusal(run) == "", "an engine may need none of them"
    with pytest.raises(BlobError, match=r"blobs/[0-9a-f]{12}… in run folder sample is damaged: restore it"):
        Blobs(run.blobs).get(made.source_blob)
    with pytest.raises(BlobError, match=r"blobs/[0-9a-f]{12}… in run folder sample is missing: restore it"):
        Blobs(run.blobs).get(called.reply_blob)
    assert examine(run, most_bytes=0).spoilt == ()


@pytest.mark.parametrize("content", [b"{", b"\xff\xfe", b"[]", b"{}", b'{"run_id": 3}', None])
def test_damaged_settings_are_told(root: Path, content: bytes | None) -> None:
    run = write_run(root, depths=1)
    run.settings_file.unlink()
    if content is not None:
        run.settings_file.write_bytes(content)
    found = examine(run)
    assert damage.title(found) == "This run's settings cannot be read"
    assert told(found).startswith("run.json cannot be read: ")
    assert str(root) not in told(found)
    assert "cannot be resumed" in damage.refusal(run)


def test_repeated_lines_are_left_out_and_told(root: Path, db: Database) -> None:
    run = write_run(root, depths=2)
    lines = lines_of(run)
    run.journal_file.write_bytes(b"".join([*lines, *lines[4:9]]))
    assert examine(run).repeated == 5
    assert "5 lines of journal.jsonl repeat events" in told(examine(run))
    assert len(list(journal.read(run.journal_file))) == len(lines)
    Ingest(db, root).catch_up()
    assert len(queries.events(db, "sample", limit=10_000)) == len(lines)


def test_a_damaged_command_is_told(root: Path) -> None:
    run = write_run(root, depths=1)
    run.commands_file.write_text("nonsense\n")
    assert told(examine(run)) == "1 line of commands.jsonl cannot be read; no engine has obeyed it."


def test_no_engine_opens_a_journal_with_holes_and_nothing_is_changed(root: Path) -> None:
    run = write_run(root, depths=2, ending="running")
    lines = lines_of(run)
    run.journal_file.write_bytes(b"".join([*lines[:7], *lines[8:]]) + b'{"torn')
    before = bytes_of(run)
    with pytest.raises(DamagedJournalError):
        Journal(run.journal_file)
    assert bytes_of(run) == before
    why = damage.refusal(run)
    assert "Run sample cannot be resumed." in why
    assert "Event 8 is missing" in why
    assert "python -m engine fork sample KERNEL" in why


def test_what_was_lost_before_a_resume_stays_told(root: Path, db: Database) -> None:
    run = write_run(root, depths=2, ending="new")
    book = Journal(run.journal_file)
    for step in range(1, 9):
        book.append(StepStarted(step, "compile", 0, None))
    book.close()
    run.journal_file.write_bytes(b"".join(lines_of(run)[:4]))
    book = Journal(run.journal_file)
    assert book.lost_events == 5
    book.append(EngineStarted(1, True, book.lost_events))
    book.close()
    found = examine(run)
    assert (found.lost_before, found.is_cut, found.can_resume) == (5, False, True)
    assert "5 events were lost before a resume" in told(found)
    Ingest(db, root).catch_up()
    assert queries.states(db, "sample")[-1].event.reason == "Run resumed; 5 earlier events are missing from the journal"


@settings(max_examples=examples(20), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_whatever_lines_are_spoilt_or_lost_exactly_their_events_are_missing(
    tmp_path: Path, data: st.DataObject
) -> None:
    """And the index leaves out the same events as a reader of the file."""
    shutil.rmtree(tmp_path / "runs", ignore_errors=True)
    run = write_run(tmp_path / "runs", depths=2)
    lines = lines_of(run)
    run.journal_file.with_suffix(".seq").write_text(f"{len(lines)}\n")
    numbers = st.sets(st.integers(1, len(lines)), max_size=12)
    spoilt, lost = data.draw(numbers, label="spoilt"), data.draw(numbers, label="lost")
    left = [JUNK if n in spoilt else line for n, line in enumerate(lines, 1) if n not in lost - spoilt]
    torn = data.draw(st.sampled_from([b"", b'{"seq":7,"ti']))
    run.journal_file.write_bytes(b"".join(left) + torn)
    found = examine(run)
    missing = {n for first, end in found.missing for n in range(first, end + 1)}
    assert missing == spoilt | lost
    assert found.unreadable == len(spoilt)
    assert found.is_damaged is bool(spoilt | lost)
    assert len(found.places) == len(found.missing)
    read = [entry.seq for entry in journal.read(run.journal_file)]
    assert read == [n for n in range(1, len(lines) + 1) if n not in missing]
    assert len(rebuilt(tmp_path / "runs" / "index", tmp_path / "runs")["events"]) == len(read)
