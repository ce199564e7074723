"""Tools about runs: start one, look, wait, steer, hand in a kernel. Knows run folders, not how a kernel is judged."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Annotated, Any

import anyio
import anyio.to_thread
from mcp.server.mcpserver import Context
from pydantic import Field

from engine import exporting, supervisor
from engine.errors import EngineError
from engine.evaluator.languages import DEFAULT as LANGUAGE
from engine.evaluator.pool import LOCAL, pool_name
from engine.evaluator.tasks import TaskFile
from engine.mcp_server import answers
from engine.mcp_server.answers import Answer
from engine.mcp_server.budgets import Budget
from engine.mcp_server.kernel_tools import Sizes, Source, TaskName, place_of, tell_of
from engine.mcp_server.served import Served
from engine.mcp_server.shelf import Shelf
from engine.search.methods.loading import DEFAULT
from engine.shown import runs
from storage import read_only
from storage.run import liveness
from storage.run.blobs import Blobs
from storage.run.folder import RunFolder, all_runs, find_run
from storage.run.record import Record
from storage.run.settings import RunSettings, RunState
from storage.run.steering import commands
from storage.run.steering.command_arguments import Submission
from storage.run.steering.verbs import VERBS, CommandKind, Takes

ASKED_BY = "an agent"
LOOK_S, LONGEST_S = 0.5, 600.0
LATEST_RUNS = 300
STEERED = (
    CommandKind.PAUSE, CommandKind.RESUME, CommandKind.STOP, CommandKind.COLLECT, CommandKind.EXPOSE,
    CommandKind.ROLL_BACK, CommandKind.SET_BASE, CommandKind.PIN, CommandKind.UNPIN, CommandKind.HINT, CommandKind.BAN,
    CommandKind.REQUIRE, CommandKind.LIFT, CommandKind.SET_CLASS,
)  # fmt: skip
"""What an agent may ask of a run. Limits, models and approvals are a person's."""
RunId = Annotated[str, Field(description="the id of a run")]


