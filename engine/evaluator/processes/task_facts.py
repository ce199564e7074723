"""What calls of a reference do beside answering: change inputs or state, draw random numbers, answer otherwise again.

Runs in the reference's worker. Decides nothing: `examining` says what follows.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from engine.evaluator import tasks
from engine.evaluator.checks import comparison, float8, seeding, structure
from engine.evaluator.checks.arguments import Arguments, Kinds, flattened
from engine.evaluator.checks.comparison import is_rounded

# Several times what summing in another order costs: a reference may do that from call to call.
APART = 1e-4
APART_IN_HALF = 5e-2


class UnusableTask(Exception):
    """The reference cannot be judged against; the message is for the person who wrote it."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What was seen over a few calls of the reference in the task's own dtype."""

    changed_inputs: tuple[int, ...]
    """By number, in a call."""
    changed_state: tuple[str, ...]
    """Parameters and buffers that a call changes, by name."""
    changed_attributes: tuple[str, ...]
    """Tensors and numbers that a module keeps beside its state and that a call changes, by name."""
    draws: bool
    """Whether a call draws from a seeded source and its answer depends on what is drawn."""
    repeats: bool
    """Whether the same call once more, seeded alike, gives the same answer."""
    is_training: bool
    """Whether a module is in training mode that behaves differently in it."""
    hidden: tuple[str, ...] = ()
    """Classes of modules whose forward neither the task's text nor what is shown of its modules holds, by name."""

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Facts:
        """Read what `asdict` wrote."""
        fields: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in plain.items()
        }
        return cls(**fields)


def hidden(model: nn.Module, source: str, task_file: str) -> tuple[str, ...]:
    """Classes of a model whose forward lies where no prompt can show it; PyTorch's own are known."""
    found = dict[str, Path]()
    for kind in {type(module) for module in model.modules()}:
        forward = inspect.unwrap(kind.forward)
        file, module = getattr(getattr(forward, "__code__", None), "co_filename", ""), forward.__module__ or ""
        is_of_a_file = file not in ("", task_file) and not file.startswith("<")  # else the task's own code has made it
        if is_of_a_file and module.partition(".")[0] not in tasks.imported.KNOWN:
            found[f"{module}.{forward.__qualname__.rpartition('.')[0]}"] = Path(file).resolve()
    if not found:
        return ()
    told = {(each.path.resolve(), name) for each in tasks.shown.modules(source) for name in each.defines}
    return tuple(
        sorted(name for name, file in found.items() if not any((file, part) in told for part in name.split(".")))
    )


def observed(model: nn.Module, call: Callable[..., Any], given: Arguments, call_seed: int) -> Facts:
    """Call a reference twice on copies of the same inputs, and under another seed where it draws numbers."""
    before = _kept(model)
    first_inputs = given.mapped(torch.clone)
    first, drew = _answered(call, first_inputs, call_seed)
    after = _kept(model)
    again, _ = _answered(call, given.mapped(torch.clone), call_seed)
    another = _answered(call, given.mapped(torch.clone), call_seed + 1)[0] if drew else again
    state = {name for name, _ in model.state_dict().items()}
    changed = [name for name in before if name not in after or not _is_same(before[name], after[name])]
    _put_back(model, before)
    return Facts(
        changed_inputs=tuple(
            number
            for number, (now, was) in enumerate(zip(_tensors(first_inputs), _tensors(given), strict=True))
            if not _is_same(now, was)
        ),
        changed_state=tuple(name for name in changed if name in state),
        changed_attributes=tuple(name for name in changed if name not in state),
        draws=drew and not _is_near(first, another),
        repeats=_is_near(first, again),
        is_training=any(module.training and _trains(module) for module in model.modules()),
    )


def _answered(call: Callable[..., Any], arguments: Arguments, seed: int) -> tuple[list[torch.Tensor], bool]:
    """Copies of the outputs, and whether numbers were drawn."""
    seeding.seed(seed)
    before = seeding.state()
    leaves = structure.leaves_of(arguments.passed_to(call))
    return [leaf.detach().clone() for leaf in leaves], seeding.state() != before


def _kept(model: nn.Module) -> dict[str, torch.Tensor]:
    """Everything that a module keeps: its state, and tensors and numbers in attributes, by name."""
    kept = {name: value.clone() for name, value in model.state_dict().items()}
    for path, module in model.named_modules():
        for name, value in vars(module).items():
            if name.startswith("_") and name in nn.Module().__dict__:
                continue
            for suffix, tensor in _held(value):
                kept[".".join(filter(None, (path, f"{name}{suffix}")))] = tensor
    return kept


def _held(value: Any, suffix: str = "") -> Iterator[tuple[str, torch.Tensor]]:
    if isinstance(value, torch.Tensor):
        yield suffix, value.detach().clone()
    elif isinstance(value, (bool, int, float)):
        yield suffix, torch.tensor(value)
    elif isinstance(value, (list, tuple, dict)):
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
        for key, item in pairs:
            if isinstance(item, (torch.Tensor, bool, int, float)):
                yield from _held(item, f"{suffix}[{key!r}]")


def _put_back(model: nn.Module, before: dict[str, torch.Tensor]) -> None:
    for name, value in model.state_dict().items():
        value.copy_(before[name])


def _trains(module: nn.Module) -> bool:
    """Whether a module answers otherwise in evaluation mode."""
    if isinstance(module, nn.modules.batchnorm._NormBase):
        return module.track_running_stats
    share = getattr(module, "p", 0.0) if isinstance(module, nn.modules.dropout._DropoutNd) else 0.0
    share = share or getattr(module, "dropout", 0.0)  # of attention and recurrent layers
    return isinstance(module, nn.RReLU) or (isinstance(share, float) and share > 0)


def _tensors(arguments: Arguments) -> list[torch.Tensor]:
    return flattened(arguments, Kinds())[0]


def _is_same(a: torch.Tensor, b: torch.Tensor) -> bool:
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    a, b = float8.exact(a), float8.exact(b)
    return torch.equal(a.nan_to_num(), b.nan_to_num()) if is_rounded(a) and not a.is_complex() else torch.equal(a, b)


def _is_near(first: Sequence[torch.Tensor], second: Sequence[torch.Tensor]) -> bool:
    if len(first) != len(second) or any(a.shape != b.shape for a, b in zip(first, second, strict=True)):
        return False
    return all(
        float8.equal(a, b)
        or (is_rounded(a) and comparison.errors(b, a, a, comparison.scale_of(a, a)).relative <= _apart(a))
        for a, b in zip(first, second, strict=True)
    )


def _apart(tensor: torch.Tensor) -> float:
    return APART_IN_HALF if tensor.dtype in (torch.float16, torch.bfloat16, *float8.FORMATS) else APART
