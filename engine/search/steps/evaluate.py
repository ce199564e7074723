"""Steps that judge a kernel: compile, check, time, profile; and a failed evaluation told to the model. Knows the
toolchain seam, not what runs behind it."""

from __future__ import annotations

from dataclasses import replace

from engine.errors import BaselineUnavailable, ProfileUnavailable
from engine.search.actions import Action, Evaluate, Finish
from engine.search.context import RunContext
from storage.results import baselines, relative
from storage.results.evaluation_results import (
    TIMED_AGAIN,
    CheckResult,
    CompileResult,
    Mismatch,
    TimingResult,
    percent_wrong,
)
from storage.results.vocabulary import Verdict
from storage.run.events import (
    BaselineMeasured,
    Checked,
    Compiled,
    DeploymentSeen,
    LimitMeasured,
    Profiled,
    ProfileFailed,
    Timed,
)
from storage.run.record import Candidate, Record
from storage.run.settings import RunState, StepKind
from storage.run.steering.command_arguments import Ask as AskRule

MOST_TIMINGS = 2  # of one kernel while the machine is busy
MOST_TURNS = 3  # timings of the best kernel, where it is in doubt
MOST_AGAIN = 6  # timings made once more in a run for such doubts


def compile_candidate(context: RunContext, candidate: Candidate) -> str:
    """Build the candidate. Returns the verdict."""
    result = candidate.compiled
    if result is None:
        twin = _twin(context, candidate)
        if twin is not None and twin.compiled is not None:
            result = replace(twin.compiled, is_cached=True, timeline=None)
        else:
            result = context.judge(context.toolchain.compile, context.task, context.source(candidate))
        log = context.blobs.put(result.log) if result.log else None
        context.emit(Compiled(context.step, candidate.candidate_id, replace(result, log=""), log))
    return result.verdict


def check_candidate(context: RunContext, candidate: Candidate) -> str:
    """Compare the candidate with the reference. Returns the verdict."""
    result = candidate.checked
    if result is None:
        twin = _twin(context, candidate)
        if twin is not None and twin.checked is not None:
            evidence = {**twin.checked.evidence, "cached": f"as {twin.candidate_id}"}
            result = replace(twin.checked, evidence=evidence, timeline=None)
        else:
            result = context.judge(context.toolchain.check, context.task, context.source(candidate))
        context.emit(Checked(context.step, candidate.candidate_id, result))
    return result.verdict


def time_candidate(context: RunContext, candidate: Candidate) -> str:
    """Time the candidate against eager PyTorch. Returns the verdict."""
    doubted = in_doubt(context.record)
    if doubted is not None and doubted[0] == candidate.candidate_id:
        return _time_again(context, candidate, beside=f"kernel {context.record.number(doubted[1])}")
    moved = moved_baseline(context.record)
    if moved is not None and context.record.best_id == candidate.candidate_id:
        _measure_baselines(context, again=moved)
        return _time_again(context, candidate, beside=moved)
    if candidate.trusted is None and not candidate.has_failed:
        twin = _twin(context, candidate)
        if twin is not None and twin.trusted is not None:
            evidence = {**twin.trusted.evidence, "cached": f"as {twin.candidate_id}"}
            result = replace(twin.trusted, evidence=evidence, timeline=None)
        else:
            measured = context.judge(context.toolchain.time, context.task, context.source(candidate))
            if isinstance(measured, CheckResult):
                context.emit(Checked(context.step, candidate.candidate_id, measured))
                return measured.verdict
            result = measured
        context.emit(Timed(context.step, candidate.candidate_id, result))
    if context.record.candidates[candidate.candidate_id].trusted is not None:
        _measure_baselines(context)
    _correct_limit(context, candidate.candidate_id)
    return candidate.verdict or Verdict.PASSED


