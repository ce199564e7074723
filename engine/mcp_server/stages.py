"""What a process that judges is asked: stage after stage of one kernel, as results. Knows an evaluator by its protocol,
no server."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from engine.errors import BaselineUnavailable, ProfileUnavailable
from engine.evaluator import languages
from engine.evaluator.request import Evaluator
from engine.evaluator.tasks import Task
from engine.shown import sweeps
from engine.shown.sweeps import SweepForm
from storage.results.baselines import TITLES
from storage.results.evaluation_results import CheckResult, CompileResult, TimingResult
from storage.results.hardware_limit import HardwareLimit
from storage.results.profile_results import ProfileResult, executed_share
from storage.results.vocabulary import Verdict


@dataclass(frozen=True, slots=True)
class Alternative:
    """What one would run instead; `timed` is None where it cannot be had, and `failure` says why."""

    name: str
    timed: TimingResult | None
    failure: str = ""


@dataclass(frozen=True, slots=True)
class Judged:
    """As far as one kernel has come. What was not reached or not asked for is None."""

    compiled: CompileResult
    checked: CheckResult | None = None
    timed: TimingResult | None = None
    untimed: str = ""
    """Why a correct kernel has no figures; empty unless so."""
    limit: HardwareLimit | None = None
    alternatives: tuple[Alternative, ...] = ()
    profile: ProfileResult | None = None
    no_profile: str = ""

    @property
    def verdict(self) -> Verdict:
        """Passed as far as it was judged, or why not."""
        return self.checked.verdict if self.checked is not None else self.compiled.verdict


Say = Callable[[str], None]


def compiled(evaluator: Evaluator, say: Say, task: Task, source: str) -> Judged:
    """Screen the text, build it and import the module."""
    return Judged(replace(evaluator.compile(task, source), log=""))


def checked(evaluator: Evaluator, say: Say, task: Task, source: str) -> Judged:
    """Compile, and compare with the reference."""
    judged = compiled(evaluator, say, task, source)
    return replace(judged, checked=evaluator.check(task, source)) if judged.compiled.is_ok else judged


def evaluated(evaluator: Evaluator, say: Say, task: Task, source: str, instead: Sequence[str] = ()) -> Judged:
    """Check, and time what is correct; beside it what one would run instead."""
    judged = checked(evaluator, say, task, source)
    if judged.checked is None or judged.verdict is not Verdict.PASSED:
        return judged
    if untimed := languages.untimed(task.language, source, evaluator.name):
        return replace(judged, untimed=untimed)
    timed = evaluator.time(task, source)
    if isinstance(timed, CheckResult):
        return replace(judged, checked=timed)
    if timed.untrusted:
        return replace(judged, untimed=f"not timed: {timed.untrusted}")
    others = tuple(_alternative(evaluator, task, how) for how in instead)
    limit = evaluator.limit(task)
    if timed.latency_ms < limit.limit_ms:
        limit = limit.raised_to(timed.latency_ms)
    return replace(judged, timed=timed, limit=limit, alternatives=others)


def _alternative(evaluator: Evaluator, task: Task, how: str) -> Alternative:
    try:
        return Alternative(TITLES[how], evaluator.baseline(task, how))
    except BaselineUnavailable as error:
        return Alternative(TITLES[how], None, str(error))


def profiled(evaluator: Evaluator, say: Say, task: Task, source: str) -> Judged:
    """Evaluate, and profile what was timed. A profile that was disturbed is shown to no model."""
    judged = evaluated(evaluator, say, task, source)
    if judged.timed is None:
        return judged
    try:
        profile = replace(evaluator.profile(task, source, judged.timed), raw="", report="", sass="")
    except ProfileUnavailable as error:
        return replace(judged, no_profile=str(error))
    if profile.disturbance:
        return replace(judged, no_profile=f"the profile was disturbed: {profile.disturbance}")
    limit = judged.limit
    if limit is not None and not task.policy.workloads:
        limit = replace(limit, executed_share=executed_share(profile, limit.min_flop))
    return replace(judged, profile=profile, limit=limit)


def tuned(
    evaluator: Evaluator, say: Say, task: Task, source: str, variants: int
) -> tuple[SweepForm, str, Judged | None]:
    """A sweep over the kernel's tunables, with source and results of what it keeps; none where nothing is faster.

    Raises:
        EngineError: the kernel declares nothing to tune, or is not correct as it is written.
    """
    sweep, best, _ = sweeps.tune(
        evaluator, task, source, variants, say,
        lambda number, sweep: say(f"{len(sweep.variants)} of up to {variants} variants"),
    )  # fmt: skip
    kept = Judged(sweep.kept.compiled, sweep.kept.checked, sweep.kept.timed) if sweep.kept else None
    return sweeps.form("", sweep), best, kept


def limited(evaluator: Evaluator, say: Say, task: Task) -> HardwareLimit:
    """What the hardware allows on the task."""
    return evaluator.limit(task)
