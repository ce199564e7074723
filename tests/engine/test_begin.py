"""A run that begins with what torch.compile generates: taken as kernel 1, or told in a sentence why not."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from engine import run_settings
from engine.errors import EngineError, ToolchainError
from engine.evaluator.request import CompiledStart
from engine.evaluator.tasks import Task
from engine.search import loop
from engine.search.actions import Ask, Begin, Evaluate
from engine.search.context import RunContext
from engine.search.human.approval import skip_step
from engine.search.methods.loading import TABLE, find_strategy
from engine.search.steps.compiler import SUMMARY, show_compiler
from storage.results.evaluation_results import CompileResult
from storage.run import events as ev
from storage.run.settings import Origin, RunState, Start, StepKind
from tests.engine.contexts import open_context

KERNEL = "class ModelNew: ...\n"
LIBRARY = "it leaves work to PyTorch's library (extern_kernels.mm)"


@dataclass
class Compiling:
    """A toolchain whose compiler writes one thing."""

    found: CompiledStart | ToolchainError
    name: str = "cuda"
    asked: int = 0

    def compiled_start(self, task: Task) -> CompiledStart:
        self.asked += 1
        if isinstance(self.found, ToolchainError):
            raise self.found
        return self.found


def begun(home: Path, found: CompiledStart | ToolchainError) -> RunContext:
    context = open_context(home, toolchain=Compiling(found), start=Start.COMPILED, language="triton")  # type: ignore[arg-type]
    show_compiler(context)
    return context


def test_the_compilers_kernel_is_the_first_one_and_is_judged_as_any_other(tmp_path: Path) -> None:
    context = begun(tmp_path, CompiledStart("shown", KERNEL))
    first = loop.next_action(context)
    assert first == Begin(0)
    assert isinstance(first, Begin)
    loop.take_step(context, first)
    made = context.record.candidates["c001"].created
    assert (made.origin, made.parent_id, made.depth, made.summary) == (Origin.COMPILED, None, 0, SUMMARY)
    assert context.source(context.record.candidates["c001"]) == KERNEL
    following = loop.next_action(context)
    assert isinstance(following, Evaluate)
    assert (following.stage, following.about) == (StepKind.COMPILE, "c001")
    assert context.record.usage.model_calls == 0


def test_a_run_that_is_killed_while_it_begins_makes_the_kernel_once(tmp_path: Path) -> None:
    whole = begun(tmp_path, CompiledStart("shown", KERNEL))
    loop.take_step(whole, Begin(0))
    lines = whole.folder.journal_file.read_bytes().splitlines(keepends=True)
    assert len(lines) == 4
    for count in (1, 2, 3):
        whole.folder.journal_file.write_bytes(b"".join(lines[:count]))
        again = begun(tmp_path, ToolchainError("asked twice"))
        action = loop.next_action(again)
        assert isinstance(action, Begin)
        loop.take_step(again, action)
        assert list(again.record.candidates) == ["c001"]
        assert isinstance(loop.next_action(again), Evaluate)


@pytest.mark.parametrize(
    ("found", "told"),
    [
        (CompiledStart("extern_kernels.mm(a, b)", "", LIBRARY), f"{LIBRARY}; the model writes the first kernel, and"),
        (ToolchainError("it was killed"), "it was killed; the model writes the first kernel"),
    ],
)
def test_where_there_is_none_one_sentence_says_why_and_the_model_writes_the_first(
    tmp_path: Path, found: CompiledStart | ToolchainError, told: str
) -> None:
    context = begun(tmp_path, found)
    last = context.record.events[-1]
    assert isinstance(last, ev.StateChanged)
    assert last.state is RunState.RUNNING
    assert last.reason.startswith(f"what torch.compile generates is no kernel to start from: {told}")
    first = loop.next_action(context)
    assert isinstance(first, Ask)
    prompt = first.prompt(context, first)[1].text
    assert ("extern_kernels.mm(a, b)" in prompt) is isinstance(found, CompiledStart)
    assert ("part of PyTorch, BSD-3-Clause licence" in prompt) is isinstance(found, CompiledStart)


def test_a_person_who_says_no_to_it_leaves_the_first_kernel_to_the_model(tmp_path: Path) -> None:
    context = begun(tmp_path, CompiledStart("shown", KERNEL))
    skip_step(context, Begin(0))
    assert isinstance(loop.next_action(context), Ask)
    assert context.record.candidates == {}


def test_only_a_run_in_triton_begins_so() -> None:
    with pytest.raises(EngineError, match="in the language triton alone"):
        run_settings.new_settings("swish", model="manual", start=Start.COMPILED)


@pytest.mark.parametrize("name", list(TABLE))
def test_every_method_goes_on_with_it_as_with_a_first_kernel_of_its_own(name: str, tmp_path: Path) -> None:
    context = begun(tmp_path, CompiledStart("shown", KERNEL))
    context.strategy = find_strategy(name)()
    first = loop.next_action(context)
    assert isinstance(first, Begin)
    loop.take_step(context, first)
    for stage in (StepKind.COMPILE, StepKind.CHECK):
        action = loop.next_action(context)
        assert isinstance(action, Evaluate)
        assert (action.stage, action.about) == (stage, "c001")
        context.emit(ev.Compiled(2, "c001", CompileResult(True, 1.0), None))
