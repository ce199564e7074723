"""One output of one trial against its answer: error, what is allowed, and the failure if it is too far off."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch

from engine.evaluation import comparison, tolerance
from engine.evaluation.candidate_failures import Failure
from engine.evaluation.comparison import Errors, Scale
from engine.evaluation.pattern import looks_rounded, pattern
from engine.evaluation.trials import ONE_WAY, Style, Trial
from storage.records import Mismatch, Verdict

# A task is asked how sensitive it is only when an error is near enough for that to matter: it costs a float64 pass.
NEAR = 1000.0


@dataclass(frozen=True, slots=True)
class Output:
    """One output of a trial as the candidate gave it, as the reference does in its own dtype, and the float64 answer.

    Attributes:
        number: which output of `count`.
        inputs: of the trial; `longest` is their longest row.
        summed: how many numbers are summed into one element.
        precision: the task's policy.
    """

    number: int
    count: int
    out: torch.Tensor
    own: torch.Tensor
    answer: torch.Tensor
    inputs: Sequence[torch.Tensor]
    summed: float
    longest: int
    precision: str

    @property
    def typical_error(self) -> float:
        """Root mean square of the relative errors."""
        scale = comparison.scale_of(self.answer, self.own)
        return comparison.errors(self.out, self.answer, self.own, scale).typical


@dataclass(frozen=True, slots=True)
class Weighed:
    """What the comparison of one output showed. `note` is for a person's eyes."""

    errors: Errors
    allowed: float
    own_error: float
    typical: float = 0.0
    is_ill: bool = False
    note: str = ""
    failure: Failure | None = None
    mismatch: Mismatch | None = None
    looks_rounded: bool = False

    def __str__(self) -> str:
        return (
            f"largest error {self.errors.relative:.2g} of {self.allowed:.2g} allowed, "
            f"the reference's own {self.own_error:.2g}"
        )


def weigh(output: Output, trial: Trial, is_wide: bool, sensitivity: Callable[[bool], float]) -> Weighed:
    """Compare one output. `sensitivity`, a costly question, tells how far the answer moves with its inputs."""
    out, own, answer = output.out, output.own, output.answer
    by_rows = trial.style is Style.MIXED
    scale: Scale = comparison.row_scales(answer, own) if by_rows else comparison.scale_of(answer, own)
    own_errors = comparison.errors(own, answer, own, scale)
    dtype = comparison.dtype_of(own)
    allowed = tolerance.allowed(dtype, own_errors.relative, output.summed, output.precision)
    if trial.style in ONE_WAY:
        allowed = max(allowed, tolerance.of_one_way_rounding(dtype, output.longest))
    if not is_wide:
        allowed *= 2  # The other side is the reference in its own dtype here, with an error of its own.
    is_ill = tolerance.is_ill_conditioned(dtype, own_errors.relative)
    errors = comparison.errors(out, answer, own, scale)
    if is_wide and 0 < allowed < errors.relative < NEAR * allowed:
        allowed = tolerance.raised(allowed, sensitivity(by_rows), output.summed, out.numel())
    is_own_noise = errors.typical <= tolerance.OWN_ERROR_FACTOR * own_errors.typical
    weighed = Weighed(
        errors,
        allowed,
        own_errors.relative,
        0.0 if is_own_noise else errors.typical,
        is_ill,
        "the reference itself is far off its float64 answer" if is_ill else "",
    )
    if not errors.relative <= allowed:
        return _failed(output, trial, weighed, comparison.wrong(out, answer, own, scale, allowed))
    if trial.style is Style.WHOLE and is_exact(own, answer):
        return _exactly(output, trial, weighed)
    return weighed


def is_exact(own: torch.Tensor, answer: torch.Tensor) -> bool:
    """True when the answer is whole numbers that the task's dtype holds without rounding."""
    if not own.dtype.is_floating_point:
        return False
    return bool((own.to(answer.dtype) == answer).all()) and bool((answer == answer.round()).all())


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


def _exactly(output: Output, trial: Trial, weighed: Weighed) -> Weighed:
    """Sums of zeros and ones: at least the nearest whole number must be right.

    Half a unit is left to transforms with fractions in them (Winograd, Fourier); plain sums have no error at all.
    """
    mask = ~((output.out.to(output.answer.dtype) - output.answer).abs() < 0.5)
    if bool(mask.any()):
        return _failed(output, trial, weighed, mask, "These sums of zeros and ones must be exact.")
    note = "" if weighed.errors.absolute == 0 else f"sums of whole numbers are off by {weighed.errors.absolute:.2g}"
    return replace(weighed, note=note)


def _failed(output: Output, trial: Trial, weighed: Weighed, mask: torch.Tensor, words: str = "") -> Weighed:
    out, answer, errors = output.out, output.answer, weighed.errors
    mismatch = comparison.describe(out, answer, mask, errors, trial.name)
    which = f"Output {output.number}: " if output.count > 1 else ""
    found = words or pattern(out, answer, mask, output.inputs)
    message = " ".join(part for part in (which + wrong_values(mismatch, weighed.allowed), found) if part)
    return replace(
        weighed,
        failure=Failure(Verdict.INCORRECT, message),
        mismatch=mismatch,
        looks_rounded=not found and looks_rounded(out, mask, errors),
    )
