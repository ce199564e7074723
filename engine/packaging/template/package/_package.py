"""Kernels made by Tilewright as operators of PyTorch: what they are, how they were judged and what they gain stands in
CARD.md beside this package.

    apply(network)          put them into a network, where they belong; revert(network) takes them out
    from_module(module)     a module that calls them and shares the parameters of `module`
    new()                   a module with new weights
    report()                how often a kernel ran, and how often PyTorch's own code did in its place, and why
"""

from ._dispatch import report
from ._modules import (
    ON_MISSING_BACKWARD,
    Optimised,
    Replaced,
    apply,
    example_inputs,
    from_module,
    functional,
    new,
    revert,
)
from ._table import ENTRIES

__all__ = [
    "ENTRIES",
    "ON_MISSING_BACKWARD",
    "Optimised",
    "Replaced",
    "apply",
    "example_inputs",
    "from_module",
    "functional",
    "new",
    "report",
    "revert",
]
