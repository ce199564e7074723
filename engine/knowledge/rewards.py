"""The graded reward of a kernel, whatever method has written it. Pure: knows results, not prompts."""

from __future__ import annotations

from storage.run.record import Candidate

NOT_BUILT, WRONG, PER_SPEEDUP = -10.0, -5.0, 10.0
SCALE = (
    f"{NOT_BUILT:g} for a reply without a kernel or one that does not compile, {WRONG:g} for a kernel that compiles "
    f"and is wrong or refused, else {PER_SPEEDUP:g} times its speed-up over PyTorch"
)


def reward(candidate: Candidate | None) -> float | None:
    """The reward of what an attempt brought; None is an attempt without a kernel, and None of a kernel that nothing
    has decided yet.

    Source: the loop that TritonGym's design describes has 10 / latency, so that the unit of time decides how a slow
    correct kernel stands against a wrong one. Here the latency is counted in baselines: 10 x baseline / latency.
    """
    if candidate is None:
        return NOT_BUILT
    if candidate.compiled is not None and not candidate.compiled.is_ok:
        return NOT_BUILT
    if candidate.has_failed:
        return WRONG
    return PER_SPEEDUP * candidate.trusted.speedup if candidate.trusted is not None else None
