"""What the search method of a run calls its step index, and when it has profiles taken and shown on auto."""

from __future__ import annotations

from engine.search.methods import catalogue
from pages.parts import index
from storage.index import queries
from storage.index.database import Database
from storage.index.queries import RunRow
from storage.run.method_words import MethodWords


def words(run_id: str, db: Database | None = None) -> MethodWords:
    """The words of the method of a run."""
    db = db or index.current()
    words = catalogue.words(queries.strategy(db, run_id))
    return words.by_hand() if queries.is_by_hand(db, run_id) else words


def completed(run: RunRow) -> tuple[int, int]:
    """How many step indexes of a run are completed, and how many there may be."""
    return catalogue.words(run.strategy).completed(run.completed, run.depths)


def has_schedule(run_id: str, db: Database | None = None) -> bool:
    """Whether a run on auto shows profiles from a step index on that its options or its kernel class say."""
    return catalogue.has_schedule(queries.strategy(db or index.current(), run_id))
