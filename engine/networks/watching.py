"""One call of a network seen from inside: which modules are called, with what, and what they return.

Hooks alone: the network computes what it does anyway. Knows no profiler and no file.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn
from torch.utils import _pytree as pytree

from engine.networks.entries import Workload
from engine.packaging.template.package import _forms
from engine.packaging.template.package._forms import Form, NoForm

Signature = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Call:
    """One call of one module."""

    path: str
    signature: Signature
    """Shapes, dtypes and strides of what it is given; what is no tensor as text."""


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """What a module was given and gave, as copies."""

    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    outputs: tuple[torch.Tensor, ...]
    takes: Form | None = None
    """Form of (args, kwargs); tensors are numbered in order. None where an object stands in it that has none."""
    gives: Form | None = None
    """Form of the result: its tensors are numbered in order, and one that was given as those of `takes` after them."""

    @property
    def inputs(self) -> list[torch.Tensor]:
        """The tensors that it was given, in the order in which they stand in (args, kwargs)."""
        return tensors_of((self.args, self.kwargs))


Key = tuple[str, Signature]


@dataclass(slots=True)
class Recorder:
    """Copies the first calls of some modules, and sees which inputs are the same in all calls of modules like them."""

    like: Mapping[Key, Key]
    """Every call that is looked at, and the one of its kind whose tensors are kept."""
    most: int
    calls: dict[Key, list[RecordedCall]] = field(default_factory=dict)
    first: dict[Key, list[torch.Tensor]] = field(default_factory=dict)
    same: dict[Key, list[bool]] = field(default_factory=dict)
    """Of every input of a kind that was called twice or more."""

    def see(self, key: Key, inputs: Sequence[torch.Tensor]) -> None:
        """Hold the inputs of one call beside those of the first."""
        if (first := self.first.get(key)) is None:
            self.first[key] = copied(list(inputs))
            return
        before = self.same.get(key, [True] * len(first))
        pairs = zip(before, first, inputs, strict=True)
        self.same[key] = [is_same and torch.equal(then, now) for is_same, then, now in pairs]


def call(module: Any, workload: Workload, *, is_training: bool = False) -> Any:
    """Call the network as its user does; in training with the backward pass of the sum of what it returns."""
    if not is_training:
        with torch.no_grad():
            return module(*workload.args, **workload.kwargs)
    result, _ = with_gradients(module, workload)
    return result


def with_gradients(module: Any, workload: Workload) -> tuple[Any, list[tuple[str, torch.Tensor]]]:
    """A call and its backward pass: of `loss` where it returns one, else of the sum of what it returns. The gradients
    are handed over, and cleared."""
    result = module(*workload.args, **workload.kwargs)
    loss = getattr(result, "loss", None)
    if loss is None:
        floats = [tensor for tensor in tensors_of(result) if tensor.requires_grad]
        loss = sum((tensor.float().sum() for tensor in floats), torch.zeros(()))
    if not loss.requires_grad:
        return result, []
    loss.backward()
    gradients = [
        (f"gradient of {name}", part.grad) for name, part in module.named_parameters() if part.grad is not None
    ]
    module.zero_grad(set_to_none=True)
    return result, gradients


def calls_of(module: nn.Module, workload: Workload, *, is_training: bool = False) -> list[Call]:
    """Every call of every module in one call of the network, in the order in which they begin."""
    calls: list[Call] = []

    def before(path: str) -> Callable[..., None]:
        return lambda _, args, kwargs: calls.append(Call(path, signature_of(args, kwargs)))

    with hooked(module, before):
        call(module, workload, is_training=is_training)
    return calls


def record(module: nn.Module, workload: Workload, recorder: Recorder, *, is_training: bool = False) -> None:
    """Call the network once and keep what the recorder wants."""
    open_calls: list[tuple[Key, Any] | None] = []

    def before(path: str) -> Callable[..., None]:
        def keep(_: nn.Module, args: Any, kwargs: Any) -> None:
            key = (path, signature_of(args, kwargs))
            if (kind := recorder.like.get(key)) is not None:
                recorder.see(kind, tensors_of((args, kwargs)))
            is_wanted = kind == key and len(recorder.calls.get(key, ())) < recorder.most
            open_calls.append((key, copied((args, kwargs))) if is_wanted else None)

        return keep

    def after(path: str) -> Callable[..., None]:
        def keep(_: nn.Module, args: Any, kwargs: Any, result: Any) -> None:
            if (begun := open_calls.pop()) is not None:
                takes, gives = _forms_of((args, kwargs), result)
                (args, kwargs), outputs = begun[1], tuple(copied(tensors_of(result)))
                recorder.calls.setdefault(begun[0], []).append(RecordedCall(args, kwargs, outputs, takes, gives))

        return keep

    with hooked(module, before, after):
        call(module, workload, is_training=is_training)


def _forms_of(given: Any, result: Any) -> tuple[Form | None, Form | None]:
    """How a call's arguments and its result are put together."""
    inputs: list[torch.Tensor] = []
    outputs: list[torch.Tensor] = []
    try:
        takes, gives = _forms.form_of(given, inputs), _forms.form_of(result, outputs)
    except NoForm:
        return None, None
    if [id(tensor) for tensor in inputs] != [id(tensor) for tensor in tensors_of(given)]:
        return None, None
    firsts = {id(tensor): number for number, tensor in reversed(list(enumerate(outputs)))}
    passed = {id(tensor): len(outputs) + number for number, tensor in reversed(list(enumerate(inputs)))}
    numbers = {number: (firsts | passed)[id(tensor)] for number, tensor in enumerate(outputs)}
    return takes, _forms.renumbered(gives, numbers)


@contextlib.contextmanager
def hooked(
    module: nn.Module,
    before: Callable[[str], Callable[..., None]],
    after: Callable[[str], Callable[..., None]] | None = None,
) -> Iterator[None]:
    """Hooks around the forward of every module, by its path; the network itself has the path ""."""
    handles = []
    for path, part in module.named_modules():
        handles.append(part.register_forward_pre_hook(before(path), with_kwargs=True))
        if after:
            handles.append(part.register_forward_hook(after(path), with_kwargs=True, always_call=True))
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def signature_of(args: Any, kwargs: Any) -> Signature:
    """What tells calls apart that do different work."""
    leaves, spec = pytree.tree_flatten((args, kwargs))
    return (str(spec) if len(leaves) > 1 else "", *map(_leaf, leaves))


def _leaf(leaf: Any) -> Any:
    if isinstance(leaf, torch.Tensor):
        return (tuple(leaf.shape), str(leaf.dtype).removeprefix("torch."), tuple(leaf.stride()))
    return repr(leaf) if isinstance(leaf, (bool, int, float, str, type(None), torch.dtype)) else type(leaf).__name__


def tensors_of(tree: Any) -> list[torch.Tensor]:
    """Its tensors, in order."""
    return [leaf for leaf in pytree.tree_leaves(tree) if isinstance(leaf, torch.Tensor)]


def copied(tree: Any) -> Any:
    """The same with copies of the tensors, each as it lies in memory."""
    return pytree.tree_map_only(torch.Tensor, _copy, tree)


def _copy(tensor: torch.Tensor) -> torch.Tensor:
    if any(stride == 0 and size > 1 for size, stride in zip(tensor.shape, tensor.stride(), strict=True)):
        return tensor.detach().clone()
    fresh = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device=tensor.device)
    return fresh.copy_(tensor.detach())
