"""Whole runs with the real compiler and the real evaluator on small tensors; only the model's replies are recorded."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from engine.errors import EngineError, ToolchainError
from engine.evaluator import tasks
from engine.evaluator.profiling import cpu_profile
from engine.evaluator.request import Evaluator
from engine.search import loop
from engine.search.actions import Evaluate
from engine.search.context import RunContext
from engine.search.human.inbox import Inbox
from engine.search.methods.cutegen.strategy import CuteGen
from storage.results.vocabulary import KernelClass, Verdict
from storage.run import events as ev
from storage.run import journal
from storage.run.record import Record
from storage.run.settings import Budget, DepthOutcome, Origin, RunState, StepKind, Switch
from storage.run.steering import commands
from storage.run.steering.verbs import CommandKind
from tests.engine.contexts import open_context
from tests.engine.real_toolchain import toolchain
from tests.engine.story import asks, state_of
from tests.engine.swish_story import FIRST, REPLIES, THIRD
from tests.engine.test_steering import Meanwhile

__all__ = ["toolchain"]

SIZES = {"batch_size": 4, "dim": 1024}
SETTINGS = {
    "task_name": "swish",
    "kernel_class": KernelClass.ACTIVATION,
    "base_policy": "latest",
    "collect": Switch.OFF,
    "budget": Budget(depths=2),
}


def context_at(folder: Path, toolchain: Evaluator, **changes: object) -> RunContext:
    context = open_context(folder, REPLIES, toolchain, **(SETTINGS | changes))
    context.task = tasks.find("swish").task("cpu", SIZES)
    return context


def work(context: RunContext, *acts: object) -> ev.RunEnded:
    inbox = Inbox(context, Meanwhile(*acts))
    context.interrupt = inbox.interrupt
    return loop.run(context, inbox)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory, toolchain: Evaluator) -> Path:
    """The folder of an undisturbed run."""
    folder = tmp_path_factory.mktemp("finished")
    work(context_at(folder, toolchain))
    return folder


def told(folder: Path) -> list[object]:
    """The run's events without those that only say who worked and when."""
    silent = (ev.EngineStarted, ev.StepStarted, ev.StateChanged)
    plain = [json.loads(line) for line in (folder / "run/journal.jsonl").read_text().splitlines()]
    for line in plain:
        line["event"].pop("seconds", None)
        result = line["event"].get("result") or {}
        for remembered in ("seconds", "is_cached", "timeline"):
            result.pop(remembered, None)
        result.get("evidence", {}).pop("cached", None)
    kinds = {kind.__name__ for kind in silent}
    return [(line["kind"], line["event"]) for line in plain if line["kind"] not in kinds]


def test_a_run_fails_diagnoses_patches_passes_and_gets_through_its_depths(finished: Path, toolchain: Evaluator) -> None:
    record = context_at(finished, toolchain).record
    attempts = list(record.candidates.values())
    assert [a.verdict for a in attempts] == [
        Verdict.COMPILE_ERROR, Verdict.PASSED, Verdict.INCORRECT, Verdict.PASSED, Verdict.PASSED,
    ]  # fmt: skip
    assert [a.created.origin for a in attempts] == [
        Origin.SYNTHESIS, Origin.REPAIR, Origin.OPTIMISATION, Origin.REPAIR, Origin.OPTIMISATION,
    ]  # fmt: skip
    assert [d.outcome for d in record.concluded] == [DepthOutcome.ACCEPTED] * 3
    assert record.ended == ev.RunEnded(RunState.FINISHED, "all 2 depths are done", record.best_id)
    assert attempts[-1].created.summary == "single precision exponential"


def test_the_diagnosis_prompt_holds_the_compiler_message_with_its_line(finished: Path, toolchain: Evaluator) -> None:
    context = context_at(finished, toolchain)
    call = next(c for c in context.record.calls.values() if c.role == "diagnose")
    prompt = json.loads(context.blobs.get(call.prompt_blob))[1]["text"]
    assert "does not compile" in prompt
    assert "expected" in prompt
    assert "before" in prompt
    assert "  17 |" in prompt


