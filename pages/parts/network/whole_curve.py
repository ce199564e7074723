"""The network's speed-up over its best alternative after each kernel that was kept, over what searching them had cost
by then. Points are pure: from a proof and the runs of its regions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import streamlit as st

from pages.parts import wording
from pages.parts.network import network_kernels
from pages.parts.widgets import plot
from storage.index.queries import RunRow
from storage.networks import proofs
from storage.networks.proofs import Proof
from storage.networks.records import Network, Verdict

HEIGHT = 340
MOST_LABELS = 10
AS_IT_IS, WHOLE = "the network as it is", "all together"
STEPS = (
    "Each step is a kernel that was kept; its height is the product of the effects that were measured one after the "
    "other."
)
COST = "Each point stands at the cost of all searches up to it, also of those whose kernels were not kept."
LAST = "The last point is the network with all of them, measured against its best alternative."


class Axis(StrEnum):
    """What the curve is drawn over."""

    MONEY = "money"
    TOKENS = "tokens"
    TIME = "time"
    TRIALS = "kernels"
    """Where nothing is known of what searching had cost."""


TITLES = {
    Axis.MONEY: "cost of the model calls, US dollars",
    Axis.TOKENS: "tokens in and out, thousands",
    Axis.TIME: "engine time at work, minutes",
    Axis.TRIALS: "kernels that were put back",
}


@dataclass(frozen=True, slots=True)
class Point:
    """The network after so much was spent; `low` and `high` are of the step alone, or of the whole at the end."""

    spent: float
    speedup: float
    name: str
    low: float | None = None
    high: float | None = None


def spent_by(run: RunRow, axis: Axis) -> float | None:
    """What a run has spent; None where that is not known. A replay has spent nothing."""
    if run.replay_of:
        return 0.0
    match axis:
        case Axis.MONEY:
            return run.cost_usd
        case Axis.TOKENS:
            return None if run.tokens is None else run.tokens / 1000
        case Axis.TIME:
            return run.engine_s / 60
    return None


def axes(runs: Mapping[str, Sequence[RunRow]]) -> list[Axis]:
    """Those on which something was spent and all of it is known."""
    every = [run for rows in runs.values() for run in rows]
    known = {axis: [spent_by(run, axis) for run in every] for axis in Axis if axis is not Axis.TRIALS}
    return [axis for axis, spent in known.items() if None not in spent and any(spent)] or [Axis.TRIALS]


def points(network: Network, proof: Proof, runs: Mapping[str, Sequence[RunRow]], axis: Axis) -> list[Point]:
    """From the network as it is, through every kernel that was kept, to all of them measured together. Empty where none
    was kept."""
    weights = proofs.weights_of(network)
    spent_on = {region: sum(spent_by(run, axis) or 0.0 for run in rows) for region, rows in runs.items()}
    tried = [proof.tried[name] for name in proof.kernels if name in proof.tried]
    speedup, spent = 1.0, 0.0
    found = [Point(0.0, 1.0, AS_IT_IS)]
    for trial in tried:
        spent += spent_on.pop(trial.region, 0.0) if axis is not Axis.TRIALS else 1
        effect = proofs.total(trial.speeds, weights)
        if trial.verdict is Verdict.KEPT and effect is not None:
            speedup *= effect.speedup
            found.append(Point(spent, speedup, trial.region, effect.low, effect.high))
    if len(found) == 1:
        return []
    if proof.stack and (total := proofs.total(proof.stack.best, weights)):
        whole = spent + (sum(spent_on.values()) if axis is not Axis.TRIALS else 0.0)
        found.append(Point(whole, total.speedup, WHOLE, total.low, total.high))
    return found


def draw(network: Network, proof: Proof, runs: Mapping[str, Sequence[RunRow]]) -> None:
    """The curve with the switch of its axis; nothing where no kernel was kept."""
    offered = axes(runs)
    if not points(network, proof, runs, offered[0]):
        return
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        is_cost = offered != [Axis.TRIALS]
        st.markdown(f"## Speed-up of the whole by {'cost' if is_cost else 'kernel'}", width="content")
        axis = offered[0]
        if len(offered) > 1:
            axis = Axis(str(st.segmented_control(
                "Over", offered, default=axis, required=True, key="network_spent", format_func=str,
                label_visibility="collapsed",
            )))  # fmt: skip
    shown = points(network, proof, runs, axis)
    steps = ", ".join(f"{point.name} {network_kernels.factor(point.speedup)}" for point in shown[1:])
    plot.draw(
        figure(shown, axis), f"Speed-up of the network by {TITLES[axis]}: {steps}.", HEIGHT, f"whole:{axis}",
        key="whole_curve",
    )  # fmt: skip
    st.caption(" ".join([STEPS, *([COST] if is_cost else []), *([LAST] if shown[-1].name == WHOLE else [])]))


def figure(shown: Sequence[Point], axis: Axis) -> dict[str, Any]:
    """Steps, each with the name of its region where there is room; the whole as a mark of its own with its interval."""
    is_whole = shown[-1].name == WHOLE
    steps = shown[:-1] if is_whole else shown
    ends = [*steps, Point(shown[-1].spent, steps[-1].speedup, "")] if is_whole else steps
    has_labels = len(steps) <= MOST_LABELS
    line = {
        "type": "scatter", "mode": "lines", "name": "product of the effects", "hoverinfo": "skip", "showlegend": False,
        "x": [point.spent for point in ends], "y": [point.speedup for point in ends],
        "line": {"shape": "hv", "width": 2.4, "color": "@blue-color"},
    }  # fmt: skip
    marks = {
        "type": "scatter", "mode": "markers+text" if has_labels else "markers", "name": "kernel kept",
        "x": [point.spent for point in steps], "y": [point.speedup for point in steps],
        "text": ["", *(wording.escaped(point.name, 24) for point in steps[1:])], "textposition": "top left",
        "textfont": {"size": 11, "color": "@text-color"}, "cliponaxis": False,
        "hovertext": [_hover(point, axis) for point in steps], "hovertemplate": "%{hovertext}<extra></extra>",
        "marker": {"symbol": "circle", "size": 9, "color": "@blue-color"}, "showlegend": False,
    }  # fmt: skip
    traces = [line, marks, *([_whole(shown[-1], axis)] if is_whole else [])]
    return {"data": traces, "layout": _layout(shown, axis)}


def _whole(point: Point, axis: Axis) -> dict[str, Any]:
    low, high = point.low or point.speedup, point.high or point.speedup
    return {
        "type": "scatter", "mode": "markers+text", "name": WHOLE, "x": [point.spent], "y": [point.speedup],
        "text": [f"<b>{network_kernels.factor(point.speedup)}</b>"], "textposition": "middle right",
        "showlegend": False, "textfont": {"size": 13, "color": "@green-text-color"}, "cliponaxis": False,
        "marker": {"symbol": "diamond", "size": 12, "color": "@green-color"},
        "error_y": {"type": "data", "symmetric": False, "array": [high - point.speedup],
                    "arrayminus": [point.speedup - low], "color": "@green-color", "thickness": 1.5, "width": 5},
        "hovertext": [_hover(point, axis)], "hovertemplate": "%{hovertext}<extra></extra>",
    }  # fmt: skip


def _hover(point: Point, axis: Axis) -> str:
    told = f"<b>{wording.escaped(point.name)}</b><br>{network_kernels.factor(point.speedup)} the best alternative"
    if point.low is not None and point.high is not None:
        of_it = "" if point.name == WHOLE else "its own effect "
        told += f"<br>{of_it}{network_kernels.interval(point.low, point.high)}, 95 % interval"
    return f"{told}<br>after {_amount(point.spent, axis)}"


def _amount(spent: float, axis: Axis) -> str:
    match axis:
        case Axis.MONEY:
            return wording.cost(spent)
        case Axis.TOKENS:
            return f"{wording.tokens(round(1000 * spent))} tokens"
        case Axis.TIME:
            return wording.seconds(60 * spent)
    return wording.counted(round(spent), "kernel")


def _layout(shown: Sequence[Point], axis: Axis) -> dict[str, Any]:
    small, grid = {"size": 12}, {"gridcolor": "@border-color", "zeroline": False, "linecolor": "@border-color"}
    values = [value for point in shown for value in (point.speedup, point.low, point.high) if value]
    low, high = min([1.0, *(point.speedup for point in shown)]), max(values)
    room = max(0.01, high - low)
    last = max(point.spent for point in shown) or 1.0
    return {
        "uirevision": f"whole:{axis}", "hovermode": "closest", "dragmode": "zoom", "clickmode": "event",
        "margin": {"l": 62, "r": 72, "t": 16, "b": 52}, "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)", "font": {"color": "@text-color", "size": 12},
        "xaxis": {"title": {"text": TITLES[axis], "font": small, "standoff": 8}, "rangemode": "tozero",
                  "range": [-0.02 * last, 1.02 * last], **grid},
        "yaxis": {"title": {"text": "speed-up over the best alternative", "font": small}, "ticksuffix": "×",
                  "range": [low - 0.15 * room, high + 0.25 * room], **grid},
        "hoverlabel": {"align": "left", "bgcolor": "@secondary-background-color", "bordercolor": "@border-color",
                       "font": {"color": "@text-color", "size": 12}},
        "shapes": [{"type": "line", "xref": "paper", "x0": 0, "x1": 1, "yref": "y", "y0": 1, "y1": 1,
                    "layer": "below", "line": {"color": "@gray-color", "width": 1.2, "dash": "dot"}}],
    }  # fmt: skip
