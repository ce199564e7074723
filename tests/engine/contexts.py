"""Benches on a temporary run folder, with a real journal, real blobs and recorded replies."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import cast

from engine.evaluator import tasks
from engine.evaluator.request import Evaluator
from engine.evaluator.toolchains.cpu import CpuToolchain
from engine.search.actions import Conclude
from engine.search.context import RunContext
from engine.search.llm.recorded import RecordedModel
from engine.search.llm.recording import read_recording
from engine.search.methods.cutegen.strategy import CuteGen
from engine.search.steps.candidates import conclude
from storage.results.evaluation_results import CheckResult, CompileResult, TimingResult
from storage.results.vocabulary import Verdict
from storage.run import events as ev
from storage.run.blobs import Blobs, text_hash
from storage.run.folder import RunFolder
from storage.run.journal import Journal
from storage.run.record import Record
from storage.run.settings import DepthOutcome, Origin
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
    toolchain: Evaluator | None = None,
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
    return RunContext(folder, journal, record, task, model, cast(Evaluator, toolchain), Blobs(folder.blobs), CuteGen())


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