def test_the_first_prompt_has_the_measured_device_and_every_later_one_begins_as_it(
    finished: Path, toolchain: Evaluator
) -> None:
    context = context_at(finished, toolchain)
    limit = context.record.limit
    facts = limit.facts if limit else None
    assert facts is not None
    prompts = [json.loads(context.blobs.get(call.prompt_blob)) for call in context.record.calls.values()]
    assert f"{facts.memory_gb_s:.4g} GB/s" in prompts[0][0]["text"]
    assert {prompt[0]["text"] for prompt in prompts} == {prompts[0][0]["text"]}
    optimise = next(p for p, c in zip(prompts, context.record.calls.values(), strict=True) if c.role == "optimise")
    assert "of the limit. It is" in optimise[1]["text"]


def test_a_wrong_value_is_told_with_its_place(finished: Path, toolchain: Evaluator) -> None:
    context = context_at(finished, toolchain)
    check = context.record.candidates["c003"].checked
    assert check is not None
    assert check.mismatch is not None
    assert check.mismatch.index == (SIZES["batch_size"] - 1, SIZES["dim"] - 1)
    assert check.mismatch.wrong_count == 1


def test_a_patch_that_does_not_fit_is_reported_to_the_model_and_asked_again(
    finished: Path, toolchain: Evaluator
) -> None:
    context = context_at(finished, toolchain)
    tried = [e.event for e in context.journal.entries if isinstance(e.event, ev.PatchTried)]
    assert [(p.rung, p.is_applied) for p in tried[:2]] == [("edits", False), ("reask", True)]
    again = context.record.calls[tried[1].step, 1]
    assert "could not be applied" in json.loads(context.blobs.get(again.prompt_blob))[-1]["text"]


