"""The attempts of all runs: those that fit a filter, predicted against measured gains, and what to filter by."""

from __future__ import annotations

from dataclasses import dataclass, fields

from storage.index.database import Database
from storage.index.queries import fetch
from storage.knowledge.records import Evidence, Outcome

NEWEST = 1000
PAGE = 50


@dataclass(frozen=True, slots=True)
class EvidenceFilter:
    """What to leave in; an empty field leaves in everything. `text` is looked for in technique, task and error."""

    technique: str = ""
    state: str = ""
    task: str = ""
    kernel_class: str = ""
    language: str = ""
    device: str = ""
    outcome: str = ""
    strategy: str = ""
    run_id: str = ""
    text: str = ""


@dataclass(frozen=True, slots=True)
class PredictedRow:
    """An attempt whose gain was predicted and measured, both factors over the parent."""

    technique: str
    state: str
    device: str
    model: str
    task: str
    run_id: str
    candidate_id: str
    outcome: Outcome
    at: float
    predicted_gain: float
    gain: float
    gain_low: float | None
    gain_high: float | None


@dataclass(frozen=True, slots=True)
class EvidenceChoices:
    """What there is to filter attempts by."""

    devices: list[str]
    kernel_classes: list[str]
    languages: list[str]
    tasks: list[str]
    strategies: list[str]


_ROW = """SELECT run_id, candidate_id, technique, outcome, time AS at, state, task, kernel_class, language, toolchain,
    device, architecture, precision, strategy, model, parent_hash, child_hash, predicted_gain, gain, gain_low,
    gain_high, before, after, tokens, error, origin FROM evidence"""
_EXACT = ("technique", "state", "task", "kernel_class", "language", "device", "outcome", "strategy", "run_id")
_FITTING = " AND ".join(f"(${name} = '' OR {name} = ${name})" for name in _EXACT) + (
    " AND ($text = '' OR contains(lower(concat_ws(' ', technique, task, error)), lower($text)))"
)


def attempts(db: Database, chosen: EvidenceFilter | None = None, limit: int = PAGE, offset: int = 0) -> list[Evidence]:
    """A page of the attempts that fit, the newest first."""
    sql = f"{_ROW} WHERE {_FITTING} ORDER BY time DESC, line DESC LIMIT $limit OFFSET $offset"
    return fetch.rows(db, Evidence, sql, _parameters(chosen) | {"limit": limit, "offset": offset})


def count(db: Database, chosen: EvidenceFilter | None = None) -> int:
    """How many attempts fit."""
    return int(fetch.tuples(db, f"SELECT count(*) FROM evidence WHERE {_FITTING}", _parameters(chosen))[0][0])


def predicted(db: Database, chosen: EvidenceFilter | None = None, newest: int = NEWEST) -> list[PredictedRow]:
    """Predicted against measured gains of the attempts that fit, the newest first."""
    columns = ", ".join("time AS at" if field.name == "at" else field.name for field in fields(PredictedRow))
    sql = f"""SELECT {columns} FROM evidence WHERE {_FITTING} AND gain_units IS NOT NULL AND predicted_units IS NOT NULL
        ORDER BY time DESC, line DESC LIMIT $newest"""
    return fetch.rows(db, PredictedRow, sql, _parameters(chosen) | {"newest": newest})


def _parameters(chosen: EvidenceFilter | None) -> dict[str, object]:
    chosen = chosen or EvidenceFilter()
    found: dict[str, object] = {field.name: getattr(chosen, field.name) for field in fields(chosen)}
    return found | {"text": chosen.text.strip()}


def choices(db: Database) -> EvidenceChoices:
    """What attempts can be filtered by."""
    names = ("device", "kernel_class", "language", "task", "strategy")
    lists = ", ".join(f"list(DISTINCT {name} ORDER BY {name}) FILTER (WHERE {name} <> '')" for name in names)
    return EvidenceChoices(*(found or [] for found in fetch.tuples(db, f"SELECT {lists} FROM evidence")[0]))
