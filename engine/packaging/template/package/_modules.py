"""Modules that call the kernels: made of a module that is there, put into a network, and taken out again."""

from __future__ import annotations

import copy
import fnmatch
import functools
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from . import _dispatch, _operators
from ._entries import Entry
from ._table import ENTRIES, PACKAGE, SINGLE_CHILD

FALL_BACK, RAISE, RECOMPUTE = "fall back", "raise", "recompute"
ON_MISSING_BACKWARD = (FALL_BACK, RAISE, RECOMPUTE)
NO_BACKWARD = (
    "gradients are wanted, and the kernel has no backward of its own: call it under torch.no_grad(), or choose "
    'on_missing_backward="recompute", which runs the kernel forward and PyTorch\'s code once more for backward'
)
_TOLERANCE = {torch.float16: 1e-2, torch.bfloat16: 4e-2, torch.float64: 1e-6}
_USUAL_TOLERANCE = 1e-3  # of the largest value, in float32: TF32's
Where = str | type[nn.Module] | Callable[[str, nn.Module], bool]


@dataclass(frozen=True)
class Served:
    """What a module gets from this package."""

    entries: tuple[int, ...]
    """Numbers in the table, in the order in which they are tried."""
    prefix: str
    """What stands before the module's own names in the table: `norm.` where the reference only calls its `norm`."""
    on_missing_backward: str
    named: str = ""
    """The region that the module is a place of; reasons are counted under it."""

    def __post_init__(self) -> None:
        if self.on_missing_backward not in ON_MISSING_BACKWARD:
            raise ValueError(
                f"on_missing_backward is one of {', '.join(ON_MISSING_BACKWARD)}, not {self.on_missing_backward}"
            )

    @property
    def kernels(self) -> tuple[str, ...]:
        """Their names, each once."""
        return tuple(dict.fromkeys(ENTRIES[number].kernel for number in self.entries))

    def fall_back(self, reason: str) -> None:
        """Count a call that PyTorch's own code runs."""
        _dispatch.note("reference", f"{self.named}: {reason}" if self.named else reason)

    def state(self, module: nn.Module, entry: Entry) -> list[torch.Tensor]:
        """The module's tensors in the entry's order."""
        return [_tensor(module, wanted.name.removeprefix(self.prefix)) for wanted in entry.state]


def run(
    module: nn.Module, served: Served, original: Callable[..., Any], inputs: tuple[Any, ...], named: dict[str, Any]
) -> Any:
    """A call of the module: by a kernel where one takes it, else by `original`."""
    if named:
        inputs, named = _in_order(ENTRIES[served.entries[0]], inputs, named)
    if isinstance(next(iter(inputs), None), torch.fx.Proxy):
        return functional(served.entries[0], *inputs, *served.state(module, ENTRIES[served.entries[0]]))
    is_taken, result = by_kernel(module, served, inputs) if not named else (False, None)
    return result if is_taken else original(*inputs, **named)


def by_kernel(module: nn.Module, served: Served, inputs: tuple[Any, ...]) -> tuple[bool, Any]:
    """Whether a kernel takes the call, and its result; what is not taken is counted, with the reason."""
    entry, state = _chosen(module, served, inputs)
    if entry is None:
        return False, None
    if torch.is_grad_enabled() and _wants_gradients(inputs, state):
        if entry.has_backward and not torch.compiler.is_compiling():
            _dispatch.note("kernel", f"{entry.kernel}, forward and backward")
            with torch.profiler.record_function(f"{PACKAGE}::{entry.operator}"):
                return True, _operators.call(entry, "kernel", inputs, state)
        if not entry.has_backward and served.on_missing_backward != RECOMPUTE:
            if served.on_missing_backward == RAISE:
                raise RuntimeError(f"{PACKAGE}: {NO_BACKWARD}")
            served.fall_back(NO_BACKWARD)
            return False, None
    _dispatch.note("kernel", entry.kernel)
    return True, _operators.operator(entry)(*_operators.arguments(entry, inputs, state))


def _chosen(module: nn.Module, served: Served, inputs: tuple[Any, ...]) -> tuple[Entry | None, list[torch.Tensor]]:
    """The entry that takes the call, with the state it gets; none after the last one's reason is counted."""
    reason = ""
    for number in served.entries:
        entry = ENTRIES[number]
        state = served.state(module, entry)
        reason = _dispatch.refusal(entry, inputs, state) or _in_other_mode(entry, module.training)
        if not reason:
            return entry, state
    served.fall_back(reason)
    return None, []


