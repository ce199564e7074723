"""Steps that write: synthesise, optimise, diagnose, repair. Knows prompts and replies, not who judges the result."""

from __future__ import annotations

from engine import prompting
from engine.context import RunContext
from engine.llm import Completion
from engine.patching.lines import numbered
from engine.patching.reply import find_python, labelled
from engine.record import Candidate, Record
from engine.steps.candidates import create_candidate
from engine.steps.conversation import as_code, hint_section, open_conversation, rule_section, settle_hints
from engine.steps.failure import describe_failure
from engine.steps.ladder import climb
from engine.strategies.schedule import is_exposed
from storage.events import ClassProposed, DiagnosisWritten
from storage.records import DepthOutcome, KernelClass, Origin, Role

SUMMARY_LENGTH = 140


def synthesise(context: RunContext) -> str:
    """Write a first kernel. Returns the step's outcome."""
    hints = context.record.pending_hints
    kernel_class = context.record.kernel_class
    messages = open_conversation(
        context,
        Role.SYNTHESISE,
        None,
        "synthesise.md",
        task=as_code(context.task.source),
        example=as_code(prompting.for_class(f"examples/{context.toolchain.name}", kernel_class, ".py")),
        classes=", ".join(KernelClass),
        rules=rule_section(context.record.steering.rules),
        hint=hint_section(hints),
    )
    completion = context.ask(0, Role.SYNTHESISE, messages, None, exposed=False)
    settle_hints(context, hints)
    source = find_python(completion.text)
    if source is None or completion.finish_reason == "length":
        return "patch_failed"
    _learn_class(context, completion.text)
    summary = _short(labelled(completion.text, "Approach") or "first kernel")
    create_candidate(context, source, parent_id=None, base_id=None, origin=Origin.SYNTHESIS, repair=0, summary=summary)
    return "created"


def diagnose(context: RunContext, candidate: Candidate) -> str:
    """Explain a failure before anything is edited. Returns the step's outcome."""
    messages = open_conversation(
        context,
        Role.DIAGNOSE,
        candidate.candidate_id,
        "diagnose.md",
        guide=prompting.text("debugging.md").strip(),
        task=as_code(context.task.source),
        failure=describe_failure(candidate),
        listing=numbered(context.source(candidate)),
        change=_change_since_parent(context, candidate),
    )
    completion = context.ask(0, Role.DIAGNOSE, messages, candidate.candidate_id, exposed=False)
    if candidate.diagnosis_step != context.step:
        context.emit(DiagnosisWritten(context.step, candidate.candidate_id, context.blobs.put(_whole(completion))))
    return "written"


def repair(context: RunContext, candidate: Candidate) -> str:
    """Turn a diagnosis into edits. Returns the step's outcome."""
    hints = context.record.pending_hints
    messages = open_conversation(
        context,
        Role.REPAIR,
        candidate.candidate_id,
        "repair.md",
        failure=describe_failure(candidate),
        diagnosis=context.blobs.get(candidate.diagnosis_blob) if candidate.diagnosis_blob else "(none)",
        listing=numbered(context.source(candidate)),
        rules=rule_section(context.record.steering.rules),
        hint=hint_section(hints),
        patch_format=prompting.text("patch_format.md").strip(),
    )
    patched = climb(context, Role.REPAIR, candidate, messages, exposed=False)
    settle_hints(context, hints)
    if patched is None:
        return "patch_failed"
    summary = _short(labelled(patched.reply, "Fix") or next(iter(patched.offer.whys), "") or "repair")
    create_candidate(
        context,
        patched.source,
        parent_id=candidate.candidate_id,
        base_id=candidate.created.base_id,
        origin=Origin.REPAIR,
        repair=candidate.created.repair + 1,
        summary=summary,
    )
    return "created"


def optimise(context: RunContext, base: Candidate) -> str:
    """Apply exactly one optimisation to a correct kernel. Returns the step's outcome."""
    record = context.record
    hints, profile = record.pending_hints, _profile_section(record, base)
    messages = open_conversation(
        context,
        Role.OPTIMISE,
        base.candidate_id,
        "optimise.md",
        task=as_code(context.task.source),
        listing=numbered(context.source(base)),
        timing=_timing_line(base),
        earlier=_earlier_steps(record),
        guide=prompting.for_class("guides", record.kernel_class, ".md").strip(),
        profile=profile,
        rules=rule_section(context.record.steering.rules),
        hint=hint_section(hints),
        patch_format=prompting.text("patch_format.md").strip(),
    )
    patched = climb(context, Role.OPTIMISE, base, messages, exposed=bool(profile))
    settle_hints(context, hints)
    if patched is None:
        return "patch_failed"
    summary = _short(labelled(patched.reply, "Optimi[sz]ation") or next(iter(patched.offer.whys), "") or "optimisation")
    name = base.candidate_id
    create_candidate(
        context, patched.source, parent_id=name, base_id=name, origin=Origin.OPTIMISATION, repair=0, summary=summary
    )
    return "created"


def _whole(completion: Completion) -> str:
    """The text of a diagnosis; one that stayed cut off says so, to the model that repairs as well."""
    cut = "\n\n[The diagnosis was cut off here at the output limit.]\n" if completion.finish_reason == "length" else ""
    return completion.text + cut


def _learn_class(context: RunContext, reply: str) -> None:
    named = labelled(reply, "Kernel class").lower().strip("`. ")
    if not context.record.is_class_known and named in set(KernelClass):
        context.emit(ClassProposed(KernelClass(named)))


def _profile_section(record: Record, base: Candidate) -> str:
    if not is_exposed(record) or base.profiled is None or base.profiled.disturbance:
        return ""
    return prompting.fill("profile.md", summary=base.profiled.summary.strip())


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
    for done in record.depths:
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
    if candidate.created.diff_blob is None:
        return "This is a first version; there is no earlier kernel to compare with."
    return (
        f"The last change, as a unified diff:\n```diff\n{context.blobs.get(candidate.created.diff_blob).rstrip()}\n```"
    )


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= SUMMARY_LENGTH else line[: SUMMARY_LENGTH - 1] + "…"
