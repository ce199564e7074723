"""The limits of a run: its step indexes always, the others where they are wanted; a preset fills them in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from engine import supervisor
from pages.parts import number_field
from pages.parts.new_run.setup import Setup
from storage.run.saved_models import RECORDED
from storage.run.settings import Budget

MOST = 1_000_000_000
MOST_DEPTHS = 200


@dataclass(frozen=True, slots=True)
class Preset:
    """Limits that the form begins with, each of which can still be changed; None is the field's own default."""

    name: str = ""
    depths: int | None = None
    calls: int | None = None
    cost: float | None = None
    minutes: float | None = None
    target: float | None = None
    tokens: int | None = None
    percent: float | None = None


PRESETS: Mapping[str, Preset] = {
    preset.name: preset
    for preset in (
        Preset("quick look", depths=3, calls=15),
        Preset("standard", depths=10, calls=60),
        Preset("thorough", depths=20, calls=160),
        Preset("at most $2", depths=10, cost=2.0),
        Preset("at most 15 minutes", depths=20, minutes=15),
        Preset("until 2× faster", depths=20, target=2.0),
    )
}


def of_budget(budget: Budget) -> Preset:
    """The limits of another run as those that the form begins with."""
    minutes = None if budget.wall_s is None else budget.wall_s / 60
    percent = None if budget.limit_share is None else 100 * budget.limit_share
    return Preset(
        "as before", budget.depths, budget.model_calls, budget.cost_usd, minutes, budget.target_speedup, budget.tokens,
        percent,
    )  # fmt: skip


def draw(setup: Setup, recorded_task: str, wrong: list[str], start: Preset | None = None) -> Budget:
    """The limits; what is wrong with one of them is told and added to `wrong`.

    The number of step indexes always, the rest optional; a preset fills fields in. `recorded_task` is empty where the
    task has no recording; `start` is what the form begins with."""
    st.markdown("## Limits")
    name = st.pills("Presets", list(PRESETS), key="preset", help="fills the limits below; change what you like")
    preset = PRESETS[name] if name else start or Preset()
    recorded = None
    if setup.model == RECORDED and recorded_task:
        recorded = supervisor.recorded_depths(recorded_task, setup.toolchain, setup.strategy.name, setup.language)
    depths = preset.depths or recorded or Budget().depths
    depths = min(depths, recorded) if recorded else depths
    suffix = f":{preset.name}" if preset.name else ""
    first, second, third = st.columns(3), st.columns(3), st.columns(3)

    def field(
        at: DeltaGenerator, label: str, key: str, start: float | None, least: float = 1, empty: str = "no limit",
        most: float = MOST, help: str | None = None,
    ) -> float | None:  # fmt: skip
        filled = "" if start is None else f"{start:g}"
        return number_field.draw_typed(
            at, label, key, filled, least, wrong, most, may_be_empty=True, placeholder=empty, help=help
        )

    words = setup.strategy.words
    # Not while it is typed: other fields of the form reach as far as this number.
    steps = first[0].text_input(words.limited, str(depths), key=f"depths:{recorded}{suffix}", help=words.counts)
    depth_count = number_field.take(first[0], words.limited, steps, 1, wrong, MOST_DEPTHS, may_be_empty=False)
    calls = field(first[1], "Maximum model calls", f"max_calls{suffix}", preset.calls)
    cost = field(first[2], "Maximum cost (US dollars)", f"max_cost{suffix}", preset.cost, 0.01)
    tokens = field(second[0], "Maximum tokens", f"max_tokens{suffix}", preset.tokens)
    minutes = field(second[1], "Maximum engine time (minutes)", f"max_minutes{suffix}", preset.minutes)
    target = field(second[2], "Stop at speed-up", f"target{suffix}", preset.target, 0.1, "no target")
    percent = field(
        third[0], "Stop at % of the hardware limit", f"stop_at{suffix}", preset.percent, 1, "no share", most=100,
        help="The run stops once its best kernel reaches so much of what the hardware can do at most, or once what is "
        "left to that is below the noise of a timing.",
    )  # fmt: skip
    return Budget(
        depths=depths if depth_count is None else int(depth_count),
        model_calls=None if calls is None else int(calls),
        tokens=None if tokens is None else int(tokens),
        cost_usd=cost,
        wall_s=None if minutes is None else 60.0 * minutes,
        target_speedup=target,
        limit_share=None if percent is None else percent / 100,
    )
