"""Whole runs with an agent as the model: what it calls, what it leaves, what it cannot reach, and what a kill costs."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

from engine import connecting, supervisor
from storage.results.vocabulary import Verdict
from storage.run import events as ev
from storage.run import liveness
from storage.run.blobs import Blobs
from storage.run.folder import RunFolder
from storage.run.models import CallFailure
from storage.run.saved_models import ModelKind, checked, named
from storage.run.settings import Budget, RunState, Switch
from tests.engine.swish_story import FIRST, WRONG
from tests.engine.test_loop import SIZES
from tests.engine.test_program_runs import is_over_or_waits, said
from tests.engine.test_supervisor import engine_pid, events_of, until

LINE = "using namespace cute;"
OUTSIDE = """
import os, subprocess, sys, time
from pathlib import Path
notes, kernel = Path(sys.argv[1]), Path("kernel.py")
def note(*words):
    with notes.open("a") as file:
        print(*words, file=file)
def tool(name):
    note(name, subprocess.run(["./tilewright", name], stdout=subprocess.DEVNULL).returncode)
"""
# Writes a wrong kernel first, then a right one; each depth changes one line. Looks at what it is not to see.
WORKS = f"""{OUTSIDE}
home = Path(sys.argv[2])
def seen(act):
    try:
        return bool(act())
    except OSError:
        return False
engine = int(Path(f"/proc/{{os.getppid()}}/status").read_text().split("PPid:")[1].split()[0])
journals = [f"{{run}}/journal.jsonl" for run in home.glob("runs/*")]
note("sees", seen(lambda: list(home.iterdir())), seen((home / "models.toml").read_text), bool(journals),
     seen(Path(f"/proc/{{engine}}/environ").read_bytes), seen(lambda: (home / "made").write_text("x")))
if kernel.exists():
    text = kernel.read_text()
    kernel.write_text(text.replace({LINE!r}, {LINE!r} + "  // changed", 1))
    tool("check")
    print("Optimisation: a remark")
else:
    kernel.write_text({WRONG!r})
    tool("check")
    kernel.write_text({FIRST!r})
    for name in ("screen", "check", "check", "evaluate", "profile"):
        tool(name)
    print("Kernel class: activation")
    print("Approach: one pass")
"""
HANGS = f"""{OUTSIDE}
note("asked", os.getpid(), os.getcwd())
kernel.write_text({WRONG!r})
tool("check")
if notes.read_text().count("asked") == 1:
    time.sleep(600)
kernel.write_text({FIRST!r})
"""


def agent(folder: Path, script: str, home: Path, **table: object) -> Path:
    """Save one as a model, `mine`. Returns where it takes notes."""
    (folder / "agent.py").write_text(script)
    command = [sys.executable, str(folder / "agent.py"), str(folder / "notes"), str(home)]
    connecting.save_model(checked(ModelKind.AGENT, "mine", {"command": command, **table}))
    return folder / "notes"


def start(**budget: int) -> RunFolder:
    settings = supervisor.new_settings(
        "swish", model=named("agent:mine"), overrides=SIZES, collect=Switch.OFF, budget=Budget(**budget),
        strategy_options={"base_policy": "latest"},
    )  # fmt: skip
    return supervisor.start(settings)


def answered(folder: RunFolder) -> list[ev.ToolAnswered]:
    return [event for event in events_of(folder, ev.ToolAnswered) if isinstance(event, ev.ToolAnswered)]


def test_an_agent_tries_kernels_with_tools_and_leaves_those_of_a_run(home: Path, tmp_path: Path) -> None:
    notes = agent(tmp_path, WORKS, home, evaluations=3)
    folder = start(depths=2, model_calls=3)
    until(lambda: events_of(folder, ev.RunEnded), "the end of the run")
    until(lambda: not liveness.is_held(folder), "the engine to end")
    (ended,) = events_of(folder, ev.RunEnded)
    assert isinstance(ended, ev.RunEnded)
    assert (ended.state, ended.reason) == (RunState.FINISHED, "all 2 depths are done"), said(folder)
    tools = answered(folder)
    assert [(tool.tool, tool.outcome) for tool in tools if tool.step == tools[0].step] == [
        ("check", Verdict.INCORRECT), ("screen", Verdict.PASSED), ("check", Verdict.PASSED),
        ("check", Verdict.PASSED), ("evaluate", Verdict.PASSED), ("profile", "done"),
    ]  # fmt: skip
    assert tools[3].seconds == 0.0, "the same check of the same file is read, not paid for"
    assert [tool.tool for tool in tools[6:]] == ["check", "check"]
    assert notes.read_text().splitlines()[:7] == [
        "sees False False False False False", "check 1", "screen 0", "check 0", "check 0", "evaluate 0", "profile 1"
    ]  # fmt: skip
    made = [event for event in events_of(folder, ev.CandidateCreated) if isinstance(event, ev.CandidateCreated)]
    sources = [Blobs(folder.blobs).get(event.source_blob) for event in made]
    assert [source.count("// changed") for source in sources] == [0, 1, 2]
    assert made[1].summary == "a remark"
    called = [event for event in events_of(folder, ev.ModelCalled) if isinstance(event, ev.ModelCalled)]
    assert [(event.model, event.input_tokens, event.cost_usd) for event in called] == [("mine", None, None)] * 3


def test_a_kill_in_the_middle_of_its_turn_ends_it_and_it_is_asked_once_more(home: Path, tmp_path: Path) -> None:
    notes = agent(tmp_path, HANGS, home)
    folder = start(depths=0, model_calls=2)
    until(lambda: answered(folder), "the answer to a tool's call")
    until(lambda: "check 1" in notes.read_text(), "the agent to read it")
    os.kill(engine_pid(folder), signal.SIGKILL)
    until(lambda: not supervisor.is_alive(folder), "the lock of a dead engine to be free")
    _, pid, scratch, *_ = notes.read_text().split()
    until(lambda: not Path(f"/proc/{pid}").exists(), "the agent to end with its engine")
    until(lambda: not Path(scratch).exists(), "its folder to be removed")
    supervisor.resume(folder)
    until(lambda: events_of(folder, ev.RunEnded), "the end of the run")
    assert notes.read_text().count("asked") == len(events_of(folder, ev.CallSent)) == 2
    (lost,) = events_of(folder, ev.CallFailed)
    assert isinstance(lost, ev.CallFailed)
    assert (lost.failure, lost.is_charged) == (CallFailure.LOST, True)
    first, again = answered(folder)
    assert (first.number, again.number, again.seconds) == (0, 1, 0.0)
    assert first.seconds > 0
    (created,) = events_of(folder, ev.CandidateCreated)
    assert isinstance(created, ev.CandidateCreated)
    assert Blobs(folder.blobs).get(created.source_blob) == FIRST


def test_one_that_works_too_long_is_ended_asked_once_more_and_then_a_person(home: Path, tmp_path: Path) -> None:
    script = HANGS.replace('tool("check")', 'tool("screen")').replace('.count("asked") == 1', "")
    notes = agent(tmp_path, script, home, timeout_s=5)
    folder = start(depths=0, model_calls=4)
    until(lambda: is_over_or_waits(folder), "the run to wait")
    supervisor.stop(folder)
    assert "the program did not end within 5 seconds" in said(folder)
    assert notes.read_text().count("asked") == 2
    assert [(tool.tool, tool.number) for tool in answered(folder)] == [("screen", 0), ("screen", 1)]
    assert json.loads(folder.settings_file.read_text())["saved_models"][0]["program"]["evaluations"] == 8
