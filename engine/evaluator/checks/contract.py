"""What forward owes beyond right values: kind, shape and place of its outputs, untouched inputs. Compares no values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from engine.evaluator.checks import findings
from engine.evaluator.checks.candidate_failures import Failure
from engine.evaluator.checks.comparison import real
from engine.evaluator.checks.gradients import NoGradient
from storage.results.vocabulary import Verdict

NOTHING = f"{NoGradient.__module__}.{NoGradient.__qualname__}"
MISSING = (
    "is missing: let forward go through a torch.autograd.Function of yours whose backward returns it, computed by a "
    "kernel of your own, and let ModelNew hold the reference's parameters under the same names"
)


@dataclass(frozen=True, slots=True)
class Fault:
    """A broken rule: which check found it, and what it found."""

    check: str
    reason: str


@dataclass(frozen=True, slots=True)
class Expected:
    """What the reference returns: its outputs in the task's dtype, their form (`structure.form_of`), where they live,
    and what each is."""

    outputs: Sequence[torch.Tensor]
    form: str
    device: str
    names: Sequence[str]


def first_fault(expected: Expected, answer: Mapping[str, Any]) -> Fault | None:
    """Type, count, shape, dtype and device exact; outputs in memory of their own. `answer` is the worker's claim.

    A false claim helps nobody: an output that does not fit is not copied out, and poison stands in its place.
    """
    return next(_faults(expected, answer), None)


def structure_failure(expected: Expected, answer: Mapping[str, Any], trial: str) -> Failure | None:
    """The first fault of a call's outputs as a verdict."""
    fault = first_fault(expected, answer)
    return wrong_output(expected, fault, trial) if fault else None


def wrong_output(expected: Expected, fault: Fault, trial: str) -> Failure:
    """What the model is told about a fault."""
    words = f"{expected.form}: {shapes(expected.outputs)}"
    return Failure(Verdict.INCORRECT, f"wrong output in trial {trial!r}: {fault.reason}. Expected {words}.")


def mutation_failure(
    now: Sequence[torch.Tensor], inputs: Sequence[torch.Tensor], names: Sequence[str], trial: str
) -> Failure | None:
    """The inputs must be as they were, bit by bit."""
    for name, after, before in zip(names, now, inputs, strict=True):
        if not is_same(after, before):
            return Failure(
                Verdict.INCORRECT,
                f"forward changed {name} in place (trial {trial!r}); write to a new tensor instead",
            )
    return None


def state_failure(claimed: Any) -> Failure:
    """What the model is told of a module whose state is not the reference's, by the worker's claim."""
    differences = claimed if isinstance(claimed, dict) else {}
    words = {
        "missing": "it lacks {}",
        "unexpected": "it has {}, which the reference has not",
        "other": "{}",
    }
    parts = [text.format(_some(differences[kind])) for kind, text in words.items() if differences.get(kind)]
    return Failure(
        Verdict.INCORRECT,
        f"the reference's state_dict cannot be loaded into ModelNew: {'; '.join(parts) or 'it differs'}. Hold the "
        "reference's parameters and buffers under its names (nn.Parameter, nn submodules or register_buffer; what you "
        "derive from them as plain attributes or register_buffer(..., persistent=False)), or define a function "
        "convert_state_dict(state_dict) in the file that returns ModelNew's state_dict made from the reference's.",
    )


def modules_failure(claimed: Any) -> Failure:
    """What the model is told of modules that are compared and that ModelNew does not have, by the worker's claim."""
    return Failure(
        Verdict.INCORRECT,
        f"ModelNew has no module {_some(claimed)}: outputs of the reference's modules are compared one by one, so keep "
        "them as submodules under the reference's names, call each once in forward, and put your kernels inside them.",
    )


def _some(names: Any) -> str:
    shown = [_short(name) for name in names[:6]] if isinstance(names, list) else []
    return ", ".join(shown) + (f" and {len(names) - 6} more" if isinstance(names, list) and len(names) > 6 else "")


def layout_note(expected: Expected, answer: Mapping[str, Any]) -> str:
    """What is unusual about how right outputs lie in memory; empty when nothing is."""
    for number, (leaf, reference) in enumerate(zip(answer["outputs"], expected.outputs, strict=True)):
        if leaf.get("is_contiguous") is not True:
            name = expected.names[number] if len(expected.outputs) > 1 else "output 0"
            return f"{name} of shape {tuple(reference.shape)} is not contiguous: stride {_short(leaf.get('stride'))}"
    return ""


def is_same(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Bitwise, so that NaN equals itself."""
    return torch.equal(_bits(a), _bits(b))


def shapes(tensors: Sequence[Any]) -> str:
    """`(16, 4096) float32, …` for messages."""
    return ", ".join(f"{tuple(tensor.shape)} {str(tensor.dtype).removeprefix('torch.')}" for tensor in tensors)


def _faults(expected: Expected, answer: Mapping[str, Any]) -> Iterator[Fault]:
    leaves, outputs = answer.get("outputs"), expected.outputs
    if not isinstance(leaves, list) or not all(isinstance(leaf, dict) for leaf in leaves):
        yield Fault(findings.CONTRACT, "the worker's answer is malformed")
        return
    if len(leaves) != len(outputs) or answer.get("container") != expected.form:
        yield Fault(findings.CONTRACT, f"forward returned {_short(answer.get('container'))}")
        return
    for where, leaf, reference in zip(expected.names, leaves, outputs, strict=True):
        if reason := _misfit(leaf, reference, expected.device):
            yield Fault(findings.CONTRACT, f"{where} {reason}")
        if reason := _sharing(leaf):
            yield Fault(findings.MEMORY, f"{where} {reason}")


def _misfit(leaf: Mapping[str, Any], reference: torch.Tensor, device: str) -> str:
    if leaf.get("type") == NOTHING:
        return MISSING
    if leaf.get("type") != "torch.Tensor":
        return f"is a {_short(leaf.get('type'))}, not a torch.Tensor"
    if leaf.get("shape") != list(reference.shape):
        return f"has shape {_short(leaf.get('shape'))}"
    if leaf.get("dtype") != str(reference.dtype).removeprefix("torch."):
        return f"has dtype {_short(leaf.get('dtype'))}"
    return "" if leaf.get("device") == device else f"is on device {_short(leaf.get('device'))}"


def _sharing(leaf: Mapping[str, Any]) -> str:
    if leaf.get("is_input"):
        return "shares memory with an input; return a new tensor"
    if leaf.get("is_reused"):
        return "shares memory with the output of an earlier call; allocate a new tensor in every call"
    return ""


def _short(claimed: Any) -> str:
    """A claim in a message, whatever it may be."""
    if isinstance(claimed, list) and all(isinstance(item, int) for item in claimed):
        claimed = tuple(claimed)
    return str(claimed)[:100]


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    flat = real(tensor).contiguous().flatten()
    return flat.view(_BITS.get(flat.itemsize, torch.uint8))


_BITS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
