"""How the profiling code starts programs: by a callable that its caller hands in, with walls and limit in place."""

from __future__ import annotations

from typing import Protocol

from engine.sandbox.program import Done


class Run(Protocol):
    """Runs a command in the subject's folder and gives its status and output (standard output and error in one)."""

    def __call__(self, command: list[str], limit_s: float) -> Done:
        """Never raises for what the command does."""
        ...
