"""Steps that write: synthesise, optimise, diagnose, repair. Knows prompts and replies, not who judges the result."""

from __future__ import annotations

from engine import prompting
from engine.bench import Bench
from engine.history import Attempt, History
from engine.llm import Completion
from engine.patching.lines import numbered
from engine.patching.reply import find_python, labelled
from engine.steps.candidates import create_candidate
from engine.steps.conversation import as_code, hint_section, open_conversation, rule_section, settle_hints
from engine.steps.failure import describe_failure
from engine.steps.ladder import climb
from engine.strategies.schedule import is_exposed
from storage.events import ClassProposed, DiagnosisWritten
from storage.records import DepthOutcome, KernelClass, Origin, Role

SUMMARY_LENGTH = 140


def synthesise(bench: Bench) -> str:
    """Write a first kernel. Returns the step's outcome."""
    hints = bench.history.pending_hints
    kernel_class = bench.history.kernel_class
    messages = open_conversation(
        bench,
        Role.SYNTHESISE,
        None,
        "synthesise.md",
        task=as_code(bench.task.source),
        example=as_code(prompting.for_class(f"examples/{bench.toolchain.name}", kernel_class, ".py")),
        classes=", ".join(KernelClass),
        rules=rule_section(bench.history.steering.rules),
        hint=hint_section(hints),
    )
    completion = bench.ask(0, Role.SYNTHESISE, messages, None, exposed=False)
    settle_hints(bench, hints)
    source = find_python(completion.text)
    if source is None or completion.finish_reason == "length":
        return "patch_failed"
    _learn_class(bench, completion.text)
    summary = _short(labelled(completion.text, "Approach") or "first kernel")
    create_candidate(bench, source, parent_id=None, base_id=None, origin=Origin.SYNTHESIS, repair=0, summary=summary)
    return "created"


def diagnose(bench: Bench, attempt: Attempt) -> str:
    """Explain a failure before anything is edited. Returns the step's outcome."""
    messages = open_conversation(
        bench,
        Role.DIAGNOSE,
        attempt.candidate_id,
        "diagnose.md",
        guide=prompting.text("debugging.md").strip(),
        task=as_code(bench.task.source),
        failure=describe_failure(attempt),
        listing=numbered(bench.source(attempt)),
        change=_change_since_parent(bench, attempt),
    )
    completion = bench.ask(0, Role.DIAGNOSE, messages, attempt.candidate_id, exposed=False)
    if attempt.diagnosis_step != bench.step:
        bench.emit(DiagnosisWritten(bench.step, attempt.candidate_id, bench.blobs.put(_whole(completion))))
    return "written"


def repair(bench: Bench, attempt: Attempt) -> str:
    """Turn a diagnosis into edits. Returns the step's outcome."""
    hints = bench.history.pending_hints
    messages = open_conversation(
        bench,
        Role.REPAIR,
        attempt.candidate_id,
        "repair.md",
        failure=describe_failure(attempt),
        diagnosis=bench.blobs.get(attempt.diagnosis_blob) if attempt.diagnosis_blob else "(none)",
        listing=numbered(bench.source(attempt)),
        rules=rule_section(bench.history.steering.rules),
        hint=hint_section(hints),
        patch_format=prompting.text("patch_format.md").strip(),
    )
    patched = climb(bench, Role.REPAIR, attempt, messages, exposed=False)
    settle_hints(bench, hints)
    if patched is None:
        return "patch_failed"
    summary = _short(labelled(patched.reply, "Fix") or next(iter(patched.offer.whys), "") or "repair")
    create_candidate(
        bench,
        patched.source,
        parent_id=attempt.candidate_id,
        base_id=attempt.created.base_id,
        origin=Origin.REPAIR,
        repair=attempt.created.repair + 1,
        summary=summary,
    )
    return "created"


def optimise(bench: Bench, base: Attempt) -> str:
    """Apply exactly one optimisation to a correct kernel. Returns the step's outcome."""
    history = bench.history
    hints, profile = history.pending_hints, _profile_section(history, base)
    messages = open_conversation(
        bench,
        Role.OPTIMISE,
        base.candidate_id,
        "optimise.md",
        task=as_code(bench.task.source),
        listing=numbered(bench.source(base)),
        timing=_timing_line(base),
        earlier=_earlier_steps(history),
        guide=prompting.for_class("guides", history.kernel_class, ".md").strip(),
        profile=profile,
        rules=rule_section(bench.history.steering.rules),
        hint=hint_section(hints),
        patch_format=prompting.text("patch_format.md").strip(),
    )
    patched = climb(bench, Role.OPTIMISE, base, messages, exposed=bool(profile))
    settle_hints(bench, hints)
    if patched is None:
        return "patch_failed"
    summary = _short(labelled(patched.reply, "Optimi[sz]ation") or next(iter(patched.offer.whys), "") or "optimisation")
    name = base.candidate_id
    create_candidate(
        bench, patched.source, parent_id=name, base_id=name, origin=Origin.OPTIMISATION, repair=0, summary=summary
    )
    return "created"


def _whole(completion: Completion) -> str:
    """The text of a diagnosis; one that stayed cut off says so, to the model that repairs as well."""
    cut = "\n\n[The diagnosis was cut off here at the output limit.]\n" if completion.finish_reason == "length" else ""
    return completion.text + cut


def _learn_class(bench: Bench, reply: str) -> None:
    named = labelled(reply, "Kernel class").lower().strip("`. ")
    if not bench.history.is_class_known and named in set(KernelClass):
        bench.emit(ClassProposed(KernelClass(named)))


def _profile_section(history: History, base: Attempt) -> str:
    if not is_exposed(history) or base.profiled is None or base.profiled.disturbance:
        return ""
    return prompting.fill("profile.md", summary=base.profiled.summary.strip())


def _timing_line(base: Attempt) -> str:
    if base.timed is None:
        return "not timed"
    t = base.timed
    return (
        f"{t.latency_ms:.4g} ms against {t.baseline_latency_ms:.4g} ms of the {t.baseline} PyTorch reference: "
        f"{t.speedup:.3g}x (95 % interval {t.speedup_interval[0]:.3g} to {t.speedup_interval[1]:.3g})"
    )


def _earlier_steps(history: History) -> str:
    lines = []
    for done in history.depths:
        attempt = history.attempts.get(done.candidate_id or "")
        what = attempt.created.summary if attempt else "no kernel"
        if done.outcome is DepthOutcome.ACCEPTED and attempt and attempt.timed:
            lines.append(f"- depth {done.depth}: {what}: {attempt.timed.speedup:.3g}x")
        elif done.outcome is DepthOutcome.IMPORTED:
            lines.append(f"- depth {done.depth}: {what}: {done.reason}")
        else:
            lines.append(f"- depth {done.depth}: {what}: given up ({done.reason})")
    return "\n".join(lines) or "- none yet"


def _change_since_parent(bench: Bench, attempt: Attempt) -> str:
    if attempt.created.diff_blob is None:
        return "This is a first version; there is no earlier kernel to compare with."
    return f"The last change, as a unified diff:\n```diff\n{bench.blobs.get(attempt.created.diff_blob).rstrip()}\n```"


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= SUMMARY_LENGTH else line[: SUMMARY_LENGTH - 1] + "…"
