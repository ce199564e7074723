"""Drawn kernels ranked by a reward model before they are evaluated: when it ranks, in which order, and after a kill."""

from __future__ import annotations

import random
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from engine.knowledge import reward_model
from engine.search.actions import Conclude, Rank
from engine.search.methods.best_of.strategy import BestOf
from engine.search.methods.reward_loop.strategy import RewardLoop
from engine.search.steps.ranking import keep_scores, rank
from storage.knowledge import files
from storage.knowledge.records import ScoredKernel
from storage.results.evaluation_results import CompileResult, KernelResources
from storage.results.vocabulary import Verdict
from storage.run import events as ev
from storage.run.settings import DepthOutcome, StepKind
from tests.engine.contexts import SOURCE, add_candidate, open_context
from tests.engine.story import Step, Story, brief

WIDE, NARROW = f"{SOURCE}# {'float4 ' * 9}\n", SOURCE


def known(count: int = 40, is_told: bool = True) -> list[ScoredKernel]:
    """Kernels of other runs: the more float4 the faster, or nothing to tell them by."""
    chance = random.Random(1)
    rows = []
    for number in range(count):
        wide = chance.randint(0, 9)
        found = reward_model.features(SOURCE + "float4 " * wide, (), {"latency in ms": 1.0}, number % 5 + 1)
        worth = 10.0 + wide if is_told else chance.uniform(1, 20)
        rows.append(ScoredKernel(f"r{number}", "c001", 1.0, "cute", "cpu", "t", worth, found))
    return rows


def drawn(*sources: str) -> list[dict[str, float]]:
    return [reward_model.features(source, (), {}, 9) for source in sources]


def test_it_ranks_where_that_beats_the_order_of_arrival_and_says_so_where_not(monkeypatch: pytest.MonkeyPatch) -> None:
    good = reward_model.judge(known(), drawn(NARROW, WIDE))
    assert good.order == [1, 0]
    assert good.correlation is not None
    assert good.correlation > 0.8
    nothing = reward_model.judge(known(is_told=False), drawn(NARROW, WIDE))
    assert (nothing.order, nothing.why) == ([], "it does not rank better than the order of arrival")
    assert "12 are needed" in reward_model.judge(known(11), drawn(NARROW)).why
    assert "same reward" in reward_model.judge([replace(one, reward=1.0) for one in known()], drawn(NARROW)).why
    monkeypatch.setitem(sys.modules, "sklearn.ensemble", None)
    assert "pip install -r requirements-ranking.txt" in reward_model.judge(known(), drawn(NARROW)).why


def test_source_resources_and_the_parents_figures_are_what_it_sees() -> None:
    found = reward_model.features(
        "__shared__ float a[128];\n", [KernelResources("k", 40, 8, 4, 0, 512)], {"waves": 2.0}, 3
    )
    assert (found["count of __shared__"], found["registers"], found["spills"]) == (1.0, 40.0, 12.0)
    assert (found["parent: waves"], found[reward_model.PLACE]) == (2.0, 3.0)
    assert reward_model.target(20.0) == 1.0 > reward_model.target(5.0) > reward_model.target(-5.0)


def test_a_ranking_is_journaled_once_those_that_do_not_compile_last_and_every_kernel_is_learned_from(
    tmp_path: Path,
) -> None:
    files.append_scores(known(), tmp_path / "knowledge")
    context = open_context(tmp_path, knowledge="on", language="cute")
    context.knowledge, context.step = tmp_path / "knowledge", 9
    names = tuple(add_candidate(context, source) for source in (NARROW, WIDE, WIDE + "# again\n"))
    broken = CompileResult(False, 1.0, "error: no", verdict=Verdict.COMPILE_ERROR)
    for name in names:
        context.emit(ev.Compiled(9, name, broken if name == names[1] else CompileResult(True, 1.0), None))
    rank(context, Rank(0, names))
    first = context.record.ranked[0]
    assert first.order == (names[2], names[0], names[1])
    assert len(first.scores) == 3
    files.append_scores([replace(one, run_id=f"new {one.run_id}") for one in known()], tmp_path / "knowledge")
    rank(context, Rank(0, names))
    assert context.record.ranked[0] is first
    keep_scores(context, is_ending=True)
    keep_scores(context, is_ending=True)
    own = [one for one in files.read_scores(tmp_path / "knowledge") if one.run_id == context.record.settings.run_id]
    assert [(one.candidate_id, one.reward) for one in own] == [(names[1], -10.0)], "nothing has decided the others"
    assert (tmp_path / "knowledge" / files.SCORES).read_text().count("\n") == 81


def test_kernels_drawn_together_are_compiled_ranked_and_evaluated_until_one_is_correct() -> None:
    story, method = Story(strategy_options={"draws": 2, "samples": 1}), BestOf()

    def move() -> object:
        return brief(method.next(story.record))

    assert move() == Step("synthesise", 0)
    assert brief(method.next(story.candidate("c001").record)) == Step("synthesise", 0)
    story.candidate("c002")
    assert move() == Step(StepKind.COMPILE, 0, "c001")
    story.compiles("c001")
    assert move() == Step(StepKind.COMPILE, 0, "c002")
    story.compiles("c002")
    assert method.next(story.record) == Rank(0, ("c001", "c002"))
    story.tell(ev.Ranked(3, 0, ("c001", "c002"), ("c002", "c001"), (0.1, 0.2), 40, 0.9, 0.0, "it ranks better"))
    assert move() == Step(StepKind.CHECK, 0, "c002")
    assert brief(method.next(story.checks("c002", Verdict.INCORRECT).record)) == Step(StepKind.CHECK, 0, "c001")
    story.checks("c001").runs_at("c001", 2.0)
    done = method.next(story.record)
    assert isinstance(done, Conclude)
    assert (done.outcome, done.candidate_id) == (DepthOutcome.ACCEPTED, "c001")


def test_every_draw_of_an_attempt_refines_the_same_kernel_and_the_next_one_that_which_was_evaluated() -> None:
    story, method = Story(strategy_options={"draws": 2}), RewardLoop()
    story.candidate("c001").does_not_compile("c001").candidate("c002").does_not_compile("c002")
    story.tell(ev.Ranked(2, 0, ("c001", "c002"), ("c001", "c002"), (), 0, None, None, "few"))
    story.tell(ev.DepthFinished(2, 0, DepthOutcome.GIVEN_UP, "c001", None, False, False, "", -10.0))
    assert brief(method.next(story.record)) == Step("refine", 1, "c001")
    story.candidate("c003", parent="c001")
    assert brief(method.next(story.record)) == Step("refine", 1, "c001")
