"""What a run has come to, as a suite counts it: made of its record, or of as much of it as the index has stored."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator
from dataclasses import replace

from storage import codec
from storage.results import flags, observed
from storage.results.check_records import CheckOutcome, StagedCheck
from storage.results.vocabulary import Verdict
from storage.run import events as ev
from storage.run import journal, labels
from storage.run.folder import RunFolder, runs_folder
from storage.run.journal import Entry
from storage.run.record import Candidate, Record, checks_of, is_wasted
from storage.run.settings import RunSettings
from storage.run.steering.command_arguments import MANUAL
from storage.suites.results import BestKernel, RunResult, TimedKernel, Try
from storage.suites.standing import Suite


def of_suite(suite: Suite) -> dict[str, RunResult]:
    """The results of a suite's runs by id; a run that is gone or whose settings cannot be read is left out."""
    results = {}
    for standing in suite.planned:
        folder = RunFolder(runs_folder() / (standing.run_id or "-"))
        try:
            settings = folder.read_settings()
        except (OSError, codec.DecodeError):
            continue
        run = of_run(settings, list(journal.read(folder.journal_file)))
        mark = labels.read(folder).mark_of(run.best.candidate_id) if run.best else None
        results[settings.run_id] = replace(run, mark=mark.kind) if mark else run
    return results


def of_run(settings: RunSettings, entries: list[Entry]) -> RunResult:
    """One run, from its settings and its whole journal."""
    record = Record.of(settings, entries)
    usage, best = record.usage, record.best
    second = record.baseline.result if record.baseline else None
    by_hand = any(call.model == MANUAL for call in record.calls.values())  # also where a recording had ended
    model = MANUAL if by_hand else settings.model
    return RunResult(
        settings.run_id, str(record.kernel_class), settings.language, settings.toolchain, model,
        settings.strategy, settings.policy.measured, record.limit.model if record.limit else "",
        record.limit.known_ms if record.limit else None,
        record.baseline.name if record.baseline else "", second.speedup if second else None,
        best_kernel(best, checks_of(record.events, best, record.limit)) if best else None,
        tuple(_timed(record)), tuple(_tries(record)), usage.model_calls, usage.worked_s, usage.counted_tokens,
        usage.cost_usd,
        record.limit.bound_by if record.limit else "",
        bound_of(best),
        usage.device_s,
    )  # fmt: skip


def _timed(record: Record) -> Iterator[TimedKernel]:
    """Every correct kernel with the figures that hold, in the order in which they first had any."""
    timings = [event for event in record.events if isinstance(event, ev.Timed) and not event.result.untrusted]
    turns = {name: turn for turn, name in enumerate(dict.fromkeys(event.candidate_id for event in timings))}
    kernels = [kernel for kernel in record.candidates.values() if kernel.standing and kernel.spent]
    for kernel in sorted(kernels, key=lambda kernel: turns[kernel.candidate_id]):
        figures, spent = kernel.standing, kernel.spent
        assert figures is not None
        assert spent is not None
        yield TimedKernel(
            kernel.candidate_id, figures.speedup, figures.low, figures.high, figures.noise, kernel.created.depth,
            spent.model_calls, spent.engine_s, spent.counted_tokens, spent.cost_usd, figures.latency_ms, spent.device_s,
        )  # fmt: skip


def _tries(record: Record) -> Iterator[Try]:
    """Kernels and useless replies in the order they were made."""
    steps = {candidate.created.step for candidate in record.candidates.values()}
    prompts: dict[int, str] = {}
    tried: list[tuple[int, bool, bool]] = []
    for event in record.events:
        if isinstance(event, ev.ModelCalled) or (isinstance(event, ev.CallFailed) and event.is_charged):
            prompts.setdefault(event.step, event.prompt_blob)
        elif isinstance(event, ev.CandidateCreated):
            kernel = record.candidates[event.candidate_id]
            if kernel.is_try:
                is_compiled = kernel.compiled is not None and kernel.compiled.is_ok
                tried.append((event.step, is_compiled, kernel.verdict is Verdict.PASSED))
        elif isinstance(event, ev.StepFinished) and is_wasted(event, event.step in steps):
            tried.append((event.step, False, False))
    return alone((is_compiled, is_passed, prompts.get(step)) for step, is_compiled, is_passed in tried)


def alone(tried: Iterable[tuple[bool, bool, str | None]]) -> Iterator[Try]:
    """A run's tries, (compiled, passed, prompt) each, in their order."""
    prompts: list[str | None] = []
    for is_compiled, is_passed, prompt in tried:
        prompts = prompts or [prompt]
        yield Try(is_compiled, is_passed, prompt is not None and prompt == prompts[0])


def best_kernel(best: Candidate, stood: list[StagedCheck]) -> BestKernel | None:
    """What a suite tells of a run's best kernel; None unless it is checked and timed."""
    timed, checked, figures = best.timed, best.checked, best.figures
    if timed is None or checked is None or figures is None:
        return None
    return BestKernel(
        best.candidate_id, best.created.source_blob, figures.speedup, figures.low, figures.high, figures.noise,
        figures.latency_ms, figures.baseline_latency_ms,
        statistics.fmean(timed.baseline_ms) / statistics.fmean(timed.candidate_ms), len(timed.candidate_ms),
        checked.precision, checked.max_error, checked.max_abs_error, checked.tolerance,
        len(checked.made_trials), tuple(checked.left_out.values()), checked.seed,
        tuple(sorted(flags.looks(stood))),
        _outcome(stood, "other shapes"), _outcome(stood, "special values"), observed.own_share(checked.evidence),
    )  # fmt: skip


def bound_of(best: Candidate | None) -> str:
    """By what its last profile says that the best kernel is bound."""
    return best.profiled.bound if best and best.profiled else ""


def _outcome(stood: list[StagedCheck], check: str) -> CheckOutcome | None:
    return max((record.standing for record in stood if record.check == check), default=None)
