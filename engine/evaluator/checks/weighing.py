"""One output of one trial against its answer: error, what is allowed, the failure if it is too far off, and a sentence
about what its wrong elements have in common."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch

from engine.evaluator.checks import comparison, float8, ties, tolerance
from engine.evaluator.checks.candidate_failures import Failure
from engine.evaluator.checks.comparison import Errors, Scale, real
from engine.evaluator.checks.trials import IN_WORDS, ONE_WAY, Style, Trial
from storage.results.evaluation_results import Mismatch, percent_wrong
from storage.results.vocabulary import Verdict

SAMPLE = 100_000
SAME = 1e-3
FEW = 3
MOST_ROUNDED = 1e-2
MANY = 0.01


def pattern(out: torch.Tensor, answer: torch.Tensor, mask: torch.Tensor, inputs: Sequence[torch.Tensor]) -> str:
    """The first of the known patterns that fits, or an empty text.

    Args:
        out, answer: the candidate's output and the float64 answer, of one shape; mask: which elements are wrong.
        inputs: of the same trial; those of the output's shape are looked at.
    """
    if not bool(mask.any()) or not mask.dim():
        return ""
    values, right = _sampled(out), _sampled(answer)
    return _of_values(values, right) or _transposed(out, answer) or _of_inputs(mask, inputs) or _of_places(mask)


def _sampled(tensor: torch.Tensor) -> torch.Tensor:
    flat = real(tensor).reshape(-1)
    return flat[_spots(flat.numel())].to(torch.float64)


def _spots(numel: int) -> torch.Tensor:
    return torch.linspace(0, numel - 1, min(numel, SAMPLE), dtype=torch.float64).long()


def _of_values(values: torch.Tensor, right: torch.Tensor) -> str:
    if bool((values == 0).all()):
        return "Every element is zero."
    if values.numel() > FEW and bool((values == values[0]).all()):
        return f"Every element is {float(values[0]):.6g}."
    size = right.square().mean().sqrt()
    large = (right.abs() > 0.1 * size) & values.isfinite()
    if int(large.sum()) < FEW or not bool(values.isfinite().all()):
        return ""
    factor = float((values[large] / right[large]).median())
    if abs(factor - 1) > SAME and factor != 0 and _is_all(values, factor * right, abs(factor) * size):
        return (
            "Every element has the wrong sign."
            if factor == -1
            else f"All elements are off by one factor: {factor:.6g}."
        )
    offset = float((values - right).median())
    if abs(offset) > SAME * float(size) and _is_all(values, right + offset, torch.tensor(abs(offset))):
        return f"All elements are off by one addend: {offset:.6g}."
    return ""


def _is_all(values: torch.Tensor, other: torch.Tensor, size: torch.Tensor) -> bool:
    return bool(((values - other).abs() <= SAME * (other.abs() + size)).all())


def _transposed(out: torch.Tensor, answer: torch.Tensor) -> str:
    """The last two dimensions swapped, written over a buffer of the right shape."""
    if out.dim() < 2 or out.is_complex() or min(out.shape[-2:]) < 2:
        return ""
    rows, columns = out.shape[-2:]
    spots = _spots(out.numel())
    matrix, offset = spots // (rows * columns), spots % (rows * columns)
    swapped = matrix * rows * columns + (offset % rows) * columns + offset // rows
    values, other = out.reshape(-1)[spots].double(), answer.reshape(-1)[swapped].double()
    size = other.square().mean().sqrt()
    return "The last two dimensions are transposed." if _is_all(values, other, size) else ""


def _of_inputs(mask: torch.Tensor, inputs: Sequence[torch.Tensor]) -> str:
    for number, given in enumerate(inputs):
        if given.shape != mask.shape or not given.dtype.is_floating_point or bool(mask.all()):
            continue
        where = f"input {number}" if len(inputs) > 1 else "the input"
        negative, plain, size = _ranges(given, mask)
        if plain.wrong[1] < 0 and int(mask.sum()) >= 0.5 * negative:
            return f"Elements are wrong only where {where} is negative."
        if plain.wrong[0] >= plain.right[1]:
            return f"Elements are wrong only where {where} is {plain.wrong[0]:.6g} or more."
        if plain.wrong[1] <= plain.right[0]:
            return f"Elements are wrong only where {where} is {plain.wrong[1]:.6g} or less."
        if size.wrong[0] >= size.right[1]:
            return f"Elements are wrong only where {where} is {size.wrong[0]:.6g} or more in magnitude."
    return ""


@dataclass(frozen=True, slots=True)
class _Range:
    """Least and largest value of an input where the output is wrong, and where it is right; NaN where one is."""

    wrong: tuple[float, float]
    right: tuple[float, float]


def _ranges(given: torch.Tensor, mask: torch.Tensor) -> tuple[int, _Range, _Range]:
    """How many numbers are negative, and the ranges of the numbers and of their magnitudes.

    In pieces: an index of the wrong elements of KernelBench's sizes alone takes more memory than a GPU has left.
    """
    negative, ends = 0, []
    for piece, is_wrong in comparison.pieces(given, mask):
        numbers = float8.exact(piece)
        negative += int((numbers < 0).sum())
        ends.append([
            end
            for values in (numbers, numbers.abs())
            for chosen in (is_wrong, ~is_wrong)
            for end in (values.where(chosen, torch.inf).amin(), values.where(chosen, -torch.inf).amax())
        ])  # fmt: skip
    lows, highs = (torch.tensor([[float(end) for end in piece[start::2]] for piece in ends]) for start in (0, 1))
    pairs = list(zip(lows.amin(0).tolist(), highs.amax(0).tolist(), strict=True))
    return negative, _Range(pairs[0], pairs[1]), _Range(pairs[2], pairs[3])


def _of_places(mask: torch.Tensor) -> str:
    count, first = int(mask.sum()), comparison.first_of(mask)
    matrix = mask.reshape(-1, mask.shape[-1])
    if count == mask.numel() - first and first % mask.shape[-1] and count > mask.shape[-1]:
        return f"Elements are wrong only in the last {count} in memory order: a remainder that is not computed?"
    parts = [
        words
        for words in (_along(matrix.any(1), "row"), _along(matrix.any(0), "column" if mask.dim() > 1 else "element"))
        if words
    ]
    if parts:
        tail = ": a remainder that does not fill a tile?" if any("last" in part for part in parts) else "."
        return f"Elements are wrong only in {' and '.join(parts)}{tail}"
    return ""


def _along(is_wrong: torch.Tensor, noun: str) -> str:
    places, count = is_wrong.nonzero().flatten(), is_wrong.numel()
    first, last, many = int(places[0]), int(places[-1]), len(places)
    if many == count:
        return ""
    if many == 1:
        return f"{noun} {first} of {count}"
    steps = places.diff()
    if bool((steps == steps[0]).all()):
        step = int(steps[0])
        if step > 1:
            return f"every {_ordinal(step)} {noun}, from {first} on" if many >= FEW else ""
        if last == count - 1:
            return f"the last {many} of {count} {noun}s"
        return f"the first {many} of {count} {noun}s" if first == 0 else f"{noun}s {first} to {last} of {count}"
    return ""


def looks_rounded(out: torch.Tensor, mask: torch.Tensor, errors: Errors) -> bool:
    """Many small errors: rounding rather than a wrong index."""
    if real(out).dtype is not torch.float32 or not math.isfinite(errors.relative):
        return False
    return errors.typical < MOST_ROUNDED and int(mask.sum()) >= MANY * mask.numel()


def of_precision(label: str, typical: float, precision: str) -> str:
    """What a typical error on normal inputs says about the arithmetic; empty when it says nothing."""
    if label == "fp32-exact" or typical > MOST_ROUNDED:
        return ""
    if precision == "half":
        return "The errors look like sums rounded to half precision; keep sums in float32."
    bits = "half-class: 8 bits, as bfloat16" if label == "half-class" else "tf32-class: 11 bits, as tf32 or float16"
    return f"The errors look like rounding to less than float32 ({bits}); keep operands and sums in float32."


def _ordinal(number: int) -> str:
    ending = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{'th' if number % 100 in (11, 12, 13) else ending}"


# A task is asked how sensitive it is only when an error is near enough for that to matter: it costs a float64 pass.
NEAR = 1000.0


@dataclass(frozen=True, slots=True)
class Output:
    """One output of a trial as the candidate gave it, as the reference does in its own dtype, and the float64 answer.

    Attributes:
        name: what it is, in words; one of `count`.
        inputs: of the trial; `longest` is their longest row.
        summed: how many numbers are summed into one element.
        precision: the task's policy.
    """

    name: str
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
    out, reference, answer = output.out, output.own, output.answer
    if not is_wide and float8.is_float8(reference):
        answer = reference  # rounded as the output is
    by_rows = trial.style is Style.MIXED
    scale: Scale = comparison.row_scales(answer, reference) if by_rows else comparison.scale_of(answer, reference)
    own_errors = comparison.errors(reference, answer, reference, scale)
    dtype = comparison.dtype_of(reference)
    allowed = tolerance.allowed(dtype, own_errors.relative, output.summed, output.precision)
    if trial.style in ONE_WAY:
        allowed = max(allowed, tolerance.of_one_way_rounding(dtype, output.longest))
    if not is_wide:
        allowed *= 2  # The other side is the reference in its own dtype here, with an error of its own.
    is_ill = tolerance.is_ill_conditioned(dtype, own_errors.relative)
    errors = comparison.errors(out, answer, reference, scale)
    if is_wide and 0 < allowed < errors.relative < NEAR * allowed:
        allowed = tolerance.raised(allowed, sensitivity(by_rows), output.summed, out.numel())
    is_own_noise = errors.typical <= tolerance.OWN_ERROR_FACTOR * own_errors.typical
    # Where the reference may round to TF32 as well, its noise does not make a kernel that does so exact.
    hidden = min(errors.typical, tolerance.TF32_CLASS) if output.precision in tolerance.FLOORS else 0.0
    weighed = Weighed(
        errors,
        allowed,
        own_errors.relative,
        hidden if is_own_noise else errors.typical,
        is_ill,
        "the reference itself is far off its float64 answer" if is_ill else "",
    )
    if not errors.relative <= allowed:
        if ties.are_of_equal_values(out, reference, output.inputs):
            return replace(weighed, errors=Errors(0.0, 0.0), note="other indices of equal values than the reference's")
        return _failed(output, trial, weighed, comparison.wrong(out, answer, reference, scale, allowed))
    if trial.style is Style.WHOLE and is_exact(reference, answer):
        return _exactly(output, trial, weighed)
    return weighed


def is_exact(reference: torch.Tensor, answer: torch.Tensor) -> bool:
    """True when the answer is whole numbers that the task's dtype holds without rounding."""
    if not reference.dtype.is_floating_point:
        return False
    return all(
        bool(((piece.to(right.dtype) == right) & (right == right.round())).all())
        for piece, right in comparison.pieces(reference, answer)
    )


