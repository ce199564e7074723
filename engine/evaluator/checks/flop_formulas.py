"""How many operations an operator does, by PyTorch's formulas; knows no module and counts nothing itself."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.utils.flop_counter import flop_registry


def flop_of(operator: torch._ops.OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any], out: Any) -> int:
    """Operations of one call; 0 for an operator that multiplies nothing.

    PyTorch's formula for attention takes as many heads of keys as of queries: with fewer, which several heads of
    queries share, it is the same work.
    """
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
