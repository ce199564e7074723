"""What a forked run does otherwise than the run it comes from. What is left as it is stays the same."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import streamlit as st

from engine import supervisor
from pages.parts import wording
from pages.parts.steering import model_choice
from storage import folder
from storage.queries import RunRow
from storage.records import KernelClass, RunSettings, Switch

POLICIES = {
    "patience=2": "latest kernel; back to the best after two depths without progress",
    "latest": "always the latest correct kernel",
    "best": "always the best kernel",
}


def draw(run: RunRow, shown: Switch | None) -> dict[str, Any]:
    """The fields of the new run's settings that differ."""
    settings = folder.find_run(run.run_id).read_settings()
    left, right = st.columns(2)
    depths = int(left.number_input("Depths", 1, 200, settings.budget.depths, key="fork_depths"))
    model = model_choice.draw(right, "Model", "fork_model", supervisor.available_models(), settings.model)
    with st.expander("Kernel class, base kernel, limits", icon=":material/tune:"):
        fields = _rest(run, settings, depths)
    fields |= {"model": model, "expose_from_depth": _first_exposed(settings, shown, depths)}
    if model != settings.model:
        fields["model_options"] = tuple(replace(one, model=None) for one in settings.model_options)
    return fields


def _rest(run: RunRow, settings: RunSettings, depths: int) -> dict[str, Any]:
    classes, policies = list(KernelClass), list(dict.fromkeys([settings.base_policy, *POLICIES]))
    left, right = st.columns(2)
    chosen = left.selectbox(
        "Kernel class", classes, classes.index(run.kernel_class), format_func=wording.CLASS_NAME.__getitem__,
        key="fork_class",
    )  # fmt: skip
    policy = right.selectbox(
        "Each depth starts from", policies, format_func=lambda name: POLICIES.get(name, name), key="fork_policy"
    )
    calls = left.number_input("Maximum model calls", 1, value=settings.budget.model_calls, key="fork_calls")
    cost = right.number_input("Maximum cost (US dollars)", 0.01, value=settings.budget.cost_usd, key="fork_cost")
    return {
        "kernel_class": chosen,
        "class_is_proposed": False,
        "base_policy": policy,
        "budget": replace(settings.budget, depths=depths, model_calls=calls, cost_usd=cost),
    }


def _first_exposed(settings: RunSettings, shown: Switch | None, depths: int) -> int | None:
    if shown is None:
        return settings.expose_from_depth
    return 1 if shown is Switch.ON else depths + 1
