"""A Plotly figure drawn in place: new data keeps zoom, hover and the node. The ticks of its axes. Knows no run."""

from __future__ import annotations

from typing import Any, Literal

import streamlit as st

from pages.parts import client

# Ticks of a speed-up's axis: over decades, and within one.
COARSE = [2.0**k for k in range(-10, 15)]
FINE = [0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.2, 1.4, 1.6, 1.8, 2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 6.0, 7.0, 8.0]

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
    shown = {"figure": figure, "name": name, "height": height, "zoom_key": zoom_key, "least_width": least_width}
    size: int | Literal["content"] = height if isinstance(height, int) else "content"
    clicked: str | None = _plot(data=shown, key=key, height=size, on_clicked_change=lambda: None).clicked
    return clicked


def tick_step(last: int) -> int:
    """Depths between two labels, so that about twenty fit: 1, 2 or 5 times a power of ten."""
    power = 1
    while last >= 25 * power * 10:
        power *= 10
    return next((step * power for step in (1, 2, 5) if last < 25 * step * power), 10 * power)
