"""The limits of a run. An empty field is no limit."""

from __future__ import annotations

import streamlit as st

from engine import supervisor
from storage.records import Budget


def draw(model: str, task_name: str, toolchain: str) -> Budget:
    """Depths always, the rest optional."""
    recorded = supervisor.recorded_depths(task_name, toolchain) if model == "recorded" else None
    first = st.columns(3)
    depths = first[0].number_input(
        "Depths", 1, 200, recorded or Budget().depths, key=f"depths:{recorded}", help="completed optimisation steps"
    )
    calls = first[1].number_input("Maximum model calls", 1, value=None, key="max_calls", placeholder="no limit")
    tokens = first[2].number_input(
        "Maximum tokens", 1, value=None, step=10_000, key="max_tokens", placeholder="no limit"
    )
    second = st.columns(3)
    cost = second[0].number_input("Maximum cost (US dollars)", 0.01, value=None, key="max_cost", placeholder="no limit")
    minutes = second[1].number_input(
        "Maximum engine time (minutes)", 1, value=None, key="max_minutes", placeholder="no limit"
    )
    target = second[2].number_input("Stop at speed-up", 0.1, value=None, key="target", placeholder="no target")
    return Budget(
        depths=int(depths),
        model_calls=None if calls is None else int(calls),
        tokens=None if tokens is None else int(tokens),
        cost_usd=cost,
        wall_s=None if minutes is None else 60.0 * minutes,
        target_speedup=target,
    )
