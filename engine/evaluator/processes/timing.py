"""Times a candidate against the reference in alternation, by the evaluator's clock, on contents no earlier call saw.

Every call is made and compared alike: nothing tells the candidate which one counts.
"""

from __future__ import annotations

import os
import random
import statistics
import time
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from engine.evaluator.checks import comparison, contract, float8, operators, ties, timing_checks, tolerance
from engine.evaluator.checks.candidate_failures import ComputedElsewhere, Failure, TimedCallFailed
from engine.evaluator.checks.clock import DeviceClock, Session, half_width, waited_share
from engine.evaluator.checks.contents import Contents
from engine.evaluator.checks.contract import structure_failure
from engine.evaluator.checks.processor_time import Reading
from engine.evaluator.checks.timing_checks import PROBES, SLOW_MS, SLOW_PROBES, Recall, Setting, Twice
from engine.evaluator.checks.trials import IN_WORDS, Style
from engine.evaluator.checks.weighing import wrong_values
from engine.evaluator.machine import process_memory, processes
from engine.evaluator.processes.timed_worker import (
    DeviceTimedWorker,
    Preparation,
    StoringTimedWorker,
    Taken,
    TimedWorker,
)
from engine.evaluator.processes.worker import Worker
from engine.evaluator.processes.worker_pair import WorkerPair
from storage.results.check_records import DEVICE_TIME
from storage.results.evaluation_results import CheckResult, TimingResult
from storage.results.timeline import Part
from storage.results.vocabulary import Verdict

SETTLE_S = (0.1, 0.4)
WINDOW_S = 0.05
BUSY = 0.25
CHECK = "idle threads"
BYTES = 256 << 20
COPIES = 40
SLOWER = 1.3
LEAST_MS = 0.05
_Event: Any = torch.cuda.Event


def refuse_strays(candidate: Worker, others: list[Worker]) -> None:
    """Between calls there is the worker's own process and no other.

    Raises:
        TimedCallFailed: it left one running.
    """
    if left := _strays(candidate, others):
        message = f"processes left running after a call: {', '.join(left[:5])}; a kernel may start none"
        raise TimedCallFailed(CHECK, Failure(Verdict.REFUSED, message))


def refuse_burners(candidate: Worker) -> str:
    """Let the worker run unasked. OpenMP threads spin a while for their next region, so a busy one gets a second look.

    Returns:
        What was seen, for the record.

    Raises:
        TimedCallFailed: its threads keep a processor busy.
    """
    candidate.resume()
    try:
        pid = candidate.inner_pid
        for settle_s in SETTLE_S:
            time.sleep(settle_s)
            share = _share(pid)
            if share < BUSY:
                return f"{processes.thread_count(pid)} threads, {share:.0%} of one processor while nothing is asked"
    finally:
        candidate.stop()
    message = f"threads left running: {share:.0%} of one processor is busy while nothing is asked; join them in forward"
    raise TimedCallFailed(CHECK, Failure(Verdict.REFUSED, message))


def _strays(candidate: Worker, others: list[Worker]) -> list[str]:
    """Live processes that the candidate started: beside its worker, or left to this process by a parent that ended."""
    our_pids = {candidate.pid, candidate.inner_pid, *(worker.pid for worker in others)}
    pids = [pid for pid in (*processes.children(os.getpid()), *candidate.members()) if pid not in our_pids]
    return [name for pid in dict.fromkeys(pids) if (name := processes.running_name(pid))]


def _share(pid: int) -> float:
    """The share of one processor, over the window. The kernel may wake this process late: its own clock gives the
    length."""
    began, before = time.monotonic_ns(), processes.processor_ns(pid)
    time.sleep(WINDOW_S)
    return max(0, processes.processor_ns(pid) - before) / (time.monotonic_ns() - began)


