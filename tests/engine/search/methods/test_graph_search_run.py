"""A whole graph search with the real compiler, evaluator and knowledge base; only the replies are given."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path

import pytest

from engine.evaluator import tasks
from engine.evaluator.request import Evaluator
from engine.search import loop
from engine.search.context import RunContext
from engine.search.human.inbox import Inbox
from engine.search.llm import Completion, Message, OnText, Purpose
from engine.search.methods.graph_search.strategy import GraphSearch
from storage.knowledge import files
from storage.knowledge.graph import START, attempts_by_edge
from storage.results.vocabulary import KernelClass
from storage.run import events as ev
from storage.run import journal
from storage.run.blobs import text_hash
from storage.run.settings import Budget, DepthOutcome, RunState, Switch
from tests.engine.contexts import open_context
from tests.engine.real_toolchain import toolchain
from tests.engine.swish_story import FIRST, SECOND, THIRD, edits

__all__ = ["toolchain"]

WORDS = {"category": "compute", "think": "it calls a function", "method": "inlines it"}
STEPS = [{"technique": "in place"} | WORDS, {"technique": "short exponential"} | WORDS]
PROPOSED = {"technique": "whole loop", "about": "a", "helps": "h", "hurts": "u", "predicted_gain": "1.2x"}
NEXT = {text_hash(FIRST): (FIRST, SECOND), text_hash(SECOND): (SECOND, THIRD)}


class Answers:
    """A model that answers by role and by the kernel that it is asked about; keeps its prompts by role."""

    name = "answers"

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []

    def terms(self, purpose: Purpose) -> None:
        """Free, and without limits."""

    def complete(self, messages: list[Message], purpose: Purpose, on_text: OnText) -> Completion:
        """The reply."""
        self.asked.append((purpose.role, messages[-1].text))
        return Completion(self._reply(purpose), self.name, "stop", 0.1, 100, 50, cost_usd=0.0)

    def _reply(self, purpose: Purpose) -> str:
        match purpose.role:
            case "synthesise":
                return f"Kernel class: activation\nApproach: one pass\n```python\n{FIRST}```\n"
            case "outline":
                return json.dumps({"steps": STEPS})
            case "relabel":
                return json.dumps({"labels": ["new", "new"]})
            case "propose":
                return json.dumps(PROPOSED | {"think": "t", "category": "compute"})
            case _:
                return "Optimisation: as told\n" + edits(*NEXT[purpose.source_hash or ""])


def context_at(folder: Path, toolchain: Evaluator, model: Answers) -> RunContext:
    context = open_context(
        folder, (), toolchain, task_name="swish", kernel_class=KernelClass.ACTIVATION, strategy="graph_search",
        collect=Switch.OFF, budget=Budget(depths=20), knowledge="on",
        strategy_options={"expansions": 2, "outlines": 1, "c": 0.0, "depth": 2},
    )  # fmt: skip
    context.task = tasks.find("swish").task("cpu", {"batch_size": 4, "dim": 1024})
    context.strategy, context.model, context.knowledge = GraphSearch(), model, folder / "knowledge"
    return context


def work(context: RunContext) -> ev.RunEnded:
    inbox = Inbox(context)
    context.interrupt = inbox.interrupt
    return loop.run(context, inbox)


def events_of(folder: Path) -> list[ev.Event]:
    return [entry.event for entry in journal.read(folder / "run/journal.jsonl")]


def made(folder: Path) -> list[tuple[str, str]]:
    return [(one.source_blob, one.technique) for one in events_of(folder) if isinstance(one, ev.CandidateCreated)]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory, toolchain: Evaluator) -> tuple[Path, Answers]:
    """The folder of an undisturbed run, and what was asked in it."""
    folder, model = tmp_path_factory.mktemp("finished"), Answers()
    ended = work(context_at(folder, toolchain, model))
    assert (ended.state, ended.reason) == (RunState.FINISHED, "all 2 expansions are done")
    return folder, model


def test_what_a_model_lays_out_is_walked_along_and_measured_and_the_base_has_the_edges(
    finished: tuple[Path, Answers], toolchain: Evaluator
) -> None:
    folder, model = finished
    record = context_at(folder, toolchain, Answers()).record
    assert [role for role, _ in model.asked][:3] == ["synthesise", "outline", "relabel"]
    assert [one.outcome for one in record.concluded] == [DepthOutcome.ACCEPTED] * 3
    base = files.load(folder / "knowledge")
    ends = [(one.source, one.target) for one in base.known.transitions]
    assert ends[:2] == [(START, "in place"), ("in place", "short exponential")]
    assert {"in place", "short exponential"} <= set(base.techniques)
    walked = [record.candidates[name].created.technique for name in ("c002", "c003")]
    assert walked[0] == "in place"
    assert [ends for ends, rows in attempts_by_edge(base.attempts, base.rows).items() for _ in rows] == [
        (START, "in place"),
        ("in place" if record.concluded[2].base_id == "c002" else START, walked[1]),
    ]
    first = record.candidates["c001"].timed
    for done in record.concluded[1:]:
        timed = record.candidates[done.candidate_id or ""].timed
        assert timed is not None
        assert first is not None
        assert done.reward == pytest.approx(math.log(timed.speedup / first.speedup), abs=1e-5)
        assert [one.target for one in done.weighed if one.is_taken]


def test_a_run_that_was_killed_walks_on_as_it_would_have(
    finished: tuple[Path, Answers], toolchain: Evaluator, tmp_path: Path
) -> None:
    folder, _ = finished
    lines = (folder / "run/journal.jsonl").read_bytes().splitlines(keepends=True)
    shutil.copytree(folder / "run", tmp_path / "run")
    (tmp_path / "run/journal.jsonl").write_bytes(b"".join(lines[: int(0.6 * len(lines))]))
    assert work(context_at(tmp_path, toolchain, Answers())).state is RunState.FINISHED
    assert made(tmp_path) == made(folder)
