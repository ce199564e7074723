"""Decides whether a candidate is correct: trials over seeds and value distributions against the float64 answer.

Beside the values of each call: results held, weights kept, special values, a task that says something.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import torch

from engine.evaluator.checks import (
    candidate_failures,
    comparison,
    contract,
    findings,
    float8,
    operators,
    poison,
    tolerance,
    trials,
)
from engine.evaluator.checks.candidate_failures import CandidateFailed, ComputedElsewhere, Failure, WorkerEnded
from engine.evaluator.checks.contract import mutation_failure, shapes
from engine.evaluator.checks.findings import Findings, Ledger, trial_check
from engine.evaluator.checks.poison import Poison
from engine.evaluator.checks.recordings import Recording
from engine.evaluator.checks.trials import FIRST, PLAN, REPEAT, SPECIAL, Style, Trial
from engine.evaluator.checks.weighing import Output, Weighed, of_precision, pattern, weigh
from engine.evaluator.processes import weight_faults
from engine.evaluator.processes.task_facts import UnusableTask
from engine.evaluator.processes.worker_pair import WorkerPair, call_candidate
from storage.results.check_records import AT_THE_END, LEFT_OUT, OUT_OF_TIME, CheckOutcome
from storage.results.evaluation_results import LEFT_OUT_TRIAL, CheckResult, in_trials
from storage.results.policy import SpecialValues
from storage.results.vocabulary import Verdict

HARDLY = 0.01
SHOWN_STAYS = 6
STATE_TOLERANCE = (
    1e-3  # relative to |value| + rms: a wrong momentum is off by far more, another order of sums by far less
)
# How many times the error of the reference's own call a buffer may be off that holds nothing but rounding, as a running
# mean of what a batch norm before it has centred. PyTorch's running means came up to 80 times as near to float64's as
# those of its own convolutions over channels-last tensors (a ShuffleNet unit on a processor).
STATE_NOISE = 1000
Ending = tuple[Failure | None, CheckOutcome, str]


class Check:
    """The trials of one candidate in one pair of workers."""

    def __init__(
        self, workers: WorkerPair, seed: int, plan: tuple[Trial, ...] = PLAN, recording: Recording | None = None
    ) -> None:
        self._workers = workers
        self._recording = recording or Recording((), {})
        plan = (*plan, *trials.recorded_trials(len(self._recording.calls)))
        self._seed = seed
        self._plan = trials.ordered(plan, seed)
        self._findings = Findings()
        self._ledger = Ledger(
            [*(trial_check(trial.name) for trial in plan), *findings.THROUGHOUT, findings.SPECIAL_VALUES]
        )
        self._at = findings.CONTRACT
        self._varied = 0
        self._typical: dict[str, float] = {}
        self._first: list[torch.Tensor] = []

    def run(self) -> CheckResult:
        """All trials the time allows; stops at the first that fails."""
        started = time.monotonic()
        failure = self._guarded(lambda: self._all(started + self._workers.request.times.check_s))
        if failure is None:
            self._settle()
            failure = self._guarded(lambda: self._special(started + self._workers.request.times.check_s))
        return self._result(failure, time.monotonic() - started)

    def _all(self, deadline: float) -> Failure | None:
        for number, trial in enumerate(self._plan):
            self._at = trial_check(trial.name)
            if not trial.is_essential and time.monotonic() > deadline:
                self._leave_out(trial, OUT_OF_TIME)
                continue
            if failure := self._try(trial, poison.poison_of(number)):
                return failure
        return self._held(AT_THE_END) or self._weights()

    def _try(self, trial: Trial, poisoned: Poison) -> Failure | None:
        workers = self._workers
        if trial.recorded and workers.weight_names:
            if not workers.takes_checkpoints:
                self._leave_out(trial, "its state does not take the network's weights")
                return None
            workers.set_recorded_weights(self._recording.weights)
        elif workers.can_vary_weights:
            workers.set_weights(self._weights_seed(trial))
        inputs = workers.ask_reference("make", seed=trials.seed_of(self._seed, trial.seed_name), style=str(trial.style))
        if trial.recorded:
            self._put_recorded(self._recording.calls[trial.recorded - 1])
        leaves, may_refuse = inputs["leaves"], trial.style not in (Style.OWN, Style.RECORDED)
        reply = workers.ask_reference("answer", leaves=leaves, seed=workers.call_seed, may_refuse=may_refuse)
        if may_refuse and (reason := _unfit(workers, inputs, reply)):
            self._leave_out(trial, reason)
            return None
        answer = call_candidate(workers, leaves, trial.name, poisoned, is_strided=trial.is_strided)
        return self._contract(answer, trial) or self._compare(trial, leaves, bool(reply["is_wide"]), poisoned)

    def _put_recorded(self, inputs: Sequence[torch.Tensor]) -> None:
        """In the place of what was drawn; gradients that a backward pass is given stay as drawn."""
        for target, given in zip(self._workers.trusted["inputs"], inputs, strict=False):
            if given.shape != target.shape or given.dtype != target.dtype:
                raise UnusableTask("the recording's inputs have other shapes or dtypes than the task's: capture again")
            target.copy_(given)

    def _weights_seed(self, trial: Trial) -> int | None:
        return trials.seed_of(self._seed, f"weights {trial.weights}") if trial.weights else None

    def _contract(self, answer: dict[str, Any], trial: Trial) -> Failure | None:
        workers, ledger = self._workers, self._ledger
        if fault := contract.first_fault(workers.expected, answer):
            ledger.note(fault.check, CheckOutcome.BROKEN, f"{fault.reason} (trial {trial.name})")
            return contract.wrong_output(workers.expected, fault, trial.name)
        if failure := mutation_failure(
            workers.shared["inputs"], workers.trusted["inputs"], workers.input_names, trial.name
        ):
            ledger.note(findings.INPUTS, CheckOutcome.BROKEN, failure.message)
            return failure
        if note := contract.layout_note(workers.expected, answer):
            ledger.note(findings.LAYOUT, CheckOutcome.FLAGGED, note)
        return None

    def _compare(self, trial: Trial, leaves: Any, is_wide: bool, poisoned: Poison) -> Failure | None:
        name = trial.name if is_wide else f"{trial.name} (no float64 form: compared in the task's dtype)"
        weighed = [
            weigh(self._output(number), trial, is_wide, functools.partial(self._sensitivity, number, leaves))
            for number in range(len(self._workers.trusted["own"]))
        ]
        if trial.style is not Style.OWN and any(output.is_ill for output in weighed):
            self._leave_out(trial, "the reference itself is far off its float64 answer there")
            return None
        self._findings.trials.append(name)
        self._varied += bool(trial.weights and self._workers.can_vary_weights)
        for number, output in enumerate(weighed):
            self._findings.add(output.errors, output.allowed, output.own_error)
            if failure := output.failure:
                failure = self._fail(trial, number, output, failure, poisoned)
                return self._by_weights(trial, leaves, [each.allowed for each in weighed], failure)
        self._typical[trial.name] = max((output.typical for output in weighed), default=0.0)
        self._findings.typical_error = max(
            self._findings.typical_error, *(output.errors.typical for output in weighed), 0.0
        )
        self._ledger.note(trial_check(trial.name), *_summary(weighed, self._described(trial)))
        return self._remember(trial, leaves)

    def _output(self, number: int) -> Output:
        """Output `number` of the trial now in the shared memory."""
        workers, references = self._workers, self._workers.trusted["own"]
        return Output(
            workers.output_names[number],
            len(references),
            workers.shared["own"][number],
            references[number],
            workers.trusted["answer"][number],
            workers.trusted["inputs"],
            workers.summed_into(number),
            workers.longest_into(number),
            workers.request.policy.precision,
        )

    def _sensitivity(self, number: int, leaves: Any, by_rows: bool) -> float:
        reply = self._workers.ask_reference("sensitivity", leaves=leaves, seed=self._workers.call_seed, by_rows=by_rows)
        return float(reply["changes"][number])

    def _fail(self, trial: Trial, number: int, weighed: Weighed, failure: Failure, poisoned: Poison) -> Failure:
        out = self._workers.shared["own"][number]
        if weighed.mismatch and (count := poison.count(out, poisoned)):
            detail = f"{count} elements hold what lay in memory before (trial {trial.name})"
            self._ledger.note(findings.UNWRITTEN, CheckOutcome.BROKEN, detail)
        if weighed.looks_rounded and (words := self._rounding(number, weighed)):
            self._ledger.note(findings.PRECISION, CheckOutcome.BROKEN, words)
            failure = Failure(failure.verdict, f"{failure.message} {words}")
        self._findings.mismatch = weighed.mismatch
        self._ledger.note(trial_check(trial.name), CheckOutcome.BROKEN, f"{self._described(trial)}: {failure.message}")
        return failure

    def _by_weights(self, trial: Trial, leaves: Any, allowed: list[float], failure: Failure) -> Failure:
        """With the tensor of the state named that it comes from; asked last, for it changes what both sides hold."""
        seed = self._weights_seed(trial)
        if seed is None or not self._workers.can_vary_weights or not self._findings.trials[:-1]:
            return failure
        words = ""
        with suppress(CandidateFailed, WorkerEnded):
            words = weight_faults.explained(self._workers, leaves, seed, allowed)
        if words:
            self._ledger.note(findings.OTHER_WEIGHTS, CheckOutcome.BROKEN, words)
        return Failure(failure.verdict, f"{words} {failure.message}".strip())

    def _rounding(self, number: int, weighed: Weighed) -> str:
        """Ask for normal inputs once more: sums of positive ones average the rounding of their terms away."""
        workers, typical = self._workers, weighed.errors.typical
        inputs = workers.ask_reference("make", seed=trials.seed_of(self._seed, "rounding"), style=str(Style.NORMAL))
        reply = workers.ask_reference("answer", leaves=inputs["leaves"], seed=workers.call_seed, may_refuse=True)
        if not _unfit(workers, inputs, reply):
            with suppress(CandidateFailed, WorkerEnded):
                call_candidate(workers, inputs["leaves"], str(Style.NORMAL))
                typical = max(typical, self._output(number).typical_error)
        return of_precision(tolerance.label(typical, workers.summed), typical, workers.request.policy.precision)

    def _remember(self, trial: Trial, leaves: Any) -> Failure | None:
        """The first result is held to the end, and its repeat is compared bit by bit."""
        if trial is FIRST:
            self._workers.ask_candidate("keep", "the first trial")
            self._first = [out.clone() for out in self._workers.shared["own"]]
            self._ledger.note(
                findings.VARIES, *varies_note(self._workers, leaves, trials.seed_of(self._seed, "varied"))
            )
            failure, outcome, detail = state_after_failure(self._workers, leaves)
            self._ledger.note(findings.STATE_AFTER, outcome, detail)
            return failure
        if trial is REPEAT:
            same = all(map(contract.is_same, self._workers.shared["own"], self._first))
            agreement = "bit-identical" if same else "differs from the first, within the tolerance"
            self._ledger.note(
                findings.REPEAT_RESULT, CheckOutcome.HELD, f"same inputs again, other memory: {agreement}"
            )
        return None

    def _held(self, when: str) -> Failure | None:
        self._at = findings.HELD_RESULT
        if failure := held_failure(self._workers, self._first):
            self._ledger.note(findings.HELD_RESULT, CheckOutcome.BROKEN, f"{failure.message} ({when})")
            return failure
        self._ledger.note(findings.HELD_RESULT, CheckOutcome.HELD, f"the first result is the same {when}")
        return None

    def _weights(self) -> Failure | None:
        self._at = findings.WEIGHTS
        failure, outcome, detail = weights_failure(self._workers)
        self._ledger.note(findings.WEIGHTS, outcome, detail)
        return failure

    def _special(self, deadline: float) -> Failure | None:
        """Last, because a candidate that dies of NaN leaves no process to ask."""
        if time.monotonic() > deadline and self._workers.request.policy.special_values is SpecialValues.REPORTED:
            self._ledger.note(findings.SPECIAL_VALUES, CheckOutcome.ABSENT, f"{LEFT_OUT}{OUT_OF_TIME}")
            return None
        failure, outcome, detail = special_failure(self._workers, trials.seed_of(self._seed, SPECIAL.seed_name))
        self._ledger.note(findings.SPECIAL_VALUES, outcome, detail)
        return failure

    def _settle(self) -> None:
        references, counted = self._workers.trusted["own"], in_trials(self._findings.trials)
        inner = f", with the outputs of {len(self._workers.inner)} modules inside" if self._workers.inner else ""
        self._ledger.settle(findings.CONTRACT, f"{shapes(references)}{inner}, in {counted}")
        self._ledger.settle(findings.LAYOUT, "contiguous")
        self._ledger.settle(findings.INPUTS, f"bit by bit, in {counted}")
        self._ledger.settle(findings.MEMORY, "no output shares memory with an input or an earlier output")
        self._ledger.settle(findings.UNWRITTEN, "no trace of the NaN, high and low numbers left in free memory")
        self._ledger.settle(operators.CHECK, self._workers.seen)
        self._ledger.note(findings.STATE, *state_note(self._workers))
        self._ledger.note(findings.OTHER_WEIGHTS, *other_weights_note(self._workers, self._varied))
        if self._findings.trials:
            self._ledger.settle(
                findings.PRECISION, f"{self._precision()}: typical error {self._findings.typical_error:.2g}"
            )

    def _guarded(self, act: Callable[[], Failure | None]) -> Failure | None:
        try:
            return act()
        except (CandidateFailed, WorkerEnded) as error:
            failure = candidate_failures.of_error(error, self._workers.stage, self._workers.failed_build)
            at = operators.CHECK if isinstance(error, ComputedElsewhere) else self._at
            self._ledger.note(at, CheckOutcome.BROKEN, failure.message[:300])
            return failure

    def _leave_out(self, trial: Trial, reason: str) -> None:
        self._findings.trials.append(f"{trial.name}{LEFT_OUT_TRIAL}{reason}")
        self._ledger.note(trial_check(trial.name), CheckOutcome.ABSENT, f"{LEFT_OUT}{reason}")

    def _described(self, trial: Trial) -> str:
        if trial.recorded:
            return "inputs and weights of the network"
        drawn = ", weights drawn anew" if trial.weights and self._workers.can_vary_weights else ""
        return f"seed {trials.seed_of(self._seed, trial.seed_name)}{drawn}"

    def _basis(self) -> float:
        """The typical error that tells precisions apart: full mantissas and zero mean, so that rounding shows."""
        return self._typical.get(str(Style.NORMAL), max(self._typical.values(), default=0.0))

    def _precision(self) -> str:
        dtype = self._workers.request.policy.dtype
        return f"{dtype}-class" if dtype else tolerance.label(self._basis(), self._workers.summed)

    def _result(self, failure: Failure | None, seconds: float) -> CheckResult:
        collected = self._findings
        is_measured = collected.tolerance > 0 or collected.mismatch is not None or failure is None
        return CheckResult(
            verdict=failure.verdict if failure else Verdict.PASSED,
            seconds=seconds,
            trials=tuple(collected.trials),
            max_error=collected.max_error if is_measured else None,
            max_abs_error=collected.max_abs_error if is_measured else None,
            tolerance=collected.tolerance if is_measured else None,
            reference_error=collected.reference_error if is_measured else None,
            mismatch=collected.mismatch,
            message=failure.message if failure else "",
            precision="" if failure else self._precision(),
            seed=self._seed,
            proofs=self._ledger.checks,
        )


def _summary(weighed: list[Weighed], described: str) -> tuple[CheckOutcome, str, float | None, float | None]:
    """What a check says of the output nearest to its tolerance."""
    if not weighed:
        return CheckOutcome.HELD, f"{described}: no outputs", None, None
    worst = max(
        weighed,
        key=lambda output: output.errors.relative / output.allowed if output.allowed else output.errors.relative,
    )
    outcome = CheckOutcome.FLAGGED if worst.note else CheckOutcome.HELD
    detail = f"{described}: {worst}" + (f"; {worst.note}" if worst.note else "")
    return outcome, detail, worst.errors.relative, worst.allowed


def _unfit(workers: WorkerPair, inputs: Mapping[str, Any], reply: Mapping[str, Any]) -> str:
    """Why a distribution shows nothing about a kernel; empty when it does."""
    if not inputs["is_styled"]:
        return "the inputs keep their values: whole numbers or a fixed structure"
    if "refused" in reply:
        return f"the reference does not take such inputs: {reply['refused']}"
    # The domain of the reference ends somewhere: a logarithm of negatives.
    return "" if all(map(_is_finite, workers.trusted["own"])) else "the reference is not finite there"


def _is_finite(tensor: torch.Tensor) -> bool:
    numbers = float8.exact(comparison.real(tensor))
    if not numbers.dtype.is_floating_point or not numbers.numel():
        return True
    return all(bool(limit.isfinite()) for limit in numbers.aminmax())


def held_failure(workers: WorkerPair, first: list[torch.Tensor]) -> Failure | None:
    """The first result, copied out again now: nothing that was called since may have changed it."""
    poison.fill(workers.shared["own"], Poison.NAN)
    workers.ask_candidate("recall", "a result held")
    if all(map(contract.is_same, workers.shared["own"], first)):
        return None
    return Failure(
        Verdict.INCORRECT,
        "the result of an earlier call changed when forward was called again; allocate a new tensor in every call",
    )


def state_note(workers: WorkerPair) -> tuple[CheckOutcome, str]:
    """Whether a checkpoint of the reference can be loaded into the candidate."""
    count = len(workers.weight_names)
    match workers.weights:
        case "none":
            return CheckOutcome.HELD, "empty, as the reference's"
        case "taken over":
            return (
                CheckOutcome.HELD,
                f"{count} tensors by the reference's names, shapes and dtypes; load_state_dict works",
            )
        case "converted":
            return CheckOutcome.HELD, f"{count} tensors of the reference loaded through the file's convert_state_dict"
    return (
        CheckOutcome.FLAGGED,
        "does not load the original's weights: its names, shapes or dtypes are others, which the task's policy allows",
    )


def other_weights_note(workers: WorkerPair, count: int) -> tuple[CheckOutcome, str]:
    """In how many trials weights had other values than the constructor's, and what stayed."""
    examined = workers.request.examined
    if workers.weights == "none":
        return CheckOutcome.ABSENT, "the task has none"
    if examined is None or (examined.varied and not workers.can_vary_weights):
        return CheckOutcome.FLAGGED, "judged with constructed weights only"
    stays = "; ".join(f"{name} {why}" for name, why in list(examined.stays.items())[:SHOWN_STAYS])
    more = f" and {len(examined.stays) - SHOWN_STAYS} more" if len(examined.stays) > SHOWN_STAYS else ""
    kept = f"; these stay: {stays}{more}" if stays else ""
    if not examined.varied:
        return CheckOutcome.ABSENT, f"nothing of the state changes in training{kept}"
    return CheckOutcome.HELD, f"{len(examined.varied)} tensors drawn anew for {count} trials{kept}"


