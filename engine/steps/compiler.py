"""What torch.compile writes for the task, as a hint for the model: journaled once per run, told with a first kernel."""

from __future__ import annotations

from engine import prompting
from engine.context import RunContext
from engine.errors import ToolchainError
from storage.events import CompilerShown


def show_compiler(context: RunContext) -> None:
    """Journal it where the run's settings ask for it; that there is none, for whatever reason, is a normal state."""
    record = context.record
    if not record.settings.compiler_hint or record.compiler is not None:
        return
    try:
        source = context.judge(context.toolchain.compiler_source, context.task)
        context.emit(CompilerShown(context.blobs.put(source)))
    except ToolchainError as error:
        context.emit(CompilerShown(None, str(error)))


def compiler_section(context: RunContext) -> str:
    """The part of a prompt that shows it; empty without any."""
    shown = context.record.compiler
    if shown is None or shown.source_blob is None:
        return ""
    return prompting.fill("compiler.md", source=context.blobs.get(shown.source_blob).strip()).strip()
