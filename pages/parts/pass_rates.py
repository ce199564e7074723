"""How often kernels pass at the first try and within k, how fast the first try is, and what a pass costs. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pages.parts import wording
from storage.index.queries import AttemptRow, RankingRow, TryRow
from storage.results import relative
from storage.run.settings import Origin
from storage.suites import statistics
from storage.suites.results import TRY

ABOUT = (
    f"{TRY} Papers call a correct kernel within k tries Pass@k, and the speed-up of one try, 0 for one that does not "
    "pass, Perf@1. Where all tries had the same prompt, so that none was told of another, Pass@k is estimated from all "
    "of them, else it is what happened."
)
ABOUT_RANKING = (
    "Kernels that are drawn together are compiled, ranked and evaluated in that order until one is correct. The rank "
    "correlation (Spearman's) is between what the model predicts of earlier kernels that it was not shown and their "
    "rewards: 1 is the right order, 0 is chance. Where it is not above that of the order of arrival, it does not rank."
)
HELP = {
    "Perf@1": "speed-up over eager PyTorch that one try brings, 0 for one without a correct kernel",
    "Cost a pass": "US dollars of all model calls for each correct kernel",
}
SHOWN = (1, 2, 4, 8, 16, 32, 64)


@dataclass(frozen=True, slots=True)
class PassRates:
    """The tries of one run in order. `cost_usd` is what all its calls have cost, None where that is not known;
    `unjudged` kernels have no verdict, and are no tries."""

    tries: Sequence[TryRow]
    cost_usd: float | None
    model: str = ""
    unjudged: int = 0

    @property
    def passed(self) -> int:
        """Tries with a correct kernel."""
        return sum(tried.is_passed for tried in self.tries)

    @property
    def is_independent(self) -> bool:
        """Whether no try was told of another: they had one prompt."""
        return len({tried.prompt_blob for tried in self.tries}) == 1 and self.tries[0].prompt_blob is not None

    def pass_at(self, k: int) -> float | None:
        """The probability of a correct kernel within k tries, or whether there was one; None of fewer than k tries."""
        count = len(self.tries)
        if k > count:
            return None
        if self.is_independent:
            return statistics.pass_at(self.passed, count, k)
        return float(any(tried.is_passed for tried in self.tries[:k]))

    @property
    def perf_at_1(self) -> float | None:
        """The mean speed-up of one try, 0 for one that did not pass; None where a try that counts was not timed.

        Source: TritonGym's Perf@1, here over PyTorch's baseline and not over a hand-written kernel.
        """
        tries = self.tries if self.is_independent else self.tries[:1]
        if not tries or any(tried.is_passed and tried.speedup is None for tried in tries):
            return None
        return sum(tried.speedup or 0.0 for tried in tries) / len(tries)

    @property
    def cost_per_pass(self) -> float | None:
        """US dollars of all calls for each correct kernel; None where there is none or a price is not known."""
        return self.cost_usd / self.passed if self.passed and self.cost_usd is not None else None

    @property
    def without_verdict(self) -> str:
        """How many kernels are beside the tries; empty for none."""
        verb = "has" if self.unjudged == 1 else "have"
        return f"{wording.counted(self.unjudged, 'kernel')} {verb} no verdict" if self.unjudged else ""

    def figures(self) -> Iterator[tuple[str, str]]:
        """(name, value) as people read them, with every k up to the number of tries."""
        for k in SHOWN:
            if (probability := self.pass_at(k)) is not None:
                yield f"Pass@{k}", share_text(probability, is_estimate=self.is_independent)
        yield "Perf@1", wording.speedup(self.perf_at_1)
        yield "Cost a pass", cost(self)

    def sentence(self, first: AttemptRow | None = None) -> str:
        """The same for who does not know these names: after how many tries a correct kernel came, or how likely one is,
        what it brings, at what cost. `first`: the run's first correct kernel, which is no try where it was brought."""
        brought = _brought(first)
        if not self.tries:
            return brought
        paid = f" Cost of a correct kernel: {price}." if (price := cost(self)) != wording.NONE else ""
        left = f" {self.without_verdict}, not counted here." if self.unjudged else ""
        if self.is_independent and len(self.tries) > 1:
            return f"{brought} {self._likely()}{paid}{left}".strip()
        what = "The model's own first one" if brought else "First correct kernel"
        is_known = first is None or first.noise is None or relative.is_known(first.noise)
        return f"{brought} {self._happened(what, is_known=is_known)}{paid}{left}".strip()

    def _happened(self, what: str, *, is_known: bool) -> str:
        """What came of tries one after another; `what` is the first correct one of them, whose speed-up is told where
        it `is_known` well enough for one figure."""
        at, tried = next(((n, tried) for n, tried in enumerate(self.tries, 1) if tried.is_passed), (0, None))
        count = len(self.tries)
        if tried is None:
            return f"No correct kernel in {count:,} {'try' if count == 1 else 'tries'}."
        brought = (
            f", {wording.speedup(tried.speedup)} over eager PyTorch" if tried.speedup is not None and is_known else ""
        )
        return f"{what}: try {at:,} of {count:,}{brought}."

    def _likely(self) -> str:
        """What tries from one prompt come to."""
        first, *more = [(k, chance) for k in SHOWN if (chance := self.pass_at(k)) is not None]
        within = ", ".join(f"{wording.percent(chance)} within {k}" for k, chance in more)
        mean = f" On average a try brings {wording.speedup(self.perf_at_1)}, a failed one counted as 0."
        return (
            f"Of {len(self.tries):,} tries from one prompt {wording.percent(first[1])} brought a correct kernel "
            f"(likely {within})." + (mean if self.perf_at_1 is not None else "")
        )


def _brought(first: AttemptRow | None) -> str:
    """That a run's first correct kernel came from another run; empty of any other."""
    if first is None or first.origin is not Origin.FORKED:
        return ""
    speed = f", {wording.speedup(first.speedup)} over eager PyTorch" if first.speedup is not None else ""
    return f"First correct kernel: kernel {first.number}, which came from the run it was forked from{speed}."


def help_of(name: str) -> str:
    """What a figure is, in plain words."""
    if name.startswith("Pass@"):
        return f"whether there was a correct kernel among the first {name.removeprefix('Pass@')} tries, or how likely"
    return HELP[name]


def share_text(share: float, *, is_estimate: bool) -> str:
    """A share; of one sequence of tries only yes or no."""
    return wording.percent(share) if is_estimate else "yes" if share else "no"


def cost(rates: PassRates) -> str:
    """What a kernel that passes has cost, in dollars; a dash where none has passed or nobody tells."""
    return wording.cost(rates.cost_per_pass, rates.model) if rates.passed else wording.NONE


def ranked(rows: Sequence[RankingRow]) -> str:
    """How well the reward model ranks, and how often it did; empty where no kernels were drawn together."""
    if not rows:
        return ""
    last, used = rows[-1], sum(row.is_used for row in rows)
    by = f"Reward model: it ranked {used:,} of {wording.counted(len(rows), 'draw')}"
    if last.correlation is None or last.arrival is None:
        return f"{by}; last: {last.why}"
    over = f"over {wording.counted(last.kernels, 'earlier kernel')}, {last.arrival:.2f} for the order of arrival"
    return f"{by}; last: rank correlation {last.correlation:.2f} {over}: {last.why}"
