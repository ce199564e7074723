"""Results as short JSON with the next sensible step in words. Of a failure what a run's own model is shown, no more: no
seed, no size that is secret, nothing of a trial beside it. Pure; knows no protocol."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from engine.evaluator import languages
from engine.evaluator.checks.screening import Finding
from engine.evaluator.tasks import Task, TaskFile
from engine.mcp_server.budgets import Allowed
from engine.mcp_server.shelf import Kernel
from engine.mcp_server.stages import Alternative, Judged
from engine.search.steps.briefing import contract, device
from engine.search.steps.evaluate import describe_failed
from engine.shown.runs import RunForm
from engine.shown.sweeps import SweepForm
from engine.shown.trying import StateForm, ToTry
from storage import codec
from storage.results import baselines, relative
from storage.results.evaluation_results import TimingResult
from storage.results.hardware_limit import HardwareLimit
from storage.results.vocabulary import Verdict
from storage.run.record import Candidate, Record
from storage.run.settings import RunState

VERSION = 1
Answer = dict[str, Any]
MEND = "Mend what the message names, screen the new text, then check it."
RUN_NEXT: Mapping[str, str] = {
    RunState.PAUSED: "It is paused: steer it with resume, or submit a kernel.",
    RunState.WAITING: "It waits for a person. submit hands it a kernel without one.",
    RunState.FINISHED: "It has finished: read its best kernel. submit starts nothing in it until a person resumes it.",
    RunState.STOPPED: "It was stopped. A person resumes it with `python -m engine resume`.",
    RunState.FAILED: "Its engine failed: tell a person the reason.",
    RunState.LOST: "Its engine is gone. A person resumes it with `python -m engine resume`.",
}
AT_WORK = "An engine is at work on it: call wait, or steer it with a hint."


def answer(left: Allowed, next_step: str, **fields: Any) -> Answer:
    """Any answer: its version, what it says, what the server may still spend, what to do next."""
    plain: Answer = codec.to_plain({"version": VERSION, **fields, "next": next_step, "left": left})
    return plain


def refusal(left: Allowed, why: str) -> Answer:
    """What could not be done, and why; the words say what to do."""
    return answer(left, "Do what the message says, then call again.", error=why)


def listed(files: Sequence[TaskFile], toolchain: str) -> list[Answer]:
    """Tasks in short."""
    return [
        {"task": file.name, "title": file.title, "class": str(file.kernel_class or file.guessed_class),
         "sizes": dict(file.task(toolchain).sizes)}
        for file in files
    ]  # fmt: skip


def described(task: Task, toolchain: str, limit: HardwareLimit | None) -> Answer:
    """A task as a writer of kernels must know it: the same words as a run's own model has."""
    return {
        "task": task.name, "class": str(task.kernel_class or task.guessed_class), "sizes": dict(task.sizes),
        "reference": task.source, "toolchain": toolchain, "languages": languages.of_toolchain(toolchain),
        "contract": contract(toolchain, task, limit=limit),
        "device": device(limit) if limit else "not measured yet",
        "limit_ms": limit.known_ms if limit else None, "bound_by": limit.bound_by if limit and limit.is_known else None,
        "baselines": [baselines.EAGER, *(baselines.TITLES[how] for how in instead_of(task, toolchain))],
    }  # fmt: skip


def instead_of(task: Task, toolchain: str) -> tuple[str, ...]:
    """What one would run instead of a kernel, beside eager."""
    return baselines.of_run(task.policy.baselines, toolchain, task.source)


def screened(findings: Sequence[Finding]) -> tuple[Answer, str]:
    """What the rules on text say, and what to do."""
    refused = [finding for finding in findings if finding.is_refusal]
    fields = {"is_refused": bool(refused), "findings": codec.to_plain(tuple(findings))}
    return fields, MEND if refused else "Nothing in the text refuses it: compile it, then check it."


def judged(task: Task, kernel: Kernel, beats: bool | None) -> tuple[Answer, str]:
    """One kernel as far as it was judged, and what to do."""
    result = kernel.judged
    fields: Answer = {
        "task": task.name, "sizes": dict(task.sizes), "kernel": kernel.name, "verdict": str(result.verdict),
        "seconds": {"compile": result.compiled.seconds},
        "remarks": result.compiled.remarks, "resources": result.compiled.resources,
    }  # fmt: skip
    if result.verdict is not Verdict.PASSED:
        return fields | {"message": describe_failed(result.verdict, result.compiled, result.checked)}, MEND
    if result.checked is None:
        return fields | {"message": "It compiles."}, "Call check: it compares the kernel with the reference."
    fields |= _checked(result)
    if result.timed is None:
        return fields | {"untimed": result.untimed or None}, _after_check(result)
    return fields | _timed(result, result.timed) | {"is_best_here": beats}, _after_timing(result, beats)


def _checked(result: Judged) -> Answer:
    checked = result.checked
    assert checked is not None
    return {
        "message": f"It compiles, and it passes the check in {checked.in_trials}.",
        "precision": checked.precision or None, "max_error": checked.max_error, "tolerance": checked.tolerance,
    }  # fmt: skip


