"""A Plotly figure drawn in place: new data keeps zoom, hover and the node. The ticks of its axes. Knows no run."""

from __future__ import annotations

import math
from typing import Any, Literal

import streamlit as st

from pages.parts import client

# Steps between the labels of a logarithmic axis within one decade, and what is labelled in each of several: the most
# first; 1 is always among it.
STEPS = (0.01, 0.02, 0.05, 0.1, 0.2)
DECADES = ((1, 1.5, 2, 3, 4, 5, 7), (1, 2, 5), (1, 3), (1,))

# Without a ground of its own: what it covers can still be read.
TOOLBAR = {"bgcolor": "rgba(0,0,0,0)", "color": "@gray-color", "activecolor": "@primary-color"}

_plot = st.components.v2.component(
    "tilewright_plot",
    html='<div><span class="probe" hidden></span>\n<div class="figure" role="figure"></div></div>',
    js=client.read("widgets/press.js") + client.read("widgets/plot.js"),
    isolate_styles=False,  # Trap: Plotly puts its styles into the document and finds none inside a shadow root.
)


def draw(
    figure: dict[str, Any], name: str, height: int | str, zoom_key: str, key: str, least_width: int = 0
) -> str | None:
    """Draw it and return the `customdata` of the point clicked just now. `name` is what a reader hears; zoom is kept
    per `zoom_key`, also while another page is shown. `height` in pixels, or as CSS for one that follows the window.
    Where there are fewer pixels than `least_width` it is scrolled sideways."""
    figure = figure | {"layout": {"modebar": TOOLBAR} | figure["layout"]}
    shown = {"figure": figure, "name": name, "height": height, "zoom_key": zoom_key, "least_width": least_width}
    size: int | Literal["content"] = height if isinstance(height, int) else "content"
    clicked: str | None = _plot(data=shown, key=client.key(key), height=size, on_clicked_change=lambda: None).clicked
    return clicked


def log_ticks(low: float, high: float, most: int = 8) -> list[float]:
    """Round values to label on a logarithmic axis from `low` to `high`, both above 0: as many as fit into `most`."""
    for step in STEPS if high < 3 * low else ():
        if (high - low) / step < most:
            return [round(k * step, 9) for k in range(math.ceil(low / step), math.floor(high / step) + 1)]
    first, last = math.floor(math.log10(low)), math.floor(math.log10(high))
    for decade in DECADES:
        values = [float(f"{value}e{power}") for power in range(first, last + 1) for value in decade]
        if len(ticks := [tick for tick in values if low <= tick <= high]) <= most:
            return ticks
    every = -(-(last - first + 1) // most)
    return [10.0**power for power in range(first, last + 1) if low <= 10.0**power <= high and not power % every]


def tick_step(last: int) -> int:
    """Depths between two labels, so that about twenty fit: 1, 2 or 5 times a power of ten."""
    power = 1
    while last >= 25 * power * 10:
        power *= 10
    return next((step * power for step in (1, 2, 5) if last < 25 * step * power), 10 * power)