def refuse_busy_device(workers: WorkerPair) -> str:
    """Compare copies beside the stopped candidate with copies after its end; it is ended here.

    Other processes can slow a device that is leased to us for a moment, as when the driver clears memory for them: the
    faster of two looks counts. What the candidate left running is there in both.

    Returns:
        What was seen, for the record.

    Raises:
        TimedCallFailed: something of the candidate's runs on.
    """
    source = torch.empty(BYTES, dtype=torch.uint8, device=workers.device)
    target = torch.empty_like(source)
    _copies_ms(source, target)
    beside = _copies_ms(source, target)
    time.sleep(SETTLE_S[0])
    beside = min(beside, _copies_ms(source, target))
    workers.candidate.end()
    after = _copies_ms(source, target)
    finding = f"copies take {beside:.3g} ms beside the stopped candidate and {after:.3g} ms after its end"
    if beside > SLOWER * after + LEAST_MS:
        message = f"work goes on on the device after forward has returned: {finding}; wait for it in forward"
        raise TimedCallFailed(CHECK, Failure(Verdict.REFUSED, message))
    return finding


def _copies_ms(source: torch.Tensor, target: torch.Tensor) -> float:
    """Median over copies."""
    took: list[float] = []
    for _ in range(COPIES):
        begin, end = (_Event(enable_timing=True) for _ in range(2))
        begin.record()
        target.copy_(source)
        end.record()
        end.synchronize()
        took.append(begin.elapsed_time(end))
    return statistics.median(took)


COLD = "cold, L2 overwritten before each call"
MIN_PAIRS = 30
SLOW_PAIRS = 5
MAX_PAIRS = 200
PRECISE = 0.02
SLOW_NS = 1_000_000_000
TIMED = "a timed call"
TRACED = 0.15
CHANGED, MOST_CHANGES = 0.1, 5  # share of the turns before which weights change, and how often at most
MIN_TRACED, MIN_TRACED_SLOW = 10, 3
MAX_TRACED = 20
WARM_UP_CALLS = 3
WARM_UP_S = 0.05
MAX_WARM_UP_CALLS = 10


