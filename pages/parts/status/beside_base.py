"""A kernel beside the one that its step index started from: faster, slower, or neither beyond the noise. Pure."""

from __future__ import annotations

from storage.index.queries import AttemptRow, FamilyRow
from storage.results import relative
from storage.results.relative import Relative

Kernel = AttemptRow | FamilyRow


def of(kernel: Kernel, base: Kernel | None) -> Relative | None:
    """How much faster the kernel is; None where either was not timed, or it is its own base."""
    if base is None or base.candidate_id == kernel.candidate_id:
        return None
    if kernel.speedup is None or kernel.noise is None or not base.speedup or base.noise is None:
        return None
    return relative.between_sessions(kernel.speedup, kernel.noise, base.speedup, base.noise)


def is_slower(kernel: Kernel, base: Kernel | None) -> bool:
    """Whether it is slower beyond the noise; False where that is not known."""
    change = of(kernel, base)
    return change is not None and change.is_slower
