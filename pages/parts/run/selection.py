"""Which kernel of a run is open beside the curve: kept in the address, so that it survives a reload and can be sent."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

PARAMETER = "candidate"
# What opens a kernel, and the name of the trigger by which it tells so.
SOURCES = {"figures": "opened", "curve": "clicked", "lineage": "opened", "kernels": "opened", "error_groups": "opened"}


def current() -> str:
    """The id of the open kernel; empty when none is."""
    return st.query_params.get(PARAMETER, "")


def marked(run_id: str) -> str:
    """The kernel to mark on the curve and in lists: the open one, or the last one looked at."""
    return current() or str(st.session_state.get(f"looked_at:{run_id}", ""))


def choose(run_id: str, candidate_id: str) -> None:
    """Open a kernel."""
    st.session_state[f"looked_at:{run_id}"] = candidate_id
    st.query_params[PARAMETER] = candidate_id


def clear() -> None:
    """Close the open kernel."""
    st.query_params.pop(PARAMETER, None)


def take(run_id: str) -> str:
    """Open what was clicked just now, before anything is drawn; what leads to another page is returned instead.

    Such an address is an id with `#` and the name of a tab.
    """
    for key, trigger in SOURCES.items():
        state = st.session_state.get(key)
        chosen = state.get(trigger) if isinstance(state, Mapping) else None
        if isinstance(chosen, str) and "#" in chosen:
            return chosen
        if isinstance(chosen, str) and chosen:
            choose(run_id, chosen)
    return ""
