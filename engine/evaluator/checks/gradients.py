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

from engine.evaluator.checks import arguments, float8, structure
from engine.evaluator.checks.arguments import Arguments, Kinds
from engine.evaluator.checks.structure import leaves_of

# Taken before a candidate's code runs, which may put something else in their place.
_backward = torch.autograd.backward
_with_gradients = torch.enable_grad
_copy = torch.Tensor.clone


class NoGradient:
    """Stands where a gradient did not arrive."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What of a module's call is differentiated.

    Attributes:
        arguments: how many `forward` takes by position; after them come the gradients of outputs.
        inputs: the tensors among its arguments whose gradient is asked for, by number.
        input_names: what they are; `is_nested` where some tensor is no argument by itself, given by position.
        parameters: whose gradient is asked for, by name.
        form: of what `forward` returns.
        result_names: what the tensors of that are.
        outputs: those of them that a gradient is given for, by number.
    """

    arguments: int
    inputs: tuple[int, ...]
    input_names: tuple[str, ...]
    is_nested: bool
    parameters: tuple[str, ...]
    form: str
    result_names: tuple[str, ...]
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
    def results(self) -> int:
        """How many tensors `forward` returns."""
        return len(self.result_names)

    @property
    def names(self) -> list[str]:
        """What each returned tensor is, in words."""
        inputs = [f"the gradient of {name}" for name in self.input_names]
        return [*self.result_names, *inputs, *(f"the gradient of parameter {name!r}" for name in self.parameters)]


class ForwardBackward:
    """A module as a function of its inputs and of the gradients of its outputs, which returns its outputs and the
    gradients of a plan as one tuple; NoGradient for one that did not arrive.

    Attributes:
        plan: what of the module's call is differentiated.
        handed: what the last call's backward was given, as backward has left it.
    """

    def __init__(self, forward: Callable[..., Any], parameters: Mapping[str, torch.Tensor], plan: Plan) -> None:
        self._forward = forward
        self._parameters = [parameters.get(name) for name in plan.parameters]
        self.plan = plan
        self.handed: list[torch.Tensor] = []

    def __call__(self, *given: Any, **named: Any) -> tuple[Any, ...]:
        """One call of forward and one of backward.

        Raises:
            TypeError: forward returns something of another form than the reference.
        """
        plan = self.plan
        gradients = given[plan.arguments :]
        own, inputs = _requiring(Arguments(list(given[: plan.arguments]), named), plan.inputs, plan.is_nested)
        sources = [*inputs, *self._parameters]
        for source in sources:
            if source is not None:
                source.grad = None
        with _with_gradients():
            outputs = self._forward(*own.positional, **own.named)
            leaves = leaves_of(outputs)
            if len(leaves) != plan.results or structure.form_of(outputs) != plan.form:
                raise TypeError(f"forward returned {structure.form_of(outputs)}, not {plan.form}")
            # The copies of the call before are let go of only now: no address comes twice in a row.
            self.handed = [_copy(gradient) for gradient in gradients]
            pairs = [(leaves[number], gradient) for number, gradient in zip(plan.outputs, self.handed, strict=True)]
            # What does not fit is refused for what it is, with its gradients missing.
            if all(_fits(*pair) for pair in pairs):
                _differentiate(pairs, sources)
        return (*(_without_history(leaf) for leaf in leaves), *(_taken(source) for source in sources))


def _requiring(given: Arguments, numbers: Sequence[int], is_nested: bool) -> tuple[Arguments, list[torch.Tensor]]:
    """Arguments in which the tensors of these numbers ask for gradients, and those tensors."""
    if not is_nested:
        inputs = {number: given.positional[number].detach().requires_grad_() for number in numbers}
        positional = [inputs.get(number, item) for number, item in enumerate(given.positional)]
        return Arguments(positional, given.named), list(inputs.values())
    kinds = Kinds()
    tensors, node = arguments.flattened(given, kinds)
    for number in numbers:
        tensors[number] = tensors[number].detach().requires_grad_()
    return arguments.rebuilt(node, tensors, kinds), [tensors[number] for number in numbers]


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


def _taken(source: Any) -> torch.Tensor | NoGradient:
    """The gradient, which the next call must not find."""
    if source is None or source.grad is None:
        return NoGradient()
    gradient: torch.Tensor = source.grad
    source.grad = None
    return gradient


def planned(model: nn.Module, given: Arguments) -> tuple[Plan, list[torch.Tensor]]:
    """What of a module's call can be differentiated, found by doing so; and, as examples of the gradients that go in,
    one normal tensor for each output of the plan.

    Of the inputs those count that are marked (`requires_grad`), or all floating-point ones where none is.
    """
    tensors, node = arguments.flattened(given, Kinds())
    names = arguments.names_of(node)
    is_nested = bool(given.named) or not all(isinstance(item, torch.Tensor) for item in given.positional)
    numbers = [number for number, tensor in enumerate(tensors) if _is_real(tensor)]
    numbers = [number for number in numbers if tensors[number].requires_grad] or numbers
    parameters = {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}
    own, wide = _requiring(given, numbers, is_nested)
    with _with_gradients():
        outputs = own.passed_to(model)
        leaves = leaves_of(outputs)
        differentiable = [n for n, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor) and leaf.requires_grad]
        gradients = [
            torch.randn_like(leaves[number], memory_format=torch.contiguous_format) for number in differentiable
        ]
        pairs = [
            (leaves[number], gradient.detach()) for number, gradient in zip(differentiable, gradients, strict=True)
        ]
        _differentiate(pairs, [*wide, *parameters.values()])
    inputs = [
        number for number, tensor in zip(numbers, wide, strict=True) if not isinstance(_taken(tensor), NoGradient)
    ]
    plan = Plan(
        arguments=len(given.positional),
        inputs=tuple(inputs),
        input_names=tuple(names[number] for number in inputs),
        is_nested=is_nested,
        parameters=tuple(
            name for name, parameter in parameters.items() if not isinstance(_taken(parameter), NoGradient)
        ),
        form=structure.form_of(outputs),
        result_names=tuple(structure.names_of(outputs)),
        outputs=tuple(differentiable),
    )
    return plan, [gradient.detach() for gradient in gradients]


def _is_real(tensor: torch.Tensor) -> bool:
    return (tensor.dtype.is_floating_point and not float8.is_float8(tensor)) or tensor.dtype.is_complex


def both_passes(model: nn.Module, given: Arguments) -> Callable[[], Any]:
    """A call of a model on these arguments, forward and, where it has one, backward: for who compares no values."""
    plan, gradients = planned(model, given)
    if plan.is_empty:
        return lambda: given.passed_to(model)
    whole = ForwardBackward(model, dict(model.named_parameters()), plan)
    return lambda: whole(*given.positional, *gradients, **given.named)
