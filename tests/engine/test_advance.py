"""Runs that a person answers, advanced together as a script does it: real engines, none of which waits."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

import engine.__main__
from engine import supervisor
from engine.errors import PersonNeeded
from engine.evaluator.machine import devices
from engine.search.human.approval import await_approval
from engine.search.human.inbox import Inbox
from storage.results.hardware_limit import HardwareLimit
from storage.run import events as ev
from storage.run import liveness
from storage.run.blobs import Blobs
from storage.run.folder import RunFolder
from storage.run.journal import Journal
from storage.run.settings import RunState, StepKind
from storage.run.steering import commands
from storage.run.steering.command_arguments import Answer, Ask, AskFirst, Fallback
from storage.run.steering.verbs import CommandKind
from tests.engine.contexts import context_with_tools as context_at
from tests.engine.evaluator.machine.driver import driver
from tests.engine.story import Step, resolved
from tests.engine.swish_story import BROKEN, FIRST
from tests.engine.test_cli import SET, tilewright
from tests.engine.test_human_replies import states
from tests.engine.test_steering import Meanwhile, ask

__all__ = ["driver"]
WRITE = Step(StepKind.SYNTHESISE, 0)


def asked_for(done: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


def start(depths: int) -> tuple[str, dict[str, Any]]:
    words = ["--model", "manual", "--depths", str(depths), "--collect", "off", "--until-waiting", "--json", *SET]
    done = tilewright("run", "swish", *words)
    assert done.returncode == 0, done.stderr
    (one,) = asked_for(done)
    return one["run"], one


def test_runs_take_the_replies_that_have_arrived_and_wait_again_also_on_another_host(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (right, first), (wrong, _) = start(depths=0), start(depths=1)
    assert (first["state"], first["prompt"]["role"], first["refused"]) == ("waiting", "synthesise", [])
    assert [one["role"] for one in first["prompt"]["messages"]] == ["system", "user"]
    for message in first["prompt"]["messages"]:
        assert message["text"] in Path(first["prompt"]["file"]).read_text()
    assert first["prompt"]["answer"] == f"python -m engine answer {right} FILE"
    (home / "first.txt").write_text(f"Kernel class: activation\nApproach: one pass\n```python\n{FIRST}```\n")
    (home / "broken.py").write_text(BROKEN)
    refused = tilewright("answer", right, "-", stdin="I would rather not.")
    assert (refused.returncode, "class ModelNew" in refused.stderr) == (1, True)
    assert f"engine advance {right}` makes the run go on" in tilewright("answer", right, str(home / "first.txt")).stdout
    assert tilewright("answer", wrong, str(home / "broken.py")).returncode == 0

    done = tilewright("advance", right, wrong, "--jobs", "2", "--json")
    assert done.returncode == 0, done.stderr
    over, waiting = asked_for(done)
    assert (over["state"], over["prompt"]) == ("finished", None)
    assert over["reason"] == "no depths beyond the first kernel were asked for"
    assert over["speedup"] > 0
    assert not Path(first["prompt"]["file"]).exists()
    assert (waiting["state"], waiting["prompt"]["role"], waiting["prompt"]["kernel"]) == ("waiting", "diagnose", "c001")
    assert "does not compile" in waiting["prompt"]["messages"][-1]["text"]

    here = RunFolder(home / "runs" / wrong)
    before = here.journal_file.read_bytes()
    told = tilewright("advance", wrong, right)
    assert (told.returncode, told.stderr) == (0, "")
    assert waiting["prompt"]["file"] in told.stdout
    assert here.journal_file.read_bytes() == before

    away = tmp_path / "away"
    lock = liveness.hold(here)  # what an engine here holds is no matter there
    shutil.copytree(home / "runs", away / "runs")
    there = RunFolder(away / "runs" / wrong)
    engine_there = {"pid": os.getpid(), "started": "1", "at": 0.0}
    there.engine_file.write_text(json.dumps(engine_there))
    (away / "cache").symlink_to(home / "cache")
    monkeypatch.setenv("TILEWRIGHT_HOME", str(away))
    step = waiting["prompt"]["step"]
    for text in ("", "A semicolon is missing."):
        blob = Blobs(there.blobs).put(text)
        commands.send(there.commands_file, CommandKind.ANSWER, str(Answer(step, 0, blob)))
    (moved,) = asked_for(tilewright("advance", wrong, "--json"))
    assert (moved["state"], moved["prompt"]["role"]) == ("waiting", "repair")
    assert Path(moved["prompt"]["file"]).parent == there.path
    assert here.journal_file.read_bytes() == before
    os.close(lock)

    commands.send(there.commands_file, CommandKind.STOP)
    (stopped,) = asked_for(tilewright("advance", wrong, "--json"))
    assert (stopped["state"], stopped["reason"]) == ("stopped", "stopped by a person")


def test_a_run_that_an_engine_holds_is_named_and_not_touched(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_id, _ = start(depths=1)
    folder = RunFolder(home / "runs" / run_id)
    before = folder.journal_file.read_bytes()
    lock = liveness.hold(folder)
    assert engine.__main__.main(["advance", run_id, "--json"]) == 3
    (one,) = json.loads(capsys.readouterr().out)
    assert (one["state"], one["reason"]) == ("running", "an engine is at work on it and waits for your reply")
    os.close(lock)
    assert engine.__main__.main(["advance", run_id, "no-such-run"]) == 2
    Blobs(folder.blobs).put("")
    empty = Answer(1, 0, Blobs(folder.blobs).put(""))
    commands.send(folder.commands_file, CommandKind.ANSWER, str(empty))  # not checked, as any program may send it
    assert engine.__main__.main(["advance", run_id]) == 0
    assert "your last reply was refused: The reply is empty." in capsys.readouterr().out
    assert len(folder.journal_file.read_bytes()) > len(before)


def test_a_copied_run_names_another_gpu_of_the_same_model_and_no_other(
    home: Path, driver: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", str(driver))
    settings = supervisor.new_settings("swish", toolchain="cuda", model="manual", device="GPU-of-another-host")
    folder = RunFolder(home / "runs" / settings.run_id)
    folder.write_settings(settings)
    journal = Journal(folder.journal_file)
    for event in (ev.EngineStarted(1, False), ev.LimitMeasured(HardwareLimit("Fast One", 1.0, 1.0, 1, 1))):
        journal.append(event)
    journal.close()
    for words, code, said in (
        ([], 4, "`advance --device` and `resume --device` name another GPU"),
        (["--device", "1"], 4, "measured on Fast One and the GPU here is Slow One"),
        (["--device", "0"], 0, "Your reply is needed: write the first kernel."),
    ):
        assert engine.__main__.main(["advance", settings.run_id, "--json", *words]) == code
        (one,) = json.loads(capsys.readouterr().out)
        assert said in one["reason"]
    assert one["state"] == "waiting"


def test_a_run_of_a_gpu_goes_on_without_one_as_far_as_its_prompts_reach(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if devices.has_driver():
        pytest.skip("this host has an NVIDIA driver")
    settings = supervisor.new_settings("swish", toolchain="cuda", model="manual")
    folder = RunFolder(home / "runs" / settings.run_id)
    folder.write_settings(settings)
    journal = Journal(folder.journal_file)
    for event in (ev.EngineStarted(1, False), ev.LimitMeasured(HardwareLimit("Fast One", 1.0, 1.0, 1, 1))):
        journal.append(event)
    journal.close()
    assert engine.__main__.main(["advance", settings.run_id, "--json"]) == 0
    (one,) = json.loads(capsys.readouterr().out)
    assert one["state"] == "waiting"
    reply = home / "reply.md"
    reply.write_text(f"Kernel class: activation\nApproach: none\n```python\n{FIRST}```\n")
    assert engine.__main__.main(["answer", settings.run_id, str(reply)]) == 0
    capsys.readouterr()
    for _ in range(2):
        assert engine.__main__.main(["advance", settings.run_id, "--json"]) == 0
        (one,) = json.loads(capsys.readouterr().out)
        assert (one["state"], one["prompt"]) == ("stopped", None)
        assert "the next step measures a kernel, and no NVIDIA GPU can be used here" in one["reason"]


def test_what_is_not_to_wait_is_left_where_only_a_person_can_go_on(tmp_path: Path) -> None:
    context = context_at(tmp_path / "paused")
    ask(context, CommandKind.PAUSE)
    with pytest.raises(PersonNeeded, match="paused"):
        Inbox(context, Meanwhile(), is_patient=False).gate()
    context = context_at(tmp_path / "asks", ask_first=AskFirst(Ask.ALL))
    with pytest.raises(PersonNeeded, match="Approve the next step: synthesise"):
        await_approval(context, Inbox(context, Meanwhile(), is_patient=False), resolved(context, WRITE))
    assert states(context) == [RunState.WAITING]
    context = context_at(tmp_path / "answers itself", ask_first=AskFirst(Ask.ALL, Fallback.YES, 60))
    times = iter([0.0, 59.0, 60.0])
    inbox = Inbox(context, Meanwhile(lambda: None), is_patient=False)
    await_approval(context, inbox, resolved(context, WRITE), lambda: next(times))
    assert context.record.human.is_approved
