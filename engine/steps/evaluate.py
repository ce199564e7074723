"""Steps that judge a kernel: compile, check, time, profile. Knows the toolchain seam, not what runs behind it."""

from __future__ import annotations

from dataclasses import replace

from engine.bench import Bench
from engine.errors import BaselineUnavailable, ProfileUnavailable
from engine.history import Attempt
from storage.events import BaselineMeasured, Checked, Compiled, LimitMeasured, Profiled, ProfileFailed, Timed
from storage.records import CheckResult, Verdict

COMPILED = "torch.compile"


def compile_candidate(bench: Bench, attempt: Attempt) -> str:
    """Build the candidate. Returns the verdict."""
    result = attempt.compiled
    if result is None:
        twin = _twin(bench, attempt)
        if twin is not None and twin.compiled is not None:
            result = replace(twin.compiled, is_cached=True)
        else:
            result = bench.judge(bench.toolchain.compile, bench.task, bench.source(attempt))
        log = bench.blobs.put(result.log) if result.log else None
        bench.emit(Compiled(bench.step, attempt.candidate_id, replace(result, log=""), log))
    return result.verdict


def check_candidate(bench: Bench, attempt: Attempt) -> str:
    """Compare the candidate with the reference. Returns the verdict."""
    result = attempt.checked
    if result is None:
        twin = _twin(bench, attempt)
        if twin is not None and twin.checked is not None:
            result = replace(twin.checked, evidence={**twin.checked.evidence, "cached": f"as {twin.candidate_id}"})
        else:
            result = bench.judge(bench.toolchain.check, bench.task, bench.source(attempt))
        bench.emit(Checked(bench.step, attempt.candidate_id, result))
    return result.verdict


def time_candidate(bench: Bench, attempt: Attempt) -> str:
    """Time the candidate against eager PyTorch. Returns the verdict."""
    if attempt.timed is None and not attempt.has_failed:
        twin = _twin(bench, attempt)
        if twin is not None and twin.timed is not None:
            result = replace(twin.timed, evidence={**twin.timed.evidence, "cached": f"as {twin.candidate_id}"})
        else:
            measured = bench.judge(bench.toolchain.time, bench.task, bench.source(attempt))
            if isinstance(measured, CheckResult):
                bench.emit(Checked(bench.step, attempt.candidate_id, measured))
                return measured.verdict
            result = measured
        bench.emit(Timed(bench.step, attempt.candidate_id, result))
    if bench.history.attempts[attempt.candidate_id].timed is not None and bench.history.baseline is None:
        _measure_baseline(bench)
    _correct_limit(bench, attempt.candidate_id)
    return attempt.verdict or Verdict.PASSED


def _measure_baseline(bench: Bench) -> None:
    """Once per run, when there is a first speed-up to compare with it: compiling takes a while."""
    try:
        measured = BaselineMeasured(COMPILED, bench.judge(bench.toolchain.compiled_baseline, bench.task))
    except BaselineUnavailable as error:
        measured = BaselineMeasured(COMPILED, None, str(error))
    bench.emit(measured)


def _correct_limit(bench: Bench, candidate_id: str) -> None:
    """A kernel that beats the hardware limit proves it was measured too low: look again, then believe the kernel."""
    timed, limit = bench.history.attempts[candidate_id].timed, bench.history.limit
    if timed is None or limit is None or timed.latency_ms >= limit.limit_ms:
        return
    again = bench.judge(bench.toolchain.limit, bench.task)
    is_beaten = timed.latency_ms < again.limit_ms
    bench.emit(LimitMeasured(again.raised_to(timed.latency_ms) if is_beaten else again))


def profile_candidate(bench: Bench, attempt: Attempt) -> str:
    """Profile a correct candidate; a profile that cannot be had is a normal state. Returns the outcome."""
    if attempt.is_profile_tried:
        return "profiled" if attempt.profiled else "unavailable"
    twin = _twin(bench, attempt)
    try:
        known = twin.profiled if twin and twin.profiled and not twin.profiled.disturbance else None
        result = known or bench.judge(bench.toolchain.profile, bench.task, bench.source(attempt), attempt.timed)
    except ProfileUnavailable as error:
        bench.emit(ProfileFailed(bench.step, attempt.candidate_id, str(error)))
        return "unavailable"
    raw, report = (bench.blobs.put(text) if text else None for text in (result.raw, result.report))
    bench.emit(Profiled(bench.step, attempt.candidate_id, replace(result, raw="", report=""), raw, report))
    return "profiled"


def _twin(bench: Bench, attempt: Attempt) -> Attempt | None:
    """An earlier candidate of this run with the very same source: its results stand, so judging it again is free."""
    same = attempt.created.source_blob
    for other in bench.history.attempts.values():
        if other.candidate_id != attempt.candidate_id and other.created.source_blob == same:
            return other
    return None
