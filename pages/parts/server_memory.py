"""How much memory the dashboard's own server holds, and how much is too much. Draws nothing."""

from __future__ import annotations

import os
from pathlib import Path

ALARM_BYTES = 1 << 30
"""With 1,000 runs, one of 20,000 iterations, and four browsers it is half of this (docs/scale.md)."""


def resident_bytes() -> int:
    """What this process holds of the machine's memory now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
