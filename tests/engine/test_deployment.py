"""When a run looks at its best kernel's deployment: once, when it comes to its end, and never in a person's way."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest

from engine.errors import StopRequested, ToolchainError
from engine.evaluator.request import Evaluator
from engine.evaluator.tasks import Task
from engine.search.actions import Finish
from engine.search.loop import end
from storage.results.deployment import CallMemory, Deployment, Trait
from storage.run import events as ev
from storage.run.settings import RunState
from tests.engine.contexts import SOURCE, add_candidate, open_context

SEEN = Deployment(Trait.HELD, stream=Trait.HELD, memory=CallMemory(0, 0, 0, 0))
DONE = Finish(RunState.FINISHED, "all depths are done")


class Looking:
    """A toolchain that only looks at deployments, or does not come to it."""

    name = "cpu"

    def __init__(self, *failures: Exception) -> None:
        self.failures, self.asked = list(failures), list[str]()

    def deploy(self, task: Task, source: str) -> Deployment:
        self.asked.append(source)
        if self.failures:
            raise self.failures.pop(0)
        return SEEN


def test_a_run_looks_at_its_best_kernel_once_and_again_when_another_is_the_best(tmp_path: Path) -> None:
    toolchain = Looking()
    for speedup in (2.0, 1.5, 3.0):  # engines, of which each times one kernel
        context = open_context(tmp_path, toolchain=cast(Evaluator, toolchain))
        add_candidate(context, f"{SOURCE}# {speedup}\n", speedup=speedup)
        ended = end(context, DONE)
        assert ended == ev.RunEnded(RunState.FINISHED, DONE.reason, context.record.best_id)
        context.journal.close()
    assert toolchain.asked == [f"{SOURCE}# 2.0\n", f"{SOURCE}# 3.0\n"]
    assert context.record.deployments == {"c001": SEEN, "c003": SEEN}


@pytest.mark.parametrize("state", [RunState.STOPPED, RunState.FAILED])
def test_a_run_that_did_not_come_to_its_end_is_not_looked_at(tmp_path: Path, state: RunState) -> None:
    toolchain = Looking()
    context = open_context(tmp_path, toolchain=cast(Evaluator, toolchain))
    add_candidate(context, speedup=2.0)
    ended = end(context, Finish(state, "as it was"))
    assert ended is not None
    assert ended.state is state
    assert toolchain.asked == []
    context.journal.close()


def test_without_a_correct_kernel_there_is_nothing_to_look_at(tmp_path: Path) -> None:
    toolchain = Looking()
    context = open_context(tmp_path, toolchain=cast(Evaluator, toolchain))
    add_candidate(context)
    assert end(context, DONE) is not None
    assert toolchain.asked == []
    context.journal.close()


def test_who_stops_or_pauses_a_run_meanwhile_does_not_wait_for_it(tmp_path: Path) -> None:
    """The gate reads the command, and a run that goes on is looked at then."""
    toolchain = Looking(StopRequested())
    context = open_context(tmp_path, toolchain=cast(Evaluator, toolchain))
    add_candidate(context, speedup=2.0)
    assert end(context, DONE) is None
    assert not context.record.deployments
    assert end(context, DONE) is not None
    assert list(context.record.deployments) == ["c001"]
    context.journal.close()


def test_what_the_machine_lacks_is_told_as_everywhere_and_a_later_engine_tries_again(tmp_path: Path) -> None:
    toolchain = Looking(ToolchainError("the GPU is gone"))
    context = open_context(tmp_path, toolchain=cast(Evaluator, toolchain))
    add_candidate(context, speedup=2.0)
    with pytest.raises(ToolchainError, match="the GPU is gone"):
        end(context, DONE)
    assert context.record.ended is None
    context.journal.close()
    later = open_context(tmp_path, toolchain=cast(Evaluator, toolchain))
    assert end(later, DONE) is not None
    assert list(later.record.deployments) == ["c001"]
    later.journal.close()
