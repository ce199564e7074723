"""A kernel beside the one that its step index started from, or beside the best of its run: faster, slower, or neither
beyond the noise. Pure."""

from __future__ import annotations

from pages.parts import timed_anew, wording
from storage.index.queries import AttemptRow, FamilyRow
from storage.results import relative
from storage.results.relative import Relative

Kernel = AttemptRow | FamilyRow
OPEN = "no measurable difference"


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


def tie(kernel: AttemptRow, best: AttemptRow | None) -> str:
    """What "tied with the best" means of this kernel, in figures, and why latencies tell another difference where they
    do; empty of a kernel that is not tied."""
    ratio = of(best, kernel) if best and kernel.is_tied else None
    if best is None or ratio is None:
        return ""
    spread = wording.measured(ratio.speedup, ratio.noise, ratio.low, ratio.high)
    timed = [anew for k in (best, kernel) for anew in timed_anew.kernel(k.number, k.speedup, k.latency_ms)]
    moved = timed_anew.moved(timed[0], timed[1], ratio) if len(timed) == 2 else ""
    return f"Kernel {best.number}, the best, is {spread} as fast as kernel {kernel.number}: {OPEN}. {moved}".strip()
