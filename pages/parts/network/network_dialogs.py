"""What a person does about networks, each in a dialog: capture one, start runs for regions, delete one."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from engine import supervisor
from engine.errors import EngineError
from engine.evaluator import tasks
from pages.parts import access, network_folders, wording
from pages.parts.new_run import budget_form
from pages.parts.new_run import setup as setup_form
from pages.parts.new_run.setup import Setup
from pages.parts.steering import dialogs, steer
from pages.parts.steering.dialogs import Dialog
from storage.networks import files
from storage.networks.files import NetworkError, NetworkFolder
from storage.networks.records import Network, RegionRun
from storage.run.settings import Budget

MODES = {"eval": "evaluation", "train": "training"}
NO_RECORDING = "Recorded replies exist for shipped tasks alone: choose another model."
ENTRY_HELP = (
    "A file of yours and the function in it that returns the network and a list of workloads (name, weight, args, "
    "kwargs), as /path/to/app.py:make; or package.module:make; or hf: and the configuration of a transformers model."
)


def ask_capture() -> None:
    """Open the form of a new network."""
    dialogs.ask(Dialog.CAPTURE)


def ask_delete(name: str) -> None:
    """Open the question whether a network is to be deleted."""
    dialogs.ask(Dialog.DELETE_NETWORK, subject=name)


def ask_start(name: str, regions: Sequence[str]) -> None:
    """Open the form of runs for these regions."""
    dialogs.ask(Dialog.START_REGIONS, subject="\n".join([name, *regions]))


def draw() -> None:
    """Draw what is open; for the page itself, after its live part."""
    asked = dialogs.opened()
    if asked is None or not access.may_steer():
        return
    if asked.dialog is Dialog.CAPTURE:
        _capture()
    elif asked.dialog is Dialog.DELETE_NETWORK:
        _delete(asked.subject)
    elif asked.dialog is Dialog.START_REGIONS:
        name, *regions = asked.subject.split("\n")
        _start(name, regions)


@st.dialog("New network", icon=":material/account_tree:", on_dismiss=dialogs.close)
def _capture() -> None:
    entry = st.text_input("Entry", key="network_entry", placeholder="/path/to/app.py:make", help=ENTRY_HELP)
    name = st.text_input("Name", key="network_name", placeholder="as the file is called")
    row = st.container(horizontal=True, gap="medium")
    mode = row.segmented_control(
        "Mode", list(MODES), default="eval", required=True, key="network_mode", format_func=MODES.__getitem__
    )
    devices = ["cpu", *(["cuda"] if not supervisor.available_toolchains().get("cuda", "none") else [])]
    device = row.segmented_control("Device", devices, default=devices[-1], required=True, key="network_device")
    st.caption("The capture imports your file and calls your network, as you would. It may take minutes.")
    if dialogs.buttons("capture", "Capture", ":material/play_arrow:"):
        try:
            with st.spinner("Starting the capture"):
                folder = supervisor.capture_network(entry, name, str(mode), str(device))
        except EngineError as error:
            st.error(wording.sentence(str(error)), icon=":material/error:")
            return
        dialogs.close()
        st.switch_page("networks.py", query_params={"network": folder.name})


@st.dialog("Delete the network", icon=":material/delete:", on_dismiss=dialogs.close)
def _delete(name: str) -> None:
    try:
        folder = files.find(name)
    except NetworkError:
        dialogs.leave()
    size = dialogs.hold("size", lambda: files.size_of(folder))
    st.markdown(
        f"**{wording.plain(name)}** with its tasks and recorded tensors, {wording.quantity(float(size), 'B')}. This "
        "cannot be undone. Runs of its regions stay."
    )
    if dialogs.buttons("delete_network", "Delete", ":material/delete:"):
        try:
            files.delete(folder)
        except (NetworkError, OSError) as error:
            st.error(wording.sentence(str(error)), icon=":material/error:")
            return
        steer.say(f"Deleted network {name}.")
        dialogs.close()
        st.switch_page("networks.py")


@st.dialog("Start runs", width="large", icon=":material/play_arrow:", on_dismiss=dialogs.close)
def _start(name: str, regions: Sequence[str]) -> None:
    try:
        folder = files.find(name)
        network = network_folders.read(folder).network
    except NetworkError:
        network = None
    if network is None:
        dialogs.leave()
        return
    st.markdown(f"**{wording.plain(', '.join(regions))}** of {wording.plain(name)}")
    st.caption(wording.plain(f"Captured on {network.device}."))
    setup, wrong = setup_form.draw(), list[str]()
    budget = budget_form.draw(setup, "", wrong)
    why_not = wrong[0] if wrong else NO_RECORDING if setup.model == "recorded" else ""
    if why_not:
        st.warning(wording.plain(why_not), icon=":material/warning:")
    label = f"Start {wording.counted(len(regions), 'run')}"
    if dialogs.buttons("start_regions", label, ":material/play_arrow:", may=not why_not) and not why_not:
        _start_all(folder, network, regions, setup, budget)


def _start_all(folder: NetworkFolder, network: Network, regions: Sequence[str], setup: Setup, budget: Budget) -> None:
    """One after the other; where one cannot be started, those before it go on and the form stays for the others."""
    started: list[str] = []
    chosen = [region for region in network.regions if region.name in regions and region.task]
    try:
        for region in chosen:
            with st.spinner(f"Starting the run for {region.name}"):
                started.append(start(folder, region.name, str(folder.path / region.task), setup, budget))
    except (EngineError, OSError) as error:
        before = f"{wording.counted(len(started), 'run')} started before: {', '.join(started)}. " if started else ""
        st.error(wording.plain(before) + wording.sentence(str(error)), icon=":material/error:")
        ask_start(folder.name, [region.name for region in chosen[len(started) :]])
        return
    dialogs.close()
    if len(started) == 1:
        st.switch_page("run.py", query_params={"run": started[0]})
    steer.say(f"Started {wording.counted(len(started), 'run')}.")
    st.rerun()


def start(folder: NetworkFolder, region: str, task: str, setup: Setup, budget: Budget) -> str:
    """Start a run for a region and note that in the network's folder; the run's id.

    Raises:
        EngineError: it cannot be started; the message says why.
        OSError: the folder may not be written.
    """
    settings = supervisor.new_settings(
        task, toolchain=setup.toolchain, model=setup.model, strategy=setup.strategy.name,
        options=setup.strategy.options, knowledge=setup.strategy.knowledge, language=setup.language,
        device=setup.device, budget=budget,
    )  # fmt: skip
    supervisor.see_that_money_can_be_kept(settings)
    supervisor.see_that_it_fits(settings, tasks.find(task))
    run_id = supervisor.start(settings).run_id
    files.append(folder, RegionRun(region, run_id))
    return run_id
