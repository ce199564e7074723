"""Taking a kernel that a person edited by hand. Knows the command that brought it, not the editor it was written in."""

from __future__ import annotations

from engine.actions import NewCandidate, TakeSubmission
from engine.context import RunContext
from engine.record import Candidate
from engine.steps.candidates import create_candidate
from storage.command_arguments import Submission
from storage.events import CommandEffective
from storage.records import Command, CommandKind, Origin


def take_submission(context: RunContext, action: TakeSubmission) -> str:
    """Make the oldest kernel handed in a candidate, once, whatever kills the engine. Returns the step's outcome."""
    waiting, made = context.record.pending(CommandKind.SUBMIT), _made(context)
    if made is None and waiting:
        given = Submission.parse(waiting[0].argument)
        makes = NewCandidate(Origin.MANUAL, action.base_id, action.generation, "", "edited by hand")
        source = context.blobs.get(given.blob)
        create_candidate(context, source, given.parent_id, makes, given.note or makes.untitled)
        made = _made(context)
    if command := next((c for c in waiting if made and _brought(c, made)), None):
        note = f"taken as {made.candidate_id if made else ''} in depth {context.record.step_index}"
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
