"""What of a run's curve stands in no legend and is no figure that was measured as it is drawn: the same under the curve
of its page and in its report. Sentences as plain text; pure but for `gather`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pages.parts import method, wording
from pages.parts.status import alternatives, unshown
from storage.index import queries
from storage.index.database import Database
from storage.index.queries import BaselineRow, KernellessRow, RiseRow, RunRow, UnshownRow
from storage.results import relative
from storage.run.method_words import MethodWords

INTERVAL = "The vertical bar through a point is the range in which its true speed-up lies with 95 % probability."
IN_REPORT = "which the table under the best kernel tells"
MOST_MISSED = 4


@dataclass(frozen=True, slots=True)
class Told:
    """What the notes are of: `baselines` beside the eager that the curve is drawn over, of which those named
    `by_latency` have another speed-up there than in their own session; `missed` calls were to show a profile and had
    none."""

    rises: Sequence[RiseRow]
    baselines: Sequence[BaselineRow]
    by_latency: Sequence[str]
    missed: Sequence[UnshownRow]
    kernelless: Sequence[KernellessRow]


def gather(db: Database, run: RunRow) -> Told:
    """What there is to say of one run's curve."""
    eager_ms = relative.baseline_ms(run.best_speedup, run.best_latency_ms)
    timed, seen = queries.baselines(db, run.run_id), queries.exposures(db, run.run_id)
    missed = unshown.of(db, run.run_id, run.kernel_class, seen)
    return Told(
        rises=queries.rises(db, run.run_id),
        baselines=[row.beside(eager_ms) for row in timed],
        by_latency=by_latency(timed, eager_ms),
        missed=[missed[depth] for depth in sorted(missed)],
        kernelless=queries.kernelless(db, run.run_id),
    )


def by_latency(timed: Sequence[BaselineRow], eager_ms: float | None) -> list[str]:
    """The names of those whose line stands at their latency, as eager was held up beside the best kernel."""
    return [row.name for row in alternatives.known(timed) if row.beside(eager_ms) != row]


def rises(told: Told) -> list[str]:
    """That the best so far rose by no more than the noise somewhere."""
    unproven = [f"{row.number}" for row in told.rises if not row.is_gain]
    if not unproven:
        return []
    kernels = ("kernel " if len(unproven) == 1 else "kernels ") + " and ".join(
        filter(None, [", ".join(unproven[:-1]), unproven[-1]])
    )
    return [
        f"The green line is the highest speed-up measured so far. Its rise at {kernels} is smaller than what two "
        "timings of one kernel can differ by, so it may be no gain."
    ]


def lines(told: Told, told_where: str) -> list[str]:
    """Which alternatives are drawn otherwise than they were timed, or not at all; `told_where` their timings stand, in
    words."""
    notes = []
    if told.by_latency:
        notes.append(
            f"Drawn at its latency: {', '.join(told.by_latency)}. Eager PyTorch took less time beside it than beside "
            f"the best kernel, so its speed-up in its own session, {told_where}, is lower."
        )
    return notes + [
        f"{vague.name} has no line: its time varied so much ({wording.interval(vague.low, vague.high)} over eager "
        "PyTorch) that there is no one place for it."
        for vague in alternatives.vague(told.baselines)
    ]


def gaps(told: Told, words: MethodWords) -> list[str]:
    """Where the model saw no profile though it was to, and where a step made no kernel."""
    notes = [
        f"The model saw no profile at {words.step} {row.depth}: {unshown.reason(row)}."
        for row in told.missed[:MOST_MISSED]
    ]
    if more := len(told.missed[MOST_MISSED:]):
        notes.append(f"{wording.capital(words.counted(more))} more had none to show either.")
    for ended in [row for row in told.kernelless if row.count == 1 and row.reason][:MOST_MISSED]:
        notes.append(f"{wording.capital(words.step)} {ended.depth} made no kernel: {wording.ended(ended.reason)}")
    return notes


def of_report(db: Database, run: RunRow) -> str:
    """All of them in one paragraph."""
    told = gather(db, run)
    return " ".join([INTERVAL, *rises(told), *lines(told, IN_REPORT), *gaps(told, method.words(run.run_id, db))])
