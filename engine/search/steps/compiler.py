"""What torch.compile writes for the task: journaled once per run, told with a first kernel, or taken as that."""

from __future__ import annotations

from engine.errors import ToolchainError
from engine.search import prompting
from engine.search.actions import Action, Ask, Begin, NewCandidate
from engine.search.context import RunContext
from engine.search.steps.candidates import create_candidate
from storage.run.events import CompilerShown, StateChanged
from storage.run.record import Record
from storage.run.settings import Origin, RunState, Start

SUMMARY = "Inductor's Triton kernels, as they are"


def show_compiler(context: RunContext) -> None:
    """Journal it where the run's settings ask for it; that there is none, for whatever reason, is a normal state."""
    record = context.record
    is_start = record.settings.start is Start.COMPILED and not record.candidates
    if record.compiler is not None or not (is_start or record.settings.compiler_hint):
        return
    try:
        if is_start:
            start = context.judge(context.toolchain.compiled_start, context.task)
            kernel = context.blobs.put(start.kernel) if start.kernel else None
            shown = CompilerShown(context.blobs.put(start.shown) if start.shown else None, start.reason, kernel)
        else:
            shown = CompilerShown(context.blobs.put(context.judge(context.toolchain.compiler_source, context.task)))
    except ToolchainError as error:
        shown = CompilerShown(None, str(error))
    context.emit(shown)
    if is_start and shown.kernel_blob is None:
        also = ", and sees it as a hint" if shown.source_blob else ""
        context.emit(
            StateChanged(
                RunState.RUNNING,
                f"what torch.compile generates is no kernel to start from: {shown.failure}; the model writes the first "
                f"kernel{also}",
            )
        )


def compiled_first(record: Record, action: Action) -> Action:
    """Where a first kernel is to be asked for, the compiler's in its place."""
    has_one = record.compiler is not None and record.compiler.kernel_blob is not None
    is_wanted = record.settings.start is Start.COMPILED and has_one and not record.is_begun and not record.candidates
    is_wanted = is_wanted and record.step_index == 0  # others may begin beside it
    return Begin(record.step_index) if is_wanted and isinstance(action, Ask) and action.about is None else action


def begin(context: RunContext) -> str:
    """Make the compiler's kernel the run's first. Returns the outcome."""
    shown = context.record.compiler
    assert shown is not None
    assert shown.kernel_blob is not None
    makes = NewCandidate(Origin.COMPILED, None, 0, "", SUMMARY)
    create_candidate(context, context.blobs.get(shown.kernel_blob), None, makes, SUMMARY)
    return "created"


def compiler_section(context: RunContext) -> str:
    """The part of a prompt that shows it; empty without any."""
    shown = context.record.compiler
    if shown is None or shown.source_blob is None:
        return ""
    return prompting.fill("compiler.md", source=context.blobs.get(shown.source_blob).strip()).strip()
