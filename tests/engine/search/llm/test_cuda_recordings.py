"""The recordings for GPUs hold together without one: every reply applies and every kernel may run."""

from __future__ import annotations

import contextlib
import json
import tomllib

import pytest

from engine import supervisor
from engine.evaluator import languages, tasks
from engine.evaluator.checks.screening import screen
from engine.search.llm.recording import SHIPPED, read_recording
from engine.search.patching.edits import EditError
from engine.search.patching.proposed_patch import read_patch
from engine.search.patching.reply import find_python
from storage.run.blobs import text_hash
from storage.run.settings import StepKind
from tests.engine.evaluator.checks.screening import recorded

TASKS = pytest.mark.parametrize("task", recorded.CUDA_TASKS)


@TASKS
def test_every_reply_is_about_a_kernel_that_the_recording_leads_to(task: str) -> None:
    recording = recorded.of(task, "cuda")
    assert recording.header["toolchain"] == "cuda"
    known = {None, *recorded.kernels(task, "cuda")}
    assert {source for _, source in recording.replies} <= known
    assert known - {source for _, source in recording.replies} == {text_hash(last(task))}


def last(task: str) -> str:
    """The kernel at the end of the main path: first replies only, repairs where there is a diagnosis."""
    recording = recorded.of(task, "cuda")
    source, depths = next(iter(recorded.kernels(task, "cuda").values())), 0
    while found := recorded.children(recording, source):
        is_broken = (StepKind.DIAGNOSE, text_hash(source)) in recording.replies
        role = StepKind.REPAIR if is_broken else StepKind.OPTIMISE
        source, depths = next(child for made_by, child in found if made_by is role), depths + (not is_broken)
    assert depths == supervisor.recorded_depths(task, "cuda")
    return source


@TASKS
def test_no_recorded_kernel_is_refused_or_loses_its_structure(task: str) -> None:
    about = tasks.find(task)
    for source in recorded.kernels(task, "cuda").values():
        assert not [found for found in screen(source, about.policy) if found.is_refusal]
        assert "cuda_sources=" in source
    assert not [lost for old, new in recorded.pairs(task, "cuda") if (lost := languages.find("cute").lost(old, new))]


def test_a_kernel_that_failed_as_recorded_can_be_gone_on_from_where_it_passes() -> None:
    for task in recorded.CUDA_TASKS:
        replies = recorded.of(task, "cuda").replies
        for role, source in replies:
            assert role != StepKind.DIAGNOSE or {(StepKind.REPAIR, source), (StepKind.OPTIMISE, source)} <= set(replies)


def test_every_task_of_table_2_has_a_recording_for_a_gpu_whose_replies_apply() -> None:
    for task in tomllib.loads((tasks.SHIPPED / "suites" / "table2.toml").read_text())["tasks"]:
        files = [path for path in SHIPPED.glob(f"{task}.cuda*.jsonl") if "coder_judge" not in path.name]
        assert files, task
        for path in files:
            made: dict[str | None, str] = {}
            for line in read_recording(path).lines:
                if line.role == StepKind.DIAGNOSE:
                    continue
                source = find_python(line.reply) if line.source is None else None
                with contextlib.suppress(EditError):  # a patch that misses is in some on purpose
                    source = source or read_patch(line.reply).apply(made[line.source])
                if source:
                    made[text_hash(source)] = source
                    assert not [one for one in screen(source, tasks.find(task).policy) if one.is_refusal]


def test_a_run_on_a_gpu_replays_the_recording_for_gpus() -> None:
    settings = supervisor.new_settings("swish", toolchain="cuda", model="recorded")
    assert settings.recording is not None
    assert settings.recording.endswith("swish.cuda.jsonl")
    assert settings.budget.depths == 5
    assert settings.sizes["dim"] == 393216
    with open(settings.recording, encoding="utf-8") as file:
        assert json.loads(file.readline())["task"] == "swish"
