"""Inputs like those of a workload that no kernel has seen: the same shapes, kinds and ranges, other values."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils import _pytree as pytree

from engine.networks import task_text
from engine.networks.entries import Workload


def drawn(workload: Workload, count: int, seed: int) -> list[Workload]:
    """So many workloads with contents of their own. Masks stay masks, counted numbers stay counted."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return [_anew(workload) for _ in range(count)]


def _anew(workload: Workload) -> Workload:
    args, kwargs = pytree.tree_map_only(torch.Tensor, _like, (workload.args, dict(workload.kwargs)))
    return Workload(workload.name, workload.weight, args, kwargs)


def _like(tensor: torch.Tensor) -> torch.Tensor:
    names: dict[str, Any] = {"torch": torch}
    fresh: torch.Tensor = eval(task_text.drawn(tensor), names)  # an expression of our own, made of sizes and ranges
    if fresh.stride() != tensor.stride() and fresh.shape == tensor.shape:
        strided = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype)
        fresh = strided.copy_(fresh) if 0 not in tensor.stride() else fresh
    return fresh.to(device=tensor.device, dtype=tensor.dtype)