def _time_again(context: RunContext, candidate: Candidate, beside: str) -> str:
    """Time a kernel whose figures stand once more; a timing that cannot be trusted leaves them as they are."""
    measured = context.judge(context.toolchain.time_again, context.task, context.source(candidate))
    if isinstance(measured, CheckResult):
        context.emit(Checked(context.step, candidate.candidate_id, measured))
        return measured.verdict
    if measured.untrusted and candidate.trusted is not None:
        measured = replace(candidate.trusted, timeline=measured.timeline)
    evidence = {**measured.evidence, TIMED_AGAIN: beside}
    context.emit(Timed(context.step, candidate.candidate_id, replace(measured, evidence=evidence)))
    _correct_limit(context, candidate.candidate_id)
    return Verdict.PASSED


def in_doubt(record: Record) -> tuple[str, str] | None:
    """A kernel to be timed once more before the run ends, and the one that takes turns with it: the best and a kernel
    of lower latency, where eager PyTorch moved between their timings by more than the noise. Such a move, and not the
    kernels, may have made the order of the speed-ups. The second of a pair follows the first at once, and a pair takes
    turns again while the two orders differ, so far as MOST_TURNS and MOST_AGAIN allow.
    """
    standing = {name: kernel for name, kernel in record.candidates.items() if kernel.standing and kernel.trusted}
    names = {f"kernel {record.number(name)}": name for name in standing}
    for name, kernel in standing.items():
        other = names.get(kernel.trusted.evidence.get(TIMED_AGAIN, "")) if kernel.trusted else None
        if other is not None and standing[other].timings < kernel.timings:
            return other, name
    best = standing.get(record.best_id or "")
    again = sum(kernel.timings - 1 for kernel in standing.values())
    if best is None or best.timings >= MOST_TURNS or again >= MOST_AGAIN:
        return None
    rivals = [kernel for kernel in standing.values() if _contradicts(best, kernel)]
    rival = min(rivals, key=lambda kernel: kernel.standing.latency_ms if kernel.standing else 0.0, default=None)
    return None if rival is None else (best.candidate_id, rival.candidate_id)


def _contradicts(best: Candidate, rival: Candidate) -> bool:
    first, second = best.standing, rival.standing
    if first is None or second is None or second.latency_ms >= first.latency_ms:
        return False
    noise = relative.between_sessions(first.speedup, first.noise, second.speedup, second.noise).noise
    return first.speedup * first.latency_ms > (1 + noise) * second.speedup * second.latency_ms


def moved_baseline(record: Record) -> str | None:
    """The fastest baseline beside eager, to be timed once more in turns with the best kernel before the run ends: where
    eager took another time beside each, on a GPU, their speed-ups over it do not compare. Once for each best kernel."""
    best, fastest = record.best, record.baseline and record.baselines[record.baseline.name]
    if best is None or best.trusted is None or fastest is None or fastest.result is None:
        return None
    timings = (best.trusted, fastest.result)
    here, there = (relative.baseline_ms(timing.speedup, timing.latency_ms) for timing in timings)
    is_moved = max(relative.held_up(here, there), relative.held_up(there, here)) > 1
    is_new = best.timings < MOST_TURNS and best.trusted.evidence.get(TIMED_AGAIN) != fastest.name
    return fastest.name if is_moved and is_new and record.settings.toolchain != "cpu" else None


def timed_again_first(record: Record, action: Action) -> Action:
    """A kernel whose timing decides nothing is timed once more: when a later timing shows that the machine is quiet
    again, or before the run ends, whatever the method; before it ends also two of which it is in doubt which is the
    best, and the best one with an alternative beside which eager took another time. The step is of the kernel's own
    step index: it begins no other. Not in a run of several at once, in which none sees the others, nor where each step
    waits for a person's yes: a no would end a step index that has nothing to do with it.
    """
    if record.settings.width > 1 or record.approval_rule.which is AskRule.ALL:
        return action
    if not record.is_quiet and not isinstance(action, Finish):
        return action
    waiting = [
        candidate.candidate_id
        for candidate in record.candidates.values()
        if candidate.verdict is Verdict.PASSED and candidate.timed is not None and candidate.trusted is None
        if candidate.timings < MOST_TIMINGS
    ]
    if waiting:
        return _timing(record, waiting[-1])
    is_over = isinstance(action, Finish) and action.state is RunState.FINISHED
    if is_over and (doubted := in_doubt(record)):
        return _timing(record, doubted[0])
    if is_over and record.best_id and moved_baseline(record):
        return _timing(record, record.best_id)
    return action