class RunTools:
    """The tools; a server has one of it."""

    def __init__(self, budget: Budget, served: Served, shelf: Shelf, device: str) -> None:
        self._budget, self._served, self._shelf, self._device = budget, served, shelf, device

    def all(self) -> list[Callable[..., Any]]:
        """The tools in the order in which they are used."""
        return [self.best_kernels, self.start_run, self.run_status, self.wait, self.steer, self.submit]

    def best_kernels(
        self,
        task: TaskName,
        sizes: Sizes = None,
        most: Annotated[int, Field(ge=1, le=20, description="kernels of each kind at most")] = 5,
    ) -> Answer:
        """Name the fastest correct kernels of a task: those that this server has timed at these sizes, and the best of
        each run."""
        file = self._served.find(task)
        own = self._shelf.best(place_of(file.task(self._served.toolchain, sizes)))[:most]
        found = sorted(self._of_runs(file), key=lambda row: -float(row["speedup"]))[:most]
        here = [
            {"kernel": kernel.name, "source": f"tilewright://kernels/{kernel.name}/source",
             **answers.figures(kernel.judged.timed)}
            for kernel in own if kernel.judged.timed
        ]  # fmt: skip
        next_step = "Read a source as a resource and go on from it. Evaluate it first: figures of other devices differ."
        return self._answer(next_step if here or found else "There is none yet.", task=task, here=here, runs=found)

    def _of_runs(self, file: TaskFile) -> Iterator[Answer]:
        for folder in list(all_runs())[-LATEST_RUNS:]:
            try:
                settings = folder.read_settings()
                if (settings.task_name, settings.toolchain) != (file.name, self._served.toolchain):
                    continue
                record = runs.load(folder)
            except (EngineError, ValueError, OSError):
                continue  # `run_status` tells what is wrong with it
            if record.best is not None and record.best.trusted is not None:
                yield answers.run_kernel(record, record.best)

    async def start_run(
        self,
        task: TaskName,
        model: Annotated[str, Field(description="empty for the usual; manual: kernels are handed in alone")] = "",
        strategy: Annotated[str, Field(description="the search method")] = DEFAULT,
        depths: Annotated[int | None, Field(ge=0, le=200, description="search steps; null for the usual")] = None,
        max_calls: Annotated[int, Field(ge=1, le=1000, description="model calls at most")] = 60,
        max_minutes: Annotated[float, Field(gt=0, le=1440, description="minutes of engine time at most")] = 60.0,
        max_cost_usd: Annotated[float | None, Field(ge=0, description="US dollars at most")] = None,
        sizes: Sizes = None,
        language: Annotated[str, Field(description="of the kernels: one that describe_task names")] = LANGUAGE,
    ) -> Answer:
        """Start a run: Tilewright's own search with a language model. It goes on when this server ends, and costs what
        its model costs. The server starts a limited number."""
        read_only.guard(EngineError, "start runs")
        file = self._served.find(task)
        settings = supervisor.new_settings(
            task if file.is_shipped else str(file.path), toolchain=self._served.toolchain, model=model or None,
            overrides=sizes, strategy=strategy, device=self._device, language=language,
        )  # fmt: skip
        budget = replace(
            settings.budget, model_calls=max_calls, wall_s=60 * max_minutes, cost_usd=max_cost_usd,
            depths=settings.budget.depths if depths is None else depths,
        )  # fmt: skip
        folder = await anyio.to_thread.run_sync(self._started, replace(settings, budget=budget), file)
        return self._answer(answers.AT_WORK, run=folder.run_id, task=task, model=settings.model, state="starting")

    def _started(self, settings: RunSettings, file: TaskFile) -> RunFolder:
        supervisor.see_that_money_can_be_kept(settings)
        if pool_name() == LOCAL:
            supervisor.see_that_it_fits(settings, file)
        supervisor.see_that_it_can_be_shown(settings)
        self._budget.take_run()
        return supervisor.start(settings)

    def run_status(self, run: RunId) -> Answer:
        """Tell where a run stands: state, best kernel, last failures, what to try, what is left of its limits."""
        fields, next_step = answers.run(runs.form(find_run(run)))
        return self._answer(next_step, **fields)

    async def wait(
        self,
        run: RunId,
        context: Context[Any, Any],
        seconds: Annotated[float, Field(ge=0, le=LONGEST_S, description="at most so long")] = 60.0,
    ) -> Answer:
        """Wait until a step of the run has ended, or the run has, and tell where it stands then. Cancel it at will."""
        folder, began, tell = find_run(run), time.monotonic(), tell_of(context)
        before = _moment(runs.load(folder))
        while (waited_s := time.monotonic() - began) < seconds:
            record = await anyio.to_thread.run_sync(runs.load, folder)
            if _moment(record) != before or record.state.is_over:
                break
            step = record.in_flight
            await tell(waited_s, f"{record.state}: {step.kind}" if step else f"{record.state}")
            await anyio.sleep(LOOK_S)
        return self.run_status(run)

    def steer(
        self,
        run: RunId,
        command: Annotated[str, Field(description=f"one of {', '.join(STEERED)}")],
        argument: Annotated[str, Field(description="a hint's or rule's text, a kernel, on, off or auto")] = "",
    ) -> Answer:
        """Steer a run as a person may, but for its limits, its model and what waits for a person's yes."""
        if command not in STEERED:
            raise EngineError(f"an agent cannot send {command!r}: use one of {', '.join(STEERED)}, or ask a person")
        folder, kind = find_run(run), CommandKind(command)
        record = runs.load(folder)
        if not VERBS[kind].reopens and record.state is RunState.FINISHED:
            raise EngineError(f"run {run} has finished, so {kind} has no effect: roll_back goes on from a kernel of it")
        if VERBS[kind].takes is Takes.KERNEL:
            argument = exporting.kernel_of(folder, record, argument).candidate_id
        sent = commands.send(folder.commands_file, kind, argument, ASKED_BY)
        return self._answer(_taken_up(folder), run=run, command=sent.command_id)

    def submit(
        self,
        run: RunId,
        source: Source,
        parent: Annotated[str, Field(description="the kernel that it was made of; empty for the run's best")] = "",
        note: Annotated[str, Field(description="what was changed, in a sentence")] = "",
    ) -> Answer:
        """Hand a kernel to a run, which judges it as any of its own. Costs one evaluation of this server."""
        read_only.guard(EngineError, "steer runs")
        folder = find_run(run)
        record = runs.load(folder)
        made_of = exporting.kernel_of(folder, record, parent).candidate_id if parent else record.best_id
        self._budget.take_evaluation()
        blob = Blobs(folder.blobs).put(exporting.without_support(source))
        asked = str(Submission(made_of, blob, note))
        sent = commands.send(folder.commands_file, CommandKind.SUBMIT, asked, ASKED_BY)
        return self._answer(_taken_up(folder), run=run, command=sent.command_id)

    def _answer(self, next_step: str, **fields: Any) -> Answer:
        return answers.answer(self._budget.left, next_step, **fields)


def _moment(record: Record) -> tuple[int, int, str]:
    """Changes with every step that ends, and with the state."""
    return record.steps_finished, len(record.settled_commands), str(record.state)


def _taken_up(folder: RunFolder) -> str:
    if liveness.is_held(folder):
        return "The engine takes it up between two steps: call wait, then run_status."
    return "No engine is at work on the run: it takes it up when a person resumes it."
