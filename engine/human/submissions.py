"""Taking a kernel that a person edited by hand. Knows the command that brought it, not the editor it was written in."""

from __future__ import annotations

from engine.context import RunContext
from engine.record import Candidate, Record
from engine.steps.candidates import create_candidate
from engine.strategies.base_policy import choose_base
from storage.choices import Submission
from storage.events import CommandEffective
from storage.records import Command, CommandKind, Origin


def take_submission(context: RunContext) -> str:
    """Make the oldest kernel handed in a candidate, once, whatever kills the engine. Returns the step's outcome."""
    waiting, made = context.record.pending(CommandKind.SUBMIT), _made(context)
    if made is None and waiting:
        _create(context, Submission.parse(waiting[0].argument))
        made = _made(context)
    if command := next((c for c in waiting if made and _brought(c, made)), None):
        note = f"taken as {made.candidate_id if made else ''} in depth {context.record.depth}"
        context.emit(CommandEffective(command.command_id, context.step, note))
    return "created"


def refusal(context: RunContext, argument: str) -> str | None:
    """Why a kernel handed in cannot be taken, or None."""
    try:
        given = Submission.parse(argument)
        source = context.blobs.get(given.blob)
    except (ValueError, FileNotFoundError) as error:
        return f"the kernel cannot be read: {error}"
    if "class ModelNew" not in source:
        return "a kernel is a whole file that defines class ModelNew"
    if given.parent_id is None:
        return None
    parent = context.record.candidates.get(given.parent_id)
    if parent is None:
        return f"this run has no kernel {given.parent_id}"
    return f"nothing was changed in {given.parent_id}" if parent.created.source_blob == given.blob else None


def _made(context: RunContext) -> Candidate | None:
    return next((a for a in context.record.candidates.values() if a.created.step == context.step), None)


def _brought(command: Command, made: Candidate) -> bool:
    given = Submission.parse(command.argument)
    return (given.parent_id, given.blob) == (made.created.parent_id, made.created.source_blob)


def _create(context: RunContext, given: Submission) -> None:
    create_candidate(
        context,
        context.blobs.get(given.blob),
        parent_id=given.parent_id,
        base_id=_base(context.record, given.parent_id),
        origin=Origin.MANUAL,
        repair=0,
        summary=given.note or "edited by hand",
    )


def _base(record: Record, parent_id: str | None) -> str | None:
    """The kernel its depth starts from: its parent where that is correct and timed, else as for any candidate."""
    parent = record.candidates.get(parent_id or "")
    if record.depth_base is None and parent is not None and parent.timed is not None:
        return parent.candidate_id
    return choose_base(record) if record.line else None
