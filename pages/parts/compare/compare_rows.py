"""The runs that are compared, each with a letter, a colour, a dash and a symbol of its own. Pure but for gathering."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from pages.parts import run_state, wording
from pages.parts.status import damaged
from storage import damage, queries
from storage.database import Database
from storage.queries import ConditionsRow, ReachedRow, RunRow, TimedRow
from storage.records import RunState

AT_MOST = 12
COLOURS = ("blue", "orange", "green", "violet", "yellow", "red", "gray")
DASHES = ("solid", "dash", "dot", "dashdot", "longdash")
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "star", "hexagon")


class Axis(StrEnum):
    """What the curves are drawn over."""

    DEPTH = "depth"
    TIME = "time"
    TOKENS = "tokens"
    MONEY = "money"


AXIS_TITLE = {
    Axis.DEPTH: "depth (completed optimisation steps)",
    Axis.TIME: "engine time at work, minutes",
    Axis.TOKENS: "tokens in and out, thousands",
    Axis.MONEY: "cost of the model calls, US dollars",
}


@dataclass(frozen=True, slots=True)
class Compared:
    """One run with everything that is drawn of it; `place` counts the chosen runs from 0.

    `damage` says what is wrong with its files, empty for a whole run.
    """

    place: int
    run: RunRow
    state: RunState
    conditions: ConditionsRow
    reached: Sequence[ReachedRow]
    timed: Sequence[TimedRow]
    damage: str = ""

    @property
    def letter(self) -> str:
        """Names the run on the chart and in the table."""
        return chr(ord("A") + self.place)

    @property
    def colour(self) -> str:
        """A theme colour; never the only thing that tells two runs apart."""
        return f"@{COLOURS[self.place % len(COLOURS)]}-color"

    @property
    def dash(self) -> str:
        """Of its line."""
        return DASHES[self.place % len(DASHES)]

    @property
    def symbol(self) -> str:
        """Of its kernels."""
        return SYMBOLS[self.place % len(SYMBOLS)]

    @property
    def name(self) -> str:
        """One line that tells the run from others of its task."""
        return f"{self.letter} · {self.run.title} · {self.run.model} · {wording.moment(self.run.created_at)[:16]}"


def position(row: ReachedRow | TimedRow, axis: Axis) -> float | None:
    """Where a kernel stands on an axis, in the axis's unit; None where that is unknown."""
    match axis:
        case Axis.DEPTH:
            return float(row.depth)
        case Axis.TIME:
            return row.engine_s / 60
        case Axis.TOKENS:
            return None if row.tokens is None else row.tokens / 1000
        case Axis.MONEY:
            return row.cost_usd


def gather(db: Database, run_ids: Sequence[str]) -> list[Compared]:
    """The runs in the order chosen; those that are not in the index are left out."""
    conditions = {row.run_id: row for row in queries.conditions(db, run_ids)}
    reached = queries.reached(db, run_ids)
    timed = queries.timed_kernels(db, run_ids)
    known = [run for name in run_ids if name in conditions and (run := queries.run(db, name))]
    return [
        Compared(
            place,
            run,
            run_state.of(run),
            conditions[run.run_id],
            [row for row in reached if row.run_id == run.run_id],
            [row for row in timed if row.run_id == run.run_id],
            damage.title(damaged.of(run.run_id, db)),
        )
        for place, run in enumerate(known)
    ]
