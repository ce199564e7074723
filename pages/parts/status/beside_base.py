"""A kernel beside the one that its step index started from, or beside the best of its run: faster, slower, or neither
beyond the noise. Pure."""

from __future__ import annotations

from pages.parts import timed_anew, wording
from storage.index.queries import AttemptRow, FamilyRow
from storage.results import relative

Kernel = AttemptRow | FamilyRow
OPEN = "no measurable difference"


def is_slower(kernel: Kernel, base: Kernel | None, *, is_on_gpu: bool) -> bool:
    """Whether it is slower beyond the noise; False where that is not known, or it is its own base."""
    if base is None or base.candidate_id == kernel.candidate_id:
        return False
    change = relative.gain(kernel, base, is_on_gpu=is_on_gpu)
    return change is not None and change.is_slower


def tie(kernel: AttemptRow, best: AttemptRow | None, *, is_on_gpu: bool) -> str:
    """What "tied with the best" means of this kernel, in figures, the newer of the two over the older, and why
    latencies tell another difference where they do; empty of a kernel that is not tied."""
    if best is None or not kernel.is_tied:
        return ""
    new, old = (best, kernel) if best.number > kernel.number else (kernel, best)
    ratio = relative.gain(new, old, is_on_gpu=is_on_gpu)
    if ratio is None:
        return ""
    spread = wording.measured(ratio.speedup, ratio.noise, ratio.low, ratio.high)
    timed = [anew for k in (new, old) for anew in timed_anew.kernel(k.number, k.speedup, k.latency_ms)]
    moved = timed_anew.moved(timed[0], timed[1], ratio) if len(timed) == 2 else ""
    names = [f"kernel {k.number}" + (", the best," if k is best else "") for k in (new, old)]
    return f"{wording.capital(names[0])} is {spread} as fast as {names[1].rstrip(',')}: {OPEN}. {moved}".strip()
