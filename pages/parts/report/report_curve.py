"""A run's curve in a report: the best so far, every correct kernel, and the lines it is read against."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from pages.parts import wording
from pages.parts.report import report_figure
from pages.parts.report.report_figure import Level, Series, Spot
from pages.parts.report.report_html import Html, element, join
from storage import queries
from storage.database import Database
from storage.queries import AttemptRow, DepthRow, RunRow
from storage.relative import is_known

RINGS = 1_500


def draw(db: Database, run: RunRow, attempts: Sequence[AttemptRow], told: Collection[int]) -> Html:
    """The curve; marks lead to their depth where that is `told` in the report."""
    timed = [a for a in attempts if a.speedup is not None]
    if not timed:
        return element("p", "No correct kernel timed yet.", class_="quiet")
    shown = sorted(sorted(timed, key=lambda a: -(a.speedup or 0.0))[:RINGS], key=lambda a: a.number)
    rings = [_ring(a, told) for a in shown]
    words = (
        f"Speed-up by depth: {wording.counted(len(timed), 'correct kernel')}, best {wording.speedup(run.best_speedup)}"
    )
    name = "best so far (rings: every correct kernel)"
    if len(shown) < len(timed):
        name = f"best so far (rings: the {RINGS:,} fastest of {len(timed):,} correct kernels)"
    series = Series(name, "green", "solid", steps(queries.depths(db, run.run_id), told), rings)
    drawn = report_figure.draw(words, "depth (completed optimisation steps)", [series], _levels(db, run))
    return join([drawn, element("p", "Point at a mark for its figures; click it for its depth.", class_="quiet")])


def steps(depths: Sequence[DepthRow], told: Collection[int]) -> list[Spot]:
    """Where the best so far rose, and where it ends: between them nothing is to be seen."""
    found: list[Spot] = []
    known = [d for d in depths if d.best_speedup is not None]
    for at, d in enumerate(known):
        if d.best_speedup is not None and (at in (0, len(known) - 1) or d.best_speedup != known[at - 1].best_speedup):
            text = f"depth {d.depth}: best so far {wording.speedup(d.best_speedup)}"
            found.append(Spot(d.depth, d.best_speedup, text, _href(d.depth, told)))
    return found


def _ring(a: AttemptRow, told: Collection[int]) -> Spot:
    measured = f"{wording.speedup(a.speedup, a.noise)} {wording.plus_minus(a.noise)}"
    text = f"kernel {a.number}, depth {a.depth}: {measured}. {wording.cut(a.summary, 120)}"
    return Spot(a.depth, a.speedup or 0.0, text, _href(a.depth, told))


def _href(depth: int, told: Collection[int]) -> str:
    return f"#depth-{depth}" if depth in told else ""


def _levels(db: Database, run: RunRow) -> list[Level]:
    found = [("hardware limit", queries.limit_speedup(db, run.run_id))]
    if (second := queries.baseline(db, run.run_id)) and second.noise is not None and is_known(second.noise):
        found.append((second.name, second.speedup))
    levels = [Level(value, f"{name} {wording.speedup(value)}") for name, value in found if value]
    return [Level(1.0, "eager PyTorch 1×"), *levels]