class Timing:
    """Pairs of calls in one pair of workers."""

    def __init__(self, workers: WorkerPair) -> None:
        self._workers = workers
        self._random = random.Random(os.urandom(16))
        self._session = Session()
        self._traced = 0
        self._warm_up_calls = 0
        self._changes = 0
        self._compared = 0
        self._is_same = process_memory.is_same if workers.device == "cpu" else contract.is_same

    def run(self) -> TimingResult | CheckResult:
        """Warm up both sides, then alternate until the ratio is precise or the time is spent."""
        started = time.monotonic()
        try:
            with self._workers.spent.on(Part.INPUTS):
                self._prepare()
            preparing_s = time.monotonic() - started
            machine = self._workers.take_turn()
            started = time.monotonic() - preparing_s  # what was waited for a turn is not sampled
            with self._workers.spent.on(Part.TIMING):
                self._take_pairs(started)
            with self._workers.spent.on(Part.CLOSING):
                setting = self._closing()
        except TimedCallFailed as error:
            return CheckResult(
                error.failure.verdict,
                time.monotonic() - started,
                message=error.failure.message,
                trials=("timed calls",),
                proofs=(timing_checks.broken(error),),
            )
        pairs = timing_checks.by_device(self._session, setting) or self._session.pairs
        candidate_ms, baseline_ms = zip(*pairs, strict=True)
        return TimingResult(
            candidate_ms=candidate_ms,
            baseline_ms=baseline_ms,
            baseline=self._workers.baseline,
            seconds=time.monotonic() - started,
            evidence={
                "threads": os.environ.get("OMP_NUM_THREADS", "?"),
                "timed outputs checked": str(self._compared),
                "weights": f"changed {self._changes} times" if self._changes else "as constructed",
                timing_checks.WAITED: f"{waited_share(self._session.reference_calls):.3f}",
                **timing_checks.copied(setting),
                **machine,
            },
            proofs=timing_checks.of(self._session, setting),
            device_interval=timing_checks.device_interval(self._session, setting)
            or timing_checks.contended(self._session, setting),
        )

    def _prepare(self) -> None:
        """Draw the inputs, take the tolerances from them, and give both sides the same start."""
        self._leaves: Mapping[str, Any] = {}
        self._contents = Contents(self._draw, self._workers.input_specs, self._workers.device)
        self._allowed = self._tolerances()
        for shared, trusted in zip(self._workers.shared["inputs"], self._workers.trusted["inputs"], strict=True):
            shared.copy_(trusted)
        self._preparation = Preparation(self._leaves, self._workers.call_seed)
        self._timed_candidate, self._timed_reference = self._sides()

    def _sides(self) -> tuple[TimedWorker, TimedWorker]:
        """Whether memory can be read is asked of the reference, or a candidate could forbid it and be believed."""
        workers = self._workers
        if workers.device == "cpu":
            self._is_memory_read = process_memory.is_permitted(self._reference.inner_pid)
            kind: type[TimedWorker] = TimedWorker if self._is_memory_read else StoringTimedWorker
        else:
            self._is_memory_read, kind = True, DeviceTimedWorker

        def ask_candidate(name: str, **arguments: Any) -> dict[str, Any]:
            try:
                return workers.ask_candidate(name, TIMED, **arguments)
            except ComputedElsewhere as error:
                raise TimedCallFailed(operators.CHECK, error.failure) from error

        candidate = kind(
            workers.candidate,
            ask_candidate,
            workers.shared,
            lambda reply: structure_failure(workers.expected, reply, TIMED),
            *workers.sampled[:1],
        )
        reference = kind(
            self._reference, workers.ask_reference, workers.trusted, lambda reply: None, *workers.sampled[1:]
        )
        return candidate, reference

    def _take_pairs(self, started: float) -> None:
        self._timed_candidate.halt()
        self._timed_reference.halt()
        for worker, sampled in zip((self._workers.candidate, self._reference), self._workers.sampled, strict=False):
            sampled.begin()
            worker.meanwhile = sampled.drain
        self._change_weights()
        self._burst = self._warm_up()
        deadline = started + self._workers.request.times.timing_s
        while not self._is_enough(deadline):
            if self._random.random() < CHANGED and self._changes < MOST_CHANGES and self._change_weights():
                # Untimed: what is packed once a model is loaded is packed here.
                self._pair(self._random.random() < 0.5, self._burst)
            # Two pairs with opposite orders, so that drift cancels; which order comes first is secret.
            candidate_first = self._random.random() < 0.5
            for is_first in (candidate_first, not candidate_first):
                self._maybe_traced_pair()
                candidate, reference = self._pair(is_first, self._burst)
                self._session.add([taken.call for taken in candidate], [taken.call for taken in reference])
        while self._is_device and self._traced < (MIN_TRACED if self._burst > 1 else MIN_TRACED_SLOW):
            self._traced_pair()

    def _change_weights(self) -> bool:
        """Other weights on both sides, which stand still before and after; false where the task has none that vary."""
        workers = self._workers
        if not workers.can_vary_weights:
            return False
        self._timed_reference.between("set_weights", seed=self._random.getrandbits(62))
        workers.hand_over_weights()
        self._timed_candidate.between("load_weights")
        self._changes += 1
        return True

    @property
    def _is_device(self) -> bool:
        return self._workers.device != "cpu"

    def _maybe_traced_pair(self) -> None:
        """Nothing tells the candidate which of its turns are recorded."""
        if self._is_device and self._traced < MAX_TRACED and self._random.random() < TRACED:
            self._traced_pair()

    def _traced_pair(self) -> None:
        """A pair whose kernels the driver records: the second clock, and no part of the first one's figures."""
        self._timed_candidate.is_traced = self._timed_reference.is_traced = True
        self._pair(self._random.random() < 0.5, self._burst)
        self._timed_candidate.is_traced = self._timed_reference.is_traced = False
        self._traced += 1

    def _is_enough(self, deadline: float) -> bool:
        count = len(self._session.candidate)
        is_late = time.monotonic() > deadline
        if count < (SLOW_PAIRS if is_late else MIN_PAIRS):
            return False
        return is_late or count >= MAX_PAIRS or half_width(self._session.pairs) < PRECISE

    def _warm_up(self) -> int:
        """The same number of calls for both; returns how many calls make a turn."""
        began = time.monotonic()
        quicker_ns = slower_ns = SLOW_NS
        while True:
            candidate, reference = self._pair(self._random.random() < 0.5, 1)
            both = sorted(taken[0].call.evaluator_ns for taken in (candidate, reference))
            quicker_ns, slower_ns = min(quicker_ns, both[0]), min(slower_ns, both[1])
            self._warm_up_calls += 1
            is_warm = self._warm_up_calls >= WARM_UP_CALLS and time.monotonic() - began > WARM_UP_S
            if is_warm or both[1] > SLOW_NS or self._warm_up_calls >= MAX_WARM_UP_CALLS:
                return self._timed_candidate.burst(quicker_ns, slower_ns)

    def _pair(self, candidate_first: bool, burst: int) -> tuple[list[Taken], list[Taken]]:
        """A turn of each side, with the other side stopped. Both get the same contents, in orders of their own."""
        fresh = [self._contents.fresh() for _ in range(burst)]
        taken: dict[TimedWorker, list[Taken]] = {}
        for side in (
            (self._timed_candidate, self._timed_reference)
            if candidate_first
            else (self._timed_reference, self._timed_candidate)
        ):
            taken[side] = side.turn(self._preparation, fresh, self._random.sample(range(burst), burst))
            refuse_strays(self._workers.candidate, [self._reference])
        for number, (candidate, reference) in enumerate(
            zip(taken[self._timed_candidate], taken[self._timed_reference], strict=True)
        ):
            self._compare(candidate, reference, fresh[number])
        return taken[self._timed_candidate], taken[self._timed_reference]

    def _closing(self) -> Setting:
        """What can only be said at the end: does the candidate rest when nobody asks, and do the clocks agree?"""
        rest = refuse_burners(self._workers.candidate)
        agreement = self._session.agreement
        if not agreement.holds:
            raise TimedCallFailed("clock", Failure(Verdict.REFUSED, f"the clocks disagree: {agreement}"))
        recall = Recall.confirmed(self._recall)
        self._timed_candidate.rest()
        device, host_ns = self._on_device()
        processor_time = self._processor_time()
        if recall.remembers:
            message = (
                f"the candidate remembers results, a result cache: {recall}. Compute the output anew in every call"
            )
            raise TimedCallFailed("nothing remembered", Failure(Verdict.REFUSED, message))
        if self._workers.device != "cpu":
            rest = f"{rest}; {refuse_busy_device(self._workers)}"
        return Setting(
            recall=recall,
            warm_up_calls=self._warm_up_calls,
            compared=self._compared,
            contents=self._contents.describe(),
            can_vary=self._contents.can_vary,
            is_memory_read=self._is_memory_read,
            cache="hot, inputs rewritten before each call" if self._workers.device == "cpu" else COLD,
            calls=self._burst,
            rest=rest,
            load=os.getloadavg()[0],
            others_share=self._workers.others_share,
            observed=self._workers.seen,
            device=device,
            host_ns=host_ns,
            processor_time=processor_time,
        )

    def _processor_time(self) -> Reading | None:
        """In whose code the candidate's calls were; nothing of it on a GPU.

        Raises:
            TimedCallFailed: in a library's, or it cannot be told for something that the candidate did.
        """
        if not self._workers.sampled:
            return None
        candidate, reference = self._workers.sampled
        built_files = [path for path in self._workers.libraries.rglob("*") if path.is_file()]
        reading = candidate.reading(built_files, moves=self._workers.observed.moves)
        can_tell = not reference.reading([], moves=False).why
        if reading.is_prevented and can_tell:
            message = (
                f"the candidate prevents that its processor time is looked at ({reading.why}); remove what does so"
            )
            raise TimedCallFailed(operators.CHECK, Failure(Verdict.REFUSED, message))
        if left := self._workers.observed.left:
            return reading.undecided(f"PyTorch computed what the policy leaves to it ({', '.join(left)})")
        if reading.failure is not None:
            raise TimedCallFailed(operators.CHECK, reading.failure)
        return reading

    def _on_device(self) -> tuple[DeviceClock | None, float]:
        """The second clock, and what a call takes on the host; nothing of it on the CPU.

        Raises:
            TimedCallFailed: the candidate is not what it is while nobody records.
        """
        candidate, reference = self._timed_candidate, self._timed_reference
        if not (isinstance(candidate, DeviceTimedWorker) and isinstance(reference, DeviceTimedWorker)):
            return None, 0.0
        if 2 * sum(call.is_attached for call in candidate.traced) < sum(call.is_attached for call in reference.traced):
            message = "the candidate switched off the observer of the GPU's kernels; remove it"
            raise TimedCallFailed(operators.CHECK, Failure(Verdict.REFUSED, message))
        clock = DeviceClock.of(self._session, candidate.traced, reference.traced)
        if not clock.behaves:
            message = (
                f"a call takes {clock.evaluator_ns / 1e6:.3g} ms, and at least {clock.traced_ns / 1e6:.3g} ms while "
                f"its kernels are recorded, more than the recording costs: forward does other work when it is watched"
            )
            raise TimedCallFailed(DEVICE_TIME, Failure(Verdict.REFUSED, message))
        if clock.computes_ahead:
            message = (
                f"the first call of a turn takes {clock.lead:.3g} times as long on the GPU as the calls after it, the "
                f"reference's {clock.reference_lead:.3g} times: it computes results of the others. Compute in each "
                "call what that call asks for"
            )
            raise TimedCallFailed(DEVICE_TIME, Failure(Verdict.REFUSED, message))
        return clock, statistics.median(candidate.host_ns)

    def _recall(self) -> Recall:
        """Call both sides twice on inputs of their own, a few times; last of all, so that it betrays nothing."""
        is_slow = self._session.pairs[-1][0] > SLOW_MS or self._session.pairs[-1][1] > SLOW_MS
        candidate: list[Twice] = []
        reference: list[Twice] = []
        for _ in range(SLOW_PROBES if is_slow else PROBES):
            fresh = [self._contents.fresh() for _ in range(self._burst)]
            candidate.append(self._timed_candidate.twice(self._preparation, fresh))
            reference.append(self._timed_reference.twice(self._preparation, fresh))
        return Recall.of(self._session.clock, candidate, reference, self._session.candidate_calls)

    @property
    def _reference(self) -> Worker:
        assert self._workers.reference is not None
        return self._workers.reference

    def _draw(self) -> Sequence[torch.Tensor]:
        """One more set of inputs from the task itself."""
        self._reference.resume()
        reply = self._workers.ask_reference("make", seed=self._random.getrandbits(62), style=str(Style.OWN))
        self._reference.stop()
        self._leaves = self._leaves or reply["leaves"]
        return self._workers.trusted["inputs"]

    def _compare(self, candidate: Taken, reference: Taken, fresh: Sequence[torch.Tensor]) -> None:
        """Compare outputs of the same contents. The reference is in the task's dtype here, not float64."""
        for name, after, before in zip(self._workers.input_names, candidate.inputs, fresh, strict=True):
            if not self._is_same(after, before):
                raise _wrong(f"forward changed {name} in place ({TIMED}); write to a new tensor")
        names = self._workers.output_names
        right = self._by_claims(candidate, fresh) if self._workers.inner else reference.outputs
        for number, (name, out, expected) in enumerate(zip(names, candidate.outputs, right, strict=True)):
            if not comparison.is_close(out, expected, self._allowed[number]) and not ties.are_of_equal_values(
                out, expected, fresh
            ):
                here = self._allowed_here(number, candidate, fresh) if self._workers.inner else 0.0
                self._compare_closely(name, out, expected, max(self._allowed[number], here))
        self._compared += 1

    def _allowed_here(self, number: int, candidate: Taken, fresh: Sequence[torch.Tensor]) -> float:
        """What is allowed of a module for the contents of this call: how far rounding moves an output depends on what
        the module was given, and with many modules in each call some differ from what was measured at the start."""
        self._by_claims(candidate, fresh, is_own_enough=False)
        reference, answer = self._workers.trusted["own"][number], self._workers.trusted["answer"][number]
        own_error = comparison.errors(reference, answer, reference, comparison.scale_of(answer)).relative
        if tolerance.is_ill_conditioned(comparison.dtype_of(reference), own_error):
            return 0.0
        question = {"leaves": self._leaves, "seed": self._workers.call_seed}
        changes = self._timed_reference.between("sensitivity", **question, by_rows=False)["changes"]
        summed = self._workers.summed_into(number)
        return tolerance.raised(
            self._allowed_of(number, reference, own_error), changes[number], summed, reference.numel()
        )

    def _by_claims(
        self, candidate: Taken, fresh: Sequence[torch.Tensor], *, is_own_enough: bool = True
    ) -> Sequence[torch.Tensor]:
        """The reference's outputs, each of its modules going on from what the candidate's gave in the same call."""
        for shared, tensor in zip(self._workers.trusted["inputs"], fresh, strict=True):
            shared.copy_(tensor)
        self._workers.take_claims(candidate.outputs)
        question = {"leaves": self._leaves, "seed": self._workers.call_seed}
        self._timed_reference.between("answer", **question, is_own_enough=is_own_enough, is_by_claims=True)
        return self._workers.trusted["own"]

    def _tolerances(self) -> list[float]:
        """Per output. Twice the check's: here the other side is the reference in its own dtype, with an error too."""
        workers = self._workers
        self._reference.resume()
        workers.ask_reference("answer", leaves=self._leaves, seed=workers.call_seed)
        allowed: list[float] = []
        for number, (reference, answer) in enumerate(
            zip(workers.trusted["own"], workers.trusted["answer"], strict=True)
        ):
            own_error = comparison.errors(reference, answer, reference, comparison.scale_of(answer)).relative
            allowed.append(self._allowed_of(number, reference, own_error))
        return allowed

    def _allowed_of(self, number: int, reference: torch.Tensor, own_error: float) -> float:
        dtype = str(reference.dtype).removeprefix("torch.")
        summed, precision = self._workers.summed_into(number), self._workers.request.policy.precision
        return 2 * tolerance.allowed(dtype, own_error, summed, precision)

    def _compare_closely(self, name: str, out: torch.Tensor, reference: torch.Tensor, allowed: float) -> None:
        answer = reference  # of 8 bits: rounded as the output is
        if not float8.is_float8(reference):
            answer = reference.to(torch.complex128 if reference.is_complex() else torch.float64)
        scale = comparison.scale_of(answer)
        errors = comparison.errors(out, answer, reference, scale)
        if not errors.relative <= allowed:
            mask = comparison.wrong(out, answer, reference, scale, allowed)
            which = f"{name[0].upper()}{name[1:]}: " if len(self._allowed) > 1 else ""
            mismatch = comparison.describe(out, answer, mask, errors, TIMED)
            raise _wrong(which + wrong_values(mismatch, allowed, IN_WORDS[Style.OWN]))


def _wrong(message: str) -> TimedCallFailed:
    return TimedCallFailed("outputs of timed calls", Failure(Verdict.INCORRECT, message))
