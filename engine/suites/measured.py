"""What a run has come to, folded from its journal: the figures that `index.queries.suites` asks of the index."""

from __future__ import annotations

import statistics
from collections.abc import Iterator

from storage import codec
from storage.results.check_records import LOOKED_AT, CheckOutcome, StagedCheck
from storage.results.hardware_limit import REACHED
from storage.results.vocabulary import Verdict
from storage.run import events as ev
from storage.run import journal
from storage.run.folder import RunFolder, runs_folder
from storage.run.journal import Entry
from storage.run.record import Candidate, Record, checks_of
from storage.run.settings import Origin, RunSettings
from storage.suites.results import BestKernel, RunResult, TimedKernel, Try
from storage.suites.standing import Suite

WRITTEN = (Origin.SYNTHESIS, Origin.REPAIR, Origin.OPTIMISATION)


def of_suite(suite: Suite) -> dict[str, RunResult]:
    """The results of a suite's runs by id; a run that is gone or whose settings cannot be read is left out."""
    results = {}
    for standing in suite.planned:
        folder = RunFolder(runs_folder() / (standing.run_id or "-"))
        try:
            settings = folder.read_settings()
        except (OSError, codec.DecodeError):
            continue
        results[settings.run_id] = of_run(settings, list(journal.read(folder.journal_file)))
    return results


def of_run(settings: RunSettings, entries: list[Entry]) -> RunResult:
    """One run, from its settings and its whole journal."""
    record = Record.of(settings, entries)
    usage = record.usage
    best = _best_of(record)
    second = record.baseline.result if record.baseline else None
    return RunResult(
        settings.run_id, str(record.kernel_class), settings.language, settings.toolchain, settings.model,
        settings.strategy, settings.policy.measured, record.limit.device.removesuffix(REACHED) if record.limit else "",
        record.limit.limit_ms if record.limit else None,
        record.baseline.name if record.baseline else "", second.speedup if second else None, best,
        tuple(_timed(record)), tuple(_tries(record)), usage.model_calls, usage.engine_s, usage.counted_tokens,
        usage.cost_usd,
        record.limit.bound_by if record.limit else "",
        record.best.profiled.bound if record.best and record.best.profiled else "",
    )  # fmt: skip


def _timed(record: Record) -> Iterator[TimedKernel]:
    """Every correct kernel at its last timing, in the order of those."""
    last = {event.candidate_id: turn for turn, event in enumerate(record.events) if isinstance(event, ev.Timed)}
    kernels = [kernel for kernel in record.candidates.values() if kernel.standing and kernel.spent]
    for kernel in sorted(kernels, key=lambda kernel: last[kernel.candidate_id]):
        figures, spent = kernel.standing, kernel.spent
        assert figures is not None
        assert spent is not None
        yield TimedKernel(
            kernel.candidate_id, figures.speedup, figures.noise, kernel.created.depth, spent.model_calls,
            spent.engine_s, spent.counted_tokens, spent.cost_usd,
        )  # fmt: skip


def _tries(record: Record) -> Iterator[Try]:
    """Kernels and useless replies in the order they were made; a kernel that a person brought is none."""
    by_step = {candidate.created.step: candidate for candidate in record.candidates.values()}
    prompts: dict[int, str] = {}
    for event in record.events:
        if isinstance(event, ev.ModelCalled) or (isinstance(event, ev.CallFailed) and event.is_charged):
            prompts.setdefault(event.step, event.prompt_blob)
    tried = list(_judged(record, by_step))
    first = prompts.get(tried[0][0]) if tried else None
    for step, is_compiled, is_passed in tried:
        yield Try(is_compiled, is_passed, first is not None and prompts.get(step) == first)


def _judged(record: Record, by_step: dict[int, Candidate]) -> Iterator[tuple[int, bool, bool]]:
    """(step, compiled, passed)"""
    for event in record.events:
        if isinstance(event, ev.CandidateCreated):
            candidate = record.candidates[event.candidate_id]
            if event.origin in WRITTEN and candidate.verdict is not None:
                yield (
                    event.step,
                    bool(candidate.compiled and candidate.compiled.is_ok),
                    candidate.verdict is Verdict.PASSED,
                )
        elif isinstance(event, ev.StepFinished) and event.outcome == "patch_failed" and event.step not in by_step:
            yield event.step, False, False


def _best_of(record: Record) -> BestKernel | None:
    best = record.best
    if best is None or best.timed is None or best.checked is None:
        return None
    timed, checked = best.timed, best.checked
    stood = checks_of(record, best)
    low, high = timed.speedup_interval
    return BestKernel(
        best.candidate_id, best.created.source_blob, timed.speedup, low, high, timed.noise, timed.latency_ms,
        timed.baseline_latency_ms, statistics.fmean(timed.baseline_ms) / statistics.fmean(timed.candidate_ms),
        len(timed.candidate_ms), checked.precision, checked.max_error, checked.max_abs_error, len(checked.trials),
        checked.seed, tuple(sorted({check.check for check in stood if check.standing in LOOKED_AT})),
        _outcome(stood, "other shapes"), _outcome(stood, "special values"),
    )  # fmt: skip


def _outcome(stood: list[StagedCheck], check: str) -> CheckOutcome | None:
    return max((record.standing for record in stood if record.check == check), default=None)
