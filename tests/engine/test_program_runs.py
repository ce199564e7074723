"""Whole runs with a program as the model: killed and resumed, and what a run says of programs that misbehave."""

from __future__ import annotations

import json
import os
import signal
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from engine import connecting, supervisor
from storage.run import events as ev
from storage.run import liveness
from storage.run.folder import RunFolder
from storage.run.saved_models import Program, SavedModel
from storage.run.settings import Budget, RunState, StepKind, Switch
from tests.engine.swish_story import FIRST
from tests.engine.test_loop import SIZES
from tests.engine.test_supervisor import engine_pid, events_of, until

DEPTHS = 5
LINE = "using namespace cute;"
SOURCE = FIRST.replace(LINE, f"{LINE}  // version 0")
# Writes down that it was asked, outside of what is hidden from it; each depth changes one line.
ANSWERS = f"""
import hashlib, json, re, sys
from pathlib import Path
prompt = sys.stdin.read()
with Path(sys.argv[1]).open("a") as calls:
    calls.write(hashlib.sha256(prompt.encode()).hexdigest() + "\\n")
versions = [int(number) for number in re.findall("// version ([0-9]+)", prompt)]
if not versions:
    reply = "Kernel class: activation\\nApproach: one pass\\n```python\\n" + {SOURCE!r} + "```\\n"
else:
    old, new = ({LINE!r} + f"  // version {{number}}" for number in (max(versions), max(versions) + 1))
    edit = {{"action": "replace", "line_number": {SOURCE.splitlines().index(f"{LINE}  // version 0") + 1},
            "old_code": [old], "new_code": [new], "why": "as told"}}
    reply = "Optimisation: another version\\n```json\\n" + json.dumps([edit]) + "\\n```\\n"
print(json.dumps({{"reply": reply, "usage": {{"in": len(prompt) // 4, "out": len(reply) // 4}}, "usd": 0.01}}))
"""


def test_a_run_of_five_depths_that_is_killed_twice_makes_no_call_twice(home: Path, tmp_path: Path) -> None:
    (tmp_path / "answers.py").write_text(ANSWERS)
    calls = tmp_path / "calls"
    program = Program(
        (sys.executable, str(tmp_path / "answers.py"), str(calls)),
        60.0,
        "$.reply",
        "$.usage.in",
        "$.usage.out",
        "$.usd",
    )
    connecting.save_model(SavedModel("mine", program=program))
    settings = supervisor.new_settings(
        "swish", model="mine", overrides=SIZES, collect=Switch.OFF, strategy_options={"base_policy": "latest"},
        budget=Budget(depths=DEPTHS, model_calls=DEPTHS + 1),
    )  # fmt: skip
    folder = supervisor.start(settings)
    connecting.remove_model("mine")  # a run keeps what it began with
    for made in (2, 4):
        until(partial(is_judging_after, folder, made), f"a kernel to be judged after call {made}")
        os.kill(engine_pid(folder), signal.SIGKILL)
        until(lambda: not supervisor.is_alive(folder), "the lock of a dead engine to be free")
        supervisor.resume(folder)
        until(lambda: supervisor.is_alive(folder), "the resumed engine")
    until(lambda: events_of(folder, ev.RunEnded), "the end of the run")
    until(lambda: not liveness.is_held(folder), "the engine to end")
    (ended,) = events_of(folder, ev.RunEnded)
    assert isinstance(ended, ev.RunEnded)
    assert (ended.state, ended.reason) == (RunState.FINISHED, "all 5 depths are done")
    asked = calls.read_text().split()
    assert len(asked) == len(set(asked)) == DEPTHS + 1
    called = [event for event in events_of(folder, ev.ModelCalled) if isinstance(event, ev.ModelCalled)]
    assert len(called) == len(events_of(folder, ev.CallSent)) == DEPTHS + 1
    assert {(event.model, event.cost_usd) for event in called} == {("mine", 0.01)}
    assert all(event.input_tokens and event.output_tokens for event in called)


def is_judging_after(folder: RunFolder, made: int) -> bool:
    if len(events_of(folder, ev.ModelCalled)) != made:
        return False
    kinds = [str(step.kind) for step in events_of(folder, ev.StepStarted) if isinstance(step, ev.StepStarted)]
    return kinds[-1] in (StepKind.COMPILE, StepKind.CHECK, StepKind.TIME)


@dataclass(frozen=True)
class Misbehaviour:
    """A program, what a run says of it (in its last failed call, else of its reply), and how often it was asked."""

    script: str
    said: str
    asked: int


MISBEHAVING = {
    "silent": Misbehaviour("exit 0", "mine printed an empty reply", 2),
    "slow": Misbehaviour("sleep 600", "the program did not end within 1 seconds", 2),
    "fails": Misbehaviour("echo no credit left >&2; exit 3", "mine ended with exit code 3: no credit left", 2),
    "crashes": Misbehaviour("kill -SEGV $$", "mine ended with the signal SIGSEGV", 2),
    "endless": Misbehaviour("exec yes 'no end'", "the program printed more than 2,000,000 characters", 1),
    "tells a key": Misbehaviour("echo wrong key sk-abcdefghijklmnop1234 >&2; exit 1", "wrong key [secret]", 2),
    "leaves a child": Misbehaviour("setsid sleep 600 & exit 5", "mine ended with exit code 5", 2),
    "writes to the run": Misbehaviour(
        "echo x > $HOME_OF_RUNS/runs/x && echo written; exit 6", "cannot create", 2
    ),
    "says no kernel": Misbehaviour("echo I am sorry", "the model gave no kernel in 3 calls", 3),
    "is no text": Misbehaviour("head -c 20000 /dev/urandom", "the model gave no kernel in 3 calls", 3),
}  # fmt: skip


@pytest.mark.parametrize("name", MISBEHAVING)
def test_what_a_run_says_of_a_program_that_misbehaves(
    home: Path, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME_OF_RUNS", str(home))
    asked = tmp_path / "asked"
    play = MISBEHAVING[name]
    script = f"echo asked >> {asked}; {play.script}"
    connecting.save_model(SavedModel("mine", program=Program(("sh", "-c", script), 1.0 if name == "slow" else 60.0)))
    folder = supervisor.start(
        supervisor.new_settings("swish", model="mine", overrides=SIZES, budget=Budget(depths=1, model_calls=4))
    )
    until(lambda: is_over_or_waits(folder), "the run to end or to wait")
    supervisor.stop(folder)
    assert play.said in said(folder)
    assert len(asked.read_text().split()) == play.asked
    assert not (home / "runs" / "x").exists()


def is_over_or_waits(folder: RunFolder) -> bool:
    states = [event.state for event in events_of(folder, ev.StateChanged) if isinstance(event, ev.StateChanged)]
    return bool(events_of(folder, ev.RunEnded)) or RunState.WAITING in states


def said(folder: RunFolder) -> str:
    """Of failed calls, of replies that could not be used, of states and of the end."""
    kept = [json.loads(line)["event"] for line in folder.journal_file.read_text().splitlines()]
    return " / ".join(str(event["reason"]) for event in kept if event.get("reason"))