def state_after_failure(workers: WorkerPair, leaves: Any) -> Ending:
    """Buffers that a call of the reference changes, such as running statistics, must be as it leaves them."""
    if not workers.changing:
        return None, CheckOutcome.ABSENT, "a call of the reference changes none"
    if workers.weights != "taken over":
        return None, CheckOutcome.ABSENT, "its state has other names than the reference's"
    before = dict(zip(workers.weight_names, (weight.clone() for weight in workers.trusted["weights"]), strict=True))
    workers.ask_candidate("state", "its buffers", names=workers.weight_names)
    workers.ask_reference("state_after", leaves=leaves, seed=workers.call_seed)
    pairs = zip(workers.weight_names, workers.shared["weights"], workers.trusted["weights"], strict=True)
    off = {name: (now, right.clone()) for name, now, right in pairs if name in workers.changing and _is_off(now, right)}
    if off and workers.ask_reference("state_after", leaves=leaves, seed=workers.call_seed, in_double=True)["is_done"]:
        exact = dict(zip(workers.weight_names, workers.trusted["weights"], strict=True))
        off = {name: (now, right) for name, (now, right) in off.items() if not _is_noise(now, right, exact[name])}
    for name, trusted in zip(workers.weight_names, workers.trusted["weights"], strict=True):
        trusted.copy_(before[name])
    if not off:
        return None, CheckOutcome.HELD, f"{', '.join(workers.changing[:4])} as the reference leaves them"
    name, (now, _) = next(iter(off.items()))
    how = "as it was" if contract.is_same(now, before[name]) else "with other values than the reference"
    message = (
        f"a call leaves the buffer `{name}` {how}, and the reference updates it in every call in training mode: update "
        "it alike, for the next evaluation reads it"
    )
    return Failure(Verdict.INCORRECT, message), CheckOutcome.BROKEN, message


