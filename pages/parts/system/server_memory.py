"""The memory of the dashboard's own server, and that it is too much."""

from __future__ import annotations

import os
from pathlib import Path

import streamlit as st

ALARM_BYTES = 1 << 30
"""With 1,000 runs, one of 20,000 iterations, and four browsers it is half of this (docs/scale.md)."""


def resident_bytes() -> int:
    """What this process holds of the machine's memory now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def draw(alarm_bytes: int = ALARM_BYTES) -> None:
    """How much it is; an alarm where it is more than the server has use for."""
    used, most = f"{resident_bytes() >> 20:,} MB", f"{alarm_bytes >> 20:,} MB"
    if resident_bytes() > alarm_bytes:
        st.error(
            f"**The dashboard's server holds {used} of memory**, more than {most}. Restart it: runs do not need it and "
            "go on. If it grows again, tell us which page was open.",
            icon=":material/memory:",
        )
    else:
        st.caption(f"The dashboard's server holds {used} of memory; an alarm stands here beyond {most}.")
