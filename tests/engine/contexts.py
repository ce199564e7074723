"""Benches on a temporary run folder, with a real journal, real blobs and recorded replies."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import cast

from engine import tasks
from engine.actions import Conclude
from engine.context import RunContext
from engine.llm.recorded import RecordedModel
from engine.llm.recording import read_recording
from engine.record import Record
from engine.steps.candidates import conclude
from engine.strategies.cutegen.strategy import CuteGen
from engine.toolchains import Toolchain
from engine.toolchains.cpu import CpuToolchain
from storage import events as ev
from storage.blobs import Blobs, text_hash
from storage.evaluation_results import CheckResult, CompileResult, TimingResult
from storage.folder import RunFolder
from storage.journal import Journal
from storage.records import DepthOutcome, Origin, Verdict
from tests.engine.story import settings_with

SOURCE = "import torch\n\nclass ModelNew(torch.nn.Module):\n    pass\n"


def write_recording(path: Path, replies: Sequence[tuple[str, str | None, str]]) -> Path:
    """A recording of (role, source text or None, reply)."""
    lines: list[object] = [{"format": 1, "task": "square_matmul", "model": "recorded"}]
    for role, source, reply in replies:
        lines.append({"role": role, "source": None if source is None else text_hash(source), "reply": reply})
    path.write_text("\n".join(json.dumps(line) for line in lines) + "\n")
    return path


def open_context(
    home: Path,
    replies: Sequence[tuple[str, str | None, str]] = (),
    toolchain: Toolchain | None = None,
    **changes: object,
) -> RunContext:
    """A context on a new or an existing run folder; without a toolchain only steps that need none can be taken."""
    folder = RunFolder(home / "run")
    settings = settings_with(**{"toolchain": getattr(toolchain, "name", "cpu"), **changes})
    if not folder.settings_file.exists():
        folder.write_settings(settings)
    journal = Journal(folder.journal_file)
    model = RecordedModel(read_recording(write_recording(home / "replies.jsonl", replies)))
    task = tasks.find("square_matmul").task("cpu")
    record = Record.of(folder.read_settings(), journal.entries)
    return RunContext(folder, journal, record, task, model, cast(Toolchain, toolchain), Blobs(folder.blobs), CuteGen())


def context_with_tools(
    home: Path, replies: Sequence[tuple[str, str | None, str]] = (), **changes: object
) -> RunContext:
    """A context with the real toolchain beside it, which starts nothing until it is asked to."""
    return open_context(home, replies, CpuToolchain(home / "scratch"), **changes)


def add_candidate(
    context: RunContext, source: str = SOURCE, parent: str | None = None, speedup: float | None = None
) -> str:
    """Journal a candidate, and a whole accepted depth around it when a speed-up is given."""
    name, step = f"c{len(context.record.candidates) + 1:03d}", context.record.steps_finished + 1
    origin = Origin.OPTIMISATION if parent else Origin.SYNTHESIS
    blob, depth = context.blobs.put(source), context.record.step_index
    context.emit(ev.CandidateCreated(step, name, parent, parent, depth, 0, 0, origin, blob, None, 1, 0, name))
    if speedup is not None:
        context.emit(ev.Compiled(step, name, CompileResult(True, 1.0), None))
        context.emit(ev.Checked(step, name, CheckResult(Verdict.PASSED, 1.0)))
        context.emit(ev.Timed(step, name, TimingResult((1.0,) * 9, (speedup,) * 9)))
        conclude(context, Conclude(depth, DepthOutcome.ACCEPTED, name, parent, "correct and timed"))
    return name
