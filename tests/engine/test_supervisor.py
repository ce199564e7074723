"""Real engine processes: started, found again, killed, resumed, stopped."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from engine import supervisor
from engine.errors import EngineError, ModelError, TaskError
from engine.evaluator.toolchain_table import GPU, TABLE, Entry
from engine.networks import starting
from storage.networks import files as networks
from storage.networks.records import CaptureStarted, NetworkState
from storage.networks.standing import standing
from storage.results.vocabulary import KernelClass
from storage.run import events as ev
from storage.run import journal, liveness
from storage.run.folder import RunFolder
from storage.run.settings import Budget, RunState, Switch
from storage.run.steering import commands
from storage.run.steering.verbs import CommandKind
from tests import samples
from tests.engine.contexts import write_recording
from tests.engine.swish_story import REPLIES
from tests.engine.test_loop import SIZES

DEADLINE_S = 180.0


def until(holds: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not holds():
        assert time.monotonic() < deadline, f"waited in vain for: {what}"
        time.sleep(0.1)


def events_of(folder: RunFolder, kind: type) -> list[ev.Event]:
    return [entry.event for entry in journal.read(folder.journal_file) if isinstance(entry.event, kind)]


def start(home: Path, reply_seconds: float) -> RunFolder:
    recording = write_recording(home / "replies.jsonl", REPLIES)
    settings = supervisor.new_settings(
        "swish",
        model="recorded",
        recording=str(recording),
        overrides=SIZES,
        reply_seconds=reply_seconds,
        collect=Switch.OFF,  # what a profile is made of is seen in test_loop.py
        budget=Budget(depths=1),
    )
    return supervisor.start(settings)


def engine_pid(folder: RunFolder) -> int:
    return int(json.loads(folder.engine_file.read_text())["pid"])


def test_an_engine_outlives_its_starter_lets_no_second_one_in_and_goes_on_after_a_stop(home: Path) -> None:
    code = (
        "import sys; from tests.engine.test_supervisor import start; from pathlib import Path;"
        "print(start(Path(sys.argv[1]), 20.0).run_id)"
    )
    starter = subprocess.run([sys.executable, "-c", code, str(home)], capture_output=True, text=True, check=True)
    folder = RunFolder(home / "runs" / starter.stdout.strip())
    until(lambda: supervisor.is_alive(folder) and folder.engine_file.exists(), "a live engine")
    pid = engine_pid(folder)
    assert os.getsid(pid) == pid
    assert os.getpgid(pid) == pid

    with pytest.raises(EngineError, match="already running"):
        supervisor.resume(folder)
    again = subprocess.run(
        [sys.executable, "-m", "engine", "resume", folder.run_id], capture_output=True, text=True, check=False
    )
    assert again.returncode == 3
    assert "already running" in again.stderr

    until(lambda: events_of(folder, ev.StepStarted), "the first step")
    commands.send(folder.commands_file, CommandKind.STOP)
    until(lambda: not supervisor.is_alive(folder), "the engine to stop during a reply")
    (ended,) = events_of(folder, ev.RunEnded)
    assert isinstance(ended, ev.RunEnded)
    assert ended.state is RunState.STOPPED
    supervisor.resume(folder)
    until(lambda: supervisor.is_alive(folder), "the engine to go on")
    until(lambda: len(events_of(folder, ev.EngineStarted)) == 2, "the second start")
    assert supervisor.stop(folder)
    assert not liveness.is_held(folder)


def test_an_engine_killed_at_work_leaves_no_child_is_resumed_and_nothing_is_paid_for_twice(home: Path) -> None:
    """Once, with most children; test_loop.py has what follows a kill after each line of a journal."""
    folder = start(home, reply_seconds=0.3)
    until(lambda: has_workers_at_a_check(folder), "workers at a check")
    pid = engine_pid(folder)
    children = descendants(pid)
    os.kill(pid, signal.SIGKILL)
    until(lambda: not children & set(living()), "every child to be gone")
    until(lambda: not supervisor.is_alive(folder), "the lock of a dead engine to be free")
    assert not events_of(folder, ev.RunEnded)
    supervisor.resume(folder)
    until(lambda: supervisor.is_alive(folder) or events_of(folder, ev.RunEnded), "the resumed engine")
    until(lambda: events_of(folder, ev.RunEnded), "the end of the run")
    calls = [(c.step, c.call) for c in events_of(folder, ev.ModelCalled) if isinstance(c, ev.ModelCalled)]
    assert len(calls) == len(set(calls)) == 7
    sequence = [entry.seq for entry in journal.read(folder.journal_file)]
    assert sequence == list(range(1, len(sequence) + 1))
    (ended,) = events_of(folder, ev.RunEnded)
    assert isinstance(ended, ev.RunEnded)
    assert ended.state is RunState.FINISHED


def has_workers_at_a_check(folder: RunFolder) -> bool:
    begun = {str(step.kind) for step in events_of(folder, ev.StepStarted) if isinstance(step, ev.StepStarted)}
    return "check" in begun and len(descendants(engine_pid(folder))) >= 3


def living() -> dict[tuple[str, str], str]:
    """(pid, start time) of every process that is not a zombie, with its parent's pid."""
    found = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if fields[0] != "Z":
            found[path.parent.name, fields[19]] = fields[1]
    return found


