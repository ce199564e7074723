"""All stages on one candidate, in order, as one JSON-ready answer. Knows a toolchain only by its protocol."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from engine.errors import BaselineUnavailable, ProfileUnavailable
from engine.evaluator import languages
from engine.evaluator.request import Evaluator
from engine.evaluator.tasks import Task
from storage import codec
from storage.results import relative
from storage.results.baselines import TITLES, OwnBaseline
from storage.results.evaluation_results import CheckResult, CompileResult, TimingResult
from storage.results.vocabulary import Verdict


def evaluate(
    toolchain: Evaluator,
    task: Task,
    source: str,
    profile: bool = False,
    instead: Sequence[str | OwnBaseline] = (),
    deployment: bool = False,
) -> dict[str, Any]:
    """Compile, check, time and, where asked, profile and look at the deployment; stops at the first verdict that is not
    passed. A kernel that is only checked on this toolchain, by an interpreter, is not timed: `untimed` says so then.

    Returns:
        Every key is always there; what a failed evaluation does not have is None. Times as their names say.
        `timeline` tells of each stage that was reached where its time went, None where the result was remembered.

    Raises:
        EngineError: the task or this machine is at fault, not the candidate.
    """
    built = toolchain.compile(task, source)
    checked = toolchain.check(task, source) if built.is_ok else None
    is_right = checked is not None and checked.verdict is Verdict.PASSED
    untimed = languages.untimed(task.language, source, toolchain.name)
    timed = toolchain.time(task, source) if is_right and not untimed else None
    failed = timed if isinstance(timed, CheckResult) else None
    trusted = timed if isinstance(timed, TimingResult) and not timed.untrusted else None
    answer = _verdict_fields(built, failed or checked)
    answer |= _correctness_fields(checked) | _speed_fields(trusted)
    answer["measured"] = task.policy.measured
    answer["untimed"] = untimed if is_right and untimed else None
    if isinstance(timed, TimingResult) and timed.untrusted:
        answer["untimed"] = f"not timed: {timed.untrusted}"
    results = {"compile": built, "check": checked, "time": timed}
    answer["proofs"] = _check_records(results)
    answer["timeline"] = {
        stage: codec.to_plain(result.timeline) for stage, result in results.items() if result is not None
    }
    answer["baselines"] = [_baseline_fields(toolchain, task, other, answer) for other in instead if trusted]
    answer["profile"] = None
    if profile and isinstance(timed, TimingResult):
        answer["profile"] = _profile_fields(toolchain, task, source, timed)
    answer["deployment"] = None
    if deployment and is_right and failed is None:
        answer["deployment"] = codec.to_plain(toolchain.deploy(task, source))
    return answer


def _baseline_fields(
    toolchain: Evaluator, task: Task, other: str | OwnBaseline, answer: Mapping[str, Any]
) -> dict[str, Any]:
    """One baseline over eager, and the kernel over it; with `failure` both are None."""
    name = other.name if isinstance(other, OwnBaseline) else TITLES[other]
    fields: dict[str, Any] = dict.fromkeys(("latency_ms", "over_eager", "speedup", "speedup_interval", "noise"))
    fields["name"] = name
    try:
        own = other.source if isinstance(other, OwnBaseline) else ""
        timed = toolchain.baseline(task, "" if own else str(other), own)
    except BaselineUnavailable as error:
        return fields | {"seconds": None, "failure": str(error)}
    low, high = answer["speedup_interval"]
    over = relative.over(relative.Measured(answer["speedup"], low, high, answer["noise"]), timed.figures)
    return fields | {
        "latency_ms": timed.latency_ms,
        "over_eager": timed.speedup,
        "speedup": over.speedup,
        "speedup_interval": (over.low, over.high),
        "noise": over.noise,
        "seconds": timed.timeline.total_s if timed.timeline else None,
        "failure": "",
    }


def _verdict_fields(built: CompileResult, checked: CheckResult | None) -> dict[str, Any]:
    return {
        "verdict": str(checked.verdict if checked else built.verdict),
        "message": checked.message if checked else built.diagnostics,
        "compile_seconds": built.seconds,
        "is_cached": built.is_cached,
        "remarks": list(built.remarks),
        "resources": list(codec.to_plain(built.resources)),
    }


def _correctness_fields(checked: CheckResult | None) -> dict[str, Any]:
    if checked is None:
        names = ("max_error", "tolerance", "reference_error", "precision", "mismatch", "seed", "check_seconds")
        return {**dict.fromkeys(names), "trials": [], "evidence": {}}
    return {
        "max_error": checked.max_error,
        "tolerance": checked.tolerance,
        "reference_error": checked.reference_error,
        "precision": checked.precision or None,
        "mismatch": codec.to_plain(checked.mismatch),
        "seed": checked.seed,
        "check_seconds": checked.seconds,
        "trials": list(checked.trials),
        "evidence": dict(checked.evidence),
    }


def _speed_fields(timed: TimingResult | None) -> dict[str, Any]:
    if timed is None:
        names = ("speedup", "speedup_interval", "latency_ms", "baseline_latency_ms", "baseline", "noise", "pairs")
        return {**dict.fromkeys(names), "timing_evidence": {}, "workloads": []}
    return {
        **_speed_of(timed),
        "baseline": timed.baseline,
        "noise": timed.noise,
        "pairs": len(timed.candidate_ms),
        "timing_evidence": dict(timed.evidence),
        "workloads": [{"sizes": dict(workload.sizes), **_speed_of(workload.timing)} for workload in timed.workloads],
    }


def _speed_of(timed: TimingResult) -> dict[str, Any]:
    return {
        "speedup": timed.speedup,
        "speedup_interval": list(timed.speedup_interval),
        "latency_ms": timed.latency_ms,
        "baseline_latency_ms": timed.baseline_latency_ms,
    }


def _check_records(results: Mapping[str, CompileResult | CheckResult | TimingResult | None]) -> list[dict[str, Any]]:
    """Every check made, in order, with the stage it was made in."""
    proofs = {stage: result.proofs for stage, result in results.items() if result is not None}
    return [
        {"stage": stage, **codec.to_plain(check_record)}
        for stage, check_records in proofs.items()
        for check_record in check_records
    ]


def _profile_fields(toolchain: Evaluator, task: Task, source: str, timed: TimingResult) -> dict[str, Any]:
    try:
        result: dict[str, Any] = codec.to_plain(toolchain.profile(task, source, timed))
    except ProfileUnavailable as error:
        return {"unavailable": str(error)}
    return result
