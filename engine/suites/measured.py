"""What a run has come to, folded from its journal: the figures that `index.queries.suites` asks of the index."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from dataclasses import dataclass

from storage import codec
from storage.results.check_records import CheckOutcome, CheckRecord
from storage.results.hardware_limit import REACHED
from storage.results.vocabulary import Verdict
from storage.run import events as ev
from storage.run import journal
from storage.run.folder import RunFolder, runs_folder
from storage.run.journal import Entry
from storage.run.record import Candidate, Record
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
    spent = _Spent()
    for event in record.events:
        spent.take(event)
    best = _best_of(record)
    second = record.baseline.result if record.baseline else None
    return RunResult(
        settings.run_id, str(record.kernel_class), settings.language, settings.toolchain, settings.model,
        settings.strategy, settings.policy.measured, record.limit.device.removesuffix(REACHED) if record.limit else "",
        record.limit.limit_ms if record.limit else None,
        record.baseline.name if record.baseline else "", second.speedup if second else None, best,
        tuple(_timed(record)), tuple(_tries(record)), spent.calls, spent.engine_s, spent.tokens, spent.cost_usd,
        record.limit.bound_by if record.limit else "",
        record.best.profiled.bound if record.best and record.best.profiled else "",
    )  # fmt: skip


@dataclass(slots=True)
class _Spent:
    """What had been spent when an event came; None once any of it is unknown."""

    calls: int = 0
    engine_s: float = 0.0
    tokens: int | None = 0
    cost_usd: float | None = 0.0

    def take(self, event: ev.Event) -> None:
        if isinstance(event, ev.StepFinished):
            self.engine_s += event.seconds or 0.0
        elif isinstance(event, ev.ModelCalled) or (isinstance(event, ev.CallFailed) and event.is_charged):
            self.calls += 1
            used = None if None in (event.input_tokens, event.output_tokens) else _tokens(event)
            self.tokens = None if self.tokens is None or used is None else self.tokens + used
            known = self.cost_usd is not None and event.cost_usd is not None
            self.cost_usd = (self.cost_usd or 0.0) + (event.cost_usd or 0.0) if known else None


def _tokens(event: ev.ModelCalled | ev.CallFailed) -> int:
    return (event.input_tokens or 0) + (event.output_tokens or 0)


def _timed(record: Record) -> Iterator[TimedKernel]:
    """Every correct kernel at its last timing, in the order of those."""
    spent = _Spent()
    kernels: dict[str, TimedKernel] = {}
    for event in record.events:
        spent.take(event)
        if isinstance(event, ev.Timed):
            kernels.pop(event.candidate_id, None)
            name, result, candidate = event.candidate_id, event.result, record.candidates.get(event.candidate_id)
            was = spent.calls, spent.engine_s, spent.tokens, spent.cost_usd
            if candidate is not None:
                kernels[name] = TimedKernel(name, result.speedup, result.noise, candidate.created.depth, *was)
    for name, timed in kernels.items():
        if record.candidates[name].verdict is Verdict.PASSED:
            yield timed


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
    check_records = _check_records(best)
    review_flags = {
        review.label: review.flags for review in record.reviews.values() if review.candidate_id == best.written_as
    }
    flags = {
        check_record.check
        for check_record in check_records
        if check_record.standing in (CheckOutcome.FLAGGED, CheckOutcome.BROKEN)
    }
    flags |= {"intent kept"} if best.created.flags else set()
    flags |= {"soft verification"} if any(review_flags.values()) else set()
    low, high = timed.speedup_interval
    return BestKernel(
        best.candidate_id, best.created.source_blob, timed.speedup, low, high, timed.noise, timed.latency_ms,
        timed.baseline_latency_ms, statistics.fmean(timed.baseline_ms) / statistics.fmean(timed.candidate_ms),
        len(timed.candidate_ms), checked.precision, checked.max_error, checked.max_abs_error, len(checked.trials),
        checked.seed, tuple(sorted(flags)),
        _stood(check_records, "other shapes"), _stood(check_records, "special values"),
    )  # fmt: skip


def _check_records(candidate: Candidate) -> list[CheckRecord]:
    stages = (candidate.compiled, candidate.checked, candidate.timed)
    return [check_record for stage in stages if stage is not None for check_record in stage.proofs]


def _stood(check_records: list[CheckRecord], check: str) -> CheckOutcome | None:
    return max((check_record.standing for check_record in check_records if check_record.check == check), default=None)