def descendants(pid: int) -> set[tuple[str, str]]:
    parents, family = living(), set[tuple[str, str]]()
    ids = {str(pid)}
    while grown := {child for child, parent in parents.items() if parent in ids} - family:
        family |= grown
        ids |= {child for child, _ in grown}
    return family


def test_a_method_that_cannot_be_imported_is_told_to_who_starts_the_run(home: Path) -> None:
    settings = replace(supervisor.new_settings("swish", model="manual"), strategy="no.such.module:Name")
    with pytest.raises(EngineError, match="strategy 'no.such.module:Name' cannot be imported"):
        supervisor.start(settings)


def test_settings_of_a_task_without_a_recording_say_what_to_do(home: Path, tmp_path: Path) -> None:
    path = tmp_path / "plain.py"
    path.write_text("class Model: ...\ndef get_inputs(): ...\ndef get_init_inputs(): ...\n")
    with pytest.raises(ModelError, match="OPENAI_API_KEY"):
        supervisor.new_settings(str(path))
    with pytest.raises(TaskError, match="no task"):
        supervisor.new_settings("nothing")


def test_a_task_that_states_no_class_leaves_it_to_the_model(home: Path, tmp_path: Path) -> None:
    path = tmp_path / "plain.py"
    path.write_text("N = 3\nclass Model: ...\ndef get_inputs(): ...\ndef get_init_inputs(): ...\n")
    settings = supervisor.new_settings(str(path), model="some-model", overrides={"N": 5})
    assert settings.class_is_proposed
    assert settings.kernel_class is KernelClass.OTHER
    assert settings.task_source.startswith("N = 5\n")


def test_what_this_host_lacks_for_a_toolchain_does_not_count_on_a_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TABLE, "draft", Entry("no.such:Place", GPU, lambda: "no GPU here"))
    monkeypatch.delenv("TILEWRIGHT_POOL", raising=False)
    assert supervisor.available_toolchains()["draft"] == "no GPU here"
    monkeypatch.setenv("TILEWRIGHT_POOL", "ray")
    assert not supervisor.available_toolchains()["draft"]


def test_work_spaces_of_killed_engines_are_removed_and_those_of_living_ones_are_not(home: Path) -> None:
    killed, alive = (samples.write_run(home / "runs", name, seed=1, ending="running") for name in ("killed", "alive"))
    lock = liveness.hold(alive)
    for run in (killed, alive):
        (run.scratch / "evaluation.x").mkdir(parents=True)
    supervisor.sweep_scratch()
    os.close(lock)
    assert [killed.scratch.exists(), alive.scratch.exists()] == [False, True]
    assert list(killed.path.glob(".scratch*")) == []


def test_a_capture_that_ends_at_once_is_quoted_and_leaves_no_folder(home: Path, tmp_path: Path) -> None:
    file = tmp_path / "my app.py"
    file.write_text("def make(): ...\n")
    with pytest.raises(EngineError, match=r"the capture did not start; it wrote:\n(.|\n)*tilewright: "):
        starting.capture_network(f"{file}:make", "", "neither", "cpu")
    assert not networks.networks_folder().exists() or not list(networks.networks_folder().iterdir())


def test_a_capture_that_fails_keeps_what_it_wrote_and_can_be_begun_again(home: Path, tmp_path: Path) -> None:
    file = tmp_path / "my app.py"
    file.write_text("def make():\n    raise ValueError('no checkpoint')\n")
    folder = networks.folder_of("my_app")
    for is_tuned in (False, True):
        numbers = {"keep": 3, "batch": 2, "tokens": 16}
        begun = starting.capture_network(f"{file}:make", "", "eval", "cpu", numbers, is_tuned=is_tuned)
        assert begun == folder
        until(lambda: standing(folder).state is not NetworkState.CAPTURING, "the end of the capture")
        assert standing(folder).state is NetworkState.FAILED
        assert "no checkpoint" in standing(folder).words
        assert "no checkpoint" in starting.capture_log(folder)
    assert [type(line.event) for line in networks.read(folder)].count(CaptureStarted) == 2


def test_a_capture_is_refused_before_it_starts_where_nothing_could_come_of_it(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "app.py"
    file.write_text("def make(): ...\n")
    taken = networks.folder_of("app")
    lock = networks.hold(taken)
    for entry, name, reason in (
        ("", "", "no entry is given"),
        ("app.py", "", "names no network"),
        ("app.py:make", "", "give its whole path"),
        (f"{file}:make", "a/b", "is no name of a network"),
        (f"{file}:make", "", "a network app was captured here"),
    ):
        with pytest.raises(EngineError, match=reason):
            starting.capture_network(entry, name, "eval", "cpu")
    monkeypatch.setenv("TILEWRIGHT_READ_ONLY", "1")
    with pytest.raises(EngineError, match="read-only"):
        starting.capture_network(f"{file}:make", "new", "eval", "cpu")
    os.close(lock)