def wrong_values(mismatch: Mismatch, allowed: float, inputs: str) -> str:
    """What the model is told about wrong numbers; `inputs` says in words what the trial's inputs are."""
    share = percent_wrong(mismatch.wrong_count, mismatch.total_count)
    nan = " NaN stands where no value was written, or was computed." if mismatch.actual != mismatch.actual else ""
    return (
        f"{mismatch.wrong_count} of {mismatch.total_count} elements ({share}%) are wrong "
        f"in trial {mismatch.trial!r} (inputs: {inputs}): first at index {mismatch.index}: "
        f"expected {mismatch.expected:.8g}, got {mismatch.actual:.8g}. "
        f"Largest error {mismatch.max_rel_error:.3g} relative to |expected| + rms, allowed {allowed:.3g}; "
        f"largest absolute error {mismatch.max_abs_error:.3g}.{nan}"
    )


def _exactly(output: Output, trial: Trial, weighed: Weighed) -> Weighed:
    """Sums of zeros and ones: at least the nearest whole number must be right.

    Half a unit is left to transforms with fractions in them (Winograd, Fourier); plain sums have no error at all.
    """
    near = [
        (piece.to(right.dtype) - right).abs() < 0.5 for piece, right in comparison.pieces(output.out, output.answer)
    ]
    mask = ~torch.cat(near).reshape(output.out.shape)
    if bool(mask.any()):
        return _failed(output, trial, weighed, mask, "These sums of zeros and ones must be exact.")
    note = "" if weighed.errors.absolute == 0 else f"sums of whole numbers are off by {weighed.errors.absolute:.2g}"
    return replace(weighed, note=note)


def _failed(output: Output, trial: Trial, weighed: Weighed, mask: torch.Tensor, words: str = "") -> Weighed:
    out, answer, errors = output.out, output.answer, weighed.errors
    mismatch = comparison.describe(out, answer, mask, errors, trial.name)
    which = f"{output.name[0].upper()}{output.name[1:]}: " if output.count > 1 else ""
    explanation = words or pattern(out, answer, mask, output.inputs)
    values = wrong_values(mismatch, weighed.allowed, IN_WORDS[trial.style])
    message = " ".join(part for part in (which + values, explanation) if part)
    return replace(
        weighed,
        failure=Failure(Verdict.INCORRECT, message),
        mismatch=mismatch,
        looks_rounded=not explanation and looks_rounded(out, mask, errors),
    )
