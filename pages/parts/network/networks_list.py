"""Networks that were captured under this home, a row each; without one, what a network is and how it is captured."""

from __future__ import annotations

import streamlit as st

from pages.parts import access, network_folders, wording
from pages.parts.network import network_kernels
from pages.parts.widgets import table
from storage.networks import files, in_network, proofs, ranking
from storage.networks.files import NetworkError, NetworkFolder
from storage.networks.records import Network, NetworkState
from storage.networks.standing import Standing

COLUMNS = [
    table.Column("name", "Network"),
    table.Column("state", "State"),
    table.Column("mode", "Mode"),
    table.Column("device", "Measured on"),
    table.Column("workloads", "Workloads", "right"),
    table.Column("worth", "Regions worth a kernel", "right"),
    table.Column("faster", "With kernels", "right", "over the best alternative, measured in the network"),
    table.Column("when", "Captured", "right"),
]
TONES: dict[NetworkState, wording.Tone] = {
    NetworkState.CAPTURING: "blue",
    NetworkState.CAPTURED: "green",
    NetworkState.FAILED: "red",
    NetworkState.BROKEN_OFF: "violet",
}
ICONS = {
    NetworkState.CAPTURING: "running",
    NetworkState.CAPTURED: "finished",
    NetworkState.FAILED: "failed",
    NetworkState.BROKEN_OFF: "lost",
}
NO_NETWORKS = (
    "No network has been captured here. A network is your PyTorch model as a whole. A capture calls it with your own "
    "inputs, measures what each of its modules takes, and groups equal places into regions, each a task of its own: "
    "this page then shows which of them are worth a kernel, and how fast the whole could be. Capture one "
    "{how}; it appears here by itself. `make` is a function of yours in `app.py` that "
    "returns the network and a list of workloads: for each a name, a weight (how often it is called, against the "
    "others), `args` and `kwargs`."
)
IN_TERMINAL = "from a terminal with the command below"
COMMAND = "python -m engine network capture app.py:make"


def draw() -> str | None:
    """The table; the name of the network opened just now, if any."""
    networks = files.all_networks()
    with st.container():
        if networks:
            rows = [
                table.Row(folder.name, _cells(folder), f"networks?network={wording.in_address(folder.name)}")
                for folder in networks
            ]
            return table.draw("Networks", COLUMNS, rows, key="networks", is_cards=True)
        how = f"with *New network* above, or {IN_TERMINAL}" if access.may_steer() else IN_TERMINAL
        st.info(NO_NETWORKS.format(how=how), icon=":material/account_tree:")
        st.code(COMMAND, language=None, wrap_lines=True)
    return None


def _cells(folder: NetworkFolder) -> dict[str, table.Cell]:
    try:
        stands = network_folders.read(folder)
    except NetworkError as error:
        damaged = table.pill("damaged", "red", "broken", str(error), "cannot be read: delete it and capture it again")
        return {"name": table.link(folder.name), "state": damaged}
    return {
        "name": table.link(folder.name, wording.cut(stands.entry, 70)),
        "state": state_cell(stands),
        **_captured(stands),
    }


def state_cell(stands: Standing) -> table.Cell:
    """Where a network stands, as a pill with what a capture does, or why there is none."""
    if stands.network is not None and stands.network.is_example:
        return table.pill("example", "gray", "finished", in_network.origin(stands.network))
    return table.pill(
        stands.state, TONES[stands.state], ICONS[stands.state], stands.words, wording.cut(stands.words, 90)
    )


def _captured(stands: Standing) -> dict[str, table.Cell]:
    if (network := stands.network) is None:
        return {}
    rows = ranking.ranked(network, stands.limits)
    return {
        "mode": network.mode,
        "device": network.device,
        "workloads": wording.count(len(network.workloads)),
        "worth": f"{sum(row.is_worth_it for row in rows)} of {len(rows)}",
        "faster": _faster(network, stands),
        "when": table.age(network.captured_at),
    }


def _faster(network: Network, stands: Standing) -> table.Cell:
    """What kernels bring to the whole, or that they are being measured."""
    if stands.is_proving:
        return table.pill("measuring", "blue", "running")
    stack = stands.proof.stack if stands.proof else None
    if stack is None:
        return None
    total = proofs.total(stack.best, proofs.weights_of(network))
    return network_kernels.effect_cell(total) if total else table.text("none pays", "muted")
