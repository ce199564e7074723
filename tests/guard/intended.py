"""Where today's code is meant to differ from what is saved: (run, query) and the reason. All else is a fault."""

from __future__ import annotations

from collections.abc import Mapping

INTENDED: Mapping[tuple[str, str], str] = {}
