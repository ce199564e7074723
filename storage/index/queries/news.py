"""What has happened to runs that a person wants to be told of, wherever that person looks."""

from __future__ import annotations

from dataclasses import dataclass

from storage.index.database import Database
from storage.index.queries import fetch
from storage.index.queries.runs import titles
from storage.run.events import BudgetWarned, RunEnded, StateChanged
from storage.run.settings import RunState

_TOLD = (RunState.WAITING, RunState.FINISHED, RunState.STOPPED, RunState.FAILED)


@dataclass(frozen=True, slots=True)
class NewsRow:
    """One such thing. `kind` is waiting, finished, stopped, failed or budget; `text` the reason, or which limit."""

    run_id: str
    seq: int
    at: float
    title: str
    kind: str
    text: str


def news(db: Database, since: float) -> list[NewsRow]:
    """What happened after a moment (seconds since the epoch), oldest first. Replays tell nothing new."""
    which = """time > $since AND run_id IN (SELECT run_id FROM runs WHERE replay_of IS NULL AND NOT is_example)"""
    happened = fetch.events(db, None, StateChanged, RunEnded, BudgetWarned, where=which, parameters={"since": since})
    worded = [(entry, *_said(entry.event)) for entry in happened]
    names = titles(db, {entry.run_id for entry, kind, _ in worded if kind})
    rows = [
        NewsRow(entry.run_id, entry.seq, entry.at, names[entry.run_id], kind, text)
        for entry, kind, text in worded
        if kind
    ]
    return sorted(rows, key=lambda row: (row.at, row.run_id, row.seq))


def _said(event: StateChanged | RunEnded | BudgetWarned) -> tuple[str, str]:
    """(kind, text); no kind where it is no news."""
    if isinstance(event, BudgetWarned):
        return "budget", event.limit
    return (str(event.state) if event.state in _TOLD else ""), event.reason