def _is_off(now: torch.Tensor, right: torch.Tensor) -> bool:
    if not comparison.is_rounded(right):
        return not torch.equal(now, right)
    return not comparison.errors(now, right, right, comparison.scale_of(right, right)).relative <= STATE_TOLERANCE


def _is_noise(now: torch.Tensor, right: torch.Tensor, exact: torch.Tensor) -> bool:
    """Whether a buffer is as far from what float64 leaves as the rounding of the reference's own call explains."""
    if not comparison.is_rounded(right):
        return False
    scale = comparison.scale_of(exact, right)
    own = comparison.errors(right, exact, right, scale).relative
    return comparison.errors(now, exact, right, scale).relative <= STATE_NOISE * own


def weights_failure(workers: WorkerPair) -> Ending:
    """Parameters must be as they were handed over. Buffers may change: the reference's do too."""
    if workers.weights != "taken over":
        kind = "the task has none" if workers.weights == "none" else "the candidate names its weights differently"
        return None, CheckOutcome.ABSENT, kind
    poison.fill(workers.shared["weights"], Poison.NAN)
    kept = set(workers.ask_candidate("state", "its weights", names=workers.weight_names)["names"])
    pairs = zip(workers.weight_names, workers.shared["weights"], workers.trusted["weights"], strict=True)
    parameters = set(workers.parameter_names)
    changed = [
        name
        for name, now, before in pairs
        if name in parameters and not (name in kept and contract.is_same(now, before))
    ]
    if not changed:
        return None, CheckOutcome.HELD, f"{len(parameters)} parameters, bit by bit, {AT_THE_END}"
    failure = Failure(Verdict.INCORRECT, f"forward changed the model's parameter {changed[0]!r}; work on a copy of it")
    return failure, CheckOutcome.BROKEN, failure.message


