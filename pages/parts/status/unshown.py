"""Why a prompt that was to show a profile showed none. What was to be shown follows from the switch as it stood at that
step, else from the run's schedule; a method without one shows profiles where it has shown any."""

from __future__ import annotations

from collections.abc import Sequence

from pages.parts import method, wording
from storage.index import queries
from storage.index.database import Database
from storage.index.queries import ExposureRow, SteeringMark, UnshownRow
from storage.results.vocabulary import KernelClass
from storage.run.exposure import Exposure
from storage.run.settings import Switch
from storage.run.steering.verbs import CommandKind


def of(db: Database, run_id: str, kernel_class: KernelClass, seen: Sequence[ExposureRow]) -> dict[int, UnshownRow]:
    """By depth, of those in `seen` without a profile: the first call that was to show one and had none."""
    depths = [depth for row in seen if not row.is_exposed for depth in range(row.first, row.last + 1)]
    rows = queries.unshown(db, run_id, depths) if depths else []
    if not rows:
        return {}
    planned = queries.planned_exposure(db, run_id, kernel_class) if method.has_schedule(run_id, db) else None
    if planned is None and any(row.is_exposed for row in queries.exposures(db, run_id)):
        planned = Exposure(0)
    marks = [mark for mark in queries.steering_marks(db, run_id) if mark.kind is CommandKind.EXPOSE]
    return {row.depth: row for row in reversed(rows) if is_due(row, marks, planned)}


def is_due(row: UnshownRow, marks: Sequence[SteeringMark], planned: Exposure | None) -> bool:
    """Whether a profile was to be shown, as far as that is sure: an adaptive schedule depends on the gains before."""
    turned = [mark.argument.strip() for mark in marks if mark.step <= row.step]
    switch = Switch(turned[-1]) if turned else Switch.AUTO
    if switch is not Switch.AUTO or planned is None:
        return switch is Switch.ON
    return planned.patience is None and row.depth >= planned.first


def short(row: UnshownRow) -> str:
    """The reason in a word or two, for a band of the curve."""
    return "disturbed" if row.disturbance else "profiling failed" if row.failure else "not profiled"


def reason(row: UnshownRow) -> str:
    """The reason as the end of a sentence that says that none was seen."""
    if row.disturbance:
        return f"that of kernel {row.number} was disturbed"
    if row.failure:
        return f"profiling kernel {row.number} failed ({wording.cut(row.failure, 120)})"
    return f"kernel {row.number} was not profiled"