def test_a_run_cut_off_after_any_line_ends_with_the_same_history(
    finished: Path, toolchain: Evaluator, tmp_path: Path
) -> None:
    lines = (finished / "run/journal.jsonl").read_text().splitlines(keepends=True)
    expected = told(finished)
    for kept in range(1, len(lines)):
        folder = tmp_path / str(kept)
        shutil.copytree(finished, folder)
        torn = lines[kept][: len(lines[kept]) // 2] if kept % 2 else ""
        (folder / "run/journal.jsonl").write_text("".join(lines[:kept]) + torn)
        work(context_at(folder, toolchain))
        assert told(folder) == expected, f"cut off after line {kept}: {lines[kept - 1][:120]}"


def test_profiles_are_shown_when_forced_on_and_the_journal_says_so(
    tmp_path: Path, toolchain: Evaluator, monkeypatch: pytest.MonkeyPatch
) -> None:
    # On a busy machine a profile is kept from the model, which has tests of its own.
    monkeypatch.setattr(cpu_profile, "disturbance", lambda *figures: "")
    context = context_at(tmp_path, toolchain, budget=Budget(depths=1), collect=Switch.AUTO)
    commands.send(context.folder.commands_file, CommandKind.EXPOSE, "on")
    work(context)
    (call,) = [c for c in context.record.calls.values() if c.role == "optimise"]
    base = context.record.candidates["c002"].profiled
    assert call.is_profile_exposed
    assert base is not None
    assert base.summary.strip() in json.loads(context.blobs.get(call.prompt_blob))[1]["text"]
    assert context.record.concluded[1].is_profile_exposed


def test_no_profile_is_shown_when_switched_off(tmp_path: Path, toolchain: Evaluator) -> None:
    context = context_at(tmp_path, toolchain, budget=Budget(depths=1), expose_from_depth=1)
    commands.send(context.folder.commands_file, CommandKind.EXPOSE, "off")
    work(context)
    assert not any(c.is_profile_exposed for c in context.record.calls.values())


def test_a_hint_is_in_the_next_prompt_once(tmp_path: Path, toolchain: Evaluator) -> None:
    context = context_at(tmp_path, toolchain)
    hint = commands.send(context.folder.commands_file, CommandKind.HINT, "mind the tail elements")
    work(context)
    prompts = [context.blobs.get(call.prompt_blob) for call in context.record.calls.values()]
    assert ["mind the tail elements" in prompt for prompt in prompts].count(True) == 1
    effective = [e.event for e in context.journal.entries if isinstance(e.event, ev.CommandEffective)]
    assert [(e.command_id, e.step) for e in effective] == [(hint.command_id, 1)]


def test_a_run_that_leaves_its_recording_waits_and_goes_on_from_the_kernel_it_is_rolled_back_to(
    tmp_path: Path, toolchain: Evaluator
) -> None:
    context = context_at(tmp_path, toolchain, budget=Budget(depths=5))
    states: list[RunState] = []
    ended = work(
        context,
        lambda: states.append(context.record.state),
        lambda: commands.send(context.folder.commands_file, CommandKind.ROLL_BACK, "c004"),
        lambda: commands.send(context.folder.commands_file, CommandKind.STOP),
    )
    waits = [
        e.event.reason
        for e in context.journal.entries
        if isinstance(e.event, ev.StateChanged) and e.event.state == "waiting"
    ]
    assert states == [RunState.WAITING]
    assert "no longer follows the recording" in waits[0]
    assert ended.state is RunState.STOPPED
    depths = context.record.concluded
    assert [d.outcome for d in depths] == [*[DepthOutcome.ACCEPTED] * 3, DepthOutcome.GIVEN_UP]
    assert state_of(context.record).line == ["c004"]


def test_an_identical_source_is_not_judged_twice_in_a_run(finished: Path, toolchain: Evaluator, tmp_path: Path) -> None:
    class Counting:
        name = "cpu"
        calls = 0

        def __getattr__(self, act: str) -> object:
            Counting.calls += act == "time"
            return getattr(toolchain, act)

    folder = tmp_path / "twice"
    replies = [*REPLIES, ("optimise", THIRD, f"Optimisation: back\n```python\n{FIRST}```\n")]
    context = open_context(folder.parent, replies, Counting(), **(SETTINGS | {"budget": Budget(depths=3)}))  # type: ignore[arg-type]
    context.task = tasks.find("swish").task("cpu", SIZES)
    work(context)
    last = context.record.candidates["c006"]
    assert last.created.source_blob == context.record.candidates["c002"].created.source_blob
    assert last.timed is not None
    assert last.timed.evidence["cached"] == "as c002"
    assert Counting.calls == 3


def test_a_machine_that_lacks_a_part_ends_the_run_and_says_which(tmp_path: Path, toolchain: Evaluator) -> None:
    class Lacking:
        name = "cpu"

        def limit(self, task: object) -> None:
            raise ToolchainError("g++ is not installed")

    context = open_context(tmp_path, REPLIES, Lacking(), **SETTINGS)  # type: ignore[arg-type]
    with pytest.raises(ToolchainError, match=r"g\+\+"):
        work(context)
    assert list(journal.read(context.folder.journal_file)) == []


class Asking(CuteGen):
    """A strategy that asks for something else."""

    def __init__(self, action: Any) -> None:
        super().__init__()
        self.action = action

    def next(self, record: Record) -> Any:
        return self.action


@pytest.mark.parametrize(
    ("action", "said"),
    [
        ("tune", "'tune', which is no action of the loop"),
        (asks("tune", "c001"), "c001, a kernel that this run does not have"),
        (Evaluate(StepKind.COMPILE, 0, "c009"), "c009, a kernel that this run does not have"),
    ],
)
def test_what_the_loop_cannot_do_is_our_failure_and_asks_no_model(
    tmp_path: Path, toolchain: Evaluator, action: Any, said: str
) -> None:
    context = context_at(tmp_path, toolchain)
    context.strategy = Asking(action)
    with pytest.raises(EngineError, match=said):
        work(context)
    assert not [e for e in context.record.events if isinstance(e, ev.StepStarted | ev.CallSent | ev.ModelCalled)]


def test_the_step_in_flight_is_visible_while_it_works(finished: Path) -> None:
    kinds = [e.event for e in journal.read(finished / "run/journal.jsonl")]
    started = [e.step for e in kinds if isinstance(e, ev.StepStarted)]
    ended = [e.step for e in kinds if isinstance(e, ev.StepFinished)]
    assert started == ended == list(range(1, len(started) + 1))
    assert any(isinstance(e, ev.StepStarted) and e.kind == StepKind.REPAIR for e in kinds)
