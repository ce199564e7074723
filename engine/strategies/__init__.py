"""The seam for search methods: the next move, from the run's records alone.

cutegen.py      CuTeGen's loop as a decision
base_policy.py, schedule.py     which kernel the next depth starts from; when profiles are collected and shown
"""

from __future__ import annotations

from typing import Protocol

from engine.actions import Move
from engine.record import Record


class Strategy(Protocol):
    """A search method. Pure: same record, same move."""

    name: str

    def next_move(self, record: Record) -> Move:
        """What the loop does next."""
        ...
