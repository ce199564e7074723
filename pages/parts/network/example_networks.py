"""The networks that come with Tilewright: a click puts one beside a person's own."""

from __future__ import annotations

import streamlit as st

from engine.errors import EngineError
from engine.networks import examples, starting
from engine.networks.examples import ExampleNetwork
from pages.parts import access, index, wording
from pages.parts.network import network_dialogs
from storage.networks import in_network

ABOUT = (
    "with every figure, and with prompts, replies and kernels of the runs of their search that had ended. Read them, "
    "and ship their kernels, without a GPU."
)


def waiting() -> list[ExampleNetwork]:
    """Those that are not open; none where the server only shows, or where they cannot be read, which is said."""
    if not access.may_steer():
        return []
    try:
        return [one for one in examples.shipped() if not one.is_open]
    except EngineError as error:
        st.warning(wording.sentence(str(error)), icon=":material/error:")
        return []


def draw() -> None:
    """One line with a button for each that is not open; nothing where all are, or where the server only shows."""
    found = waiting()
    if not found:
        return
    with st.container(border=True, key="example_networks"):
        st.markdown(f":material/school: **Example networks**: {ABOUT}")
        with st.container(horizontal=True, vertical_alignment="center"):
            is_demo_at_work = starting.is_demo_at_work()
            pressed = [one for one in found if _is_pressed(one, is_demo_at_work)]
    if pressed and network_dialogs.begin(lambda: _open(pressed[0].network.name)):
        st.switch_page("networks.py", query_params={"network": pressed[0].network.name})


def _is_pressed(example: ExampleNetwork, is_demo_at_work: bool) -> bool:
    name = example.network.name
    about = "When the demo run has ended." if is_demo_at_work else wording.sentence(in_network.origin(example.network))
    return st.button(
        f"Open {wording.plain(name)}", icon=":material/folder_open:", key=f"open_network:{name}",
        help=about, disabled=is_demo_at_work,
    )  # fmt: skip


def _open(name: str) -> None:
    folder = examples.open_shipped(name)
    index.ingest().look_at(examples.run_ids(folder))
