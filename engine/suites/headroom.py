"""Which cell of a suite gets the next steps of what is left of its budget: the one that they are expected to save most.

A step of a run is expected to save what attempts of the knowledge base have saved of their parents' time, those that
gained nothing counted as nothing: attempts on kernels of the class, on the same toolchain, from about the same share of
the hardware limit where there are `ENOUGH` of these, else from any. `PRIOR` further attempts stand beside them that
each saved `ASSUMED` of what the limit leaves; without any attempt they are all there is. That expectation weighs as
much as `OWN` steps of the cell's own, beside its steps since its best kernel, which saved nothing. Steps together save
no more than the limit leaves.
"""

from __future__ import annotations

import statistics
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from engine.errors import EngineError
from engine.search import limits
from engine.search.actions import Finish
from engine.search.methods.loading import open_strategy
from engine.suites.formats import percent, times
from storage.knowledge import files as knowledge_files
from storage.knowledge.records import Evidence, Outcome
from storage.run import budgets, journal
from storage.run import events as ev
from storage.run.folder import RunFolder, runs_folder
from storage.run.record import Record
from storage.suites.reaching import SHARES
from storage.suites.records import Weighed
from storage.suites.standing import CellStanding, Suite

ENOUGH = 5
PRIOR = 2
ASSUMED = 0.1
OWN = 4
UNKNOWN_LEFT = 0.5  # of a kernel's time, where the hardware limit is not known
LEAST_SAVING = 0.01  # of a cell's time: for less no steps are given

Tries = Mapping[tuple[str, str], Sequence[Evidence]]


@dataclass(frozen=True, slots=True)
class Gains:
    """What attempts have saved of their parents' time, a share each, 0 where nothing was gained. `is_near`: from about
    the same share of the limit."""

    savings: tuple[float, ...]
    is_near: bool

    @property
    def gained(self) -> list[float]:
        """Those that saved something."""
        return [saving for saving in self.savings if saving > 0]

    def expected(self, left: float) -> float:
        """Of one more attempt on a kernel of whose time the limit leaves so much."""
        return (sum(self.savings) + PRIOR * ASSUMED * left) / (len(self.savings) + PRIOR)

    @property
    def words(self) -> str:
        """For people."""
        if not self.savings:
            return f"there are no attempts to learn from, so a step is assumed to save {percent(ASSUMED)} of that"
        where = "there" if self.is_near else "on kernels of its class"
        tries = f"{len(self.savings)} {'attempt' if len(self.savings) == 1 else 'attempts'}"
        if not self.gained:
            return f"none of {tries} {where} gained"
        median = _small(statistics.median(self.gained))
        return f"gains {where} were {median} in the median, in {len(self.gained)} of {tries}"


def weighed(suite: Suite, standings: Iterable[CellStanding]) -> list[Weighed]:
    """What further steps are expected to save each of these cells, whose runs have finished. One without `steps` gets
    none, whoever else wants them."""
    standings = list(standings)
    tries = by_class(knowledge_files.load(seeded=False).rows) if standings else {}
    shares = {task.name: task.time_share for task in suite.defined.tasks}
    return [
        _enough(
            _weighed(standing, suite.defined.more_steps, shares.get(standing.cell.task), tries),
            suite.defined.least_saving,
        )
        for standing in standings
    ]


def _enough(cell: Weighed, least: float) -> Weighed:
    """Without steps, where they would save less of the total time than counts."""
    if not cell.steps or cell.saving >= least:
        return cell
    return replace(cell, steps=0, why=f"{cell.why}; less than {100 * least:.1f} % of the total is not measurable")


def by_class(rows: Iterable[Evidence]) -> Tries:
    """Attempts by kernel class and toolchain."""
    tries: dict[tuple[str, str], list[Evidence]] = {}
    for row in rows:
        tries.setdefault((row.kernel_class, row.toolchain), []).append(row)
    return tries