def _timing(record: Record, candidate_id: str) -> Evaluate:
    return Evaluate(StepKind.TIME, record.candidates[candidate_id].created.depth, candidate_id)


def _measure_baselines(context: RunContext, again: str = "") -> None:
    """When there is a first speed-up to compare with them: compiling takes a while. Each engine tries each once, or
    times only the one of the name `again` once more."""
    settings = context.whole.settings
    asked = baselines.of_run(settings.policy.baselines, settings.toolchain, context.task.source)
    named = [(baselines.TITLES[how], str(how), "") for how in asked]
    if settings.own_baseline is not None:
        named.append((settings.own_baseline.name, "", settings.own_baseline.source))
    for name, how, source in named:
        earlier = context.whole.baselines.get(name)
        is_known = name in context.baselines_tried or (earlier is not None and earlier.result is not None)
        if name == again or (not again and not is_known):
            context.baselines_tried.add(name)
            _measure_baseline(context, name, how, source, earlier)


def _measure_baseline(context: RunContext, name: str, how: str, source: str, earlier: BaselineMeasured | None) -> None:
    is_timed = earlier is not None and earlier.result is not None
    ask = context.toolchain.baseline_again if is_timed else context.toolchain.baseline
    try:
        measured = BaselineMeasured(name, context.judge(ask, context.task, how, source))
    except BaselineUnavailable as error:
        measured = earlier if is_timed and earlier else BaselineMeasured(name, None, str(error))
    if measured != earlier:
        context.emit(measured)


def _correct_limit(context: RunContext, candidate_id: str) -> None:
    """A kernel that beats the hardware limit proves it was measured too low: look again, then believe the kernel."""
    timed, limit = context.record.candidates[candidate_id].trusted, context.record.limit
    if timed is None or limit is None or timed.latency_ms >= limit.limit_ms:
        return
    again = context.judge(context.toolchain.limit, context.task)
    is_beaten = timed.latency_ms < again.limit_ms
    context.emit(LimitMeasured(again.raised_to(timed.latency_ms) if is_beaten else again))


def refuse_candidate(context: RunContext, candidate: Candidate, reason: str) -> str:
    """Let a check that passed no longer stand: what it measured stays, and the reason is its message."""
    if not candidate.has_failed:
        checked = candidate.checked or CheckResult(Verdict.REFUSED, 0.0)
        result = replace(checked, verdict=Verdict.REFUSED, seconds=0.0, message=reason, timeline=None)
        context.emit(Checked(context.step, candidate.candidate_id, result))
    return Verdict.REFUSED


def profile_candidate(context: RunContext, candidate: Candidate) -> str:
    """Profile a correct candidate; a profile that cannot be had is a normal state. Returns the outcome."""
    if candidate.is_profile_tried:
        return "profiled" if candidate.profiled else "unavailable"
    twin = _twin(context, candidate)
    try:
        profile = twin.profiled if twin and twin.profiled and not twin.profiled.disturbance else None
        result = (profile and replace(profile, timeline=None)) or context.judge(
            context.toolchain.profile, context.task, context.source(candidate), candidate.timed
        )
    except ProfileUnavailable as error:
        context.emit(ProfileFailed(context.step, candidate.candidate_id, str(error)))
        return "unavailable"
    texts = (result.raw, result.report, result.sass)
    blobs = [context.blobs.put(text) if text else None for text in texts]
    context.emit(Profiled(context.step, candidate.candidate_id, replace(result, raw="", report="", sass=""), *blobs))
    return "profiled"


