"""What happened in a run, one sentence each."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

from pages.parts import wording
from pages.parts.status import step_sentences
from storage.index import queries
from storage.index.database import Database
from storage.index.queries import BaseChange, FeedKernel, FeedRow, StepRow
from storage.results import deployment, relative
from storage.results.vocabulary import Verdict
from storage.run import events as ev
from storage.run.method_words import AS_STORED, MethodWords
from storage.run.settings import Budget, DepthOutcome, StepKind
from storage.run.steering import command_arguments
from storage.run.steering.verbs import VERBS


class FeedKind(StrEnum):
    """Where a feed item comes from."""

    STEP = "step"
    DEPTH = "depth"
    BASE = "base"
    COMMAND = "command"
    STATE = "state"
    WARNING = "warning"
    CALL = "call"
    BASELINE = "baseline"
    LIMIT = "limit"
    CLASS = "class"
    BUDGET = "budget"
    QUESTION = "question"
    APPROVAL = "leave"
    REPLAY = "replay"
    IMPORT = "import"
    PATCH = "patch"
    DEPLOYMENT = "deployment"
    TOOL = "tool"


Said = tuple[FeedKind, str | None, str]


@dataclass(frozen=True, slots=True)
class FeedItem:
    """One sentence. `outcome` is the step's, the depth's, the command's phase or the state. A depth whose kernel is the
    fastest so far has the outcome "best"; a timing that worked has "timed", which does not say that the kernel is fast.
    """

    seq: int
    at: float
    kind: FeedKind
    outcome: str | None
    text: str


def items(db: Database, run_id: str, limit: int = 200, words: MethodWords = AS_STORED) -> list[FeedItem]:
    """The newest of a run, newest first."""
    run = queries.run(db, run_id)
    is_on_gpu = run is not None and run.is_on_gpu
    return [FeedItem(row.seq, row.at, *_said(row, words, is_on_gpu)) for row in queries.feed(db, run_id, limit=limit)]


def _said(row: FeedRow, words: MethodWords, is_on_gpu: bool) -> Said:
    match row.what:
        case StepRow() as step:
            is_timed = step.kind == StepKind.TIME and step.outcome == Verdict.PASSED
            return FeedKind.STEP, "timed" if is_timed else step.outcome, step_sentences.sentence(step, words)
        case BaseChange() as change:
            return FeedKind.BASE, None, _base(change, words)
        case ev.DepthFinished() as end:
            return FeedKind.DEPTH, *_depth(end, row, words, is_on_gpu)
        case ev.CommandAcknowledged():
            asked_by = (row.command.asked_by if row.command else "") or "Someone"
            return FeedKind.COMMAND, "acknowledged", _command(f"{asked_by} asked for", row, "")
        case ev.CommandEffective(note=note):
            return FeedKind.COMMAND, "effective", _command("In effect", row, note)
        case ev.CommandRefused(reason=reason):
            return FeedKind.COMMAND, "refused", _command("Rejected", row, reason)
        case ev.RunStarted():
            return FeedKind.STATE, "starting", "Run created"
        case ev.EngineStarted(reason=reason):
            return FeedKind.STATE, "running", reason
        case ev.StateChanged(state=state, reason=reason) | ev.RunEnded(state=state, reason=reason):
            why = wording.reason(reason)
            return FeedKind.STATE, state, why if why.startswith("Run ") else _with(f"Run {state}", why)
        case ev.ClassProposed(kernel_class=proposed):
            return FeedKind.CLASS, proposed, f"Kernel class, named in the first reply: {proposed}"
        case ev.BaselineMeasured() as baseline:
            return FeedKind.BASELINE, "measured" if baseline.result else "failed", _baseline(baseline)
        case ev.LimitMeasured() as measured:
            return FeedKind.LIMIT, "measured", _limit(measured, row.is_again)
        case ev.BudgetChanged(budget=budget):
            return FeedKind.BUDGET, "changed", _budget(budget, words)
        case event:
            return _beside_a_step(event, row.kernel.number if row.kernel else 0)


def _beside_a_step(event: ev.Event, number: int) -> Said:
    """`number` is 0 for a kernel that this run has not."""
    match event:
        case ev.BudgetWarned(limit=limit):
            used, allowed = _plain(event.used), _plain(event.allowed)
            return FeedKind.WARNING, limit, f"80 % of the limit on {limit.replace('_', ' ')} used: {used} of {allowed}"
        case ev.CallFailed():
            again = "" if event.retry_in_s is None else f"; retrying in {_up(event.retry_in_s):.0f} s"
            text = f"Model call failed (try {event.attempt + 1}): {event.reason}{again}"
            return FeedKind.CALL, event.failure, text
        case ev.QuestionAsked():
            return FeedKind.QUESTION, "asked", f"Waiting for a reply: {event.role}"
        case ev.ApprovalAsked(fallback=fallback):
            silence = "" if fallback == "never" else f"; {fallback} after {event.after_s:.0f} s without an answer"
            return FeedKind.APPROVAL, "asked", f"Waiting for approval of the step: {event.kind}{silence}"
        case ev.ApprovalSettled():
            outcome, became = ("given", "approved") if event.is_given else ("refused", "skipped")
            return FeedKind.APPROVAL, outcome, f"Step {became}: {event.reason}"
        case ev.Diverged():
            outcome, lost = ("bridged", "") if event.is_bridged else ("lost", "; no reply found")
            return FeedKind.REPLAY, outcome, f"Replies differ from the recording: {event.reason}{lost}"
        case ev.Imported(status=status):
            there = f", status there: {status}" if status else ""
            return FeedKind.IMPORT, status, f"Kernel {number} imported from {event.file}{there}"
        case ev.DeploymentSeen(result=seen):
            return FeedKind.DEPLOYMENT, seen.capture, f"Deployment of kernel {number}: {deployment.line(seen)}"
        case ev.PatchTried():
            text = f"The reply's {_offered(event.form)} did not apply to kernel {number}"
            return FeedKind.PATCH, "patch_failed", _with(text, event.reason)
        case ev.ToolAnswered():
            return (
                FeedKind.TOOL,
                event.outcome,
                f"The model called {event.tool} on a kernel of its own: {event.summary}",
            )
        case _:
            raise ValueError(f"the feed has no sentence for {type(event).__name__}")


def _base(change: BaseChange, words: MethodWords) -> str:
    why = "the rule of this run is to start from the best" if change.policy == "best" else (
        f"by the rule of this run, since {change.policy.partition('=')[2]} {words.steps} in a row brought no gain "
        "above the noise"
    )  # fmt: skip
    kernels = f"starts from kernel {change.number} again, not from kernel {change.newest}"
    return f"{words.title} {change.depth} {kernels}: {why}"


def _depth(end: ev.DepthFinished, row: FeedRow, words: MethodWords, is_on_gpu: bool) -> tuple[str, str]:
    title, kernel, best = f"{words.title} {end.depth}", row.kernel, row.best
    if end.outcome is DepthOutcome.IMPORTED:
        return end.outcome, f"{title} is {end.reason}"
    if end.outcome is not DepthOutcome.ACCEPTED:
        return end.outcome, _with(f"{title} given up", end.reason)
    text = f"{title} ends with kernel {kernel.number if kernel else 0}"
    if kernel is None or kernel.speedup is None or kernel.noise is None:
        return end.outcome, text
    text += f" at {wording.ratio(kernel)}"
    if best is None or best.speedup is None or best.noise is None:
        return end.outcome, text
    if best.candidate_id == kernel.candidate_id:
        return "best", f"{text}, the best so far{_unproven(best, row.before, is_on_gpu)}"
    is_newer = best.number > kernel.number
    if not relative.is_ahead(best, kernel, is_newer=is_newer, is_on_gpu=is_on_gpu):
        return end.outcome, f"{text}, no measurable difference from the best"
    return end.outcome, f"{text}, {100 * (1 - kernel.speedup / best.speedup):.0f} % slower than the best"


def _unproven(best: FeedKernel, before: FeedKernel | None, is_on_gpu: bool) -> str:
    """That the best is not above the one before it beyond the noise; empty where it is."""
    ratio = relative.gain(best, before, is_on_gpu=is_on_gpu) if before else None
    is_told = ratio is not None and not ratio.is_faster
    return f", by less than the noise over kernel {before.number}" if before and is_told else ""


def _command(opening: str, row: FeedRow, note: str) -> str:
    named = VERBS[row.command.kind].name if row.command else "a command"
    argument = command_arguments.readable(row.command.argument) if row.command else ""
    return f"{opening}: {named}" + (f" {argument}" if argument else "") + (f" ({note})" if note else "")


def _limit(measured: ev.LimitMeasured, is_again: bool) -> str:
    limit = measured.limit
    opening = "Hardware limit measured again, since a kernel was faster" if is_again else "Hardware limit measured"
    bandwidth = wording.quantity(1e9 * limit.bandwidth_gb_s, "B/s")
    return f"{opening}: {limit.device}, {bandwidth}, {wording.quantity(1e9 * limit.peak_gflop_s, 'FLOP/s')}"


def _baseline(measured: ev.BaselineMeasured) -> str:
    if measured.result is None:
        return f"Baseline {measured.name} not measured: {measured.failure or 'no reason was recorded'}"
    speedup, taken = measured.result.speedup, wording.latency(measured.result.latency_ms)
    return f"Baseline {measured.name} measured: {speedup:.2f}× over eager, {taken}"


def _budget(budget: Budget, words: MethodWords) -> str:
    limits = {
        "{} " + words.steps: budget.depths,
        "{:,} model calls": budget.model_calls,
        "{:,} tokens": budget.tokens,
        "${:.2f}": budget.cost_usd,
        "{:.0f} s": budget.wall_s,
        "target {:.2f}×": budget.target_speedup,
        "stop at {:.0%} of the hardware limit": budget.limit_share,
        "stop after {} " + words.steps + " without gain": budget.stagnation_depths,
    }
    return "Limits changed: " + ", ".join(form.format(value) for form, value in limits.items() if value is not None)


def _offered(form: str) -> str:
    if form.startswith("rewrite"):
        return "whole file"
    return "SEARCH/REPLACE blocks" if form.startswith("SEARCH/REPLACE") else "line edits" if form else "patch"


def _with(text: str, reason: str) -> str:
    return f"{text}: {reason}" if reason else text


def _up(seconds: float) -> float:
    return math.ceil(seconds) if math.isfinite(seconds) else seconds


def _plain(value: float) -> str:
    return f"{round(value):,}" if 1e5 <= value <= 1e15 else f"{value:.6g}"
