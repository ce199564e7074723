"""Times a candidate against the reference in alternation, on fresh contents, with the idle side stopped."""

from __future__ import annotations

import math
import os
import random
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from engine.evaluation import arena, comparison, tolerance, values
from engine.evaluation.bench import Bench
from engine.evaluation.checking import mutation_failure, structure_failure, wrong_values
from engine.evaluation.failures import Failure
from engine.evaluation.values import Style
from engine.evaluation.worker import Worker
from storage.records import CheckResult, TimingResult, Verdict, median_ranks

MIN_PAIRS = 30
SLOW_PAIRS = 5
MAX_PAIRS = 200
PRECISE = 0.02
SHORT_NS = 1_000_000
BURST = 8
SLOW_NS = 1_000_000_000
TIMED = "a timed call"
WARM_UP_CALLS = 3
WARM_UP_S = 0.05
MAX_WARM_UP_CALLS = 10


@dataclass(frozen=True, slots=True)
class Call:
    """One timed call: what the worker's clock says and what the judge's clock around the question says."""

    worker_ns: int
    judge_ns: int


class TimedCallFailed(Exception):
    """A timed call gave a wrong result: the check had passed, timing finds otherwise."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


class Timing:
    """Pairs of calls on one bench."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self._random = random.Random(os.urandom(16))
        self._calls: list[Call] = []
        self._checked = 0

    def run(self) -> TimingResult | CheckResult:
        """Warm up both sides, then alternate until the ratio is precise or the time is spent."""
        started = time.monotonic()
        try:
            pairs = self._pairs(started)
        except TimedCallFailed as error:
            seconds = time.monotonic() - started
            return CheckResult(error.failure.verdict, seconds, message=error.failure.message, trials=("timed calls",))
        candidate_ms, baseline_ms = zip(*pairs, strict=True)
        return TimingResult(
            candidate_ms=candidate_ms,
            baseline_ms=baseline_ms,
            seconds=time.monotonic() - started,
            evidence=self._evidence(),
        )

    def _pairs(self, started: float) -> list[tuple[float, float]]:
        self._leaves = self._bench.ask_reference("make", seed=self._random.getrandbits(62), style=str(Style.OWN))[
            "leaves"
        ]
        self._master = [tensor.clone() for tensor in self._bench.trusted["inputs"]]
        self._allowed = self._tolerances()
        own_ns, candidate_ns = self._warm_up()
        burst = BURST if max(own_ns, candidate_ns) < SHORT_NS else 1
        deadline = started + self._bench.case.times.timing_s
        pairs: list[tuple[float, float]] = []
        candidate_first = self._random.random() < 0.5
        while not self._is_enough(pairs, deadline):
            # ABBA: every other pair changes which side goes first, so that drift cancels.
            pairs.append(self._pair(candidate_first, burst))
            candidate_first = not candidate_first
        return pairs

    def _is_enough(self, pairs: list[tuple[float, float]], deadline: float) -> bool:
        is_late = time.monotonic() > deadline
        if len(pairs) < (SLOW_PAIRS if is_late else MIN_PAIRS):
            return False
        return is_late or len(pairs) >= MAX_PAIRS or _half_width(pairs) < PRECISE

    def _warm_up(self) -> tuple[int, int]:
        """The same number of calls for both, and the last one's time of each."""
        began = time.monotonic()
        candidate_ns = own_ns = 0
        for number in range(MAX_WARM_UP_CALLS):
            factor = self._factor()
            own_ns = self._reference_call(factor, is_last=False).worker_ns
            candidate_ns = self._candidate_call(factor, is_last=False).worker_ns
            is_warm = number + 1 >= WARM_UP_CALLS and time.monotonic() - began > WARM_UP_S
            if is_warm or candidate_ns > SLOW_NS:
                break
        self._bench.candidate.stop()
        self._reference.stop()
        return own_ns, candidate_ns

    def _pair(self, candidate_first: bool, burst: int) -> tuple[float, float]:
        """Quickest call of a turn of each side: other load only adds time. Every call has contents of its own."""
        factors = [self._factor() for _ in range(burst)]
        if candidate_first:
            mine = self._turn(self._bench.candidate, self._candidate_call, factors)
            theirs = self._turn(self._reference, self._reference_call, factors)
        else:
            theirs = self._turn(self._reference, self._reference_call, factors)
            mine = self._turn(self._bench.candidate, self._candidate_call, factors)
        self._calls += mine
        self._compare()
        return min(call.worker_ns for call in mine) / 1e6, min(call.worker_ns for call in theirs) / 1e6

    def _turn(self, worker: Worker, call: Callable[[float, bool], Call], factors: list[float]) -> list[Call]:
        """One side's calls, with the other side stopped."""
        worker.resume()
        calls = [call(factor, number == len(factors) - 1) for number, factor in enumerate(factors)]
        worker.stop()
        return calls

    def _candidate_call(self, factor: float, is_last: bool) -> Call:
        bench = self._bench
        self._refill(bench.shared["inputs"], factor)
        if is_last:
            arena.poison(bench.shared["own"])
        bench.ask_candidate("load", TIMED, leaves=self._leaves, poison=False, seed=bench.call_seed)
        before = time.perf_counter_ns()
        answer = bench.ask_candidate("go", TIMED)
        judge_ns = time.perf_counter_ns() - before
        stored = bench.ask_candidate("store", TIMED, hold=False, copies=is_last)
        if failure := structure_failure(bench, stored, TIMED):
            raise TimedCallFailed(failure)
        return Call(_nanoseconds(answer.get("ns")), judge_ns)

    def _reference_call(self, factor: float, is_last: bool) -> Call:
        bench = self._bench
        self._refill(bench.trusted["inputs"], factor)
        bench.ask_reference("load", leaves=self._leaves)
        before = time.perf_counter_ns()
        answer = bench.ask_reference("go")
        judge_ns = time.perf_counter_ns() - before
        bench.ask_reference("store", copies=is_last)
        return Call(int(answer["ns"]), judge_ns)

    def _refill(self, targets: list[torch.Tensor], factor: float) -> None:
        for target, original in zip(targets, self._master, strict=True):
            values.refill(target, original, factor)

    def _factor(self) -> float:
        return self._random.uniform(0.9, 1.1)

    @property
    def _reference(self) -> Worker:
        assert self._bench.reference is not None
        return self._bench.reference

    def _compare(self) -> None:
        """The last calls of a pair had the same contents. The reference is in the task's dtype here, not float64."""
        bench = self._bench
        if failure := mutation_failure(bench, bench.trusted["inputs"], TIMED):
            raise TimedCallFailed(failure)
        for out, own, allowed in zip(bench.shared["own"], bench.trusted["own"], self._allowed, strict=True):
            if not comparison.is_close(out, own, allowed):
                self._compare_closely(out, own, allowed)
        self._checked += 1

    def _tolerances(self) -> list[float]:
        """Per output. Twice the check's: here the other side is the reference in its own dtype, with an error too."""
        bench = self._bench
        bench.ask_reference("answer", leaves=self._leaves, seed=bench.call_seed)
        allowed: list[float] = []
        for own, answer in zip(bench.trusted["own"], bench.trusted["answer"], strict=True):
            own_error = comparison.errors(own, answer, own, comparison.scale_of(answer)).relative
            dtype = str(own.dtype).removeprefix("torch.")
            allowed.append(2 * tolerance.allowed(dtype, own_error, bench.summed, bench.case.policy.precision))
        return allowed

    def _compare_closely(self, out: torch.Tensor, own: torch.Tensor, allowed: float) -> None:
        answer = own.double()
        scale = comparison.scale_of(answer)
        errors = comparison.errors(out, answer, own, scale)
        if not errors.relative <= allowed:
            mask = comparison.wrong(out, answer, own, scale, allowed)
            found = comparison.describe(out, answer, mask, errors, TIMED)
            raise TimedCallFailed(Failure(Verdict.INCORRECT, wrong_values(found, allowed)))

    def _evidence(self) -> dict[str, str]:
        gaps = [call.judge_ns - call.worker_ns for call in self._calls]
        claimed = statistics.median(call.worker_ns for call in self._calls)
        seen = statistics.median(call.judge_ns for call in self._calls)
        disagrees = min(gaps) < 0 or seen > 1.5 * claimed + 500_000
        return {
            "threads": os.environ.get("OMP_NUM_THREADS", "?"),
            "clock": f"worker {claimed / 1e6:.4g} ms, judge {seen / 1e6:.4g} ms" + (": DISAGREE" if disagrees else ""),
            "timed outputs checked": str(self._checked),
            "load": f"{os.getloadavg()[0]:.2f}",
        }


def _half_width(pairs: list[tuple[float, float]]) -> float:
    ratios = sorted(base / mine for mine, base in pairs)
    low, high = median_ranks(len(ratios))
    return (ratios[high] - ratios[low]) / 2 / statistics.median(ratios)


def _nanoseconds(claimed: Any) -> int:
    """A worker's figure, or a refusal: zero and nonsense are no times."""
    if isinstance(claimed, int) and 0 < claimed < 10**13 and math.isfinite(claimed):
        return claimed
    raise TimedCallFailed(Failure(Verdict.REFUSED, "the candidate's process reported an impossible time"))