def look_at_deployment(context: RunContext, action: Finish) -> None:
    """Of the best kernel of a run that came to its end, once: what its callers rely on, which changes no verdict.

    Raises:
        StopRequested: a person stopped or paused the run.
    """
    best = context.whole.best if action.state is RunState.FINISHED else None
    if best is not None and best.candidate_id not in context.whole.deployments:
        seen = context.judge(context.toolchain.deploy, context.task, context.source(best))
        context.emit(DeploymentSeen(best.candidate_id, seen))


def _twin(context: RunContext, candidate: Candidate) -> Candidate | None:
    """An earlier candidate of this run with the very same source: its results stand, so judging it again is free."""
    same = candidate.created.source_blob
    for other in context.whole.candidates.values():
        if other.candidate_id != candidate.candidate_id and other.created.source_blob == same:
            return other
    return None


HEADINGS = {
    Verdict.COMPILE_ERROR: "The source does not compile",
    Verdict.INCORRECT: "The kernel compiles and runs, but its output is wrong",
    Verdict.RUNTIME_ERROR: "The kernel compiles, but running it fails",
    Verdict.TIMEOUT: "The kernel did not finish within its time limit",
    Verdict.OUT_OF_MEMORY: "The kernel ran out of memory",
    Verdict.REFUSED: "The source was refused before it ran",
}


def describe_failure(candidate: Candidate) -> str:
    """The failure of an attempt as text for the model. The attempt must have failed."""
    verdict = candidate.verdict
    if verdict is None or verdict is Verdict.PASSED:
        raise ValueError(f"{candidate.candidate_id} has not failed")
    return describe_failed(verdict, candidate.compiled, candidate.checked)


def describe_failed(verdict: Verdict, compiled: CompileResult | None, checked: CheckResult | None) -> str:
    """A failed build or check as text for the model."""
    if compiled is not None and not compiled.is_ok:
        return f"{HEADINGS[verdict]}.\n\n{compiled.diagnostics.strip()}"
    return f"{HEADINGS[verdict]}.\n\n{_describe_check(checked)}"


def timing_words(t: TimingResult) -> str:
    """What was measured of a kernel, in one line."""
    return (
        f"{t.latency_ms:.4g} ms against {t.baseline_latency_ms:.4g} ms of the {t.baseline} PyTorch reference: "
        f"{t.speedup:.3g}x (95 % interval {t.speedup_interval[0]:.3g} to {t.speedup_interval[1]:.3g})"
    )


def _describe_check(check: CheckResult | None) -> str:
    if check is None:
        return ""
    parts = [check.message.strip(), _describe_mismatch(check.mismatch) if check.mismatch else ""]
    if check.max_error is not None and check.tolerance is not None:
        parts.append(f"Scaled error {check.max_error:.3g}; allowed {check.tolerance:.3g}.")
    return "\n".join(part for part in parts if part)


def _describe_mismatch(m: Mismatch) -> str:
    index = ", ".join(map(str, m.index))
    trial = f" in trial '{m.trial}'" if m.trial else ""
    return (
        f"First wrong element{trial}: index ({index}) of shape {tuple(m.shape)}, "
        f"expected {m.expected:.8g}, got {m.actual:.8g}.\n"
        f"{m.wrong_count} of {m.total_count} elements are wrong ({percent_wrong(m.wrong_count, m.total_count)}%); "
        f"largest absolute error {m.max_abs_error:.3g}, largest relative error {m.max_rel_error:.3g}.\n"
        + _describe_region(m)
    )


def _describe_region(m: Mismatch) -> str:
    if not m.heat:
        return ""
    rows = [i for i, row in enumerate(m.heat) if any(row)]
    cols = [j for j in range(len(m.heat[0])) if any(row[j] for row in m.heat)]
    total = len(m.heat) * len(m.heat[0])
    hit = sum(cell > 0 for row in m.heat for cell in row)
    if not rows or not cols:
        return ""
    return (
        f"Seen as a {len(m.heat)} x {len(m.heat[0])} grid over the output, wrong values lie in {hit} of {total} cells: "
        f"grid rows {rows[0]}-{rows[-1]}, grid columns {cols[0]}-{cols[-1]}."
    )
