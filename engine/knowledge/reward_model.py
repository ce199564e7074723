"""A small model of the reward of a kernel, from its source, what the compiler gave it and the profile of its parent;
and whether it ranks kernels better than the order in which they were written. Pure; needs the optional scikit-learn.

Idea: the reward model in TritonGym's design, which ranks samples before they cost device time.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from storage.knowledge.records import ScoredKernel
from storage.results.evaluation_results import KernelResources

LEAST_KERNELS = 12  # fewer say nothing of how well they rank
FOLDS = 5
PLACE = "place in the run"
TREES = 60
NOT_INSTALLED = (
    "scikit-learn is not installed, so kernels are evaluated in the order in which they were written: "
    "pip install -r requirements-ranking.txt"
)
# What a source is counted for: words that tell which structure a kernel has, in any language.
WORDS = (
    "__global__", "__shared__", "__syncthreads", "__shfl", "cp.async", "cp_async", "mbarrier", "wgmma", "mma", "float4",
    "half", "tf32", "__restrict__", "__ldg", "#pragma unroll", "#pragma omp", "_mm512", "_mm256", "fma", "local_tile",
    "make_layout", "gemm", "copy", "tl.dot", "tl.load", "num_stages", "num_warps", "autotune", "for", "if", "template",
    "atomic", "exp", "<<<",
)  # fmt: skip
_NUMBER = re.compile(r"\b\d{1,5}\b")


def features(
    source: str, resources: Sequence[KernelResources], before: Mapping[str, float], number: int
) -> dict[str, float]:
    """What the model sees of a kernel. `before` are the figures of its parent, `number` its place in the run."""
    numbers = [int(number) for number in _NUMBER.findall(source)]
    counts = {f"count of {word}": float(source.count(word)) for word in WORDS}
    counts |= {"lines": float(source.count("\n")), "letters": float(len(source)), PLACE: float(number)}
    counts |= {"largest number": math.log2(1 + max(numbers, default=0))}
    counts |= {"powers of two": float(sum(number >= 8 and number & (number - 1) == 0 for number in numbers))}
    if resources:
        counts |= {
            "registers": float(max(kernel.registers for kernel in resources)),
            "spills": float(sum(kernel.spill_stores + kernel.spill_loads for kernel in resources)),
            "shared memory": float(max(kernel.shared_bytes for kernel in resources)),
            "kernels": float(len(resources)),
        }
    return counts | {f"parent: {name}": value for name, value in before.items()}


def target(reward: float) -> float:
    """The reward as it is learned: failures as they are graded, a correct kernel by the logarithm of its speed-up."""
    return math.log2(max(reward, 1e-3) / 10) if reward > 0 else reward


@dataclass(frozen=True, slots=True)
class Judgement:
    """What the model says of drawn kernels. `scores` are empty where it does not rank. `correlation` is Spearman's rank
    correlation of its cross-validated predictions with the rewards of `kernels` kernels, `arrival` that of the order in
    which these were written, the first best; None where neither can be told. `why` says why it ranks, or why not."""

    scores: tuple[float, ...]
    kernels: int
    correlation: float | None
    arrival: float | None
    why: str

    @property
    def order(self) -> list[int]:
        """Places of the drawn kernels, the most promising first."""
        return sorted(range(len(self.scores)), key=lambda index: (-self.scores[index], index))


def judge(scored: Sequence[ScoredKernel], drawn: Sequence[Mapping[str, float]]) -> Judgement:
    """Rank drawn kernels by what is known of earlier ones, if that ranks better than the order of arrival."""
    if len(scored) < LEAST_KERNELS:
        few = f"{len(scored)} kernels with a reward are known, {LEAST_KERNELS} are needed"
        return Judgement((), len(scored), None, None, few)
    try:
        from scipy.stats import spearmanr
        from sklearn.ensemble import RandomForestRegressor
        from sklearn.model_selection import KFold, cross_val_predict
    except ImportError:
        return Judgement((), len(scored), None, None, NOT_INSTALLED)
    names = sorted({name for kernel in scored for name in kernel.features})
    rows = [[kernel.features.get(name, 0.0) for name in names] for kernel in scored]
    targets = [target(kernel.reward) for kernel in scored]
    if len(set(targets)) < 2:
        return Judgement((), len(scored), None, None, "all known kernels have the same reward")
    forest = RandomForestRegressor(n_estimators=TREES, min_samples_leaf=2, random_state=0)
    guessed = cross_val_predict(forest, rows, targets, cv=KFold(FOLDS, shuffle=True, random_state=0))
    placed = [-kernel.features.get(PLACE, 0.0) for kernel in scored]
    correlation, arrival = (
        float(spearmanr(ranking, targets).statistic) if len(set(ranking)) > 1 else 0.0
        for ranking in (list(guessed), placed)
    )
    if correlation <= max(arrival, 0.0):
        return Judgement((), len(scored), correlation, arrival, "it does not rank better than the order of arrival")
    forest.fit(rows, targets)
    scores = forest.predict([[kernel.get(name, 0.0) for name in names] for kernel in drawn])
    return Judgement(
        tuple(map(float, scores)), len(scored), correlation, arrival, "it ranks better than the order of arrival"
    )
