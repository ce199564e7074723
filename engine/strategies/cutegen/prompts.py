"""What CuTeGen asks the model: prompt files with their slots filled from the run. Knows prompts, not replies."""

from __future__ import annotations

from engine import prompting
from engine.actions import Ask
from engine.context import RunContext
from engine.llm import Message
from engine.patching.lines import numbered
from engine.record import Candidate, Record
from engine.steps.conversation import as_code, hint_section, open_conversation, rule_section
from engine.steps.failure import describe_failure
from storage.records import DepthOutcome, KernelClass


def synthesise(context: RunContext, ask: Ask) -> list[Message]:
    """Write a first kernel."""
    record = context.record
    return open_conversation(
        context,
        ask,
        "synthesise.md",
        task=as_code(context.task.source),
        example=as_code(prompting.for_class(f"examples/{context.toolchain.name}", record.kernel_class, ".py")),
        classes=", ".join(KernelClass),
        rules=rule_section(record.steering.rules),
        hint=hint_section(record.pending_hints),
    )


def diagnose(context: RunContext, ask: Ask) -> list[Message]:
    """Explain a failure before anything is edited."""
    candidate = context.candidate(ask.about)
    return open_conversation(
        context,
        ask,
        "diagnose.md",
        guide=prompting.text("debugging.md").strip(),
        task=as_code(context.task.source),
        failure=describe_failure(candidate),
        listing=numbered(context.source(candidate)),
        change=_change_since_parent(context, candidate),
    )


def repair(context: RunContext, ask: Ask) -> list[Message]:
    """Turn a diagnosis into edits."""
    candidate, record = context.candidate(ask.about), context.record
    return open_conversation(
        context,
        ask,
        "repair.md",
        failure=describe_failure(candidate),
        diagnosis=context.blobs.get(candidate.diagnosis_blob) if candidate.diagnosis_blob else "(none)",
        listing=numbered(context.source(candidate)),
        rules=rule_section(record.steering.rules),
        hint=hint_section(record.pending_hints),
        patch_format=prompting.text("patch_format.md").strip(),
    )


def optimise(context: RunContext, ask: Ask) -> list[Message]:
    """Apply exactly one optimisation to a correct kernel."""
    base, record = context.candidate(ask.about), context.record
    summary = base.profiled.summary.strip() if base.profiled and ask.shows_profile else ""
    return open_conversation(
        context,
        ask,
        "optimise.md",
        task=as_code(context.task.source),
        listing=numbered(context.source(base)),
        timing=_timing_line(base),
        earlier=_earlier_steps(record),
        guide=prompting.for_class("guides", record.kernel_class, ".md").strip(),
        profile=prompting.fill("profile.md", summary=summary) if summary else "",
        rules=rule_section(record.steering.rules),
        hint=hint_section(record.pending_hints),
        patch_format=prompting.text("patch_format.md").strip(),
    )


def _timing_line(base: Candidate) -> str:
    if base.timed is None:
        return "not timed"
    t = base.timed
    return (
        f"{t.latency_ms:.4g} ms against {t.baseline_latency_ms:.4g} ms of the {t.baseline} PyTorch reference: "
        f"{t.speedup:.3g}x (95 % interval {t.speedup_interval[0]:.3g} to {t.speedup_interval[1]:.3g})"
    )


def _earlier_steps(record: Record) -> str:
    lines = []
    for done in record.concluded:
        candidate = record.candidates.get(done.candidate_id or "")
        what = candidate.created.summary if candidate else "no kernel"
        if done.outcome is DepthOutcome.ACCEPTED and candidate and candidate.timed:
            lines.append(f"- depth {done.depth}: {what}: {candidate.timed.speedup:.3g}x")
        elif done.outcome is DepthOutcome.IMPORTED:
            lines.append(f"- depth {done.depth}: {what}: {done.reason}")
        else:
            lines.append(f"- depth {done.depth}: {what}: given up ({done.reason})")
    return "\n".join(lines) or "- none yet"


def _change_since_parent(context: RunContext, candidate: Candidate) -> str:
    blob = candidate.created.diff_blob
    if blob is None:
        return "This is a first version; there is no earlier kernel to compare with."
    return f"The last change, as a unified diff:\n```diff\n{context.blobs.get(blob).rstrip()}\n```"
