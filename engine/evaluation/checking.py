"""Decides whether a candidate is correct: trials over seeds and value distributions against the float64 answer."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from engine.evaluation import arena, comparison, tolerance
from engine.evaluation.bench import Bench, shapes
from engine.evaluation.failures import Failure
from engine.evaluation.values import Style
from storage.records import CheckResult, Mismatch, Verdict


@dataclass(frozen=True, slots=True)
class Trial:
    """One set of inputs. A repeat uses the seed of the trial it repeats. Essential trials are never left out."""

    name: str
    style: Style
    seed_name: str
    is_essential: bool = False


# Variety first: when a slow candidate leaves time for few trials, those that find most come before more of the same.
PLAN = (
    Trial("own 1", Style.OWN, "own 1", is_essential=True),
    Trial("wide", Style.WIDE, "wide", is_essential=True),
    Trial("own 1 again", Style.OWN, "own 1", is_essential=True),
    Trial("normal", Style.NORMAL, "normal"),
    Trial("constant rows", Style.CONSTANT, "constant rows"),
    Trial("own 2", Style.OWN, "own 2"),
    Trial("tiny", Style.TINY, "tiny"),
    Trial("own 3", Style.OWN, "own 3"),
    Trial("own 4", Style.OWN, "own 4"),
    Trial("own 5", Style.OWN, "own 5"),
)


@dataclass(slots=True)
class Findings:
    """What the trials so far have shown; the worst trial is the one nearest to or furthest over its tolerance."""

    trials: list[str] = field(default_factory=list)
    max_error: float = 0.0
    tolerance: float = 0.0
    max_abs_error: float = 0.0
    reference_error: float = 0.0
    own_error: float = 0.0
    mismatch: Mismatch | None = None

    def add(self, found: comparison.Errors, allowed: float, own_error: float) -> None:
        """Count one trial's figures in."""
        is_worst = (
            found.relative * (self.tolerance or 1.0) >= self.max_error * (allowed or 1.0) or self.tolerance == 0.0
        )
        if is_worst:
            self.max_error, self.tolerance, self.reference_error = found.relative, allowed, own_error
        self.max_abs_error = max(self.max_abs_error, found.absolute)


class Check:
    """The trials of one candidate on one bench."""

    def __init__(self, bench: Bench, seed: int) -> None:
        self._bench = bench
        self._seed = seed
        self._findings = Findings()

    def run(self) -> CheckResult:
        """All trials the time allows; stops at the first that fails."""
        started = time.monotonic()
        deadline = started + self._bench.case.times.check_s
        failure: Failure | None = None
        for trial in PLAN:
            if not trial.is_essential and time.monotonic() > deadline:
                self._findings.trials.append(f"{trial.name}: left out, the candidate is slow")
                continue
            if failure := self._try(trial):
                break
        return self._result(failure, time.monotonic() - started)

    def _try(self, trial: Trial) -> Failure | None:
        bench = self._bench
        leaves = bench.ask_reference("make", seed=self._seed_of(trial.seed_name), style=str(trial.style))["leaves"]
        told = bench.ask_reference("answer", leaves=leaves, seed=bench.call_seed)
        if trial.style is not Style.OWN and not _is_finite(bench):
            self._findings.trials.append(f"{trial.name}: left out, the reference is not finite there")
            return None
        answer = call_candidate(bench, leaves, trial.name)
        failure = structure_failure(bench, answer, trial.name)
        if failure := failure or mutation_failure(bench, bench.trusted["inputs"], trial.name):
            return failure
        name = trial.name if told["is_wide"] else f"{trial.name} (no float64 form: compared in the task's dtype)"
        self._findings.trials.append(name)
        return self._compare(trial.name)

    def _compare(self, trial: str) -> Failure | None:
        bench, found = self._bench, self._findings
        for out, own, answer in zip(bench.shared["own"], bench.trusted["own"], bench.trusted["answer"], strict=True):
            scale = comparison.scale_of(answer)
            own_error = comparison.errors(own, answer, own, scale).relative
            dtype = str(own.dtype).removeprefix("torch.")
            allowed = tolerance.allowed(dtype, own_error, bench.summed, bench.case.policy.precision)
            errors = comparison.errors(out, answer, own, scale)
            found.add(errors, allowed, own_error)
            if not errors.relative <= allowed:
                mask = comparison.wrong(out, answer, own, scale, allowed)
                found.mismatch = comparison.describe(out, answer, mask, errors, trial)
                return Failure(Verdict.INCORRECT, wrong_values(found.mismatch, allowed))
        return None

    def _seed_of(self, name: str) -> int:
        return int.from_bytes(hashlib.sha256(f"{self._seed} {name}".encode()).digest()[:7], "little")

    def _result(self, failure: Failure | None, seconds: float) -> CheckResult:
        found = self._findings
        is_measured = found.tolerance > 0 or found.mismatch is not None or failure is None
        return CheckResult(
            verdict=failure.verdict if failure else Verdict.PASSED,
            seconds=seconds,
            trials=tuple(found.trials),
            max_error=found.max_error if is_measured else None,
            max_abs_error=found.max_abs_error if is_measured else None,
            tolerance=found.tolerance if is_measured else None,
            reference_error=found.reference_error if is_measured else None,
            mismatch=found.mismatch,
            message=failure.message if failure else "",
            precision="" if failure else tolerance.label(found.max_error, self._bench.summed),
            seed=self._seed,
        )