def special_failure(workers: WorkerPair, seed: int) -> Ending:
    """NaN and infinities at secret places. They decide only where the task's policy requires it."""
    is_required = workers.request.policy.special_values is SpecialValues.REQUIRED
    inputs = workers.ask_reference("make", seed=seed, style=str(Style.SPECIAL))
    if not inputs["is_styled"]:
        return None, CheckOutcome.ABSENT, "no input can hold them"
    leaves = inputs["leaves"]
    reply = workers.ask_reference("answer", leaves=leaves, seed=workers.call_seed, may_refuse=True)
    if "refused" in reply:
        return None, CheckOutcome.ABSENT, f"the reference does not take them: {reply['refused']}"
    try:
        failure, detail = _compare_special(workers, leaves)
    except ComputedElsewhere:
        raise
    except (CandidateFailed, WorkerEnded) as error:
        failure = candidate_failures.of_error(error, workers.stage, workers.failed_build)
        detail = f"forward failed on them: {failure.message[:200]}"
    if failure is None:
        return None, CheckOutcome.HELD, detail
    return (failure, CheckOutcome.BROKEN, detail) if is_required else (None, CheckOutcome.FLAGGED, detail)


def varies_note(workers: WorkerPair, leaves: Any, seed: int) -> tuple[CheckOutcome, str]:
    """Whether a right answer on this task shows anything. Looks at the first trial, now in the shared memory."""
    reasons = []
    if all(_is_constant(answer) for answer in workers.trusted["answer"]):
        reasons.append("all its elements are about the same")
    changes = workers.ask_reference("vary", leaves=leaves, seed=workers.call_seed, other_seed=seed)
    reasons += [f"other {what} give about the same" for what, by in changes.items() if by and max(by) <= HARDLY]
    if reasons:
        return CheckOutcome.FLAGGED, f"the task's answer hardly varies: {' and '.join(reasons)}"
    return CheckOutcome.HELD, "the answer depends on the inputs" + (" and the weights" if changes["weights"] else "")


