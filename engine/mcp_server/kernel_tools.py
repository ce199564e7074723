"""Tools about tasks and single kernels. Each hands its work on and words the answer; none judges."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, Any

import anyio.to_thread
from mcp.server.mcpserver import Context
from pydantic import Field

from engine import exporting
from engine.errors import EngineError
from engine.evaluator.tasks import Size, Task
from engine.knowledge import states
from engine.knowledge.consulting import Need
from engine.knowledge.states import Found
from engine.mcp_server import answers, stages
from engine.mcp_server.answers import Answer
from engine.mcp_server.bench import Bench, Tell
from engine.mcp_server.served import Served
from engine.mcp_server.shelf import Kernel, Shelf
from engine.mcp_server.stages import Judged
from engine.shown import trying
from storage import read_only
from storage.knowledge import files as knowledge_files

MOST_CHARACTERS = 1 << 20
MOST_VARIANTS = 64
TaskName = Annotated[str, Field(description="a name that list_tasks gives")]
Source = Annotated[
    str, Field(description="the whole Python file with class ModelNew", max_length=MOST_CHARACTERS, min_length=1)
]
Sizes = Annotated[
    dict[str, int | float] | None, Field(description="other values for module-level numbers of the reference")
]
Language = Annotated[str, Field(description="refuse a kernel of another language; empty for any")]


def tell_of(context: Context[Any, Any]) -> Tell:
    """Progress as the client hears it: seconds since the call, and what is done."""

    async def tell(seconds: float, words: str) -> None:
        await context.report_progress(round(seconds, 1), None, words)

    return tell


class KernelTools:
    """The tools; a server has one of it."""

    def __init__(self, bench: Bench, served: Served, shelf: Shelf) -> None:
        self._bench, self._served, self._shelf = bench, served, shelf

    def all(self) -> list[Callable[..., Any]]:
        """The tools in the order in which they are used."""
        return [self.list_tasks, self.describe_task, self.screen, self.compile, self.check, self.evaluate,
                self.profile, self.tune, self.knowledge]  # fmt: skip

    def list_tasks(self) -> Answer:
        """List the tasks that kernels can be written for, with their classes and sizes."""
        rows = answers.listed(list(self._served.files()), self._served.toolchain)
        return self._answer("Choose a task and call describe_task.", toolchain=self._served.toolchain, tasks=rows)

    async def describe_task(self, task: TaskName, context: Context[Any, Any], sizes: Sizes = None) -> Answer:
        """Describe a task: its reference in PyTorch, what a kernel may and must do, the device and what its hardware
        allows, and what a speed-up is told over. The hardware is measured once, which takes some seconds of it."""
        asked, limit = self._served.task(task, sizes), None
        if not read_only.is_on() and self._bench.budget.left.device_s > 0:
            limit = await self._bench.do(tell_of(context), stages.limited, asked)
        fields = answers.described(asked, self._served.toolchain, limit)
        next_step = "Write a whole file with class ModelNew, screen it, then check it. best_kernels shows earlier ones."
        return self._answer(next_step, **fields)

    async def screen(self, task: TaskName, source: Source, language: Language = "") -> Answer:
        """Say at once what in a kernel's text would be refused. Builds and runs nothing, costs nothing."""
        from engine.evaluator.checks.screening import screen

        policy, text = self._served.find(task).policy, exporting.without_support(source)
        findings = await anyio.to_thread.run_sync(screen, text, policy, language)
        fields, next_step = answers.screened(findings)
        return self._answer(next_step, task=task, **fields)

    async def compile(
        self, task: TaskName, source: Source, context: Context[Any, Any], sizes: Sizes = None, language: Language = ""
    ) -> Answer:
        """Screen and build a kernel, and import its module. Costs no evaluation."""
        read_only.guard(EngineError, "build kernels")
        return await self._judge(context, self._served.task(task, sizes, language), source, stages.compiled)

    async def check(
        self, task: TaskName, source: Source, context: Context[Any, Any], sizes: Sizes = None, language: Language = ""
    ) -> Answer:
        """Build a kernel and compare it with the reference on inputs that nobody is told. Costs one evaluation."""
        asked = self._paid(task, sizes, language)
        return await self._judge(context, asked, source, stages.checked)

    async def evaluate(
        self,
        task: TaskName,
        source: Source,
        context: Context[Any, Any],
        sizes: Sizes = None,
        language: Language = "",
        baselines: Annotated[bool, Field(description="also time torch.compile and the others; takes longer")] = False,
    ) -> Answer:
        """Check a kernel and, if it is right, time it in pairs with eager PyTorch. Costs one evaluation."""
        asked = self._paid(task, sizes, language)
        instead = answers.instead_of(asked, self._served.toolchain) if baselines else ()
        return await self._judge(context, asked, source, stages.evaluated, instead)

    async def profile(
        self, task: TaskName, source: Source, context: Context[Any, Any], sizes: Sizes = None, language: Language = ""
    ) -> Answer:
        """Evaluate a kernel and profile it if it is right: what holds it back, and its state for the knowledge base.
        Costs one evaluation."""
        asked = self._paid(task, sizes, language)
        return await self._judge(context, asked, source, stages.profiled)

    async def tune(
        self,
        task: TaskName,
        source: Source,
        context: Context[Any, Any],
        variants: Annotated[int, Field(ge=1, le=MOST_VARIANTS, description="sets of numbers at most")] = 12,
        sizes: Sizes = None,
        language: Language = "",
    ) -> Answer:
        """Try other numbers for what a correct kernel declares open to tuning, as in
        `constexpr int TILE = 64;  // tune: 32, 64, 128`. Costs one evaluation, and time of the device by variants."""
        asked, text = self._paid(task, sizes, language), exporting.without_support(source)
        sweep, best, judged = await self._bench.do(tell_of(context), stages.tuned, asked, text, variants)
        kept = self._keep(asked, best, judged) if judged else None
        return self._answer(
            answers.tuned(sweep, kept.name if kept else ""), task=asked.name, kernel=kept.name if kept else None,
            as_written=sweep.as_written, kept=sweep.kept, variants=sweep.variants,
        )  # fmt: skip

    def knowledge(
        self,
        task: TaskName,
        state: Annotated[str, Field(description="a state of the knowledge base; empty to take the kernel's")] = "",
        kernel: Annotated[str, Field(description="a kernel that profile was called with, by its name")] = "",
    ) -> Answer:
        """Name techniques that have made kernels like this one faster or slower, by what holds the kernel back."""
        found = _stated(state) if state else states.of_profile(None)
        file, architecture = self._served.find(task), ""
        if kernel:
            shelved = self._shelf.find(kernel)
            found = found if state else _found(shelved)
            facts = shelved.judged.limit.facts if shelved.judged.limit else None
            architecture = facts.architecture if facts else ""
        need = Need(str(file.kernel_class or file.guessed_class), "", architecture)
        fields, next_step = answers.tried(trying.offered(found, need, knowledge_files.load()))
        return self._answer(next_step, task=task, **fields)

    def _paid(self, task: str, sizes: dict[str, Size] | None, language: str) -> Task:
        """The task of a call that costs an evaluation, which is taken."""
        read_only.guard(EngineError, "judge kernels")
        asked = self._served.task(task, sizes, language)
        self._bench.budget.take_evaluation()
        return asked

    async def _judge(
        self, context: Context[Any, Any], task: Task, source: str, stage: Callable[..., Judged], *more: Any
    ) -> Answer:
        text = exporting.without_support(source)
        result: Judged = await self._bench.do(tell_of(context), stage, task, text, *more)
        kernel = self._keep(task, text, result)
        fields, next_step = answers.judged(task, replace(kernel, judged=result), self._shelf.beats(kernel))
        if stage is stages.profiled:
            fields |= answers.profiled(result, trying.state_form(_found(kernel)) if result.profile else None)
        return self._answer(next_step, **fields)

    def _keep(self, task: Task, source: str, judged: Judged) -> Kernel:
        return self._shelf.put(place_of(task), source, judged)

    def _answer(self, next_step: str, **fields: Any) -> Answer:
        return answers.answer(self._bench.budget.left, next_step, **fields)


def place_of(task: Task) -> str:
    """Task and sizes: what kernels are compared within."""
    return f"{task.name} {sorted(task.sizes.items())}"


def _found(kernel: Kernel) -> Found:
    judged = kernel.judged
    least = judged.limit.min_bytes if judged.limit else 0
    return states.of_profile(judged.profile, judged.timed.latency_ms if judged.timed else None, least)


def _stated(name: str) -> Found:
    """A state that the caller names.

    Raises:
        EngineError: there is none of that name.
    """
    known = knowledge_files.load().states
    if name not in known:
        raise EngineError(f"there is no state {name!r}; there are {', '.join(sorted(known))}")
    return Found(name, known[name].bottleneck, 1.0, "named by the caller")
