"""What model calls came to, and what they cost by that."""

from __future__ import annotations

import typing

from storage import codec
from storage.index.database import Database
from storage.index.queries import fetch
from storage.run.call_outcomes import OutcomeRow


def call_outcomes(db: Database, run_id: str) -> list[OutcomeRow]:
    """What the calls of a run came to, each counted once, in the order of CallOutcome; outcomes of no call are left
    out."""
    stored = fetch.of_run(db, run_id, "call_outcomes", table="progress")
    texts = (stored[0] if stored else None) or ()
    return [typing.cast(OutcomeRow, codec.read_line(OutcomeRow, text.encode())) for text in texts]
