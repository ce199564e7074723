"""The doctor's report, one for all sessions until somebody asks for a new one. Draws nothing."""

from __future__ import annotations

import time

import streamlit as st

from engine import supervisor
from engine.supervisor import Finding

_asked_at = 0.0


def ask_again() -> None:
    """Have the next `latest`, of any session, look at this machine anew."""
    global _asked_at
    _asked_at = time.time()


def latest() -> tuple[list[Finding], float]:
    """The report and when it was made, in seconds since the epoch; looks at this machine where there is none yet.

    Raises:
        EngineError: the doctor itself did not come to an end. A failure is not kept.
    """
    return _since(_asked_at)


@st.cache_data(show_spinner=False, max_entries=2)
def _since(asked_at: float) -> tuple[list[Finding], float]:
    """Trap: `clear` does not do for asking again. What another session began to compute before it is stored after it,
    and what that session saw of the machine would be everybody's report."""
    return supervisor.examine(), time.time()
