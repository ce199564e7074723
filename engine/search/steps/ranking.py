"""A step that ranks drawn kernels before they cost device time; and what kernels were worth, kept for later rankings.
Knows journal and files, no method."""

from __future__ import annotations

import time
from collections.abc import Iterator

from engine.knowledge import reward_model
from engine.knowledge.evidence import metrics_of
from engine.knowledge.rewards import reward
from engine.search.actions import Rank
from engine.search.context import RunContext
from storage.knowledge import files
from storage.knowledge.choice import ON
from storage.knowledge.records import ScoredKernel
from storage.run.blobs import BlobError
from storage.run.events import Ranked
from storage.run.record import Candidate


def rank(context: RunContext, action: Rank) -> str:
    """Journal in which order drawn kernels are evaluated, once per step: those that do not compile last."""
    record = context.record
    ranked = record.ranked.get(action.index)
    if ranked is not None and ranked.step == context.step:
        return "ranked"
    drawn = [context.candidate(name) for name in action.drawn]
    judged = reward_model.judge(_known(context), [_features(context, kernel) for kernel in drawn])
    places = judged.order or list(range(len(drawn)))
    order = sorted(places, key=lambda index: drawn[index].has_failed)
    context.emit(
        Ranked(
            step=context.step,
            depth=action.index,
            candidates=action.drawn,
            order=tuple(action.drawn[index] for index in order),
            scores=judged.scores,
            kernels=judged.kernels,
            correlation=judged.correlation,
            arrival=judged.arrival,
            why=judged.why,
        )
    )
    return "ranked"


def _known(context: RunContext) -> list[ScoredKernel]:
    """What the model learns from: this run, and with the knowledge base `on` all runs of the language and toolchain."""
    settings, scored = context.record.settings, list(_scored(context, set()))
    if settings.knowledge != ON or context.knowledge is None:
        return scored
    own_ids = {kernel.case_id for kernel in scored}
    rows = files.read_scores(context.knowledge)
    fitting = (
        kernel for kernel in rows if (kernel.language, kernel.toolchain) == (settings.language, settings.toolchain)
    )
    return [*(kernel for kernel in fitting if kernel.case_id not in own_ids), *scored]


def keep_scores(context: RunContext, *, is_ending: bool = False) -> None:
    """Write down what kernels were worth, whatever the run's strategy; each once an engine, and read once by its id."""
    if context.knowledge is not None and context.record.settings.replay_of is None:
        new = list(_scored(context, context.scored, is_ending=is_ending))
        if new:
            files.append_scores(new, context.knowledge)
            context.scored |= {kernel.candidate_id for kernel in new}


def _scored(context: RunContext, but: set[str], *, is_ending: bool = False) -> Iterator[ScoredKernel]:
    record, settings = context.record, context.record.settings
    concluded = {done.depth for done in record.concluded}
    for kernel in record.candidates.values():
        worth = reward(kernel)
        if worth is None or kernel.candidate_id in but or not (is_ending or kernel.created.depth in concluded):
            continue
        yield ScoredKernel(
            run_id=settings.run_id,
            candidate_id=kernel.candidate_id,
            at=time.time(),
            language=settings.language,
            toolchain=settings.toolchain,
            task=settings.task_name,
            reward=worth,
            features=_features(context, kernel),
        )


def _features(context: RunContext, kernel: Candidate) -> dict[str, float]:
    parent = context.record.candidates.get(kernel.created.parent_id or "")
    resources = kernel.compiled.resources if kernel.compiled else ()
    try:
        source = context.source(kernel)
    except BlobError:
        source = ""  # lost: the other features remain
    before = metrics_of(context.record, parent) if parent else {}
    return reward_model.features(source, resources, before, context.record.number(kernel.candidate_id))