def _in_order(entry: Entry, inputs: tuple[Any, ...], named: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Arguments given by name as those given by place, where the kernel's own order has them all."""
    names = [wanted.name for wanted in entry.inputs][len(inputs) :]
    return (inputs, named) if set(names) != set(named) else ((*inputs, *(named[name] for name in names)), {})


class Optimised(nn.Module):
    """A module whose calls go to a kernel where one takes them, and to the module it was made of where none does.

    It holds the very same parameters, buffers and submodules as `original`, under the same names. Attributes that it
    does not have are those of `original`.
    """

    original: nn.Module

    def __init__(self, original: nn.Module, served: Served) -> None:
        super().__init__()
        for name in ("_parameters", "_buffers", "_modules", "_non_persistent_buffers_set"):
            object.__setattr__(self, name, getattr(original, name))
        self.__dict__["original"] = original  # not registered, so that the names in a state_dict stay
        self.training = original.training
        self._served = served

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            if "original" not in self.__dict__:
                raise
            return getattr(self.__dict__["original"], name)

    def forward(self, *inputs: Any, **named: Any) -> Any:
        """As the original's."""
        return run(self, self._served, self._original, inputs, named)

    def _original(self, *inputs: Any, **named: Any) -> Any:
        self.original.training = self.training
        return self.original(*inputs, **named)

    def extra_repr(self) -> str:
        """The kernels, and what they stand in for."""
        return f"{PACKAGE}: {', '.join(self._served.kernels)}, in place of {type(self.original).__name__}"


def _in_other_mode(entry: Entry, is_training: bool) -> str:
    if not entry.mode or (entry.mode == "train") == is_training:
        return ""
    return f"the kernel was judged in {'training' if entry.mode == 'train' else 'evaluation'} mode alone"


def _tensor(module: nn.Module, name: str) -> Any:
    value: Any = module
    for part in name.split("."):
        value = getattr(value, part)
    return value


def _wants_gradients(inputs: Iterable[Any], state: Iterable[torch.Tensor]) -> bool:
    return any(isinstance(value, torch.Tensor) and value.requires_grad for value in (*inputs, *state))


@torch.fx.wrap
def functional(number: int, *values: Any) -> Any:
    """A call without a module: inputs, then parameters and buffers in the table's order. The kernel of entry `number`
    where it takes them, else the reference."""
    entry = ENTRIES[number]
    inputs, state = values[: len(entry.inputs)], values[len(entry.inputs) :]
    reason = _dispatch.refusal(entry, inputs, state)
    if not reason and torch.is_grad_enabled() and _wants_gradients(inputs, state) and not entry.has_backward:
        reason = NO_BACKWARD
    _dispatch.note("reference" if reason else "kernel", reason or entry.kernel)
    if reason:
        return _operators.call(entry, "reference", inputs, state)
    return _operators.operator(entry)(*_operators.arguments(entry, inputs, state))


def new(*init_inputs: Any, entry: int = 0, on_missing_backward: str = FALL_BACK) -> Optimised:
    """The module with new weights; without arguments as the kernel was judged with.

    Raises:
        ValueError: no kernel of this package is for that configuration.
    """
    if not init_inputs:
        original = _operators.reference_of(ENTRIES[entry])
    else:
        original = _operators.module_of(ENTRIES[entry]).made(*init_inputs)
    return from_module(original, on_missing_backward=on_missing_backward)


def from_module(module: nn.Module, *, on_missing_backward: str = FALL_BACK, is_same: bool | None = None) -> Optimised:
    """A module that calls the kernels and shares all parameters and buffers with `module`, which stays as it is.

    `is_same` says that it computes what the package's reference does. Left out, its class and its numbers are compared
    with the reference's, and where they are not the same class, the values of one call of both.

    Raises:
        ValueError: it has other parameters, other numbers or other values than the reference.
    """
    if isinstance(module, Optimised):
        module = module.original
    if not ENTRIES:
        raise ValueError(f"{PACKAGE} has no kernel")
    if is_same is None:
        numbers, prefix, reason = _alike(module)
        if not numbers:
            numbers, prefix, reason = _same_values(module)
    else:
        numbers, prefix, reason = _with_such_state(module)
    if not numbers:
        raise ValueError(f"{PACKAGE} is not for this {type(module).__name__}: {reason}")
    return Optimised(module, Served(tuple(numbers), prefix, on_missing_backward))


@dataclass(frozen=True)
class Replaced:
    """One place of a network where a kernel's module stands now."""

    path: str
    module: str
    kernels: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.path}: {', '.join(self.kernels)} in place of {self.module}"


