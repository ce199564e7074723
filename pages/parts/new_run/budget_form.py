"""The limits of a run: its step indexes always, the others where they are wanted; a preset fills them in."""

from __future__ import annotations

import streamlit as st

from engine import supervisor
from pages.parts.new_run import presets
from pages.parts.new_run.setup import Setup
from storage.records import Budget


def draw(setup: Setup, recorded_task: str) -> Budget:
    """The number of step indexes always, the rest optional; a preset fills fields in. `recorded_task` is empty where
    the task has no recording."""
    st.markdown("## Limits")
    preset = presets.draw()
    recorded = None
    if setup.model == "recorded" and recorded_task:
        recorded = supervisor.recorded_depths(recorded_task, setup.toolchain, setup.strategy.name, setup.language)
    depths = preset.depths or recorded or Budget().depths
    depths = min(depths, recorded) if recorded else depths
    own = f":{preset.name}" if preset.name else ""
    first = st.columns(3)
    depths = first[0].number_input(
        setup.strategy.words.titles,
        1,
        200,
        depths,
        key=f"depths:{recorded}{own}",
        help=setup.strategy.words.counts,
    )
    calls = first[1].number_input(
        "Maximum model calls", 1, value=preset.calls, key=f"max_calls{own}", placeholder="no limit"
    )
    cost = first[2].number_input(
        "Maximum cost (US dollars)", 0.01, value=preset.cost, key=f"max_cost{own}", placeholder="no limit"
    )
    second = st.columns(3)
    tokens = second[0].number_input(
        "Maximum tokens", 1, value=None, step=10_000, key="max_tokens", placeholder="no limit"
    )
    minutes = second[1].number_input(
        "Maximum engine time (minutes)", 1, value=preset.minutes, key=f"max_minutes{own}", placeholder="no limit"
    )
    target = second[2].number_input(
        "Stop at speed-up", 0.1, value=preset.target, key=f"target{own}", placeholder="no target"
    )
    return Budget(
        depths=int(depths),
        model_calls=None if calls is None else int(calls),
        tokens=None if tokens is None else int(tokens),
        cost_usd=cost,
        wall_s=None if minutes is None else 60.0 * minutes,
        target_speedup=target,
    )
