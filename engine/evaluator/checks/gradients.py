"""Forward and backward of a module as one call: from inputs and gradients of outputs to outputs and gradients.

Runs in both workers, so both pay the same. Gradients arrive in `.grad`, in memory of their own, as a training step has
them. Backward is handed copies that are made after forward has returned: a gradient that a kernel keeps from one call
tells its next forward nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from engine.evaluator.checks.structure import leaves_of

# Taken before a candidate's code runs, which may put something else in their place.
_backward = torch.autograd.backward
_with_gradients = torch.enable_grad
_copy = torch.Tensor.clone
_CONTAINERS = (tuple, list, Mapping)


@dataclass(frozen=True, slots=True)
class Plan:
    """What of a module's call is differentiated.

    Attributes:
        arguments: how many `forward` takes; after them come the gradients of outputs.
        inputs: those of them whose gradient is asked for, by number.
        parameters: whose gradient is asked for, by name.
        results: how many outputs `forward` returns; `is_single` where it is one that stands alone.
        outputs: those of them that a gradient is given for, by number.
    """

    arguments: int
    inputs: tuple[int, ...]
    parameters: tuple[str, ...]
    results: int
    is_single: bool
    outputs: tuple[int, ...]

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Plan:
        """Read what `asdict` wrote."""
        fields: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in plain.items()
        }
        return cls(**fields)

    @property
    def is_empty(self) -> bool:
        """True where nothing depends on anything differentiably."""
        return not self.inputs and not self.parameters

    @property
    def gradients(self) -> int:
        """How many come back."""
        return len(self.inputs) + len(self.parameters)

    @property
    def names(self) -> list[str]:
        """What each returned tensor is, in words."""
        outputs = ["the output"] if self.is_single else [f"output {number}" for number in range(self.results)]
        inputs = [f"the gradient of input {number}" for number in self.inputs]
        return [*outputs, *inputs, *(f"the gradient of parameter {name!r}" for name in self.parameters)]


class ForwardBackward:
    """A module as a function of its inputs and of the gradients of its outputs, which returns its outputs and the
    gradients of a plan as one tuple; None for a gradient that did not arrive.

    Attributes:
        plan: what of the module's call is differentiated.
        handed: what the last call's backward was given, as backward has left it.
    """

    def __init__(self, forward: Callable[..., Any], parameters: Mapping[str, torch.Tensor], plan: Plan) -> None:
        self._forward = forward
        self._parameters = [parameters.get(name) for name in plan.parameters]
        self.plan = plan
        self.handed: list[torch.Tensor] = []

    def __call__(self, *given: Any) -> tuple[Any, ...]:
        """One call of forward and one of backward.

        Raises:
            TypeError: forward returns another number of values than the reference.
        """
        plan = self.plan
        arguments, gradients = list(given[: plan.arguments]), given[plan.arguments :]
        for number in plan.inputs:
            arguments[number] = arguments[number].detach().requires_grad_()
        sources = [*(arguments[number] for number in plan.inputs), *self._parameters]
        for source in sources:
            if source is not None:
                source.grad = None
        with _with_gradients():
            outputs = self._forward(*arguments)
            leaves = leaves_of(outputs)
            if len(leaves) != plan.results or isinstance(outputs, _CONTAINERS) is plan.is_single:
                expected = "one tensor" if plan.is_single else f"{plan.results} as a tuple, list or dict"
                raise TypeError(f"forward returned {len(leaves)} value(s) as {type(outputs).__name__}, not {expected}")
            # The copies of the call before are let go of only now: no address comes twice in a row.
            self.handed = [_copy(gradient) for gradient in gradients]
            pairs = [(leaves[number], gradient) for number, gradient in zip(plan.outputs, self.handed, strict=True)]
            # What does not fit is refused for what it is, with its gradients missing.
            if all(_fits(*pair) for pair in pairs):
                _differentiate(pairs, sources)
        return (*(_without_history(leaf) for leaf in leaves), *(_taken(source) for source in sources))


def _fits(output: Any, gradient: torch.Tensor) -> bool:
    if type(output) is not torch.Tensor:
        return False
    return (output.shape, output.dtype, output.device) == (gradient.shape, gradient.dtype, gradient.device)


def _differentiate(pairs: Sequence[tuple[torch.Tensor, torch.Tensor]], sources: Sequence[Any]) -> None:
    differentiable = [pair for pair in pairs if pair[0].requires_grad]
    sources_used = [source for source in sources if source is not None and source.requires_grad]
    if differentiable and sources_used:
        _backward(
            [output for output, _ in differentiable], [gradient for _, gradient in differentiable], inputs=sources_used
        )


def _without_history(leaf: Any) -> Any:
    return leaf.detach() if isinstance(leaf, torch.Tensor) else leaf


def _taken(source: Any) -> torch.Tensor | None:
    """The gradient, which the next call must not find."""
    if source is None:
        return None
    gradient: torch.Tensor | None = source.grad
    source.grad = None
    return gradient


def planned(model: nn.Module, arguments: Sequence[Any]) -> tuple[Plan, list[torch.Tensor]]:
    """What of a module's call can be differentiated, found by doing so; and, as examples of the gradients that go in,
    one normal tensor for each output of the plan.

    Of the inputs those count that are marked (`requires_grad`), or all floating-point ones where none is.
    """
    tensors = [
        number for number, argument in enumerate(arguments) if isinstance(argument, torch.Tensor) and _is_real(argument)
    ]
    tensors = [number for number in tensors if arguments[number].requires_grad] or tensors
    parameters = {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}
    wide = list(arguments)
    for number in tensors:
        wide[number] = arguments[number].detach().requires_grad_()
    with _with_gradients():
        outputs = model(*wide)
        leaves = leaves_of(outputs)
        differentiable = [n for n, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor) and leaf.requires_grad]
        gradients = [
            torch.randn_like(leaves[number], memory_format=torch.contiguous_format) for number in differentiable
        ]
        pairs = [
            (leaves[number], gradient.detach()) for number, gradient in zip(differentiable, gradients, strict=True)
        ]
        _differentiate(pairs, [*(wide[number] for number in tensors), *parameters.values()])
    inputs = tuple(number for number in tensors if _taken(wide[number]) is not None)
    names = tuple(name for name, parameter in parameters.items() if _taken(parameter) is not None)
    is_single = not isinstance(outputs, _CONTAINERS)
    plan = Plan(len(arguments), inputs, names, len(leaves), is_single, tuple(differentiable))
    return plan, [gradient.detach() for gradient in gradients]


def _is_real(tensor: torch.Tensor) -> bool:
    return tensor.dtype.is_floating_point or tensor.dtype.is_complex


def both_passes(model: nn.Module, arguments: Sequence[Any]) -> Callable[[], Any]:
    """A call of a model on these arguments, forward and, where it has one, backward: for who compares no values."""
    plan, gradients = planned(model, arguments)
    if plan.is_empty:
        return lambda: model(*arguments)
    whole = ForwardBackward(model, dict(model.named_parameters()), plan)
    return lambda: whole(*arguments, *gradients)