def apply(network: nn.Module, where: Where | None = None, *, on_missing_backward: str = FALL_BACK) -> list[Replaced]:
    """Put the kernels into a network, where they belong; returns what was replaced, in the network's order.

    Args:
        network: it is changed in place; its parameters stay the same objects.
        where: a path (`layers.*.norm`, `act?`: `*` and `?` match within one part, never across a dot), a class, or a
            function of path and module. Left out: modules of the class of the reference (the module that the run was
            made for), or of the one module that it wraps, with the same settings.
        on_missing_backward: `fall back`, `raise` or `recompute`.

    Raises:
        ValueError: a module that `where` names is none that a kernel is for, or nothing is. Nothing is replaced then.
    """
    found: list[tuple[str, nn.Module, Optimised]] = []
    made: dict[int, Optimised] = {}
    for path, module in list(network.named_modules(remove_duplicate=False)):
        if isinstance(module, Optimised) or not _is_chosen(where, path, module):
            continue
        if not path:
            if where is None and not _alike(module)[0]:
                continue
            raise ValueError("the network itself is what the kernels are for: use from_module(network)")
        if id(module) not in made:
            made[id(module)] = from_module(module, on_missing_backward=on_missing_backward)
        found.append((path, module, made[id(module)]))
    if where is not None and not found:
        raise ValueError(f"nothing in {type(network).__name__} is {where}")
    if not found:
        warnings.warn(f"{PACKAGE}: nothing was replaced: {_unfit(network)}", stacklevel=2)
    for path, _, optimised in found:
        _put(network, path, optimised)
    return [Replaced(path, type(module).__name__, optimised._served.kernels) for path, module, optimised in found]


def revert(network: nn.Module) -> list[str]:
    """Put the originals back; returns their paths."""
    paths = [path for path, module in network.named_modules(remove_duplicate=False) if isinstance(module, Optimised)]
    for path in paths:
        _put(network, path, network.get_submodule(path).original)  # type: ignore[arg-type]
    return paths


def call_layer(layer: nn.Module, inputs: tuple[Any, ...]) -> Any:
    """A call of a module of a network whose `forward` alone was exchanged, as `kernels.kernelize` does it."""
    served = layer.__dict__.get("_tilewright_served")
    if served is None:
        plain = copy.copy(layer)
        plain.__dict__.pop("forward", None)
        served = layer.__dict__["_tilewright_served"] = from_module(plain)._served
    return run(layer, served, functools.partial(type(layer).forward, layer), inputs, {})


def _put(network: nn.Module, path: str, module: nn.Module) -> None:
    parent, _, name = path.rpartition(".")
    module.training = network.get_submodule(path).training
    network.get_submodule(parent)._modules[name] = module


def _is_chosen(where: Where | None, path: str, module: nn.Module) -> bool:
    if where is None:
        return bool(_alike(module)[0])
    if isinstance(where, str):
        pattern, parts = where.split("."), path.split(".")
        return len(pattern) == len(parts) and all(map(fnmatch.fnmatchcase, parts, pattern))
    if isinstance(where, type):
        return type(module) is where
    return where(path, module)


def _with_such_state(module: nn.Module) -> tuple[list[int], str, str]:
    """The entries whose parameters and buffers a module has, and what stands before the names in the table."""
    has = {name: tuple(value.shape) for name, value in module.state_dict().items()}
    for prefix in ("", *(f"{child}." for child in SINGLE_CHILD.values())):
        numbers = [
            number
            for number, entry in enumerate(ENTRIES)
            if (not prefix or SINGLE_CHILD.get(entry.reference, "") == prefix[:-1])
            and {wanted.name.removeprefix(prefix): wanted.shape for wanted in entry.state} == has
        ]
        if numbers:
            return numbers, prefix, ""
    wanted = "; ".join(dict.fromkeys(_described(entry) for entry in ENTRIES))
    return [], "", f"it has {_listed(has)}, the kernels are for {wanted}"


def _described(entry: Entry) -> str:
    return _listed({wanted.name: wanted.shape for wanted in entry.state})


def _listed(state: dict[str, Any]) -> str:
    return ", ".join(f"{name} {list(shape)}" for name, shape in list(state.items())[:6]) or "no parameters"


