"""A run told once more: the same story in its rhythm, obeying pause and stop, refusing the rest, counted nowhere."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from engine import replaying, supervisor
from engine.__main__ import main
from engine.errors import EngineError
from engine.replaying import Replay
from storage.index import past, queries
from storage.index.database import index_file, open_database
from storage.index.ingest import Ingest
from storage.run import events as ev
from storage.run import journal
from storage.run.folder import RunFolder
from storage.run.journal import Journal
from storage.run.settings import RunState
from storage.run.steering import commands
from storage.run.steering.verbs import CommandKind
from tests.engine.test_supervisor import until
from tests.samples import write_run

COPIED = (ev.StepStarted, ev.ModelCalled, ev.CandidateCreated, ev.Compiled, ev.Checked, ev.Timed, ev.DepthFinished)


class Clock:
    """A sleep that only counts, and does something at a given moment."""

    def __init__(self) -> None:
        self.slept = 0.0
        self.plans: list[tuple[float, object]] = []

    def sleep(self, seconds: float) -> None:
        self.slept += seconds
        while self.plans and self.slept >= self.plans[0][0]:
            act = self.plans.pop(0)[1]
            act()  # type: ignore[operator]


def prepared(home: Path, ending: str = "finished", speed: float | None = 10.0) -> tuple[RunFolder, RunFolder]:
    original = write_run(home / "runs", "told", ending=ending)
    return original, replaying.prepare(replaying.settings_of(original, speed), original)


def told(folder: RunFolder, kinds: type | tuple[type, ...]) -> list[ev.Event]:
    return [entry.event for entry in journal.read(folder.journal_file) if isinstance(entry.event, kinds)]


def play(folder: RunFolder, clock: Clock) -> ev.RunEnded:
    book = Journal(folder.journal_file)
    try:
        return Replay(folder, book, sleep=clock.sleep).play()
    finally:
        book.close()


def test_a_replay_tells_the_same_story_in_its_rhythm_and_says_of_which_run(home: Path) -> None:
    original, folder = prepared(home)
    clock = Clock()
    ended = play(folder, clock)
    assert folder.read_settings().replay_of == "told"
    assert told(folder, COPIED) == told(original, COPIED)
    assert (ended.state, "told" in folder.run_id) == (RunState.FINISHED, True)
    assert "the run itself ended as finished" in ended.reason
    assert clock.slept == pytest.approx(replaying.length_s(list(journal.read(original.journal_file))) / 10, rel=0.01)
    assert [entry.seq for entry in journal.read(folder.journal_file)] == list(
        range(1, len(list(journal.read(folder.journal_file))) + 1)
    )


def test_texts_are_shared_with_the_run_and_survive_its_deletion(home: Path) -> None:
    original, folder = prepared(home)
    names = {blob.name for blob in original.blobs.iterdir()}
    for blob in original.blobs.iterdir():
        blob.unlink()
    assert {blob.name for blob in folder.blobs.iterdir() if blob.read_bytes()} == names


def test_a_reply_is_written_piece_by_piece_into_the_stream(home: Path) -> None:
    _, folder = prepared(home, speed=1.0)
    seen: list[str] = []
    clock = Clock()

    def look(seconds: float) -> None:
        clock.sleep(seconds)
        seen.append(folder.stream_file.read_text() if folder.stream_file.exists() else "")

    book = Journal(folder.journal_file)
    Replay(folder, book, sleep=look).play()
    book.close()
    pieces = [text for text in seen if text]
    assert any(later.startswith(earlier) and later != earlier for earlier, later in itertools.pairwise(pieces))
    assert folder.stream_file.read_text() == ""


def test_it_pauses_resumes_and_stops_and_refuses_everything_else(home: Path) -> None:
    _, folder = prepared(home)
    clock = Clock()

    def ask(kind: CommandKind, argument: str = "") -> object:
        return lambda: commands.send(folder.commands_file, kind, argument)

    clock.plans = [
        (1.0, ask(CommandKind.HINT, "faster")),
        (2.0, ask(CommandKind.PAUSE)),
        (5.0, ask(CommandKind.RESUME)),
        (6.0, ask(CommandKind.STOP)),
    ]
    ended = play(folder, clock)
    assert ended.state is RunState.STOPPED
    changes = [event.state for event in told(folder, ev.StateChanged) if isinstance(event, ev.StateChanged)]
    assert changes == [RunState.PAUSED, RunState.RUNNING]
    refused = [event.reason for event in told(folder, ev.CommandRefused) if isinstance(event, ev.CommandRefused)]
    assert refused == [replaying.REFUSAL]


def test_a_stopped_replay_goes_on_where_it_was_and_tells_nothing_twice(home: Path) -> None:
    original, folder = prepared(home)
    clock = Clock()
    clock.plans = [(3.0, lambda: commands.send(folder.commands_file, CommandKind.STOP))]
    assert play(folder, clock).state is RunState.STOPPED
    assert 0 < len(told(folder, COPIED)) < len(told(original, COPIED))
    assert play(folder, Clock()).state is RunState.FINISHED
    assert told(folder, COPIED) == told(original, COPIED)


@pytest.mark.parametrize("ending", ["waiting", "paused", "failed", "stopped"])
def test_whatever_became_of_the_run_its_replay_waits_for_nobody_and_finishes(home: Path, ending: str) -> None:
    _, folder = prepared(home, ending)
    assert play(folder, Clock()).state is RunState.FINISHED
    assert not told(folder, (ev.StateChanged, ev.QuestionAsked, ev.ApprovalAsked))


def test_without_a_speed_it_lasts_as_long_as_asked_and_nonsense_is_refused(home: Path) -> None:
    original, folder = prepared(home, speed=None)
    clock = Clock()
    play(folder, clock)
    assert clock.slept == pytest.approx(120.0, rel=0.02)
    for speed in (0.0, -1.0, float("inf"), float("nan")):
        with pytest.raises(EngineError, match="speed"):
            replaying.settings_of(original, speed)
    with pytest.raises(EngineError, match="itself a replay"):
        replaying.settings_of(folder, 1.0)


def test_a_replay_is_a_process_of_its_own_and_only_replays_can_be_deleted(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = write_run(home / "runs", "told")
    folder = supervisor.start_replay("told", speed=100_000.0)
    until(lambda: told(folder, ev.RunEnded), "the end of the replay")
    until(lambda: not supervisor.is_alive(folder), "its process to be gone")
    assert told(folder, COPIED) == told(original, COPIED)
    with pytest.raises(EngineError, match="not a replay"):
        supervisor.delete_replay("told")
    monkeypatch.setenv("TILEWRIGHT_READ_ONLY", "1")
    for act in (lambda: supervisor.start_replay("told", 1.0), lambda: supervisor.delete_replay(folder.run_id)):
        with pytest.raises(EngineError, match="read-only"):
            act()
    monkeypatch.delenv("TILEWRIGHT_READ_ONLY")
    supervisor.delete_replay(folder.run_id)
    assert not folder.path.exists()
    assert original.journal_file.exists()


def test_the_command_line_replays_a_run_here_and_deletes_the_replay(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_run(home / "runs", "told")
    assert main(["replay", "told", "--speed", "1000000"]) == 0
    name = capsys.readouterr().out.partition(":")[0]
    assert main(["replay", name, "--delete"]) == 0
    assert main(["replay", "told", "--delete"]) == 2


def test_replays_count_neither_as_calls_of_a_model_nor_as_spent_today(home: Path) -> None:
    _, folder = prepared(home)
    play(folder, Clock())
    with open_database(index_file(home)) as db:
        Ingest(db, home / "runs").catch_up()
        (rate,) = queries.patch_rates(db)
        assert rate.calls == len(told(RunFolder(home / "runs" / "told"), ev.ModelCalled))
        shown = queries.run(db, folder.run_id)
    assert shown is not None
    assert shown.replay_of == "told"
    assert supervisor.spent_today() == []
    assert not (home / "spent").exists()


def test_a_replay_can_be_shown_as_the_run_stood_after_any_step_though_nothing_is_told_yet(home: Path) -> None:
    _, folder = prepared(home)
    course = past.course_of(folder)
    shown = []
    for step in (0, len(course.ends) // 2, len(course.ends), 1):
        with past.index_until(folder, course.until(step)) as index:
            run = queries.run(index, folder.run_id)
            assert run is not None
            assert run.replay_of == "told"
            assert queries.finished_steps(index, folder.run_id) == step
            shown.append(len(queries.attempts(index, folder.run_id)))
    assert 0 == shown[0] < shown[1] < shown[2]
    assert shown[3] <= 1, "and back again"
    assert list(journal.read(folder.journal_file)) == []
