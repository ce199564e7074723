"""How many operations an operator does, by PyTorch's formulas; knows no module and counts nothing itself."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.utils.flop_counter import flop_registry

RECURRENT = (torch.ops.aten._cudnn_rnn, torch.ops.aten.mkldnn_rnn_layer)


def flop_of(operator: torch._ops.OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any], out: Any) -> int:
    """Operations of one call; 0 for an operator that multiplies nothing.

    PyTorch's formula for attention takes as many heads of keys as of queries: with fewer, which several heads of
    queries share, it is the same work.
    """
    if operator._overloadpacket in RECURRENT:
        return _of_recurrent(args)
    formula = flop_registry.get(operator._overloadpacket)
    if formula is None:
        return 0
    try:
        return int(formula(*args, **kwargs, out_val=out))
    except AssertionError:
        query, key, value = args[:3]
        if "scaled_dot_product" not in operator._schema.name or query.dim() < 2:
            raise
        heads = math.prod(query.shape[:-2])
        return int(2 * heads * query.shape[-2] * key.shape[-2] * (query.shape[-1] + value.shape[-1]))


def _of_recurrent(args: Sequence[Any]) -> int:
    """Of a library's recurrent layers, for which PyTorch has no formula: each row of the input, one a sample and time,
    is multiplied once by every matrix."""
    rows = args[0].numel() // max(1, args[0].shape[-1])
    weights = args[1] if isinstance(args[1], (list, tuple)) else args[1:3]
    return int(2 * rows * sum(weight.numel() for weight in weights if weight.dim() == 2))