def _alike(module: nn.Module) -> tuple[list[int], str, str]:
    """The entries whose reference is of the module's own class and has the same settings, without calling either."""
    numbers, prefix, reason = _with_such_state(module)
    kept = []
    for number in numbers:
        reference = _compared(number)
        wanted = reference.get_submodule(prefix[:-1]) if prefix else reference
        if type(module) is not type(wanted):
            reason = f"its class is not {type(wanted).__name__}"
        elif list(_settings(module)) != list(_settings(wanted)):
            reason = _other_settings(dict(_settings(module)), dict(_settings(wanted)))
        else:
            kept.append(number)
    return kept, prefix, reason


def _other_settings(has: dict[str, Any], wanted: dict[str, Any]) -> str:
    names = [name for name in (*wanted, *has) if has.get(name) != wanted.get(name)]
    listed = [f"{name.lstrip('.')} {has.get(name)}, not {wanted.get(name)}" for name in dict.fromkeys(names)]
    return f"its settings are others than the reference's: {', '.join(listed[:4])}"


def _unfit(network: nn.Module) -> str:
    """What the kernels are for, and what a network has in its place."""
    references = [_compared(number) for number in range(len(ENTRIES))]
    classes = {type(reference) for reference in references}
    classes |= {
        type(reference.get_submodule(SINGLE_CHILD[entry.reference]))
        for reference, entry in zip(references, ENTRIES, strict=True)
        if entry.reference in SINGLE_CHILD
    }
    modules = [(path, module) for path, module in network.named_modules() if type(module) in classes]
    names = " or ".join(sorted(found.__name__ for found in classes))
    wanted = f"{names} with {'; '.join(dict.fromkeys(map(_described, ENTRIES)))}"
    if modules:
        has = "; ".join(f"{path or 'it'}: {_alike(module)[2]}" for path, module in modules[:3])
        return f"no {names} of {type(network).__name__} is what the kernels are for. {has}"
    kinds = ", ".join(sorted({type(module).__name__ for path, module in network.named_modules() if path})[:8])
    return (
        f"the kernels are for {wanted}, and {type(network).__name__} has none, but {kinds or 'no modules'}. "
        "Name modules of another class that compute the same with where="
    )


@functools.cache
def _compared(number: int) -> nn.Module:
    """One instance of an entry's reference, whose class and settings are looked at."""
    return _operators.reference_of(ENTRIES[number])


def _settings(module: nn.Module) -> Iterator[tuple[str, Any]]:
    """Class and plain settings of a module and of those below it: epsilon, stride, shapes."""
    for path, part in module.named_modules():
        yield f"{path} is", type(part)
        for name, value in vars(part).items():
            if not name.startswith("_") and name != "training" and isinstance(value, (int, float, str, tuple, list)):
                yield f"{path}.{name}", value


def _same_values(module: nn.Module) -> tuple[list[int], str, str]:
    """The entries whose reference gives the module's values for the inputs that it was judged with."""
    numbers, prefix, reason = _with_such_state(module)
    kept = []
    for number in numbers:
        entry = ENTRIES[number]
        try:
            reason = _difference(entry, module, prefix)
        except (RuntimeError, TypeError, ValueError) as error:
            reason = f"a call with the kernel's inputs fails: {error}"
        if not reason:
            kept.append(number)
    return kept, prefix, reason


def _difference(entry: Entry, module: nn.Module, prefix: str) -> str:
    state = [_tensor(module, wanted.name.removeprefix(prefix)) for wanted in entry.state]
    device = state[0].device if state else torch.device(entry.device)
    inputs = [value.to(device) if isinstance(value, torch.Tensor) else value for value in example_inputs(entry)]
    with torch.no_grad():
        ours, theirs = _operators.call(entry, "reference", inputs, state), module(*inputs)
    if isinstance(ours, torch.Tensor):
        return values_differ([ours], [theirs])
    return values_differ(ours, theirs)


def values_differ(ours: Iterable[torch.Tensor], theirs: Iterable[Any]) -> str:
    """How results differ from the reference's, `ours`; empty where they are the same but for rounding."""
    for wanted, value in zip(ours, theirs, strict=True):
        if not isinstance(value, torch.Tensor) or value.shape != wanted.shape or value.dtype != wanted.dtype:
            return "its results have other sizes or another dtype than the reference's"
        if value.numel() == 0:
            continue
        scale = float(wanted.double().abs().max())
        off = float((value.double() - wanted.double()).abs().max())
        if not off <= _TOLERANCE.get(wanted.dtype, _USUAL_TOLERANCE) * scale:
            return f"its values are others than the reference's: {off:.3g} apart, where the largest is {scale:.3g}"
    return ""


def example_inputs(entry: Entry) -> list[Any]:
    """Inputs as the kernel was judged with."""
    return list(_operators.module_of(entry).example_inputs())
