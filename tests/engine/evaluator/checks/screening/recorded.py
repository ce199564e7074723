"""Every kernel that the shipped recordings lead to, made as a run makes them: by applying replies to sources."""

from __future__ import annotations

from functools import cache

from engine.search.llm.recording import Recording, read_recording, shipped_recording
from engine.search.patching.edits import EditError
from engine.search.patching.proposed_patch import read_patch
from engine.search.patching.reply import find_python
from storage.run.blobs import text_hash
from storage.run.settings import StepKind

TASKS = ("softmax", "square_matmul", "swish")
CUDA_TASKS = ("diagonal_matmul", *TASKS)


@cache
def kernels(task: str, toolchain: str = "cpu") -> dict[str, str]:
    """{hash: source} of all kernels of a task's recording."""
    recording = of(task, toolchain)
    found: dict[str, str] = {}
    line = [source for reply in recording.replies[StepKind.SYNTHESISE, None] if (source := find_python(reply))]
    while line:
        source = line.pop()
        if found.setdefault(text_hash(source), source) is source:
            line += [child for _, child in children(recording, source)]
    return found


def children(recording: Recording, source: str) -> list[tuple[StepKind, str]]:
    """The kernels that replies about a source make of it."""
    made = []
    for role in (StepKind.REPAIR, StepKind.OPTIMISE):
        for reply in recording.replies.get((role, text_hash(source)), ()):
            try:
                made.append((role, read_patch(reply).apply(source)))
            except EditError:
                continue
    return made


def of(task: str, toolchain: str = "cpu") -> Recording:
    """The recording of a task."""
    path = shipped_recording(task, toolchain)
    assert path is not None
    return read_recording(path)


def pairs(task: str, toolchain: str = "cpu") -> list[tuple[str, str]]:
    """(parent, child) of every change."""
    recording = of(task, toolchain)
    return [(source, child) for source in kernels(task, toolchain).values() for _, child in children(recording, source)]
