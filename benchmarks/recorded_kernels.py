"""Every kernel a recording leads to, made by its own replies, in the order in which a run would meet them."""

from __future__ import annotations

import hashlib
from pathlib import Path

from engine.errors import EngineError
from engine.search.llm.recording import read_recording
from engine.search.patching.edits import EditError
from engine.search.patching.proposed_patch import read_patch
from engine.search.patching.reply import find_python
from storage.run.settings import StepKind


def kernels_of(path: Path) -> list[str]:
    """Sources, each once; those that do not compile are among them."""
    return list(parents_of(path))


def parents_of(path: Path) -> dict[str, str]:
    """The source that each was edited from, in the same order; empty for a first one."""
    replies = read_recording(path).replies
    found = {text: "" for reply in replies.get((StepKind.SYNTHESISE, None), ()) if (text := find_python(reply))}
    waiting = list(found)
    for source in waiting:
        name = hashlib.sha256(source.encode()).hexdigest()
        for role in (StepKind.REPAIR, StepKind.OPTIMISE):
            for reply in replies.get((role, name), ()):
                if (new := _patched(source, reply)) not in ("", *found):
                    found[new] = source
                    waiting.append(new)
    return found


def _patched(source: str, reply: str) -> str:
    try:
        return read_patch(reply).apply(source)
    except (EditError, EngineError):
        return ""
