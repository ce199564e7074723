"""Are the network's results as right with kernels as without? Errors of both against the same network in more exact
arithmetic, on inputs that no kernel has seen; in training mode those of gradients too."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.utils import _pytree as pytree

from engine.networks import watching
from engine.networks.entries import Workload
from engine.networks.proof import ways
from engine.networks.proof.pairing import Called
from engine.networks.proof.ways import NoWay
from storage.networks.records import Parity

FACTOR = 2.0
"""Of the network's own error that kernels may have: they add up in another order."""
LEAST_ULPS = 8
"""Of the output's dtype: an error of so few is allowed whatever the network's own is."""
AS_IT_WAS = "the network as it was"
LOSS_ULPS = 64
"""Allowed where nothing more exact is to be had."""
SEED = 20_260
GRADIENT = "gradient of "
Named = Mapping[str, torch.Tensor]


@dataclass(frozen=True, slots=True)
class Expected:
    """What one workload's contents give in exact arithmetic and in the network as it was."""

    exact: str
    answers: tuple[tuple[Named, Named], ...]
    """Of each content: exact, as it was."""


def expected(
    network: nn.Module, twin: Callable[[], nn.Module], contents: Sequence[Workload], *, is_training: bool
) -> Expected:
    """Call the network as it is, and a twin with parameters of its own in float64, else in float32, where that can be
    done."""
    own = [_named(network, content, is_training=is_training) for content in contents]
    for dtype in (torch.float64, torch.float32):
        try:
            other = twin()
            converted = ways.exact(other, dtype)
            answers = [_named(other, converted(content), is_training=is_training) for content in contents]
        except NoWay:  # the user's code, in an arithmetic that it was not written for
            continue
        return Expected(str(dtype)[6:], tuple(zip(answers, own, strict=True)))
    return Expected(AS_IT_WAS, tuple(zip(own, own, strict=True)))


def compared(
    module: nn.Module, called: Called, contents: Sequence[Workload], wanted: Expected, *, is_training: bool
) -> list[Parity]:
    """Every output of the network with kernels; of gradients the one that is furthest off."""
    worst: dict[str, Parity] = {}
    for content, (exact, own) in zip(contents, wanted.answers, strict=True):
        found = _named(module, content, is_training=is_training, called=called)
        for name, answer in exact.items():
            parity = _parity(content.name, name, found.get(name), own[name], answer, wanted.exact)
            key = GRADIENT if name.startswith(GRADIENT) else name
            if key not in worst or not _excess(parity) <= _excess(worst[key]):
                worst[key] = parity
    return list(worst.values())


def _excess(parity: Parity) -> float:
    return parity.error / parity.allowed


def _parity(
    workload: str, name: str, found: torch.Tensor | None, own: torch.Tensor, answer: torch.Tensor, exact: str
) -> Parity:
    scale = float(answer.double().abs().max()) if answer.numel() else 1.0
    eps = torch.finfo(own.dtype).eps if own.dtype.is_floating_point else 0.0
    own_error = _error(own, answer, scale)
    allowed = max(FACTOR * own_error, (LOSS_ULPS if exact == AS_IT_WAS else LEAST_ULPS) * eps)
    error = float("inf") if found is None or found.shape != own.shape else _error(found, answer, scale)
    same = _same_tokens(found, own) if found is not None and name.endswith("logits") else None
    return Parity(workload, name, error, own_error, allowed, exact, same)


def _error(value: torch.Tensor, answer: torch.Tensor, scale: float) -> float:
    if not value.numel():
        return 0.0
    wide, right = value.double(), answer.to(value.device).double()
    same = (wide == right) | (wide.isnan() & right.isnan())
    off = (wide - right).abs().masked_fill(same, 0.0)
    largest = float(off.nan_to_num(nan=float("inf")).max())
    return largest / scale if scale else largest


def _same_tokens(found: torch.Tensor, own: torch.Tensor) -> float | None:
    if found.shape != own.shape or found.dim() < 2:
        return None
    return float((found.argmax(-1) == own.argmax(-1)).double().mean())


def _named(
    module: nn.Module, content: Workload, *, is_training: bool, called: Called | None = None
) -> dict[str, torch.Tensor]:
    """Outputs by where they stand in the result, and gradients by the names of parameters."""
    torch.manual_seed(SEED)  # whatever it draws, both draw it
    if not is_training:
        result = called(content) if called else ways.guarded(watching.call)(module, content)
        return {name: tensor.detach().clone() for name, tensor in _outputs(result)}
    result, gradients = ways.guarded(watching.with_gradients)(module, content)
    return {name: tensor.detach().clone() for name, tensor in (*_outputs(result), *gradients)}


def _outputs(result: Any) -> Iterator[tuple[str, torch.Tensor]]:
    for path, leaf in pytree.tree_flatten_with_path(result)[0]:
        if isinstance(leaf, torch.Tensor):
            yield "output" + "".join(map(str, path)).replace("['logits']", ".logits"), leaf