def _weighed(standing: CellStanding, steps: int, time_share: float | None, tries: Tries) -> Weighed:
    cell, run = Weighed(standing.cell, standing.run_id or ""), RunFolder(runs_folder() / (standing.run_id or "-"))
    try:
        record = Record.of(run.read_settings(), list(journal.read(run.journal_file)))
        if record.budget.depths < standing.depths:  # the command was refused, or a person has lowered the limit since
            return replace(
                cell, why=f"its run may go to {record.budget.depths} and not to the {standing.depths} it got"
            )
        return weigh(cell, record, steps, time_share, tries)
    except (OSError, LookupError, ValueError, EngineError) as error:  # as it is gone, or its journal is damaged
        return replace(cell, why=f"its run cannot go on: {error}")


def weigh(cell: Weighed, record: Record, steps: int, time_share: float | None, tries: Tries) -> Weighed:
    """What so many steps are expected to save a run that has finished. Its limits are changed in `record`."""
    depths = record.budget.depths + steps
    best = record.best.trusted if record.best else None
    if best is None:
        return replace(cell, why="no correct kernel, so nothing is known of what is left to gain")
    share = record.limit.reached_at(best.latency_ms) if record.limit else None
    left = UNKNOWN_LEFT if share is None else max(0.0, 1 - share)
    cell = replace(cell, left=None if share is None else left)
    if share is not None and limits.is_within_noise(share, best.noise):
        return replace(cell, why=f"{_of_limit(share)}, which is below the noise of a timing")
    if reason := _why_it_would_end(record, depths):
        return replace(cell, why=reason)
    gains = gains_of(tries.get((str(record.kernel_class), record.settings.toolchain), ()), share)
    fruitless = max(0, record.step_index - 1 - (record.best.created.depth if record.best else 0))
    step = OWN * gains.expected(left) / (OWN + fruitless)
    saving = min(left, 1 - (1 - step) ** steps)
    told = f"{steps} more {'is' if steps == 1 else 'are'} expected to save {_small(saving)}"
    why = f"{_of_limit(share)}; {gains.words}; {_own(fruitless)}{told}"
    cell = replace(cell, why=why, tries=len(gains.savings), gained=len(gains.gained), saving=saving)
    if saving < LEAST_SAVING:
        return replace(cell, why=f"{why}, and for less than {percent(LEAST_SAVING)} none are given")
    if time_share is None:
        return replace(cell, steps=steps, depths=depths)
    now = time_share / best.speedup
    why = f"{why} of the {percent(time_share)} of the total time that it had, {times(best.speedup)} as fast by now"
    return replace(cell, steps=steps, depths=depths, saving=now * saving, why=why)


def gains_of(rows: Sequence[Evidence], share: float | None) -> Gains:
    """What these attempts saved: those from about the same share of the limit where there are enough, else all."""
    band = None if share is None else bisect_right(SHARES, share)
    near = [row for row in rows if row.limit_share is not None and bisect_right(SHARES, row.limit_share) == band]
    is_near = len(near) >= ENOUGH
    return Gains(tuple(_saved(row) for row in (near if is_near else rows)), is_near)


def _saved(row: Evidence) -> float:
    return 1 - 1 / row.gain if row.outcome is Outcome.FASTER and row.gain and row.gain > 1 else 0.0


def _why_it_would_end(record: Record, depths: int) -> str:
    """Why a run would end at once even if it might take so many steps: a limit of its own, or a target that it has."""
    record.apply(ev.BudgetChanged(budgets.changed(record.budget, f"depths={depths}")))
    action = open_strategy(record.settings.strategy).next(record)
    return action.reason if isinstance(action, Finish) else ""


def _of_limit(share: float | None) -> str:
    return "the hardware limit is not known" if share is None else f"{percent(1 - share)} of the limit left"


def _own(fruitless: int) -> str:
    if not fruitless:
        return ""
    return f"its own last {'step' if fruitless == 1 else f'{fruitless} steps'} brought nothing; "


def _small(saving: float) -> str:
    return percent(saving) if saving >= 0.1 else f"{100 * saving:.1f} %"


def best_of(cells: Sequence[Weighed]) -> Weighed | None:
    """The cell that gets the next steps, of equals the first; None where none is worth them."""
    return max((cell for cell in cells if cell.steps), key=lambda cell: cell.saving, default=None)
