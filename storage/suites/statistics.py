"""Statistics of speed-ups over tasks and repeats, each with its source. Pure numbers: knows neither runs nor suites."""

from __future__ import annotations

import functools
import math
import statistics
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from storage.results.evaluation_results import median_ranks

CONFIDENCE = 0.95
_Z = statistics.NormalDist().inv_cdf(0.5 + CONFIDENCE / 2)


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure with its 95 % interval, which is None where the sample is too small for one. `count`: of how many."""

    value: float
    low: float | None = None
    high: float | None = None
    count: int = 1


def geometric_mean(values: Sequence[float]) -> float:
    """The geometric mean of at least one positive value."""
    return math.exp(math.fsum(map(math.log, values)) / len(values))


def mean_speedup(values: Sequence[float]) -> Estimate | None:
    """The geometric mean with Student's interval of the mean logarithm, from three values on; None of no value.

    Fleming and Wallace, CACM 29 (1986): ratios are averaged geometrically.
    """
    if not values:
        return None
    middle, count = geometric_mean(values), len(values)
    if count < 3:  # of two the interval spans several powers of ten
        return Estimate(middle, count=count)
    spread = statistics.stdev(map(math.log, values)) / math.sqrt(count)
    factor = math.exp(min(student_t(0.5 + CONFIDENCE / 2, count - 1) * spread, 700.0))
    return Estimate(middle, middle / factor, middle * factor, count)


def share(successes: float, count: int) -> Estimate | None:
    """A share with Wilson's score interval (JASA 22, 1927); None of nothing. `successes` may be a sum of shares."""
    if not count:
        return None
    part, square = successes / count, _Z * _Z / count
    centre = (part + square / 2) / (1 + square)
    half = _Z * math.sqrt(max(0.0, part * (1 - part)) / count + square / (4 * count)) / (1 + square)
    return Estimate(part, max(0.0, min(part, centre - half)), min(1.0, max(part, centre + half)), count)


def median_until(observed: Sequence[tuple[float, bool]]) -> Estimate | None:
    """How much it takes at the median until something happens, where some never came so far: (amount, whether it
    happened then) each. None where fewer than half would have come there; an end that is not reached is None.

    Kaplan and Meier, JASA 53 (1958); the interval of the median after Brookmeyer and Crowley, Biometrics 38 (1982), by
    Greenwood's variance of log(-log S), which keeps a small sample within 0 and 1.
    """
    share, variance = 1.0, 0.0
    middle = low = high = None
    amounts = sorted(amount for amount, _ in observed)
    for amount, events in sorted(Counter(amount for amount, happened in observed if happened).items()):
        at_risk = len(amounts) - bisect_left(amounts, amount)
        share *= 1 - events / at_risk
        variance += events / (at_risk * (at_risk - events)) if at_risk > events else math.inf
        lowest, highest = _band(share, variance)
        low = amount if low is None and lowest <= 0.5 else low
        middle = amount if middle is None and share <= 0.5 else middle
        high = amount if high is None and highest <= 0.5 else high
    return None if middle is None else Estimate(middle, low, high, len(observed))


def _band(share: float, variance: float) -> tuple[float, float]:
    """The interval of a share that has not come there."""
    if not 0 < share < 1 or not math.isfinite(variance):
        return share, share
    half = _Z * math.sqrt(variance) / abs(math.log(share))
    return share ** math.exp(min(half, 700.0)), share ** math.exp(-half)


def median(values: Sequence[float]) -> Estimate | None:
    """The median with its distribution-free interval; None of no value, no interval of fewer than six.

    Conover, Practical Nonparametric Statistics, ch. 3: five values cannot hold 95 %.
    """
    if not values:
        return None
    middle, count = statistics.median(values), len(values)
    if count < 6:
        return Estimate(middle, count=count)
    ranked, (low, high) = sorted(values), median_ranks(count)
    return Estimate(middle, ranked[low], ranked[high], count)


def sign_test(wins: int, losses: int) -> float:
    """The probability of a split at least as uneven if neither side were better, ties left out (two-sided, exact)."""
    count = wins + losses
    tail = sum(math.comb(count, k) for k in range(min(wins, losses) + 1))
    return min(1.0, 2 * tail / float(2**count))


def pass_at(passed: int, count: int, k: int) -> float:
    """The chance that k of `count` independent tries hold one that passed, `passed` of which did; k is `count` at most.

    The unbiased estimator of Chen et al., arXiv 2107.03374.
    """
    return 1.0 - math.comb(count - passed, k) / math.comb(count, k)


def gap_closed(baseline_ms: float, kernel_ms: float, limit_ms: float) -> float | None:
    """How much of the way from the baseline to the hardware limit was gone: 0 at the baseline, 1 at the limit, below 0
    for a slower kernel; None where the baseline is at the limit already."""
    return (baseline_ms - kernel_ms) / (baseline_ms - limit_ms) if baseline_ms > limit_ms > 0 else None


def sol_score(baseline_ms: float, kernel_ms: float, limit_ms: float) -> float | None:
    """1 / (1 + (kernel - limit) / (baseline - limit)): 0.5 at the baseline, 1 at the limit; None as for `gap_closed`.

    SOL-ExecBench, arXiv 2603.19173.
    """
    if not baseline_ms > limit_ms > 0:
        return None
    return 1.0 / (1.0 + max(0.0, kernel_ms - limit_ms) / (baseline_ms - limit_ms))


@functools.cache
def student_t(probability: float, freedom: int) -> float:
    """The quantile of Student's distribution, by bisection of its distribution function."""
    low, high = -1.0, 1.0
    while _student_cdf(high, freedom) < probability:
        high *= 2
    while _student_cdf(low, freedom) > probability:
        low *= 2
    for _ in range(200):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (middle, high) if _student_cdf(middle, freedom) < probability else (low, middle)
    return (low + high) / 2


def _student_cdf(t: float, freedom: int) -> float:
    """For whole degrees of freedom (Abramowitz and Stegun, 26.7.3 and 26.7.4)."""
    angle = math.atan2(t, math.sqrt(freedom))
    cosine = math.cos(angle) ** 2
    is_odd = freedom % 2
    term = math.cos(angle) if is_odd else 1.0
    total = 0.0
    for k in range(freedom // 2):
        total += term
        term *= cosine * (2 * k + 1 + is_odd) / (2 * k + 2 + is_odd)
    inside = 2 / math.pi * (angle + math.sin(angle) * total) if is_odd else math.sin(angle) * total
    return 0.5 + inside / 2
