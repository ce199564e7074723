"""A run that begins with a kernel of another one: taken over once, recorded as foreign, judged before it counts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from engine import forking, supervisor
from engine.errors import EngineError
from engine.importing import take_over_kernel
from engine.search.context import RunContext
from engine.search.methods.cutegen.strategy import CuteGen
from engine.search.methods.options import Option
from storage.results.vocabulary import KernelClass
from storage.run import events as ev
from storage.run.folder import RunFolder, runs_folder
from storage.run.journal import Journal
from storage.run.record import Record
from storage.run.settings import Budget, Origin, RunSettings, StepKind
from tests.engine.contexts import context_with_tools
from tests.engine.story import Step, brief, state_of
from tests.engine.test_steering import events_of
from tests.engine.test_steering_course import three_depths


def parent_run(home: Path) -> RunFolder:
    context = three_depths(home)
    context.journal.close()
    return context.folder


def open_fork(home: Path, settings: RunSettings, source: RunFolder) -> RunContext:
    folder = forking.lay_out(settings, source)
    if not folder.settings_file.exists():
        folder.write_settings(settings)
    context = context_with_tools(home)
    context.folder, context.journal, context.blobs = (
        folder,
        Journal(folder.journal_file),
        type(context.blobs)(folder.blobs),
    )
    context.record = Record.of(settings, context.journal.entries)
    return context


def test_a_fork_keeps_what_is_not_changed_and_names_where_it_came_from(home: Path) -> None:
    source = parent_run(home)
    made = forking.fork_settings(source, "c002", budget=Budget(depths=3), kernel_class=KernelClass.LOSS)
    was = source.read_settings()
    assert made.forked_from is not None
    assert (made.forked_from.run_id, made.forked_from.candidate_id, made.forked_from.number) == ("run", "c002", 2)
    assert made.forked_from.latency_ms == 1.0
    assert (made.budget, made.kernel_class, made.model) == (Budget(depths=3), KernelClass.LOSS, was.model)
    assert (made.task_source, made.sizes, made.policy) == (was.task_source, was.sizes, was.policy)
    assert made.run_id != was.run_id
    with pytest.raises(EngineError, match="no kernel c999"):
        forking.fork_settings(source, "c999")


@pytest.mark.parametrize("lines_lost", range(4))
def test_the_kernel_taken_over_is_journaled_once_and_judged_first(home: Path, lines_lost: int) -> None:
    source = parent_run(home)
    settings = forking.fork_settings(source, "c002")
    context = open_fork(home, settings, source)
    take_over_kernel(context)
    context.journal.close()
    lines = context.folder.journal_file.read_text().splitlines(keepends=True)
    context.folder.journal_file.write_text("".join(lines[: len(lines) - lines_lost]))
    context = open_fork(home, settings, source)
    take_over_kernel(context)
    (made,) = context.record.candidates.values()
    assert (made.created.origin, made.created.depth, made.timed) == (Origin.FORKED, 0, None)
    assert context.source(made) == Path(source.blobs / settings.forked_from.source_blob).read_text()  # type: ignore[union-attr]
    assert len(events_of(context, ev.Imported)) == 1
    assert (context.record.best_id, state_of(context.record).line) == (None, [])
    assert brief(CuteGen().next(context.record)) == Step(StepKind.COMPILE, 0, "c001")


def test_a_run_that_is_no_fork_takes_nothing_over(home: Path) -> None:
    context = context_with_tools(home)
    take_over_kernel(context)
    assert context.journal.entries == []


def test_a_fork_that_cannot_keep_its_money_budget_is_not_started(home: Path) -> None:
    source = parent_run(home)
    with pytest.raises(EngineError, match="price"):
        supervisor.fork(source, "c002", model="dear", budget=replace(Budget(), cost_usd=1.0))
    assert [folder.name for folder in runs_folder().glob("*")] == [] or not any(runs_folder().glob("*/engine.json"))


def test_options_that_are_described_are_read_without_their_strategy(home: Path) -> None:
    source = parent_run(home)
    settings = replace(source.read_settings(), strategy="nowhere.at_all:Beam", strategy_options={"width": 3, "old": 1})
    source.settings_file.unlink()
    source.write_settings(settings)
    with pytest.raises(EngineError, match=r"nowhere.at_all:Beam' cannot be imported"):
        forking.fork_settings(source, "c002")
    options = [Option("width", "", "", 4, ("int",), least=1), Option("seed", "", "", 0, ("int",))]
    made = forking.fork_settings(source, "c002", options)
    assert dict(made.strategy_options) == {"width": 3, "seed": 0}
    assert forking.fork_settings(source, "c002", options, strategy_options={"width": 5}).strategy_options["width"] == 5
    with pytest.raises(EngineError, match="at least 1, not 0"):
        forking.fork_settings(source, "c002", options, strategy_options={"width": 0})
