"""Steps that ask the knowledge base about a kernel, and that teach it. Knows journal and base, no method."""

from __future__ import annotations

import time
from dataclasses import replace

from engine.actions import Consult, Teach
from engine.context import RunContext
from engine.knowledge import states
from storage import codec
from storage.events import Consulted, Taught
from storage.knowledge.records import Revision

SUMMARY_LENGTH = 140


def consult(context: RunContext, action: Consult) -> str:
    """Journal what the base answers, once per step: a killed run goes on with what it had been told."""
    known = context.record.consulted.get((action.index, action.about))
    if known is None or known.step != context.step:
        found = states.of_profile(context.candidate(action.about).profiled)
        context.emit(
            Consulted(
                step=context.step,
                depth=action.index,
                candidate_id=action.about,
                state=action.state or found.state,
                bottleneck=found.bottleneck,
                state_confidence=found.confidence,
                found=(),
                mark="",
                secondary=found.secondary,
                why=found.why,
                metrics=found.metrics,
            )
        )
    return "answered"


def teach(context: RunContext, action: Teach) -> str:
    """Journal a revision; a killed run goes on with the one it had journaled."""
    if context.step not in context.record.taught:
        run_id = context.record.settings.run_id
        made = replace(action.revision, revision_id=f"{run_id}:{context.step}", at=time.time(), by=run_id)
        blob = context.blobs.put(codec.dumps(made))
        context.emit(Taught(context.step, action.index, made.revision_id, _summary(made), blob))
    return "taught"


def _summary(revision: Revision) -> str:
    line = " ".join(revision.why.split())
    return line if len(line) <= SUMMARY_LENGTH else line[: SUMMARY_LENGTH - 1] + "…"