def _compare_special(workers: WorkerPair, leaves: Any) -> tuple[Failure | None, str]:
    answer = call_candidate(workers, leaves, str(Style.SPECIAL))
    if fault := contract.first_fault(workers.expected, answer):
        return contract.wrong_output(workers.expected, fault, str(Style.SPECIAL)), fault.reason
    details = []
    groups = [workers.shared["own"], workers.trusted["own"], workers.trusted["answer"]]
    for number, (out, reference, right) in enumerate(zip(*groups, strict=True)):
        scale = comparison.scale_of(right, reference)
        own_error = comparison.errors(reference, right, reference, scale).relative
        allowed = 2 * tolerance.allowed(
            comparison.dtype_of(reference), own_error, workers.summed_into(number), workers.request.policy.precision
        )
        difference, mask = comparison.difference(out, right, reference, scale, allowed)
        details.append(str(difference))
        if difference.count:
            words = pattern(out, right, mask, ())
            return Failure(
                Verdict.INCORRECT, f"NaN and infinities among the inputs: {difference}. {words}".strip()
            ), str(difference)
    return None, "; ".join(details)


def _is_constant(answer: torch.Tensor) -> bool:
    numbers = comparison.real(answer)
    if numbers.numel() < 2:
        return not bool(numbers.any())
    low, high = (float(value) for value in numbers.to(torch.float64).aminmax())
    return high - low <= HARDLY * max(abs(low), abs(high))
