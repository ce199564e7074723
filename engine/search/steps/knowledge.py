"""Steps that ask the knowledge base about a kernel, and that teach it; and what attempts have shown, kept for all runs.
Knows journal and base, no method."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from pathlib import Path

from engine.errors import EngineError
from engine.knowledge import consulting, evidence, failures, states, transitions
from engine.knowledge.consulting import Need
from engine.knowledge.evidence import AttemptFold
from engine.knowledge.states import Found
from engine.search.actions import Consult, Teach
from engine.search.context import RunContext
from storage import codec
from storage.knowledge import failures as rules
from storage.knowledge import files
from storage.knowledge.base import Base
from storage.knowledge.choice import OFF, ON, own_name
from storage.knowledge.records import Evidence, Revision
from storage.run.blobs import BlobError
from storage.run.events import Consulted, RulesTold, Taught
from storage.run.record import Record

SUMMARY_LENGTH = 140
GIVEN = 1.0  # confidence in a state that the method has settled by itself


def consult(context: RunContext, action: Consult) -> str:
    """Journal what the base answers, once per step: a killed run goes on with what it had been told."""
    record = context.record
    consulted = record.consulted.get((action.index, action.about))
    if consulted is not None and consulted.step == context.step:
        return "answered"
    keep_evidence(context)
    base = open_base(context)
    state = _state(record, action, base)
    advised = consulting.advise(base, state.state, need_of(record)) if base else ()
    is_open = state.confidence < states.SURE
    edges = transitions.edges_from(base, action.node, advised, need_of(record)) if base and action.node else ()
    shown = transitions.examples(base, edges, context.folder.path.parent) if base and edges else {}
    context.emit(
        Consulted(
            step=context.step,
            depth=action.index,
            candidate_id=action.about,
            state=state.state,
            bottleneck=state.bottleneck,
            state_confidence=state.confidence,
            found=advised,
            mark=base.mark if base else "",
            secondary=state.secondary,
            why=state.why,
            metrics=state.metrics,
            states=tuple(known_state for known_state in base.states.values() if not known_state.is_disabled)
            if base and is_open
            else (),
            others=consulting.others(base, advised, need_of(record)) if base else (),
            edges=edges,
            examples_blob=context.blobs.put(codec.dumps(shown)) if shown else "",
        )
    )
    return "answered"


def _state(record: Record, action: Consult, base: Base | None) -> Found:
    """What the rules find, or the state that the method has settled."""
    verdict = states.of_profile(*evidence.profile_of(record, record.candidates[action.about]))
    if not action.state:
        return verdict
    state = base.states.get(action.state) if base else None
    bottleneck = state.bottleneck if state else states.STATES.get(action.state, verdict.bottleneck)
    why = f"settled by the method; the rules: {verdict.why}"
    return replace(verdict, state=action.state, bottleneck=bottleneck, confidence=GIVEN, why=why)


def need_of(record: Record) -> Need:
    """What a technique must apply to in this run."""
    facts = record.limit.facts if record.limit else None
    kernel_class = record.kernel_class if record.is_class_known else ""
    return Need(kernel_class, record.settings.language, facts.architecture if facts else "")


def open_base(context: RunContext) -> Base | None:
    """The base that this run asks, with what it has learned itself; None where it asks none."""
    settings = context.record.settings
    if settings.knowledge == OFF:
        return None
    shown = failures.cases(context.record, time.time())
    return consulting.base_of(settings.knowledge, context.knowledge, lessons(context), _rows(context), shown)


def tell_rules(context: RunContext) -> None:
    """Journal which failure rules the writer of a kernel is told, where they are others than those told last. Once a
    call was sent in this step nothing changes: its kernel was written under those that then held."""
    record = context.record
    if not record.asks_base or any(step == context.step for step, _ in record.sent):
        return
    base, last = open_base(context), record.failure_rules[-1].rules if record.failure_rules else ()
    settings, before = record.settings, [rule.name for rule in last]
    current = rules.to_tell(base.rules(), settings.language, settings.toolchain, before) if base and base.cases else ()
    if base and [rule.name for rule in current] != before:
        context.emit(RulesTold(context.step, record.step_index, current, base.mark))


def lessons(context: RunContext) -> list[Revision]:
    """What this run has taught, oldest first.

    Raises:
        EngineError: the text of a revision cannot be read.
    """
    return [_revision(context, event.revision_blob) for event in context.record.taught.values()]


def teach(context: RunContext, action: Teach) -> str:
    """Journal a revision, then write it down; a killed run goes on with the one it had journaled."""
    if context.step not in context.record.taught:
        run_id = context.record.settings.run_id
        revision = replace(action.revision, revision_id=f"{run_id}:{context.step}", at=time.time(), by=run_id)
        blob = context.blobs.put(codec.dumps(revision))
        context.emit(Taught(context.step, action.index, revision.revision_id, _summary(revision), blob))
    asked = context.record.settings.knowledge
    if (places := _added_to(context)) and (asked == ON or own_name(asked)):
        files.append_revision(_revision(context, context.record.taught[context.step].revision_blob), places[-1])
    return "taught"


def keep_evidence(context: RunContext, *, is_ending: bool = False) -> None:
    """Write down the attempts that are over and what kernels show of failures, whatever the run's strategy; what stands
    there already stays."""
    rows = _rows(context, is_ending=is_ending)
    shown = failures.cases(context.record, time.time(), is_ending=is_ending)
    for place in _added_to(context):
        if rows:
            files.append_evidence(rows, place)
        if shown:
            files.append_cases(shown, place)


def _added_to(context: RunContext) -> list[Path]:
    """The folders that what a run shows goes into: its home's base and, last, the base of its own that it asks."""
    if context.knowledge is None:
        return []
    name = own_name(context.record.settings.knowledge)
    return [context.knowledge, *([files.own_folder(name, context.knowledge)] if name else [])]


def _rows(context: RunContext, *, is_ending: bool = False) -> list[Evidence]:
    fold = context.attempts
    if fold is None or fold.record is not context.record:
        fold = context.attempts = AttemptFold(context.record, partial(_text, context))
    return fold.rows(time.time(), is_ending=is_ending)


def _text(context: RunContext, blob: str) -> str:
    """A reply; empty where it is lost, which costs the name of its technique and not the run."""
    try:
        return context.blobs.get(blob)
    except BlobError:
        return ""


def _revision(context: RunContext, blob: str) -> Revision:
    try:
        revision: Revision = codec.read_line(Revision, context.blobs.get(blob).encode("utf-8", "surrogatepass"))
    except (BlobError, codec.DecodeError) as error:
        raise EngineError(f"the revision {blob[:12]} of this run cannot be read: {error}") from error
    return revision


def _summary(revision: Revision) -> str:
    line = " ".join(revision.why.split())
    return line if len(line) <= SUMMARY_LENGTH else line[: SUMMARY_LENGTH - 1] + "…"
