"""What a user would run instead of a kernel: the best alternative in words, and all of them as rows of a table."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

from pages.parts import wording
from pages.parts.widgets import table
from pages.parts.widgets.figures import Figure
from storage.index.queries import AttemptRow, BaselineRow, ElsewhereRow
from storage.results import relative
from storage.results.baselines import BEST_TIMED
from storage.results.relative import Measured, Relative, is_known

TITLE = "Alternatives"
ABOUT = (
    "What one would run instead. Each was timed in turns with eager PyTorch in a session of its own, and its speed-up "
    "is over eager's latency there. Eager's own row is of this kernel's session. Where eager took much longer in this "
    "one, on a GPU, latencies are compared."
)
EAGER = "eager PyTorch"
EAGER_IS_BEST = f"{EAGER} is the fastest alternative"
OVER_BEST = "Over the best alternative"
OVER_BEST_ABOUT = f"the same kernel over {BEST_TIMED}, eager included; what was timed apart from it does not count"
COLUMNS = [
    table.Column("name", "Alternative"),
    table.Column("latency", "Latency", "right", "median"),
    table.Column("beside", "Eager beside it", "right", "eager PyTorch's latency in the same session"),
    table.Column("eager", "Over eager", "right"),
    table.Column("kernel", "Kernel over it", "right", "with the 95 % interval of both measurements together"),
    table.Column("cost", "What it cost", "words"),
]


def known(baselines: Sequence[BaselineRow]) -> list[BaselineRow]:
    """Those with a speed-up that says anything, the fastest first."""
    timed = [row for row in baselines if row.speedup and row.noise is not None and is_known(row.noise)]
    return sorted(timed, key=lambda row: -(row.speedup or 0.0))


def vague(baselines: Sequence[BaselineRow]) -> list[BaselineRow]:
    """Those that were timed, but varied so much that their speed-up says nothing."""
    return [row for row in baselines if row.speedup and row.noise is not None and not is_known(row.noise)]


def is_eager_best(fastest: BaselineRow | None) -> bool:
    """Whether the fastest of all others is slower than eager."""
    return fastest is not None and 0 < (fastest.speedup or 0.0) < 1


def named(fastest: BaselineRow) -> str:
    """The best alternative with its name."""
    return f"{BEST_TIMED} ({fastest.name})"


def over(fastest: BaselineRow | None, kernel: Measured | None, *, is_short: bool = False) -> str:
    """A kernel over the best alternative, in a few words, or by its name alone; empty where that is not known."""
    ratio = fastest.under(kernel) if fastest else None
    if fastest is None or ratio is None:
        return ""
    return (
        EAGER_IS_BEST if is_eager_best(fastest) else wording.over(ratio, fastest.name if is_short else named(fastest))
    )


def loses(fastest: BaselineRow | None, kernel: Measured | None) -> str:
    """That a kernel beats eager and loses to the best alternative, both beyond the noise; empty where it does not."""
    ratio = fastest.under(kernel) if fastest else None
    if fastest is None or kernel is None or ratio is None:
        return ""
    if kernel.low <= 1 or not ratio.is_slower or not is_known(ratio.noise):
        return ""
    return f"beats {EAGER} and loses to {named(fastest)}: {wording.over(ratio, 'it')}"


def elsewhere(other: ElsewhereRow | None, kernel: Measured | None) -> str:
    """What another run tells of the best alternative of one that timed none; empty where that is nothing. A ratio of
    figures of two runs is told as about so much."""
    over_it = _over_elsewhere(other, kernel)
    if other is None or not over_it:
        return ""
    where = "the run it was forked from" if other.is_origin else "another run of this task on the same model of device"
    there = f"The best alternative was not measured in this run. In {where}"
    if is_eager_best(other.baseline):
        return f"{there}, {EAGER_IS_BEST}."
    itself = f"{other.baseline.name} was {wording.ratio(other.baseline)} as fast as {EAGER}"
    return f"{there}, {itself}, so this run's best kernel is {over_it} as fast as that."


def elsewhere_in_short(other: ElsewhereRow | None, kernel: Measured | None) -> str:
    """The same in a few words."""
    over_it = _over_elsewhere(other, kernel)
    if other is None or not over_it:
        return ""
    where = "timed in the run it was forked from" if other.is_origin else "timed in another run"
    return f"{EAGER_IS_BEST if is_eager_best(other.baseline) else f'{over_it} over {other.baseline.name}'}, {where}"


def _over_elsewhere(other: ElsewhereRow | None, kernel: Measured | None) -> str:
    """Empty where it is not known."""
    ratio = other.baseline.under(kernel) if other else None
    return f"about {wording.speedup(ratio.speedup, ratio.noise)}" if ratio and is_known(ratio.noise) else ""


def figures(fastest: BaselineRow | None, kernel: Measured | None) -> list[Figure]:
    """The figure over the best alternative, where one was timed; why not, where none could be."""
    if fastest is None:
        return []
    ratio = fastest.under(kernel)
    if ratio is None or kernel is None:
        reason = wording.not_measured(fastest.name, fastest.failure) if fastest.failure else ""
        return [Figure(f"Over {fastest.name}", wording.NONE, "not measured" if reason else "", reason)]
    about = f"{OVER_BEST_ABOUT}. {fastest.name} itself is {wording.ratio(fastest)} over eager"
    if is_eager_best(fastest):
        over_it = f"over {fastest.name}: {wording.interval(ratio.low, ratio.high)}; {about}"
        return [Figure(OVER_BEST, wording.ratio(kernel), EAGER_IS_BEST, over_it)]
    note = f"{fastest.name}, {wording.beside(ratio.noise, ratio.low, ratio.high)}"
    return [Figure(OVER_BEST, wording.ratio(ratio), note, about)]


def cost(baseline: BaselineRow) -> str:
    """What it took to have it, or why it could not be had."""
    if baseline.speedup is None:
        return f"could not be timed: {wording.cut(baseline.failure, 300) or 'no reason was recorded'}"
    return "" if baseline.seconds is None else f"compiled and timed in {wording.seconds(baseline.seconds)}"


def lines(baselines: Sequence[BaselineRow], kernel: AttemptRow) -> Iterator[tuple[str, ...]]:
    """Eager and every baseline, beside a kernel: what COLUMNS name, as texts; nothing where only eager was timed."""
    if not baselines:
        return
    eager_ms = relative.baseline_ms(kernel.speedup, kernel.latency_ms)
    yield EAGER, wording.latency(eager_ms), "", "1×", _measured(kernel), ""
    for row in baselines:
        ratio = row.beside(eager_ms).under(kernel.measured)
        over_it = _measured(ratio) if ratio else wording.NONE
        yield (
            row.name,
            wording.latency(row.latency_ms),
            wording.latency(row.eager_ms),
            _measured(row),
            over_it,
            cost(row),
        )


def _measured(of: AttemptRow | BaselineRow | Relative) -> str:
    return wording.measured(of.speedup, of.noise, of.low, of.high)


def together(
    baselines: Sequence[BaselineRow], height: Callable[[float], float] = math.log, gap: float = 0.03
) -> list[list[BaselineRow]]:
    """Those whose lines in a chart share a name, the fastest first: they stand less than `gap` apart."""
    groups: list[list[BaselineRow]] = []
    for row in known(baselines):
        if groups and height(groups[-1][0].speedup or 1.0) - height(row.speedup or 1.0) < gap:
            groups[-1].append(row)
        else:
            groups.append([row])
    return groups


def label(group: Sequence[BaselineRow], names: str = "") -> str:
    """The name that lines in a chart share: "torch.compile, CUDA graph 0.93×"."""
    first, last = (wording.ratio(row) for row in (group[0], group[-1]))
    return f"{names or ', '.join(row.name for row in group)} {first if first == last else f'{last[:-1]} to {first}'}"