def _after_check(result: Judged) -> str:
    return f"It is correct, and {result.untimed}." if result.untimed else "It is correct: evaluate times it."


def figures(timed: TimingResult) -> Answer:
    """What a timing comes to, as every result tells it."""
    return {
        "speedup": timed.speedup, "speedup_interval": timed.speedup_interval, "latency_ms": timed.latency_ms,
        "baseline": timed.baseline, "baseline_latency_ms": timed.baseline_latency_ms, "noise": timed.noise,
    }  # fmt: skip


def _timed(result: Judged, timed: TimingResult) -> Answer:
    limit = result.limit
    return figures(timed) | {
        "limit_ms": limit.known_ms if limit else None,
        "limit_share": limit.reached_at(timed.latency_ms) if limit else None,
        "baselines": [_over(timed, other) for other in result.alternatives],
    }


def _over(timed: TimingResult, other: Alternative) -> Answer:
    if other.timed is None:
        return {"name": other.name, "speedup": None, "noise": None, "failure": other.failure}
    over = relative.over(timed.figures, other.timed.figures)
    return {"name": other.name, "speedup": over.speedup, "noise": over.noise, "failure": ""}


def _after_timing(result: Judged, beats: bool | None) -> str:
    how = {
        None: "It is the first that was timed here.",
        True: "It is faster than every other of this task here, beyond the noise.",
        False: "It is not faster than the best of this task here, beyond the noise: go on from that one.",
    }[beats]
    if result.profile is None:
        return f"{how} profile shows what holds it back."
    return f"{how} knowledge with this kernel names techniques for its state. Change one thing at a time."


def profiled(result: Judged, state: StateForm | None) -> Answer:
    """What the profile shows, as far as a model may be shown it."""
    profile = result.profile
    return {
        "profile": {"bound": profile.bound, "summary": profile.summary} if profile else None,
        "no_profile": result.no_profile or None, "state": state,
    }  # fmt: skip


def tuned(sweep: SweepForm, kernel: str) -> str:
    """What to do after a sweep that kept this kernel, or none."""
    if sweep.kept is None:
        return "No variant is faster beyond the noise: keep the numbers as they are and change something else."
    return f"Go on from the fastest variant: the resource tilewright://kernels/{kernel}/source has its text."


def tried(offered: ToTry) -> tuple[Answer, str]:
    """Techniques in short, and what to do."""
    shown = [
        {"technique": advice.technique, "about": advice.about, "helps": advice.helps, "hurts": advice.hurts,
         "expected_gain": advice.expected_gain, "confidence": advice.confidence, "attempts": advice.attempts,
         "faster": advice.faster, "failed": advice.failed}
        for advice in offered.techniques
    ]  # fmt: skip
    next_step = "Apply one technique to the best kernel, then check and evaluate it."
    return {"state": offered.state, "techniques": shown}, next_step if shown else "Nothing is known for it."


def run(form: RunForm) -> tuple[Answer, str]:
    """A run in short, and what to do."""
    best = next((attempt for attempt in form.attempts if attempt.candidate == form.best), None)
    fields: Answer = {
        "run": form.run, "task": form.task, "state": form.state, "reason": form.reason, "model": form.model,
        "depth": form.depth, "depths": form.depths, "kernels": len(form.attempts),
        "best": best and {"kernel": best.candidate, "speedup": form.speedup,
                          "speedup_interval": form.speedup_interval, "latency_ms": best.latency_ms},
        "limit_ms": form.limit_ms, "baselines": form.baselines, "last_failures": form.last_failures,
        "last_kernels": [
            {"kernel": attempt.candidate, "verdict": attempt.verdict, "speedup": attempt.speedup,
             "summary": attempt.summary}
            for attempt in form.attempts[-3:]
        ],
        "to_try": [advice.technique for advice in form.to_try.techniques] if form.to_try else [],
        "run_left": form.left,
    }  # fmt: skip
    return fields, RUN_NEXT.get(form.state, AT_WORK)


def report(form: RunForm) -> Answer:
    """The whole form of a run, without what its checks say in detail: trials stay with the evaluator."""
    plain: Answer = codec.to_plain(form)
    hidden = ("flagged", "broken", "flags")
    kept = [{name: value for name, value in row.items() if name not in hidden} for row in plain["attempts"]]
    return plain | {"attempts": kept}


def run_kernel(record: Record, candidate: Candidate) -> Answer:
    """The best kernel of a run, for a list."""
    timed = candidate.trusted
    assert timed is not None
    run_id = record.settings.run_id
    return {
        "run": run_id, "kernel": candidate.candidate_id, "sizes": dict(record.settings.sizes),
        "device": record.limit.model if record.limit else "", **figures(timed),
        "source": f"tilewright://runs/{run_id}/kernels/{candidate.candidate_id}/source",
    }  # fmt: skip
