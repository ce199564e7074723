"""What a person can do with a kernel, at the right end of its header."""

from __future__ import annotations

from storage.queries import CandidateRow, RunRow


def draw(run: RunRow, candidate: CandidateRow) -> None:
    """Room for buttons; none yet."""
