"""A run as training data: what the model was asked, what it replied, and the graded reward of what came of it. Knows
journals and texts, not who learns from them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from engine.cli.report import load
from engine.knowledge.rewards import reward
from storage.run import events as ev
from storage.run.blobs import Blobs
from storage.run.folder import RunFolder
from storage.run.record import Candidate, Record
from storage.run.steering.command_arguments import is_call


def lines(folder: RunFolder) -> Iterator[str]:
    """One JSON object a call that was to bring a kernel, oldest first, whatever the method of the run.

    `state` is the prompt as messages, `action` the reply. `reward` is that of the kernel which the call brought, null
    where nothing has decided it; a reply that could not be used has that of a kernel which does not compile, one that
    called tools before another has none; each lists those that it called. Money is
    in US dollars, times are in milliseconds; null stands for what is not known.
    """
    record, blobs = load(folder), Blobs(folder.blobs)
    by_step = {candidate.created.step: candidate for candidate in record.candidates.values()}
    for step in _steps(record):
        calls = [called for (number, _), called in sorted(record.calls.items()) if number == step]
        for called in calls:
            brought = by_step.get(step) if called is calls[-1] else None
            yield json.dumps(
                _row(folder, record, called, brought, blobs, is_last=called is calls[-1]), ensure_ascii=False
            )


def _steps(record: Record) -> Iterator[int]:
    """The steps whose reply was to be a kernel."""
    for event in record.events:
        if isinstance(event, ev.StepFinished) and is_call(event.kind) and event.outcome in ("created", "patch_failed"):
            yield event.step


def _row(
    folder: RunFolder, record: Record, called: ev.ModelCalled, kernel: Candidate | None, blobs: Blobs, *, is_last: bool
) -> dict[str, Any]:
    timed = kernel.timed if kernel is not None else None
    tools = [
        {"tool": tool_call.tool, "outcome": tool_call.outcome, "summary": tool_call.summary}
        for (step, call, _), tool_call in record.tools.items()
        if record.calls.get((step, call)) is called
    ]
    prompt = [
        {"role": message["role"], "text": message["text"]} for message in json.loads(blobs.get(called.prompt_blob))
    ]
    return {
        "run": folder.run_id,
        "task": record.settings.task_name,
        "strategy": record.settings.strategy,
        "index": called.depth,
        "step": called.step,
        "role": called.role,
        "model": called.model,
        "state": prompt,
        "action": blobs.get(called.reply_blob),
        "reward": reward(kernel) if is_last or not tools else None,
        "tools": tools,
        "kernel": kernel.candidate_id if kernel is not None else None,
        "parent": kernel.created.parent_id if kernel is not None else None,
        "verdict": str(kernel.verdict) if kernel is not None and kernel.verdict is not None else None,
        "speedup": timed.speedup if timed is not None else None,
        "latency_ms": timed.latency_ms if timed is not None else None,
        "baseline_latency_ms": timed.baseline_latency_ms if timed is not None else None,
        "input_tokens": called.input_tokens,
        "output_tokens": called.output_tokens,
        "cost_usd": called.cost_usd,
    }
