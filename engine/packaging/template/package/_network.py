"""Kernels made by Tilewright for one network: what they are, how they were judged and what they gained in the network
stands in CARD.md beside this package.

    apply(network)            put kernels into the modules that they were made for; revert(network) takes them out
    compile(network)          torch.compile, with the kernels too whose operators lie in several modules
    report()                  how often a kernel ran, and how often PyTorch's own code did in its place, and why
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import torch
from torch import nn

from ._dispatch import report
from ._fused import EAGER, INDUCTOR, backend
from ._modules import FALL_BACK, ON_MISSING_BACKWARD, Optimised, Replaced, example_inputs, revert
from ._places import Place, placed
from ._table import ENTRIES, REGIONS

__all__ = [
    "EAGER",
    "ENTRIES",
    "INDUCTOR",
    "ON_MISSING_BACKWARD",
    "REGIONS",
    "Optimised",
    "Place",
    "Replaced",
    "apply",
    "backend",
    "compile",
    "example_inputs",
    "report",
    "revert",
]


def apply(
    network: nn.Module, regions: Collection[str] | None = None, *, on_missing_backward: str = FALL_BACK
) -> list[Replaced]:
    """Put kernels into the network's modules; its parameters stay the same objects. Returns what was replaced.

    Args:
        network: it is changed in place.
        regions: names of those to use; left out, all that this package has.
        on_missing_backward: `fall back`, `raise` or `recompute`.

    Raises:
        ValueError: a place of a region is not there, or computes something else. Nothing is replaced then.
    """
    return placed(network, _chosen(regions), on_missing_backward)


def compile(
    network: nn.Module, regions: Collection[str] | None = None, *, inner: str = INDUCTOR, mode: str | None = None
) -> Callable[..., Any]:
    """The network under torch.compile, where kernels also take the place of operators that a module's border cuts.

    Call `apply` first for the kernels of modules. Without any of the other kind it is plain torch.compile.

    Args:
        network: it stays as it is.
        regions: names of those to use; left out, all that this package has.
        inner: what compiles the rest: `inductor`, or `eager`.
        mode: of torch.compile, such as `max-autotune`.
    """
    chosen = _chosen(regions)
    if any(region.name in chosen and not region.places for region in REGIONS):
        compiled = torch.compile(network, backend=backend(chosen, inner=inner, mode=mode), dynamic=False)
    else:
        compiled = torch.compile(network, backend=inner, mode=mode, dynamic=False)
    return compiled


def _chosen(regions: Collection[str] | None) -> frozenset[str]:
    known = {region.name for region in REGIONS}
    if regions is not None and (unknown := sorted(set(regions) - known)):
        raise ValueError(f"no region {', '.join(unknown)} in this package: it has {', '.join(sorted(known))}")
    return frozenset(known if regions is None else regions)