def call_candidate(bench: Bench, leaves: Any, trial: str) -> dict[str, Any]:
    """Hand over the inputs now in the trusted arena, call once, and return what the worker says about its outputs."""
    for mine, theirs in zip(bench.shared["inputs"], bench.trusted["inputs"], strict=True):
        mine.copy_(theirs)
    arena.poison(bench.shared["own"])
    during = f"forward (trial {trial!r})"
    bench.ask_candidate("load", during, leaves=leaves, poison=True, seed=bench.call_seed)
    bench.ask_candidate("go", during)
    return bench.ask_candidate("store", during, hold=True, copies=True)


def structure_failure(bench: Bench, answer: Mapping[str, Any], trial: str) -> Failure | None:
    """Type, count, shape and dtype exact; outputs in memory of their own."""
    expected = bench.trusted["own"]
    reasons = list(_structure(bench, answer, [(list(t.shape), str(t.dtype).removeprefix("torch.")) for t in expected]))
    if reasons:
        return Failure(
            Verdict.INCORRECT, f"wrong output in trial {trial!r}: {reasons[0]}. Expected {shapes(expected)}."
        )
    return None


def mutation_failure(bench: Bench, inputs: Sequence[torch.Tensor], trial: str) -> Failure | None:
    """The inputs must be as they were, bit by bit."""
    pairs = zip(bench.shared["inputs"], inputs, strict=True)
    for number, (after, before) in enumerate(pairs):
        if not _is_same(after, before):
            return Failure(
                Verdict.INCORRECT,
                f"forward changed its input number {number} in place (trial {trial!r}); write to a new tensor instead",
            )
    return None


def _structure(bench: Bench, answer: Mapping[str, Any], expected: list[tuple[list[int], str]]) -> Iterator[str]:
    leaves = answer.get("outputs")
    if not isinstance(leaves, list) or not all(isinstance(leaf, dict) for leaf in leaves):
        yield "the worker's answer is malformed"
        return
    is_single = answer.get("container") not in ("tuple", "list")
    if len(leaves) != len(expected) or is_single is not bench.is_single:
        yield f"forward returned {len(leaves)} value(s) as {answer.get('container')}"
        return
    for number, (leaf, (shape, dtype)) in enumerate(zip(leaves, expected, strict=True)):
        where = f"output {number}" if len(expected) > 1 else "the output"
        if leaf.get("type") != "torch.Tensor":
            yield f"{where} is a {leaf.get('type')}, not a torch.Tensor"
        elif leaf.get("shape") != shape:
            yield f"{where} has shape {tuple(leaf.get('shape') or ())}"
        elif leaf.get("dtype") != dtype:
            yield f"{where} has dtype {leaf.get('dtype')}"
        elif leaf.get("device") != "cpu":
            yield f"{where} is on device {leaf.get('device')}"
        elif leaf.get("is_input"):
            yield f"{where} shares memory with an input; return a new tensor"
        elif leaf.get("is_reused"):
            yield f"{where} shares memory with the output of an earlier call; allocate a new tensor in every call"


def wrong_values(mismatch: Mismatch, allowed: float) -> str:
    """What the model is told about wrong numbers."""
    share = mismatch.wrong_count / max(mismatch.total_count, 1)
    nan = " NaN stands where no value was written, or was computed." if mismatch.actual != mismatch.actual else ""
    return (
        f"{mismatch.wrong_count} of {mismatch.total_count} elements ({share:.2%}) are wrong "
        f"in trial {mismatch.trial!r}: first at index {mismatch.index}: "
        f"expected {mismatch.expected:.8g}, got {mismatch.actual:.8g}. "
        f"Largest error {mismatch.max_rel_error:.3g} relative to |expected| + rms, allowed {allowed:.3g}; "
        f"largest absolute error {mismatch.max_abs_error:.3g}.{nan}"
    )


def _is_finite(bench: Bench) -> bool:
    """A distribution outside the reference's domain (a logarithm of negatives) shows nothing about a kernel."""
    return all(bool(own.isfinite().all()) for own in bench.trusted["own"] if own.dtype.is_floating_point)


def _is_same(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Bitwise, so that NaN equals itself."""
    return torch.equal(_bits(a), _bits(b))


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.contiguous().flatten().view(_BITS.get(tensor.itemsize, torch.uint8))


_BITS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
