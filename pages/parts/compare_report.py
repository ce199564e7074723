"""The comparison as one file to send on. Made when somebody asks for it, not before."""

from __future__ import annotations

from collections.abc import Sequence

from pages.parts.compare_rows import Compared


def offer(runs: Sequence[Compared]) -> None:
    """A button that makes and downloads the file."""
