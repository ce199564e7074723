"""What has happened to runs that a person wants to be told of, wherever that person looks."""

from __future__ import annotations

from dataclasses import dataclass

from storage.index.database import Database
from storage.index.queries import fetch
from storage.index.queries.runs import TITLE


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
    sql = f"""WITH found AS (
        SELECT run_id, seq, time, state AS kind, reason AS text FROM states
        WHERE time > $since AND state IN ('waiting', 'finished', 'stopped', 'failed')
        UNION ALL SELECT run_id, seq, time, 'budget', budget FROM warnings WHERE time > $since)
    SELECT f.run_id, f.seq, f.time AS at, {TITLE} AS title, f.kind, f.text
    FROM found f JOIN runs r USING (run_id) LEFT JOIN labelled l USING (run_id)
    WHERE r.replay_of IS NULL AND NOT r.is_example ORDER BY f.time, f.run_id, f.seq"""
    return fetch.rows(db, NewsRow, sql, {"since": since})
