"""How many numbers an operator adds up into one element of what it returns. Pure functions; run nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from engine.evaluator.checks.operators import is_harmless, words

# Element by element, though PyTorch's tags do not say so.
ELEMENTWISE = words("hardswish hardsigmoid log_sigmoid_forward _prelu_kernel celu glu native_dropout bernoulli")
# As many elements go out as come in, and each takes in what stands along one dimension.
ALONG = words("_softmax _log_softmax _safe_softmax cumsum cumprod logcumsumexp cummax cummin sort")


def of_call(
    operator: torch._ops.OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any], out: Any, flop: int
) -> float:
    """Of one call, which makes `flop` operations; 0 where each element comes of its own. Where nothing tells, as many
    as the longest dimension of what it is given."""
    name = operator._overloadpacket.__name__
    if torch.Tag.pointwise in operator.tags or is_harmless(name) or name.rstrip("_") in ELEMENTWISE:
        return 0.0
    given, made = (
        [leaf for leaf in tree_leaves(tree) if isinstance(leaf, torch.Tensor) and leaf.numel()]
        for tree in ((args, kwargs), out)
    )
    if not given or not made:
        return 0.0
    if flop:
        return flop / 2 / made[0].numel()
    dimension = args[1] if len(args) > 1 else kwargs.get("dim")
    if name.rstrip("_") in ALONG and isinstance(dimension, int) and args[0].dim():
        return float(args[0].shape[dimension])
    largest, smallest = max(map(torch.numel, given)), min(map(torch.numel, made))
    is_sum = smallest < largest and largest % smallest == 0
    return largest / smallest if is_sum else float(max(max(leaf.shape, default=1) for leaf in given))
